# SPDX-License-Identifier: Apache-2.0
"""Objects whose values change without a change of their attributes: open files, database
connections, iterators, thread-local variables. A dataset may have them, for example in loggers and
caches; if ``__getitem__`` uses one, its results may change, so the attempt ends.
"""

from __future__ import annotations

import collections.abc
from typing import Any

from headrace.migrate.look.marks import OPERATORS, Attempt, Left, refusal
from headrace.migrate.modules import is_users, module_of

# Top-level modules; "_contextvars" and "_thread" are for their variables.
_MODULES = (
    *("mmap", "dbm", "shelve", "zipfile", "tarfile", "queue", "socket", "http"),
    *("weakref", "_contextvars", "h5py", "netCDF4", "tables", "zarr", "lmdb", "fsspec"),
    *("requests", "boto3", "botocore", "redis", "pymongo", "psycopg2", "sqlalchemy"),
)
_OTHERS = (
    "_thread._local",
    "builtins.Environment",
    "sqlite3.Cursor",
)  # thread-local variables, LMDB's classes
_SHARED = "multiprocessing."  # whose numbers and arrays are compared
_COMPARED = "multiprocessing.sharedctypes"


def is_opaque(value: Any) -> bool:
    """Whether it is an object of a library whose contents cannot be compared."""
    kind = type(value)
    home = module_of(kind)
    if home.partition(".")[0] in _MODULES or f"{home}.{kind.__qualname__}" in _OTHERS:
        return True
    if home.startswith(_SHARED):
        return home != _COMPARED and not callable(value)
    return _moves_on(kind) and not is_users(home)


def _moves_on(kind: type) -> bool:
    return issubclass(kind, collections.abc.Iterator)


class Opaque:
    """Replaces such an object: any access ends the attempt."""

    __slots__ = ("_attempt", "_kind", "_name")

    def __init__(self, name: str, real: Any, attempt: Attempt) -> None:
        self._name, self._kind, self._attempt = name, type(real), attempt

    def leave(self, what: str) -> Left:
        del what
        caller, kind = self._attempt.caller, self._kind.__name__
        why = f"{caller} uses its {self._name}, whose contents cannot be compared ({kind})"
        return self._attempt.leave(why, state=_moves_on(self._kind))

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return self._kind

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__":
            raise AttributeError(name)
        raise self.leave(name)


for _name in f"{OPERATORS} getitem enter exit".split():
    setattr(Opaque, f"__{_name}__", refusal(_name))
Opaque.__hash__ = object.__hash__  # type: ignore[method-assign]
