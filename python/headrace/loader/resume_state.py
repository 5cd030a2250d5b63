# SPDX-License-Identifier: Apache-2.0
"""The argument of ``load_state_dict``: read from a checkpoint, so it may be invalid."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any

from headrace.arguments import UINT64
from headrace.errors import declare

VERSION = 1

_NOT_A_STATE = declare(
    "HR0162",
    "config",
    "not a loader state",
    "load_state_dict() takes the result of a Headrace loader's state_dict(): a small dictionary "
    "of numbers. The message says what is missing.",
)

MOST = (1 << 62) - 1  # maximum of any count: epochs, batches, records
_BITS = ("seed", "fingerprint")  # 64-bit values, which are not counts


def state_from(given: Any, names: Iterable[str]) -> dict[str, int]:
    """The state's numbers as integers that fit the engine. Raises ConfigError HR0162 if a number is
    missing or out of range, or the version is unknown.
    """
    expected = {"headrace", "streams", *names}
    if isinstance(given, Mapping):
        given = {"streams": 0, **given}  # only for orders of streams
    missing = sorted(expected - set(given)) if isinstance(given, Mapping) else sorted(expected)
    if missing:
        raise _NOT_A_STATE.error(f"it has no {', '.join(missing)}")
    state = {name: _number(name, given[name]) for name in expected}
    if (version := state.pop("headrace")) != VERSION:
        raise _NOT_A_STATE.error(f"it has version {version}, but this Headrace reads {VERSION}")
    if state["streams"] == 0:
        del state["streams"]
    return state


def stream_part(given: Mapping[str, Any], epoch: int) -> dict[str, Any]:
    """What a stream needs of the state: empty if it is of another epoch, as in a state whose
    position was replaced. Raises ConfigError HR0162 if it is invalid.
    """
    part = given.get("stream") or {}
    if not isinstance(part, Mapping):
        raise _NOT_A_STATE.error(f"stream is a {type(part).__name__}, not a dictionary")
    if part.get("state") is None:
        return {}
    numbers = {name: _number(name, part.get(name)) for name in ("epoch", "number")}
    return {**part, **numbers} if numbers["epoch"] == epoch else {}


def _number(name: str, value: Any) -> int:
    try:
        number = operator.index(value)  # NumPy's and torch's integers too, as checkpoints hold them
    except (TypeError, ValueError, RuntimeError):
        number = -1
    most = UINT64 if name in _BITS else MOST
    if isinstance(value, bool) or not 0 <= number <= most:
        raise _NOT_A_STATE.error(f"{name} is {value!r}, which is outside the range of a state")
    return number
