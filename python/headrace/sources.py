# SPDX-License-Identifier: Apache-2.0
"""Sources: random-access collections of records.

>>> import headrace as hr
>>> src = hr.open([("a", 0), ("b", 1)])  # any object with len() and [i]
>>> len(src), src[1]["label"], src.column("label").tolist()
(2, 1, [0, 1])
"""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np

from headrace import _core, options
from headrace.errors import declare, did_you_mean, warn
from headrace.sampling import as_indices

_NOT_A_SOURCE = declare(
    "HR0154",
    "config",
    "not a source",
    "A source is a path that one of the formats recognizes, an object with len() and [i] (a list, "
    "a torch Dataset), or what headrace.open, folder, records, subset and split return.",
)
_NO_COLUMN = declare(
    "HR0155",
    "config",
    "no such column",
    "column() gives all values of an integer field, such as a label, without reading pictures. The "
    "source has no integer field of this name.",
)
_NOT_A_COLUMN = declare(
    "HR0156",
    "config",
    "not a column",
    "records() takes columns: lists of paths, lists of strings, and arrays or tensors of numbers "
    "whose first axis is the record.",
)

Progress = Callable[[int, int], object]


class Source:
    """Records by number. ``src[i]`` is a dictionary: image (C, H, W) uint8, label int, key str."""

    def __init__(
        self, engine: _core.Source, path: str = "", made_of: Iterable[Source] = ()
    ) -> None:
        self.engine = engine
        self.path = path  # that open() was given; empty for a source made of something else
        # Of this source and of those that it is made of.
        inner = tuple(path for source in made_of for path in source.paths)
        self.paths: tuple[str, ...] = (path, *inner) if path and path not in inner else inner

    def __len__(self) -> int:
        return len(self.engine)

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Source: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | Source:
        if isinstance(index, slice):
            return subset(self, range(len(self))[index])
        try:
            index = operator.index(index)
        except TypeError:
            raise TypeError(
                f'a record is named by its number (got {index!r}): src[0]["image"], '
                'src.column("label")'
            ) from None
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(f"record {index} of a source of {len(self)} records")
        stored = self.engine.read(number)
        record = {field.name: _delivered(field, stored[field.name]) for field in self.schema}
        record.setdefault("key", self.key(number))
        return record

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[i] for i in range(len(self)))

    @property
    def schema(self) -> list[_core.Field]:
        """The fields: name, kind, dtype, shape of one record's value (-1 where records differ)."""
        return self.engine.schema

    @property
    def classes(self) -> list[str]:
        """Names of the labels 0, 1, 2, ...; empty where the source has none."""
        return self.engine.classes

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The label of each class."""
        return {name: number for number, name in enumerate(self.classes)}

    @property
    def fingerprint(self) -> int:
        """Changes when the records change: part of every resume state."""
        return self.engine.fingerprint

    def with_kinds(self, kinds: Mapping[str, str]) -> Source:
        """The same records, with fields that mean something else to the steps.

        kinds: of fields, by name. "mask": a picture of class ids, which are resized without mixing
        and never recoloured; "image"; "boxes", "keypoints", "masks": tensors in the coordinates of
        the record's pictures, which no step may leave behind; "tensor"; "label". ConfigError HR0181
        where the values cannot be of the kind.

        >>> import numpy as np
        >>> pixels = np.zeros((3, 8, 8), np.uint8)
        >>> src = open([{"image": pixels, "seg": pixels[0]}])
        >>> src.with_kinds({"seg": "mask"})
        <Source list (1 records); fields image uint8 (3, 8, 8), seg mask uint8 (1, 8, 8)>
        """
        return Source(_core.with_kinds(self.engine, listed_kinds(kinds)), self.path, made_of=[self])

    def key(self, index: int) -> str:
        """What names the record for a person: a path, a member."""
        return self.engine.key(index)

    def column(self, name: str) -> np.ndarray[Any, np.dtype[np.int64]]:
        """All values of an integer field, without reading a picture."""
        integers = [f.name for f in self.schema if f.dtype == "int64" and f.shape == ()]
        if name not in integers:
            raise _NO_COLUMN.error(
                f"{name!r} is no integer field", hint=did_you_mean(name, integers)
            )
        values: np.ndarray[Any, np.dtype[np.int64]] = np.array(self.engine.integer_column(name))
        if len(values) != len(self):  # the source has no list of them: read the records
            values = np.array([self.engine.read(i)[name] for i in range(len(self))], np.int64)
        return values

    def __repr__(self) -> str:
        fields = ", ".join(map(_schema_text, self.schema))
        return f"<Source {described(self)}; fields {fields}>"


def described(source: Source) -> str:
    """The engine's words for it, on one line: "folder train (8 records, 2 classes)"."""
    return ", ".join(source.engine.description.split("\n"))


def _schema_text(field: _core.Field) -> str:
    """ "image", "label int64", "boxes float32 (?, 4)", "story text"."""
    words = [field.name]
    if field.kind in ("label", "tensor") or not (field.encoded or field.kind in ("text", "bytes")):
        words.append(str(field.dtype))
        if field.shape:
            words.append("(" + ", ".join("?" if n < 0 else str(n) for n in field.shape) + ")")
    if field.kind not in (field.name, "label", "tensor"):
        words.insert(1, str(field.kind))
    return " ".join(words)


def listed_kinds(kinds: Mapping[str, str] | None) -> list[str]:
    """{"seg": "mask"} as the engine takes it: ["seg=mask"]."""
    if kinds is not None and not isinstance(kinds, Mapping):
        raise _NOT_A_SOURCE.error(
            f"kinds= is {type(kinds).__name__}", hint='kinds={"seg": "mask", "boxes": "boxes"}'
        )
    return [f"{name}={kind}" for name, kind in (kinds or {}).items()]


def open(
    path: Any,
    *more: Any,
    progress: Progress | None = None,
    kinds: Mapping[str, str] | None = None,
    **params: Any,
) -> Source:
    """A source from a path, recognized by its content, or an object with ``len()`` and ``[i]``.

    path: also a pattern of several files ("train-*.tar") or a list of their paths.
    params: of the format (``headrace formats`` lists them), e.g. ``classes=`` of a folder.
    kinds: what fields mean, where the container does not know it: ``{"seg": "mask"}``, see
    ``Source.with_kinds``.
    progress: called with (done, total or -1) while a large dataset is listed.
    """
    if more:
        raise _NOT_A_SOURCE.error(
            f"open() takes one source, and keywords (got {1 + len(more)} arguments)",
            hint="hr.open([path, path]) for several files of one dataset, hr.concat(a, b) for "
            "several datasets",
        )
    if isinstance(path, Source):
        return path.with_kinds(kinds) if kinds else path
    if isinstance(path, (list, tuple)) and ("format" in params or _are_paths(path)):
        path = "\n".join(os.fspath(one) for one in path)  # as the engine takes several
    if isinstance(path, (str, os.PathLike)):
        arguments = {name: _plain(value) for name, value in params.items()}
        if kinds is not None:
            arguments["kinds"] = listed_kinds(kinds)
        engine = _core.open(os.fspath(path), arguments, progress)
        for text in engine.cautions:
            warn(text)
        return Source(engine, os.fspath(path))
    if type(path).__module__.partition(".")[0] == "datasets" and hasattr(path, "data"):
        from headrace.arrow_files.tables import source_of_dataset

        params.pop("format", None)
        engine = source_of_dataset(path, **params)
        return Source(_core.with_evident_kinds(engine, listed_kinds(kinds)))
    if hasattr(path, "__len__") and hasattr(path, "__getitem__"):
        from headrace.objects import source_from_object

        return source_from_object(path, kinds=kinds, **params)
    if isinstance(path, Iterator):
        raise _NOT_A_SOURCE.error(
            f"a {type(path).__name__} gives its values once and has no [i]",
            hint="list(...) of it; paths of a folder come in order by sorted(...)",
        )
    raise _NOT_A_SOURCE.error(
        f"{type(path).__name__} is neither a path nor an object with len() and [i]",
        hint="hr.open('train/'), hr.records(image=[...]), or an object with len() and [i]",
    )


_FILE_NAME = re.compile(
    r"[^\s:]+\.[A-Za-z]\w{0,9}"
)  # "train-00001.tar", not a sentence or an address


def _are_paths(values: Sequence[Any]) -> bool:
    """Whether a list is one of files to be read as one source, and not of records."""
    if not values or not all(isinstance(value, (str, os.PathLike)) for value in values):
        return False
    first = os.fspath(values[0])
    if _is_picture(first):
        raise _NOT_A_SOURCE.error(
            f"{type(values).__name__} of pictures' paths",
            hint="hr.records(image=[...], label=[...]) reads them",
        )
    # One that is there makes paths of all: a misspelt one must not make them text. Nor must a
    # folder that is misspelt, in which none is.
    some = [os.fspath(value) for value in values[:16]]
    named = all(map(_FILE_NAME.fullmatch, some))
    return isinstance(values[0], os.PathLike) or named or any(map(os.path.exists, some))


def subset(src: Any, indices: Any) -> Source:
    """Records of a source by number, in this order; a number may come twice."""
    src = open(src)
    chosen = _core.subset(src.engine, as_indices(indices, len(src)).tolist())
    return Source(chosen, made_of=[src])


def split(src: Any, *fractions: float, seed: int = 0, stratify_by: str = "") -> list[Source]:
    """Sources that share no record, drawn at random: ``train, val = hr.split(src, 0.9, 0.1)``.

    fractions: of the whole; what they leave goes nowhere. stratify_by: an integer field (a label)
    whose values every part gets in equal proportion.
    """
    src = open(src)
    parts_of = options.numbers("fractions", fractions)
    parts = _core.split(src.engine, parts_of, options.seed(seed), stratify_by)
    return [Source(part, made_of=[src]) for part in parts]


_PICTURES = ("image", "images", "mask", "masks")


def records(*, kinds: Any = None, **fields: Any) -> Source:
    """A source made of columns: ``hr.records(image=sorted(glob("*.jpg")), label=labels)``.

    A column is a list of paths (pathlib's, strings that end as pictures do, any strings named
    ``image`` or ``mask``), an array or tensor whose first axis is the record, or a list of strings;
    strings named ``label`` become classes.
    Arrays are not copied. kinds: what columns mean, where their names do not say it; see
    ``Source.with_kinds``. ConfigError when lengths differ.
    """
    columns = _core.ColumnList()
    for name, values in fields.items():
        if not hasattr(values, "__len__") or not hasattr(values, "__getitem__"):
            raise _NOT_A_COLUMN.error(
                f"{name} is a {type(values).__name__}, which has no len() and [i]",
                hint=f"{name}=sorted(...) or list(...) of it",
            )
        first = values[0] if len(values) else None
        as_picture = isinstance(first, str) and (name in _PICTURES or _is_picture(first))
        if as_picture or isinstance(first, os.PathLike):
            columns.add_paths(name, [os.fspath(path) for path in values])
        elif isinstance(first, str):
            columns.add_texts(name, [str(text) for text in values])
        else:
            array = _array_of(name, values)
            columns.add_array(name, array, array)
    return Source(_core.with_evident_kinds(columns.source(), listed_kinds(kinds)))


def _is_picture(path: str) -> bool:
    suffixes = {suffix for codec in _core.codecs().values() for suffix in codec["suffixes"]}
    return os.path.splitext(path)[1].lower() in suffixes


def _array_of(name: str, values: Any) -> np.ndarray[Any, Any]:
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    try:
        array = np.ascontiguousarray(values)
    except ValueError:
        array = np.empty(0, object)
    if array.dtype.name not in _core.DType.__members__ or not array.ndim:
        raise _NOT_A_COLUMN.error(
            f"{name} is {type(values).__name__} of {array.dtype}",
            hint="records of unequal shape: hr.open(a list of dictionaries)",
        )
    return array


def _delivered(field: _core.Field, value: Any) -> Any:
    """A stored value as people want to see it."""
    if field.encoded:
        return np.asarray(_core.decode(value, field.kind == "mask"))
    return np.asarray(value) if isinstance(value, _core.Array) else value


def _plain(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    return list(value) if isinstance(value, (tuple, range)) else value


def _open_in_python(format: str, files: list[str], arguments: dict[str, Any]) -> _core.Source:
    if format == "hdf5":
        from headrace import trusted_hdf5

        return trusted_hdf5.open_files(files, arguments)
    from headrace.arrow_files import tables

    return tables.open_files(format, files, arguments)


_core.set_host_opener(_open_in_python)
