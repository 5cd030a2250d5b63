# SPDX-License-Identifier: Apache-2.0
"""Snapshots of transforms, at each of their calls.

A translation converts transforms in their current state. A ``__getitem__`` that sets ``flip.p`` for
some records, and restores it, would be traced incorrectly. So everything that a transform can read,
down to single numbers, is recorded before the first record, and compared whenever the transform is
called.
"""

from __future__ import annotations

import collections
import enum
import functools
import operator
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from headrace.migrate.generators import is_generator, state_of
from headrace.migrate.look.marks import Mark
from headrace.migrate.modules import is_users
from headrace.migrate.parts import names_in

_MOST = 200_000  # maximum number of objects
_PLAIN = (int, float, complex, str, bytes, bool, types.NoneType, range, slice, enum.Enum)
_CONTAINERS = (dict, list, set, collections.deque, bytearray)
# Attributes of torch's modules that no call reads, or only if gradients are needed.
_NOT_CALLED = (
    "_backward_hooks",
    "_backward_pre_hooks",
    "_forward_hooks_always_called",
    "_load_state_dict_post_hooks",
    "_load_state_dict_pre_hooks",
    "_non_persistent_buffers_set",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
)
_FOREIGN_CLASSES = ("builtins", "abc", "typing", "enum", "torch.nn.modules.module")


class _Unwatchable(Exception):
    """A value that cannot be compared; the message names the value."""


class Snapshot:
    """The contents of objects, by name. apart: ids of objects whose copies run: an object that
    refers to the originals would not see changes of the copies. unwatched: reasons why some are not
    watched.
    """

    def __init__(self, roots: Mapping[str, Any], apart: Iterable[int] = ()) -> None:
        self._names: list[str] = []
        self._lives: list[Any] = []  # containers,
        self._copies: list[Any] = []  # and their contents
        self._asked_names: list[str] = []
        self._asked: list[Callable[[], Any]] = []  # other objects,
        self._answers: list[Any] = []  # and their state
        self._apart = frozenset(apart)
        self._seen: dict[int, Any] = {}  # keeps the object alive, so that its id is not reused
        self.unwatched: dict[str, str] = {}
        for name, value in roots.items():
            before = dict(self._seen)
            try:
                self._walk(name, value)
            except _Unwatchable as why:
                self.unwatched[name] = str(why)
                self._seen = before

    def watch(self, name: str, live: Any) -> None:
        """Watches a container, but not the contents of its values."""
        self._names.append(name)
        self._lives.append(live)
        self._copies.append(dict(live) if hasattr(live, "keys") else type(live)(live))

    def changed(self) -> str:
        """The name of something that has changed; empty if nothing has."""
        try:
            if self._lives == self._copies and not self._answered_otherwise():
                return ""
        except Exception:
            pass  # values that cannot be compared count as changed
        for name, live, copy in zip(self._names, self._lives, self._copies, strict=True):
            if not _equal(live, copy):
                return f"{name}{_entry(live, copy)}"
        return self._answered_otherwise()

    def _answered_otherwise(self) -> str:
        for name, ask, answer in zip(self._asked_names, self._asked, self._answers, strict=True):
            if not _equal(ask(), answer):
                return name
        return ""

    def _ask(self, name: str, ask: Callable[[], Any]) -> None:
        self._asked_names.append(name)
        self._asked.append(ask)
        self._answers.append(ask())

    def _walk(self, name: str, value: Any) -> None:
        waiting = [(name, value)]
        while waiting:
            name, value = waiting.pop()
            if isinstance(value, _PLAIN) or id(value) in self._seen or type(value) is Mark:
                continue
            if id(value) in self._apart:
                raise _Unwatchable(f"{name} refers to the dataset, which may change it")
            self._seen[id(value)] = value
            if len(self._seen) > _MOST:
                raise _Unwatchable(f"it holds more than {_MOST:,} values")
            waiting += self._inside(name, value)

    def _inside(self, name: str, value: Any) -> Iterator[tuple[str, Any]]:
        """Watches one object, and returns the objects it contains."""
        kind = type(value)
        if isinstance(value, type):
            yield from self._of_class(name, value)
        elif isinstance(value, types.ModuleType):
            return
        elif isinstance(value, types.FunctionType):
            yield from self._of_function(name, value)
        elif isinstance(value, types.MethodType):
            yield from ((name, value.__self__), (name, value.__func__))
        elif isinstance(value, types.BuiltinFunctionType):
            yield name, value.__self__
        elif is_generator(value):
            self._ask(name, functools.partial(state_of, value))
        elif isinstance(value, np.ndarray):
            self._of_array(name, value)
        elif hasattr(kind, "_version") and hasattr(kind, "data_ptr"):
            self._ask(name, lambda: (value._version, value.data_ptr(), value.shape))
        else:
            yield from self._of_object(name, value)

    def _of_object(self, name: str, value: Any) -> Iterator[tuple[str, Any]]:
        if isinstance(value, functools.partial):
            yield from ((name, value.func), (name, value.args), (name, value.keywords))
        if isinstance(value, _CONTAINERS):
            self.watch(name, value)
        if isinstance(value, dict):
            yield from ((f"{name}[{key!r}]", each) for key, each in value.items())
        elif isinstance(value, (list, tuple, set, frozenset, collections.deque)):
            yield from ((f"{name}[{number}]", each) for number, each in enumerate(value))
        own = getattr(value, "__dict__", None)
        if type(own) is dict and type(value) is not collections.OrderedDict:
            self.watch(name, own)
            yield from ((f"{name}.{k}", each) for k, each in own.items() if k not in _NOT_CALLED)
        for base in type(value).__mro__:
            for slot in _slots_of(base):
                self._ask(f"{name}.{slot}", functools.partial(getattr, value, slot, None))
                yield f"{name}.{slot}", getattr(value, slot, None)
        yield type(value).__name__, type(value)

    def _of_class(self, name: str, value: type) -> Iterator[tuple[str, Any]]:
        for base in value.__mro__:
            if base.__module__ in _FOREIGN_CLASSES or base.__module__.startswith("headrace."):
                continue
            self.watch(base.__name__, vars(base))
            if not is_users(base.__module__):
                continue  # the state that its functions read does not change
            for key, each in vars(base).items():
                inner = getattr(each, "__func__", getattr(each, "fget", each))
                yield f"{base.__name__}.{key}", inner

    def _of_function(self, name: str, function: types.FunctionType) -> Iterator[tuple[str, Any]]:
        self.watch(name, function.__dict__)
        self._ask(name, functools.partial(_PARTS, function))
        yield name, function.__defaults__
        yield name, function.__kwdefaults__
        cells = function.__closure__ or ()
        for free, cell in zip(function.__code__.co_freevars, cells, strict=True):
            self._ask(free, functools.partial(_contents, cell))
            yield free, _contents(cell)
        if not is_users(function.__module__):
            return
        space = function.__globals__
        for word in names_in(function.__code__).globals:
            if word not in space:
                continue
            self._ask(f"the global {word}", functools.partial(space.get, word))
            yield f"the global {word}", space[word]
            if isinstance(space[word], types.ModuleType) and is_users(space[word].__name__):
                self.watch(word, vars(space[word]))

    def _of_array(self, name: str, array: Any) -> None:
        if array.dtype.kind in "OV":
            raise _Unwatchable(f"{name} is an array of {array.dtype}")
        self._ask(name, array.tobytes)


_PARTS = operator.attrgetter("__code__", "__defaults__", "__kwdefaults__")


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not initialized yet
        return None


def _slots_of(base: type) -> Iterator[str]:
    for slot, each in list(vars(base).items()):
        if isinstance(each, types.MemberDescriptorType) and is_users(base.__module__):
            yield slot


def _entry(live: Any, copy: Any) -> str:
    """The entry of a container that differs."""
    if not hasattr(live, "keys"):
        return ""
    for key in [*copy, *live]:
        if key not in copy or key not in live or not _equal(live[key], copy[key]):
            return f".{key}" if str(key).isidentifier() else f"[{key!r}]"
    return ""


def _equal(one: Any, other: Any) -> bool:
    try:
        return bool(one is other or one == other)
    except Exception:
        return False
