# SPDX-License-Identifier: Apache-2.0
"""Documents of different lengths packed into rows of one length, for language models.

>>> import headrace as hr
>>> documents = [{"tokens": [5, 6, 7]}, {"tokens": [8, 9]}]
>>> src = hr.packed(hr.open(documents, shapes={"tokens": (-1,)}), length=6, pad=1)
>>> row = src[0]
>>> row["tokens"].tolist(), row["targets"].tolist()
([5, 6, 7, 8, 9, 1], [6, 7, -100, 9, -100, -100])
>>> row["position_ids"].tolist(), row["cu_seqlens"].tolist()
([0, 1, 2, 0, 1, 0], [0, 3, 5, 6])
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headrace import _core, arguments
from headrace.dtypes import dtype_name
from headrace.errors import declare
from headrace.sources.opening import open
from headrace.sources.packed_samples import Preparation
from headrace.sources.packed_stream import pack_stream
from headrace.sources.recipe import Recipe, makes_sources
from headrace.sources.source import Progress, Source
from headrace.sources.stream import Stream

_NO_TOKENS = declare(
    "HR0192",
    "config",
    "field of tokens not found",
    "hr.packed() packs a one-dimensional integer field. If a source has "
    "several, and none is named input_ids or tokens, select it: hr.packed(src, tokens=...).",
)

_METHODS = ("best-fit", "first-fit", "sequential", "split")
_DTYPES = ("int64", "int32", "uint16", "uint32")
_OF_ENGINE = ("tokens", "length", "method", "too_long", "pad", "ignore_index", "seed")


@makes_sources
def packed(
    source: Any,
    tokens: str | None = None,
    *,
    length: int = 4096,
    method: str = "best-fit",
    too_long: str | None = None,
    shift: int | None = 1,
    labels: str | None = None,
    token_fields: Iterable[str] = (),
    to: Any = "int64",
    pad: int = 0,
    ignore_index: int = -100,
    seed: int = 0,
    mask: str | None = None,
    ignore_tokens: Iterable[int] = (),
    vocab_size: int | None = None,
    images: str | Iterable[str] = (),
    placeholder: int | None = None,
    expand: bool = True,
    image_transforms: Any = (),
    image_tokens: int | None = None,
    patches_per_token: int = 1,
    bad_images: str = "error",
    exif_orientation: bool | None = None,
    buffer: int = 1000,
    rows: int | None = None,
    progress: Progress | None = None,
) -> Source:
    """A source whose records are rows of ``length`` tokens, each filled with documents. source:
    documents, anything that ``open`` accepts, with a one-dimensional integer field. tokens: the
    name of that field. None: ``input_ids``, ``tokens``, or the only one.
    method: "best-fit": the longest document first, each into the fullest row that it fits;
    "first-fit": in order, each into the first row that it fits; "sequential": in order, a row ends
    where the next document does not fit; "split": in order, split wherever a row is full. too_long:
    what to do with a document longer than a row: "split", "truncate", "drop" or "error". Not used
    by the method "split". None: "split", or with images, which cannot be split, "error".
    shift: 1: adds ``targets``, the token that follows in the document. 0: ``input_ids`` and
    ``labels`` for models that shift labels themselves, like those of Hugging Face. None: no labels.
    labels: a field with one label per token, -100 in prompts. None: ``labels`` if there is such a
    field, otherwise the tokens. token_fields: additional fields with one value per token; 0 in
    padding. to: dtype of tokens and labels. pad: token id in padding. ignore_index: label of
    positions that are not predicted: after a document's end, and in padding. seed: decides the
    order of documents of equal length ("best-fit"). mask: a field with a boolean or integer per
    token: where it is 0, labels become ignore_index. ignore_tokens: ids whose labels become
    ignore_index, too. vocab_size: checks every id (HR1455). images: fields of encoded images. The
    document's tokens contain one ``placeholder`` id for each non-empty image, in the order of the
    fields, which is repeated once per token of the image; with expand=False, it is already
    repeated. These tokens are never labels. image_transforms: the list of T.EachImage in the
    loader: the number of an image's tokens is its number of patches divided by patches_per_token,
    from the size in its header; or give ``image_tokens``. bad_images: for an image whose header
    cannot be read, or that the transforms reject: "error" (HR1454), or "drop" its document.
    exif_orientation: whether to rotate images by their Exif orientation, both here and in the
    loader, unless that or T.EachImage sets it. None: as for a loader of ``source``. buffer, rows:
    for streams (``hr.stream``): number of documents that are read before their rows are chosen; and
    rows per epoch over all ranks, like ``length=`` of hr.stream. Additional fields:
    ``position_ids``, from 0 in each document; ``segment_ids``, 1, 2, ... and 0 in padding;
    ``cu_seqlens``, int32, the offsets of documents. With images: ``images``, those of the row, for
    T.EachImage; ``image_positions``, int64 (images), where each image's tokens begin in the row;
    ``image_sizes``, int64 (images, 2), height and width after the transforms. The rows are
    determined once, from the lengths; the loader shuffles them in each epoch. ``repr`` shows the
    fraction of tokens in rows, and how much was split or dropped. Raises ConfigError HR1450 for
    documents that cannot be packed.
    """
    documents = open(source)
    found = tokens if tokens is not None else _tokens_of(documents)
    if labels is None and shift is not None and _is_row(documents, "labels") and found != "labels":
        labels = "labels"
    preparation = Preparation(
        mask=mask,
        ignore_tokens=ignore_tokens,
        vocab_size=vocab_size,
        images=images,
        placeholder=placeholder,
        expand=expand,
        image_transforms=image_transforms,
        image_tokens=image_tokens,
        patches_per_token=patches_per_token,
        bad_images=bad_images,
        exif_orientation=exif_orientation,
    )
    preparation.check_labels(shift, labels)
    further = (
        [token_fields] if isinstance(token_fields, str) else [str(name) for name in token_fields]
    )
    call: dict[str, Any] = {
        "tokens": found,
        "length": arguments.integer("length", length, 1, arguments.INT32 - 1),
        "method": arguments.one_of("method", method, _METHODS),
        "too_long": preparation.too_long(too_long, method),
        "shift": None if shift is None else arguments.integer("shift", shift, 0, 1),
        "labels": labels,
        "token_fields": further,
        "to": arguments.one_of("to", dtype_name(to), _DTYPES),
        "pad": arguments.integer("pad", pad, -arguments.INT64),
        "ignore_index": arguments.integer("ignore_index", ignore_index, -arguments.INT64),
        "seed": arguments.seed(seed),
        **preparation.arguments,
    }
    arguments.integer("buffer", buffer, 1, arguments.INT32)
    if isinstance(documents, Stream):
        made = pack_stream(
            documents, lambda window: _rows_of(window, call, preparation, None), call, buffer, rows
        )
        made.upright = preparation.upright(documents)
        return made
    if rows is not None:
        raise arguments.BAD_VALUE.error(
            f"rows={rows} is for streams; {documents.facts().text} has numbered records"
        )
    return _rows_of(documents, call, preparation, progress)[0]


def _rows_of(
    documents: Source, call: Mapping[str, Any], preparation: Preparation, progress: Progress | None
) -> tuple[Source, dict[str, int]]:
    """The rows, and counts of what is not in them. call: the checked arguments of ``packed``."""
    engine, lost = _core.packed(
        documents.engine,
        **{name: call[name] for name in _OF_ENGINE},
        along=call["token_fields"],
        shift=-1 if call["shift"] is None else call["shift"],
        labels=call["labels"] or "",
        to=_core.DType.__members__[call["to"]],
        samples=preparation.of(documents, progress),
        progress=progress,
    )
    recipe = Recipe(packed, {"source": documents, **call})
    rows = Source(engine, made_of=[documents], recipe=recipe)
    rows.upright = preparation.upright(documents)
    return rows, lost


def _is_row(source: Source, name: str) -> bool:
    return any(field.name == name and _holds_integers(field) for field in source.schema)


def _holds_integers(field: _core.Field) -> bool:
    return (
        not field.encoded
        and len(field.shape) == 1
        and field.kind == "tensor"
        and "int" in field.dtype
    )


def _tokens_of(source: Source) -> str:
    rows = [field.name for field in source.schema if _holds_integers(field)]
    for usual in ("input_ids", "tokens"):
        if usual in rows:
            return usual
    if len(rows) == 1:
        return rows[0]
    fields = ", ".join(f"{field.name} {field.kind}" for field in source.schema)
    raise _NO_TOKENS.error(
        f"{len(rows) or 'no'} one-dimensional integer fields among {fields}",
        hint=f'tokens="{rows[0]}"' if rows else "tokenize text first",
    )
