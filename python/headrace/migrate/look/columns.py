# SPDX-License-Identifier: Apache-2.0
"""The records of a dataset, one column per value: a million records are a few dense arrays.

Column ``k`` is the ``k``-th value of the records' form (``headrace.migrate.nesting``). It is either
``Files`` (one file per record, and the operations on it), or numbers, arrays or text.
"""

from __future__ import annotations

import array
from typing import Any

import numpy as np

from headrace.migrate.look.marks import DIFFERS, Attempt, Mark, plain
from headrace.migrate.nesting import Node, node_of

_LARGEST = 16 << 10  # maximum bytes of an array in a record
_MOST = 1 << 30  # maximum bytes of all columns


class Files:
    """Paths, and the operations on their contents: which are the same for all of them."""

    def __init__(self, first: Mark, attempt: Attempt) -> None:
        self.kind = first.kind
        self.ops = plain(first.ops)
        self.paths: list[str] = []
        self._last = first.ops  # the last value, for a faster comparison
        self._attempt = attempt

    def append(self, value: Any) -> int:
        self._check(value)
        self.paths.append(value.path)
        return 64 + len(value.path)

    def matches(self, number: int, value: Any) -> bool:
        self._check(value)
        return bool(self.paths[number] == value.path)

    def _check(self, value: Any) -> None:
        if type(value) is Mark and value.ops != self._last:
            if plain(value.ops) != self.ops:
                raise self._attempt.leave(
                    f"record {self._attempt.record} is made in a different way from record 0"
                )
            self._last = value.ops
        elif type(value) is not Mark:
            raise _other(self._attempt, "no image of a file")

    def sent(self) -> dict[str, Any]:
        return {"kind": self.kind, "ops": self.ops, "paths": self.paths}


class Values:
    """Numbers, arrays of one shape, texts or bytes."""

    def __init__(self, first: Any, attempt: Attempt) -> None:
        self._attempt = attempt
        self.form, _ = plain_value(first, attempt)
        one = {"int": "q", "float": "d"}.get(self.form[0])
        self.values: Any = array.array(one) if one else []

    def append(self, value: Any) -> int:
        form, value = plain_value(value, self._attempt)
        if form != self.form:
            raise _other(self._attempt, f"{_named(form)}, record 0 has {_named(self.form)}")
        try:
            self.values.append(value)
        except OverflowError:
            raise _other(
                self._attempt, f"the number {value}, which does not fit into 64 bits"
            ) from None
        return 8 if self.form[0] in ("int", "float") else 64 + len(value)

    def matches(self, number: int, value: Any) -> bool:
        form, value = plain_value(value, self._attempt)
        return bool(form == self.form and (self.values[number] == value or value != value))

    def sent(self) -> dict[str, Any]:
        return {"form": self.form, "values": self.values}


Form = tuple[Any, ...]  # ("int", dtype), ("float", dtype), ("text",), ("bytes",), ("array", ...)


def plain_value(value: Any, attempt: Attempt) -> tuple[Form, Any]:
    """A value's kind, and the value as stored in a column."""
    kind = type(value)
    if kind is int:
        return _INT, value
    if kind is str:
        return _TEXT, value
    if kind is float:
        return _FLOAT, value
    if kind is bool:
        return ("int", "bool"), int(value)
    if kind is bytes:
        return ("bytes",), value
    if kind is Mark:
        raise _other(attempt, "an image of a file, but record 0 has none")
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    elif isinstance(value, (list, tuple)):
        value = np.asarray(value)
    if not isinstance(value, (np.ndarray, np.generic)) or value.dtype.kind not in "biuf":
        raise _other(attempt, f"a {kind.__module__}.{kind.__qualname__}")
    if value.nbytes > _LARGEST:
        raise attempt.leave(
            f"record {attempt.record} holds an array of {value.nbytes:,} bytes that come from no "
            f"file",
            "hr.records(NAME=array) of all records",
        )
    if value.shape == ():
        word = "float" if value.dtype.kind == "f" else "int"
        return (word, value.dtype.name), value.item()
    return ("array", value.dtype.name, value.shape), value.tobytes()


_INT, _FLOAT, _TEXT = ("int", "int64"), ("float", "float64"), ("text",)


def _named(form: Form) -> str:
    if form[0] == "array":
        return f"an array of {form[1]} {form[2]}"
    return f"{form[1]}" if len(form) > 1 else str(form[0])


def _other(attempt: Attempt, what: str) -> BaseException:
    return attempt.leave(f"record {attempt.record} has {what}")


class Table:
    """Columns that grow one record at a time."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self.node: Node | None = None
        self.columns: list[Files | Values] = []
        self._bytes = 0

    def append(self, number: int, record: Any) -> None:
        """REQUIRES: number is the current length."""
        if self.node is None:
            self.node = node_of(_without_marks(record))
            self.columns = [
                Files(value, self._attempt) if type(value) is Mark else Values(value, self._attempt)
                for value in self.node.leaves(record, self._other_form)
            ]
        leaves = self.node.leaves(record, self._other_form)
        for column, value in zip(self.columns, leaves, strict=True):
            self._bytes += column.append(value)
        if self._bytes > _MOST:
            raise self._attempt.leave(f"its records hold more than {_MOST >> 30} GiB")

    def check(self, number: int, record: Any) -> None:
        """Raises Left if the record differs from when it was first read."""
        assert self.node is not None
        leaves = self.node.leaves(record, self._other_form)
        for column, value in zip(self.columns, leaves, strict=True):
            if not column.matches(number, value):
                raise self._attempt.leave(f"record {number}{DIFFERS}", state=True)

    def row(self, record: Any) -> list[Any]:
        """The row's values, in a comparable form."""
        assert self.node is not None
        return [
            (value.path, plain(value.ops))
            if type(value) is Mark
            else plain_value(value, self._attempt)
            for value in self.node.leaves(record, self._other_form)
        ]

    def _other_form(self) -> BaseException:
        return _other(self._attempt, "a different form from record 0")

    def sent(self) -> list[dict[str, Any]]:
        return [column.sent() for column in self.columns]


_A_PICTURE = np.zeros((3, 1, 1), np.uint8)


def _without_marks(value: Any) -> Any:
    """The same form, with an array for each image: determines the field names."""
    kind = type(value)
    if kind is Mark:
        return _A_PICTURE
    if issubclass(kind, dict):
        return {key: _without_marks(each) for key, each in value.items()}
    if issubclass(kind, (tuple, list)):
        inner = [_without_marks(each) for each in value]
        return kind(*inner) if hasattr(kind, "_fields") else inner
    return value


def numpy_column(sent: dict[str, Any]) -> Any:
    """The values of a column: an array, or a list of texts or bytes."""
    form, values = sent["form"], sent["values"]
    if form[0] == "array":
        shape = (len(values), *form[2])
        return np.frombuffer(b"".join(values), form[1]).reshape(shape)
    if form[0] in ("int", "float"):
        return np.asarray(values).astype(form[1])
    return list(values)
