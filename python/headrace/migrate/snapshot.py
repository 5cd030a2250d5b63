# SPDX-License-Identifier: Apache-2.0
"""Snapshots of objects, which report later differences.

An object is traversed through its attributes, entries and closures, the user's classes and
functions, and the globals that these use. Lists and dictionaries of plain values are compared with
a copy, at a few ns per entry; arrays by a hash, at about 10 GB/s; objects one by one, at about 10
us per part; files, generators and other objects of the standard library by identity. Objects beyond
the limits below are also compared by identity, and listed in ``left_out``.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Collection, Mapping
from typing import Any

from headrace.migrate.held import (
    Array,
    Copied,
    Held,
    Nested,
    Thing,
    Value,
    Whole,
    are_values,
    entries_of,
    full,
    is_array,
    is_copied,
    is_value,
    size_of,
)
from headrace.migrate.parts import is_namespace, is_thing, names_in, parts_of

_OBJECTS = 100_000  # parts that are traversed one by one, in about a second
_ARRAYS = 2 << 30  # bytes
_NESTED = 64 << 20  # bytes of nested lists and the like, as marshalled
_FEW = 64  # entries that are traversed one by one, so that a change can be named
_DEEPEST = 100  # objects in objects
_BY_NAME = {"getattr", "vars", "__dict__"}  # names of attributes that code accesses indirectly


class Snapshot:
    """The objects reachable from the roots, by the names used in messages. roots: functions that
    return each root. current: objects whose state is read on every use, so that only replacing them
    counts as a change. without: names of parts that may change."""

    def __init__(
        self,
        roots: Mapping[str, Callable[[], Any]],
        current: Collection[Any] = (),
        without: Collection[str] = (),
    ) -> None:
        self._roots = dict(roots)
        self._without = frozenset(without)
        self.left_out: list[str] = []
        self._seen = {id(each): each for each in current}  # kept alive, so that ids are not reused
        self._objects, self._arrays, self._nested = _OBJECTS, _ARRAYS, _NESTED
        self._names: set[str] = set()  # globals of the user's code
        self._namespaces: list[Whole] = []
        self._held = {name: self._of(name, root(), 0) for name, root in self._roots.items()}
        if not self._names & _BY_NAME:
            for whole in self._namespaces:
                whole.skips = lambda part: part.removeprefix(".") not in self._names

    def change(self) -> str:
        """A sentence about something that has changed; empty if nothing has."""
        for name, held in self._held.items():
            if change := held.change(self._roots[name]()):
                return change
        return ""

    def _of(self, name: str, value: Any, depth: int) -> Held:
        if is_value(value):
            return Value(name, value)
        if id(value) in self._seen:  # reported under the name where it was found first
            return Thing(name, value)
        self._seen[id(value)] = value
        if is_array(value):
            return self._array(name, value)
        if is_thing(value):
            return Thing(name, value)
        if is_copied(value):
            if are_values(entries_of(value)):
                return Copied(name, value)
            if len(value) > _FEW and (nested := self._many(name, value)) is not None:
                return nested
        return self._whole(name, value, depth)

    def _whole(self, name: str, value: Any, depth: int) -> Held:
        if self._objects <= 0 or depth > _DEEPEST:
            self.left_out.append(name)
            return Thing(name, value)
        if isinstance(value, types.FunctionType):
            names = names_in(value.__code__)
            self._names.update(names.globals, names.others)
        parts: dict[str, Held] = {}
        whole = Whole(name, value, parts)
        for part, each in parts_of(value).items():
            self._objects -= 1
            if full(name, part) not in self._without:
                parts[part] = self._of(full(name, part), each, depth + 1)
        if any(each.startswith(name) for each in self._without):
            whole.skips = lambda part: full(name, part) in self._without
        if is_namespace(value):
            self._namespaces.append(whole)
        return whole

    def _array(self, name: str, value: Any) -> Held:
        contents = size_of(value) <= self._arrays
        if contents:
            self._arrays -= size_of(value)
        else:
            self.left_out.append(name)
        return Array(name, value, contents)

    def _many(self, name: str, value: Any) -> Held | None:
        """A snapshot of many entries; None if they are objects."""
        if self._nested > 0:
            try:
                nested = Nested(name, value)
            except ValueError:
                return None
            self._nested -= nested.bytes
            if self._nested >= 0:
                return nested
        self.left_out.append(name)
        return Copied(name, value)
