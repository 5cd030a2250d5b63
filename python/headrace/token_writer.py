# SPDX-License-Identifier: Apache-2.0
"""Tokenizes texts once, with the user's tokenizer, to a file that ``headrace.tokens`` reads.

>>> import headrace as hr, os, tempfile
>>> texts = hr.records(text=["ab", "c"])
>>> path = os.path.join(tempfile.mkdtemp(), "train.bin")
>>> report = hr.write_tokens(texts, path, lambda texts: [list(map(ord, t)) for t in texts], eos=0)
>>> report["documents"], report["tokens"]
(2, 5)
>>> [record["tokens"].tolist() for record in hr.tokens(path, window=None)]
[[97, 98, 0], [99, 0]]
"""

from __future__ import annotations

import contextlib
import os
import pickle
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from headrace import arguments
from headrace.dtypes import dtype_name
from headrace.errors import declare
from headrace.loader import Loader
from headrace.sources import Progress, Source, open
from headrace.transforms import Python
from headrace.whole_file import replaced, sync

_NOT_WRITTEN = declare(
    "HR0193",
    "config",
    "texts cannot be written as tokens",
    "hr.write_tokens() calls the tokenizer with a list of texts, and expects one list of token "
    "ids per text, which must fit into dtype. The source must have a text field, and the path "
    "must end with .bin; the .idx file next to it records where documents end.",
)

Tokenizer = Callable[[list[str]], Sequence[Any]]

# Dtype numbers in Megatron's .idx.
_CODES = {"uint8": 1, "uint16": 8, "int32": 4, "int64": 5}


def write_tokens(
    source: Any,
    path: str | os.PathLike[str],
    tokenizer: Tokenizer,
    *,
    field: str = "text",
    dtype: Any = "uint16",
    eos: int | None = None,
    batch: int = 256,
    python_workers: int = 0,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Tokenizes every text of a source once, to a ``.bin`` and an ``.idx`` in Megatron's format.
    source: what ``open`` takes, with a text field. path: path of the ``.bin``.
    tokenizer: takes a list of texts and returns a list of ids for each:
    ``lambda texts: tokenizer(texts)["input_ids"]`` of Hugging Face, ``encode_ordinary_batch`` of
    tiktoken. batch: texts per call.
    dtype: "uint16" for vocabularies below 65,536, otherwise "int32". eos: id added at the end of
    each document.
    python_workers: processes that tokenize; the function must be importable there.
    overwrite: replace both files; otherwise an existing file is an error.
    progress: called with (documents done, documents).

    Documents are in the order of the source. Both files appear once they are complete. Returns the
    numbers of documents and tokens, and the seconds. Raises ConfigError HR0193 if the path does not
    end with .bin, the files exist, ``field`` is not a text field, or the tokenizer returns
    something other than one list of ids that fit ``dtype`` per text.
    """
    texts = open(source)
    target = os.path.abspath(os.fspath(path))
    if not target.endswith(".bin"):
        raise _NOT_WRITTEN.error(f"the path does not end with .bin: {path!r}")
    index = target.removesuffix(".bin") + ".idx"
    there = [each for each in (target, index) if os.path.exists(each)]
    if there and not overwrite:
        raise _NOT_WRITTEN.error(f"{there[0]} exists", hint="overwrite=True replaces it")
    kind = next((each.kind for each in texts.schema if each.name == field), None)
    if kind != "text":
        raise _NOT_WRITTEN.error(
            f"{field!r} is {f'a field of kind {kind}, not text' if kind else 'not a field'}",
            hint='field="caption", or kinds={"caption": "text"} where the source is opened',
        )
    name = arguments.one_of("dtype", dtype_name(dtype), tuple(_CODES))
    end = None if eos is None else arguments.integer("eos", eos, 0, int(np.iinfo(name).max))
    workers = arguments.integer("python_workers", python_workers, 0, 1024)
    chunks = _Chunks(texts, field, arguments.integer("batch", batch, 1, 1 << 20))
    began = time.perf_counter()
    lengths: list[np.ndarray[Any, Any]] = []
    with _both_replaced(target, index) as (tokens_path, index_path):
        with Path(tokens_path).open("wb") as file:
            for number, (ids, counts) in enumerate(
                _tokenized(chunks, tokenizer, name, end, workers)
            ):
                file.write(ids.tobytes())
                lengths.append(counts)
                if progress is not None:
                    progress(min(len(texts), (number + 1) * chunks.size), len(texts))
        counts = np.concatenate(lengths) if lengths else np.zeros(0, np.int64)
        if len(counts) != len(texts):
            raise _NOT_WRITTEN.error(
                f"{len(counts):,} documents were tokenized, but the source has {len(texts):,}",
                hint="recreate the source, from data that does not change",
            )
        with Path(index_path).open("wb") as file:
            _write_index(file, counts, name)
        sync(tokens_path)
        sync(index_path)
    sync(os.path.dirname(target))
    return {
        "documents": len(counts),
        "tokens": int(counts.sum()),
        "seconds": round(time.perf_counter() - began, 3),
    }


@contextlib.contextmanager
def _both_replaced(target: str, index: str) -> Iterator[tuple[str, str]]:
    """Puts both files in place or none; an .idx is never next to the .bin of another run."""
    with contextlib.ExitStack() as on_failure:
        with replaced(index) as index_path:
            with replaced(target) as tokens_path:
                yield tokens_path, index_path
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(index)
            on_failure.callback(os.unlink, target)
        on_failure.pop_all()


class _Chunks:
    """A batch of texts as one record, pickled, so that it is passed to a process unchanged."""

    def __init__(self, source: Source, field: str, size: int) -> None:
        self.source, self.field, self.size = source, field, size

    def __len__(self) -> int:
        return -(-len(self.source) // self.size)

    def __getitem__(self, index: int) -> dict[str, bytes | int]:
        first = index * self.size
        last = min(first + self.size, len(self.source))
        read = self.source.engine.read
        texts = [read(number, self.field)[self.field] for number in range(first, last)]
        return {"texts": pickle.dumps(texts), "first": first}


class _Tokenize:
    """The tokenizer as a transform of such a record."""

    def __init__(self, tokenizer: Tokenizer, dtype: str, eos: int | None) -> None:
        self.tokenizer, self.dtype, self.eos = tokenizer, dtype, eos

    def __call__(self, texts: Any, first: int) -> dict[str, Any]:
        given: list[str] = pickle.loads(bytes(texts))
        documents = self.tokenizer(given)
        if len(documents) != len(given):
            raise _NOT_WRITTEN.error(
                f"the tokenizer returned {len(documents)} documents for {len(given)} texts",
                hint="return one list of ids per text",
            )
        rows = [self._ids(ids, first + number) for number, ids in enumerate(documents)]
        counts = np.array([len(row) for row in rows], np.int64)
        return {"ids": np.concatenate(rows), "counts": counts}

    def _ids(self, given: Any, number: int) -> np.ndarray[Any, Any]:
        ids = np.asarray(given)
        if ids.size == 0:
            ids = ids.astype(np.int64).reshape(-1)
        if ids.ndim != 1 or ids.dtype.kind not in "iu":
            raise _NOT_WRITTEN.error(
                f"the tokenizer returned {ids.dtype} of shape {ids.shape} for text {number}",
                hint='return one-dimensional ids, in Hugging Face tokenizer(texts)["input_ids"]',
            )
        limits = np.iinfo(self.dtype)
        if ids.size and (ids.min() < 0 or ids.max() > limits.max):
            bad = int(ids.max() if ids.max() > limits.max else ids.min())
            raise _NOT_WRITTEN.error(
                f"text {number} has the token {bad}, which does not fit into {self.dtype}",
                hint='dtype="int32"',
            )
        return np.append(ids, () if self.eos is None else self.eos).astype(self.dtype)


def _tokenized(
    chunks: _Chunks, tokenizer: Tokenizer, dtype: str, eos: int | None, workers: int
) -> Iterator[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """Ids of a batch of documents, concatenated, and the length of each; in order."""
    step = Python(
        _Tokenize(tokenizer, dtype, eos),
        returns={"ids": (dtype, (-1,)), "counts": ("int64", (-1,))},
        fields=("texts", "first"),
    )
    loader = Loader(
        open(chunks, kinds={"texts": "bytes"}),
        [step],
        batch_size=1,
        fields=("ids", "counts"),
        ragged="list",
        python_workers=workers,
        shard=False,  # this process writes all of them, regardless of ranks
    )
    with loader:
        for batch in loader:
            yield batch.ids[0], batch.counts[0]


def _write_index(file: IO[bytes], lengths: np.ndarray[Any, Any], dtype: str) -> None:
    if lengths.size and lengths.max() > arguments.INT32:
        raise _NOT_WRITTEN.error(f"a document has {int(lengths.max()):,} tokens, too many for .idx")
    begins = (np.cumsum(lengths) - lengths) * np.dtype(dtype).itemsize
    file.write(b"MMIDIDX\0\0")
    file.write(struct.pack("<QBQQ", 1, _CODES[dtype], len(lengths), len(lengths) + 1))
    file.write(lengths.astype("<i4").tobytes())
    file.write(begins.astype("<i8").tobytes())
    file.write(np.arange(len(lengths) + 1, dtype="<i8").tobytes())
