# SPDX-License-Identifier: Apache-2.0
"""Converts values to JSON, for ``--json`` and reports.

>>> print(json_text({"rate": float("inf"), "sizes": (3, 4), 5: "five"}))
{"rate": null, "sizes": [3, 4], "5": "five"}
"""

from __future__ import annotations

import json
import math
from typing import Any


def json_text(value: Any, indent: int | None = None) -> str:
    """One JSON value. Infinities and NaN become null; values that JSON lacks, such as paths, become
    their str.
    """
    return json.dumps(_finite(value), indent=indent, default=str, allow_nan=False)


def plain(value: Any) -> Any:
    """The value as dictionaries, lists, numbers, text and None, as if read back from JSON."""
    return json.loads(json_text(value))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
