# SPDX-License-Identifier: Apache-2.0
"""Verifies a traced table with real files.

``dataset[i]`` runs with its real functions; only its transforms are watched. Each transform's input
must be the file's image, opened and converted as recorded in the table, bit for bit; its result
must be in the record, as the same object; every other value must match the table. This is repeated
with another file's contents under each name. This detects what tracing cannot, such as
``type(image) is Image.Image``.
"""

from __future__ import annotations

import functools
import io
import os
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from headrace.migrate.look.columns import plain_value
from headrace.migrate.look.marks import Attempt, Left
from headrace.migrate.look.names import Names
from headrace.migrate.look.pictures import alike, opened
from headrace.migrate.look.recorders import Stand, clone
from headrace.migrate.look.row_files import RowFile
from headrace.migrate.look.stand_ins import put
from headrace.migrate.spread import spread
from headrace.printable import in_a_line

_RECORDS = 24
Leaves = Callable[[Any], list[Any]]


class Traced(Protocol):
    """The verified behavior."""

    @property
    def columns(self) -> Sequence[dict[str, Any]]: ...
    @property
    def deep(self) -> bool: ...


def prove(
    dataset: Any, table: Traced, leaves: Leaves, homes: list[str], say: Any
) -> tuple[str, int]:
    """Why the table is wrong, if it is, and the number of images compared. leaves: a record's
    values in column order.
    """
    picks = spread(len(dataset), _RECORDS)
    run = _Run(dataset, table, leaves, homes)
    try:
        for done, number in enumerate(picks):
            run.check(number)
            say(done, 2 * len(picks))
        run.swap(picks)
        for done, number in enumerate(picks):
            run.check(number)
            say(len(picks) + done, 2 * len(picks))
    except Left:
        return run.attempt.reason, 0
    except Exception as failure:
        return f"with real files it raises {in_a_line(failure)}", 0
    return "", run.compared


class _Call(NamedTuple):
    """A call of a transform: its input, copied before the call, and its result."""

    name: str
    given: Any
    before: Any
    returned: Any


class _Run:
    """The dataset with its transforms replaced by spies."""

    def __init__(self, dataset: Any, table: Traced, leaves: Leaves, homes: list[str]) -> None:
        columns = table.columns
        self.attempt = Attempt()
        self.compared = 0
        self._columns = columns
        self._leaves = leaves
        self._homes = homes
        self._contents: dict[str, str] = {}  # the path whose contents are used
        self.calls: list[_Call] = []
        self._reopened = functools.partial(open, mode="rb")
        self._opened: weakref.WeakSet[Any] = weakref.WeakSet()  # with another file's contents
        how = {op[1]: op[2] for c in columns for op in c.get("ops", ()) if op[0] == "call"}
        names = Names()

        def spy(name: str, real: Any) -> Any:
            known = names.of(name, real)
            return _Spy(known, real, self, how[known]) if known in how else real

        self._dataset = dataset
        self._spy = spy
        self._deep = table.deep
        self._copy = clone(dataset, spy, table.deep)
        for module in homes:
            names.replace(module, spy)

    def check(self, number: int) -> None:
        """Raises Left if record ``number`` is not made as recorded in the table."""
        self.attempt.record = number
        self.calls.clear()
        record = self._copy[number]
        calls = list(self.calls)
        for column, value in zip(self._columns, self._leaves(record), strict=True):
            if "paths" in column:
                self._check_picture(column, number, value, calls)
            else:
                self._check_value(column, number, value)
        if calls:
            raise self._other(number, f"{calls[0].name} is called, but its result is not used")

    def _check_value(self, column: dict[str, Any], number: int, value: Any) -> None:
        form, now = plain_value(value, self.attempt)
        then = column["values"][number]
        if form != column["form"] or not (now == then or now != now):
            raise self._other(number, "a value differs from the traced one")

    def _check_picture(
        self, column: dict[str, Any], number: int, value: Any, calls: list[_Call]
    ) -> None:
        """Traces a value in the record back to its file."""
        path = column["paths"][number]
        before = value
        for op in reversed([op for op in column["ops"] if op[0] == "call"]):
            call = next((c for c in calls if c.returned is value and c.name == op[1]), None)
            if call is None:
                raise self._other(number, f"it contains something other than what {op[1]} returned")
            calls.remove(call)
            value, before = call.given, call.before
        if not alike(opened(self._contents.get(path, path), column["ops"]), before):
            raise self._other(number, "it contains something other than the file's image")
        self.compared += 1

    def _other(self, number: int, what: str) -> Left:
        return self.attempt.leave(f"in record {number}, with its real file, {what}")

    def swap(self, picks: list[int]) -> None:
        """Gives each of the files the contents of another one."""
        paths = [c["paths"][n] for c in self._columns if "paths" in c for n in picks]
        paths = list(dict.fromkeys(paths))
        self._contents = dict(zip(paths, [*paths[1:], *paths[:1]], strict=True))
        self._copy = clone(self._dataset, self._spy, self._deep)  # whose cache is still empty
        put([vars(sys.modules[name]) for name in self._homes], self._swapped())

    def _swapped(self) -> dict[tuple[str, str], Any]:
        def swapping(real: Any) -> Any:
            def call(file: Any, *more: Any, **named: Any) -> Any:
                caller = sys._getframe(1).f_globals.get("__name__")
                wanted = self._other_file(file) if caller in self._homes else file
                out = real(wanted, *more, **named)
                return out if wanted is file else self._noted(out)

            return call

        def swapping_method(real: Any) -> Any:
            def call(path: Any, *more: Any, **named: Any) -> Any:
                caller = sys._getframe(1).f_globals.get("__name__")
                wanted = self._other_file(path) if caller in self._homes else path
                out = real(type(path)(wanted), *more, **named)
                return out if wanted is path else self._noted(out)

            return call

        names = [("PIL.Image", "open"), ("cv2", "imread"), ("builtins", "open")]
        for module in ("torchvision.io", "torchvision.io.image"):
            names += [(module, name) for name in ("read_file", "decode_image", "read_image")]
        methods = [("pathlib", "Path.open"), ("pathlib", "Path.read_bytes")]
        return {**dict.fromkeys(names, swapping), **dict.fromkeys(methods, swapping_method)}

    def _noted(self, file: Any) -> Any:
        """A file that already has the contents of another one."""
        if type(file) is io.BufferedReader:
            self._opened.add(file)
        return file

    def _other_file(self, file: Any) -> Any:
        if type(file) is io.BufferedReader and file not in self._opened and file.tell() == 0:
            path = self._contents.get(os.fspath(file.name))
            return file if path is None else self._reopened(path)
        if type(file) is RowFile:
            path = self._contents.get(file.path)
            return file if path is None else RowFile(path)
        if not isinstance(file, (str, os.PathLike)):
            return file
        path = os.fspath(file)
        return self._contents.get(path, file)


class _Spy(Stand):
    """Calls the original, and records its input and result."""

    def __init__(self, name: str, real: Any, run: _Run, how: tuple[Any, ...]) -> None:
        super().__init__(name, real, run.attempt)
        self.__dict__.update(own_calls=run.calls, own_how=how)

    def __call__(self, *args: Any, **named: Any) -> Any:
        how = self.own_how
        if not how:
            given = args[0]
        elif how[0] == "argument":
            given = args[how[1]]
        else:
            given = args[0][how[1]] if how[0] == "key" else named[how[1]]
        before = given.clone() if hasattr(given, "clone") else given.copy()
        out = self.own_real(*args, **named)
        returned = out if not how else out[how[-1] if how[0] == "keyword" else how[1]]
        self.own_calls.append(_Call(self.own_name, given, before, returned))
        return out
