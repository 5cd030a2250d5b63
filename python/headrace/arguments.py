# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments, and the errors for a wrong type or range."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace import _core
from headrace.errors import declare, nearest
from headrace.plain_array import is_masked, plain_array

BAD_VALUE = declare(
    "HR0160",
    "config",
    "invalid keyword value",
    "The value has the wrong type or is not one of the choices. The message gives both.",
)

INT32, INT64, UINT64 = (1 << 31) - 1, (1 << 63) - 1, (1 << 64) - 1  # limits of the engine


def integer(name: str, value: Any, minimum: int = 0, maximum: int = INT64) -> int:
    """Checks for an integer in the range, of Python or NumPy; bool and float are rejected."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or number < minimum:
        raise BAD_VALUE.error(f"{name} must be an integer >= {minimum} (got {value!r})")
    if number > maximum:
        raise BAD_VALUE.error(f"{name} must be an integer <= {maximum} (got {value!r})")
    return number


def seed(value: Any) -> int:
    """Checks for a seed: an unsigned 64-bit integer."""
    return integer("seed", value, maximum=UINT64)


def numbers(name: str, values: Any) -> list[float]:
    """Checks for a sequence of real numbers: a list, an array, a tensor."""
    try:
        array = plain_array(values)
    except (TypeError, ValueError) as failure:
        if is_masked(values):
            raise BAD_VALUE.error(f"{name}: {failure}") from None
        array = np.empty((), object)
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        raise BAD_VALUE.error(f"{name} must be a list of numbers (got {_shortened(values)})")
    return [float(value) for value in array.tolist()]


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def size_in_bytes(name: str, value: Any) -> int:
    """1073741824, "1 GiB", "512 MiB", "2 GB"."""
    if not isinstance(value, str):
        return integer(name, value, 1)
    found = _core.byte_size_of_text(value)
    if found is None:
        raise BAD_VALUE.error(
            f"{name} is not a size in bytes (got {value!r})",
            hint='bytes as an integer, or "512 MiB", "2 GiB", "2 GB"',
        )
    return integer(name, found, 1)


def seconds(name: str, value: Any) -> float:
    """Checks for a number of seconds, 0 or more."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0:
        return float(value)
    raise BAD_VALUE.error(f"{name} must be seconds, 0 or more (got {value!r})")


def amount(name: str, value: Any, most: float) -> float:
    """Checks for a number between 0 and ``most``."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= most:
        return float(value)
    raise BAD_VALUE.error(f"{name} must be a number from 0 to {most:,.0f} (got {value!r})")


def switch(name: str, value: Any) -> bool:
    """Checks for True or False, not just a truthy value."""
    if isinstance(value, bool):
        return value
    raise BAD_VALUE.error(f"{name} must be True or False (got {value!r})")


def share(name: str, value: Any) -> float:
    """Checks for a number above 0 and at most 1."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= 1:
        return float(value)
    raise BAD_VALUE.error(f"{name} must be a number above 0 and at most 1 (got {value!r})")


def one_of(name: str, value: Any, allowed: Sequence[str]) -> str:
    """Checks for one of the allowed words."""
    if isinstance(value, str) and value in allowed:
        return value
    words = " or ".join(map(repr, allowed))
    near = nearest(value, allowed) if isinstance(value, str) else None
    hint = f"did you mean {near!r}?" if near else ""
    raise BAD_VALUE.error(f"{name} must be {words} (got {value!r})", hint=hint)
