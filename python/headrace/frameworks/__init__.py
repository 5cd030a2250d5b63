# SPDX-License-Identifier: Apache-2.0
"""How batches are handed over: one module a framework, with ``hand_over(value) -> its array``.

A framework is imported when its output is asked for, never before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace import _core


def each(convert: Callable[[_core.Array], Any], value: Any) -> Any:
    """Converts the arrays of one field; lists (text, bytes, ragged fields) keep their form."""
    if isinstance(value, _core.Array):
        return convert(value)
    return [convert(item) if isinstance(item, _core.Array) else item for item in value]
