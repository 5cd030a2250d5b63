# SPDX-License-Identifier: Apache-2.0
"""Recognizes the collate_fn of torchvision's reference scripts: a function that mixes batches, or a
function that makes a tuple of each field, as in the detection scripts.

Such a function is recognized by its code: it has one of a few forms, and the functions that it
calls, through its closure or its module's globals, are torch's default_collate and a transform of
torchvision v2, or Python's own zip. Anything else is the user's own function.
"""

from __future__ import annotations

import builtins
import dataclasses
import dis
import types
from collections.abc import Callable
from typing import Any

from headrace import transforms as T
from headrace.migrate import script_mixes
from headrace.migrate.modules import name_of
from headrace.migrate.translations.registry import NoOperator, known_name, shown

MIXING = ("MixUp", "CutMix")


def is_default(function: Any) -> bool:
    """Whether it is torch's default_collate, which stacks."""
    home = str(getattr(function, "__module__", ""))
    return home.startswith("torch.") and name_of(function) in ("default_collate", "default_convert")


def mixing_of(function: Any) -> Any:
    """The MixUp, CutMix or choice of them that it applies to a stacked batch; None for other
    functions.
    """
    steps, called = _read(function)
    if steps not in _MIXING:
        return None
    mixes = [value for value in called if not is_default(value)]
    return mixes[0] if len(mixes) == 1 and is_mixing(mixes[0]) else None


def is_transposing(function: Any) -> bool:
    """Whether it is tuple(zip(*batch)): a tuple of all images, one of all targets."""
    return _read(function)[0] in _TRANSPOSING


def is_mixing(transform: Any) -> bool:
    """Whether it is torchvision's MixUp, CutMix, those of its reference scripts for v1, or a
    RandomChoice of these."""
    if known_name(transform) == "RandomChoice":
        return bool(transform.transforms) and all(map(is_mixing, transform.transforms))
    return known_name(transform) in MIXING or bool(script_mixes.kind_of(transform))


def mixing_step(transform: Any, group: int) -> Any:
    """Our step, over groups of as many positions as torch's batch has. Raises NoOperator."""
    if known_name(transform) == "RandomChoice":
        entries = [mixing_step(each, group) for each in transform.transforms]
        if transform.p is None:
            return T.RandomChoice(entries)
        total = sum(float(weight) for weight in transform.p)
        return T.RandomChoice(entries, p=[float(weight) / total for weight in transform.p])
    of_script = script_mixes.kind_of(transform)
    heuristic = of_script or name_of(transform._labels_getter) == "_find_labels_default_heuristic"
    if not heuristic:
        raise NoOperator(f"{shown(transform)} has a labels_getter of its own")
    options: dict[str, Any] = {
        "alpha": float(transform.alpha),
        "num_classes": transform.num_classes,
        "group": group,
    }
    if (of_script or known_name(transform)) == "CutMix":
        return T.CutMix(**options, uint8=True)  # bytes are pasted unchanged
    return T.MixUp(**options)


# Interpreter bookkeeping, and opcodes that were renamed between versions.
_SKIPPED = {"RESUME", "CACHE", "PRECALL", "PUSH_NULL", "COPY_FREE_VARS", "NOP", "NOT_TAKEN"}
_GLOBAL = {"LOAD_GLOBAL", "LOAD_DEREF", "LOAD_NAME"}
_ATTRIBUTE = {"LOAD_ATTR", "LOAD_METHOD"}
_CALL = {"CALL", "CALL_FUNCTION", "CALL_METHOD"}

Steps = list[tuple[str, Any]]


def _read(function: Any) -> tuple[Steps | None, list[Any]]:
    """The instructions of a function of one argument, and the outer values that it uses; None for
    other functions."""
    if type(function) is not types.FunctionType or function.__defaults__:
        return None, []
    code = function.__code__
    if (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount) != (1, 0, 0):
        return None, []
    called: list[Any] = []
    return _normalized(code, lambda name: _value_of(function, name), called), called


def _normalized(
    code: types.CodeType, value_of: Callable[[str], Any], called: list[Any]
) -> Steps | None:
    """Its instructions, with outer names replaced by their kind; the values of these names are
    added to ``called``. None if a name has no value."""
    out: Steps = []
    value: Any = None  # value of the name that was loaded last
    for step in dis.get_instructions(code):
        if step.opname in _SKIPPED:
            continue
        if step.opname in _ATTRIBUTE and isinstance(value, types.ModuleType):
            value = vars(value).get(step.argval)
            called[-1] = value
            out[-1] = ("value", _role(value))
        elif step.opname in _GLOBAL:
            try:
                value = value_of(step.argval)
            except (KeyError, ValueError):
                return None
            called.append(value)
            out.append(("value", _role(value)))
        else:
            value = None
            out.append(("call" if step.opname in _CALL else step.opname, step.arg))
    return out


@dataclasses.dataclass
class _Named:
    """Stands for a name of an enclosing scope in the bytecode of a known collate function."""

    role: str


def _role(value: Any) -> str:
    if isinstance(value, _Named):
        return value.role
    if value is zip or value is tuple or value is list:
        return str(value.__name__)
    return "collate" if is_default(value) else "mixing" if is_mixing(value) else "other"


def _value_of(function: types.FunctionType, name: str) -> Any:
    free = function.__code__.co_freevars
    if name in free:
        return (function.__closure__ or ())[free.index(name)].cell_contents
    if name in function.__globals__:
        return function.__globals__[name]
    return vars(builtins)[name]


def _known_forms() -> list[Steps]:
    collate: Any = None
    mixing: Any = None

    def at_once(batch: Any) -> Any:
        return mixing(*collate(batch))

    def by_name(batch: Any) -> Any:
        batch = collate(batch)
        return mixing(*batch)

    def as_one(batch: Any) -> Any:
        return mixing(collate(batch))

    def in_two(batch: Any) -> Any:
        images, labels = collate(batch)
        return mixing(images, labels)

    def in_two_again(batch: Any) -> Any:
        images, labels = collate(batch)
        images, labels = mixing(images, labels)
        return images, labels

    forms = []
    for function in (at_once, by_name, as_one, in_two, in_two_again):
        forms.append(_normalized(function.__code__, lambda name: _Named(name), []) or [])
    return forms


_MIXING = _known_forms()
_TRANSPOSING = [
    _read(lambda batch: tuple(zip(*batch)))[0],  # noqa: B905  (as in scripts)
    _read(lambda batch: list(zip(*batch)))[0],  # noqa: B905
    _read(lambda batch: zip(*batch))[0],  # noqa: B905
]
