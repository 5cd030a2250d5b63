# SPDX-License-Identifier: Apache-2.0
"""A snapshot of one object that can be compared quickly with its later state.

``change(now)`` describes what has changed, in a sentence that begins with the object's name, or
returns an empty text if nothing has changed.
"""

from __future__ import annotations

import collections
import itertools
import marshal
import pathlib
import sys
from collections.abc import Callable, Collection, Iterator
from typing import Any, Protocol

import numpy as np

from headrace import _core
from headrace.migrate.modules import module_of, name_of
from headrace.migrate.parts import few_parts_of, parts_of

_CHUNK = 4096  # entries that are marshalled at once
_BY_VALUE = 2  # marshal's version that writes equal values as equal bytes
_PLAIN = {int, float, complex, bool, str, bytes, type(None), range, slice, type(...)}
_COPIED = (
    *(list, dict, set, collections.deque),
    *(collections.OrderedDict, collections.defaultdict, collections.Counter),
)


class Held(Protocol):
    """See the module's docstring."""

    def change(self, now: Any) -> str: ...


class Value:
    """A number, text or path, which never changes."""

    def __init__(self, name: str, value: Any) -> None:
        self._name = name
        self._value = value

    def change(self, now: Any) -> str:
        before = self._value
        if now is before or (type(now) is type(before) and (now == before or now != now)):
            return ""
        return f"{self._name} is now {_shown(now)}, was {_shown(before)}"


class Thing:
    """An object compared by identity."""

    def __init__(self, name: str, value: Any) -> None:
        self._name = name
        self._value = value

    def change(self, now: Any) -> str:
        if now is self._value:
            return ""
        return f"{self._name} is now {_shown(now)}, was {_shown(self._value)}"


class Copied:
    """A list, dictionary or set, with a copy. Identical objects count as equal."""

    def __init__(self, name: str, value: Any) -> None:
        self._name = name
        self._kind = type(value)
        self._copy = value.copy()

    def change(self, now: Any) -> str:
        before = self._copy
        if type(now) is not self._kind:
            return f"{self._name} is now a {type(now).__name__}, was a {self._kind.__name__}"
        try:
            if now == before:
                return ""
        except ValueError:  # for arrays that were replaced by another object
            return f"{self._name} has different entries now"
        if len(now) != len(before):
            return f"{self._name} now has {len(now):,} entries, had {len(before):,}"
        if isinstance(now, (set, frozenset)) or (isinstance(now, dict) and now.keys() ^ before):
            return f"{self._name} has different entries now"
        for key in now if isinstance(now, dict) else range(len(now)):
            is_, was = now[key], before[key]
            if is_ is not was and is_ != was:
                return f"{self._name}[{key!r}] is now {_shown(is_)}, was {_shown(was)}"
        return ""


class Nested:
    """Many entries that hold plain values, by a hash."""

    def __init__(self, name: str, value: Any) -> None:
        self._name = name
        self._count = len(value)
        self.bytes = 0
        self._hash = self._hashed(value)  # ValueError for anything else in it

    def change(self, now: Any) -> str:
        if len(now) != self._count:
            return f"{self._name} now has {len(now):,} entries, had {self._count:,}"
        try:
            alike = self._hashed(now) == self._hash
        except ValueError:
            alike = False
        return "" if alike else f"{self._name} has different entries now"

    def _hashed(self, value: Any) -> int:
        entries: Iterator[Any] = iter(value.items() if isinstance(value, dict) else value)
        out = self.bytes = 0
        while chunk := list(itertools.islice(entries, _CHUNK)):
            data = marshal.dumps((out, chunk), _BY_VALUE)
            self.bytes += len(data)
            out = _core.content_hash(data)
        return out


class Array:
    """An array, a tensor or another buffer, by a hash of its bytes. contents: False only compares
    its shape, and for tensors their modification count."""

    def __init__(self, name: str, value: Any, contents: bool = True) -> None:
        self._name = name
        self._contents = contents
        self._form = _form_of(value)
        self._hash = self._hashed(value)

    def change(self, now: Any) -> str:
        if not is_array(now):
            return f"{self._name} is now {_shown(now)}, was {self._form[0]}"
        form = _form_of(now)
        if form != self._form:
            is_, was = (" ".join(map(str, each)) for each in (form, self._form))
            return f"{self._name} is now {is_}, was {was}"
        return "" if self._hashed(now) == self._hash else f"{self._name} has different values now"

    def _hashed(self, value: Any) -> Any:
        data = _bytes_of(value) if self._contents else None
        return (id(value), getattr(value, "_version", 0)) if data is None else _hash_of(data)


class Whole:
    """An object with its parts."""

    def __init__(self, name: str, value: Any, parts: dict[str, Held]) -> None:
        self._name = name
        self._kind = type(value)
        self._parts = parts
        self.skips: Callable[[str], bool] | None = None

    def change(self, now: Any) -> str:
        if type(now) is not self._kind:
            return f"{self._name} is now {_shown(now)}, was a {self._kind.__name__}"
        found, skips = parts_of(now), self.skips
        for name, part in self._parts.items():
            if skips is not None and skips(name):
                continue
            if name not in found:
                return f"{full(self._name, name)} is gone"
            if change := part.change(found[name]):
                return change
        for name in found:
            if name not in self._parts and (skips is None or not skips(name)):
                return f"{full(self._name, name)} is new"
        return ""


def full(owner: str, part: str) -> str:
    """The name of a part, with its owner's name in front unless it is a full name."""
    return owner + part if not part or part[0] in ".[{" else part


def is_value(value: Any) -> bool:
    """Whether it is immutable."""
    kind = type(value)
    if kind in _PLAIN or isinstance(value, (np.generic, np.dtype, pathlib.PurePath)):
        return True
    if kind in (tuple, frozenset):
        return are_values(value)
    home = module_of(kind).partition(".")[0]
    return home in _VALUES or (home == "torch" and kind.__name__ in ("dtype", "device", "layout"))


_VALUES = ("datetime", "decimal", "fractions", "uuid", "zoneinfo", "re")


def are_values(values: Collection[Any]) -> bool:
    """Whether all of them are immutable."""
    kinds = set(map(type, values))
    if tuple in kinds:
        inner = list(itertools.chain.from_iterable(v for v in values if type(v) is tuple))
        if not are_values(inner):
            return False
    return all(
        kind in _PLAIN or kind is tuple or issubclass(kind, (np.generic, pathlib.PurePath))
        for kind in kinds
    )


def is_copied(value: Any) -> bool:
    """Whether ``Copied`` accepts it, ignoring its entries."""
    return type(value) in _COPIED


def entries_of(value: Any) -> Collection[Any]:
    """The entries of an object that ``Copied`` accepts."""
    return value.values() if isinstance(value, dict) else value


def reached_from(
    root: Any, most: int, goes_into: Callable[[Any], bool], depth_first: bool = False
) -> list[Any]:
    """The objects reachable from an object: attributes, entries, closures, globals used by its
    code. Skips plain values, arrays, and lists of plain values."""
    seen: dict[int, Any] = {}  # kept alive, so that ids are not reused
    waiting = collections.deque([root])
    while waiting and len(seen) < most:
        value = waiting.pop() if depth_first else waiting.popleft()
        if id(value) in seen or is_value(value) or is_array(value):
            continue
        if is_copied(value) and are_values(entries_of(value)):
            continue
        seen[id(value)] = value
        if goes_into(value):
            waiting += few_parts_of(value)
    return list(seen.values())


def is_array(value: Any) -> bool:
    """Whether ``Array`` accepts it."""
    torch, ctypes = sys.modules.get("torch"), sys.modules.get("ctypes")
    if isinstance(value, np.ndarray):
        return not value.dtype.hasobject
    if torch is not None and isinstance(value, torch.Tensor):
        return True
    if ctypes is not None and isinstance(value, (ctypes.Array, ctypes.Structure)):
        return True
    if ctypes is not None and isinstance(value, ctypes._SimpleCData):
        return True
    return isinstance(value, (bytearray, memoryview)) or module_of(type(value)) == "array"


def size_of(value: Any) -> int:
    """Its bytes."""
    if hasattr(value, "element_size"):
        return int(value.element_size() * value.nelement())
    return int(value.nbytes) if hasattr(value, "nbytes") else memoryview(value).nbytes


def _form_of(value: Any) -> tuple[Any, ...]:
    kind = type(value).__name__
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return kind, str(value.dtype), tuple(value.shape)
    return kind, size_of(value)


def _bytes_of(value: Any) -> Any:
    """Its buffer; None if it has none on the CPU."""
    if hasattr(value, "untyped_storage"):
        if value.device.type != "cpu" or str(value.layout) != "torch.strided" or value.is_quantized:
            return None
        import torch

        flat = value.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
        return flat.view(torch.uint8).numpy() if flat.numel() else b""
    if isinstance(value, np.ndarray):
        return np.ascontiguousarray(value).reshape(-1).view(np.uint8) if value.size else b""
    return value


def _hash_of(data: Any) -> int:
    return _core.content_hash(data)


def _shown(value: Any) -> str:
    if callable(value):
        return name_of(value)
    text = repr(value)
    return (
        text
        if len(text) <= 60 and "\n" not in text and " at 0x" not in text
        else (f"a {type(value).__name__}")
    )
