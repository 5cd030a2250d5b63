# SPDX-License-Identifier: Apache-2.0
"""Numbers as people read them: rates, durations, bytes."""

from __future__ import annotations

import math
from typing import Any


def number(value: float) -> str:
    if not math.isfinite(value):
        return "any number of"
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def duration(seconds: float) -> str:
    if abs(seconds) >= 1:
        return f"{seconds:.2f} s"
    return f"{1e3 * seconds:.2f} ms" if abs(seconds) >= 1e-3 else f"{1e6 * seconds:.0f} µs"


def plain(name: str, value: Any) -> str:
    if "bytes" in name and isinstance(value, (int, float)):
        return f"{value / 1e9:.2f} GB" if value >= 1e8 else f"{value / 1e3:,.1f} kB"
    if isinstance(value, dict):
        return ", ".join(f"{number(v)} at depth {k}" for k, v in value.items())
    return f"{value:,.3g}" if isinstance(value, float) else str(value)
