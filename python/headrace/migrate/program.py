# SPDX-License-Identifier: Apache-2.0
"""State in a program's classes and modules, for worker processes that import these again.

A process of ``python_workers=`` gets a dataset by pickle, which only sends its attributes: its
class, and the globals that its code uses, are imported in their initial state. So later changes by
a script, such as ``Pets.scale = 2``, are sent with it.
"""

from __future__ import annotations

import marshal
import pickle
import sys
import types
from typing import Any, NamedTuple

from headrace import _core
from headrace.migrate.held import reached_from
from headrace.migrate.modules import is_users, module_of
from headrace.migrate.parts import counts, is_thing, names_in

_MOST = 100_000  # maximum number of objects to visit
_BY_REFERENCE = (type, types.ModuleType, types.BuiltinFunctionType)


class Entry(NamedTuple):
    """An attribute of a class, or of a module if ``owner`` is empty."""

    module: str
    owner: str
    name: str
    value: Any = None
    code: int = 0  # a hash, for a function that cannot be sent


def entries(root: Any) -> list[Entry]:
    """Values of the user's classes and modules that an object's code can use."""
    found: dict[tuple[str, str, str], Entry] = {}
    for value in reached_from(root, _MOST, lambda each: not is_thing(each), depth_first=True):
        if not is_thing(value):
            found |= {entry[:3]: entry for entry in _entries_of(value)}
    return list(filter(None, map(_sent, found.values())))


def _entries_of(value: Any) -> list[Entry]:
    if isinstance(value, types.FunctionType):
        space = value.__globals__
        names = names_in(value.__code__).globals
        home = str(space.get("__name__"))
        return [Entry(home, "", name, space[name]) for name in names if name in space]
    if isinstance(value, type):
        home = module_of(value)
        own = vars(value).items()
        return [Entry(home, value.__qualname__, n, each) for n, each in own if counts(n, each)]
    return []


def _sent(entry: Entry) -> Entry | None:
    """The values in a form that can be pickled; None if they are unchanged since import."""
    value = entry.value
    if isinstance(value, _BY_REFERENCE) or not is_users(entry.module):
        return None
    try:
        pickle.dumps(value, protocol=5)
    except Exception:
        if not isinstance(value, types.FunctionType):
            return None
        return entry._replace(value=None, code=_hash_of(value.__code__))
    return entry


def apply(sent: list[Entry]) -> None:
    """Sets the values in a worker. Raises RuntimeError if a function differs from the parent's."""
    for entry in sent:
        owner: Any = sys.modules[entry.module]
        for name in filter(None, entry.owner.split(".")):
            owner = getattr(owner, name)
        if not entry.code:
            setattr(owner, entry.name, entry.value)
            continue
        own = getattr(getattr(owner, entry.name, None), "__code__", None)
        if own is not None and _hash_of(own) != entry.code:
            raise RuntimeError(
                f"{entry.owner or entry.module}.{entry.name} was replaced by the script, and a "
                "worker process that imports the module would get the original: define the "
                "replacement at the top of a module, or use python_workers=0"
            )


def _hash_of(code: types.CodeType) -> int:
    """Hash of the code's behavior, ignoring line numbers."""
    consts = [c if not isinstance(c, types.CodeType) else _hash_of(c) for c in code.co_consts]
    try:
        plain = marshal.dumps([code.co_code, consts, code.co_names, code.co_varnames], 2)
    except ValueError:
        plain = code.co_code
    return _core.content_hash(plain)
