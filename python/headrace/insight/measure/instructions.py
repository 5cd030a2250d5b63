# SPDX-License-Identifier: Apache-2.0
"""The engine's instruction set on this machine, and why it was chosen."""

from __future__ import annotations

from typing import NamedTuple

from headrace import _core

NAMES = {
    "scalar": "scalar code",
    "avx2": "AVX2",
    "avx2-slow-pdep": "AVX2 without pdep",
    "avx512": "AVX-512",
    "neon": "NEON",
}


class Reason(NamedTuple):
    """Why an instruction set is used; see ``_core.simd_reason``."""

    forced: bool  # forced by HEADRACE_SIMD
    best: str  # the level that runs by default
    pdep_cost: float  # cost of one pdep in multiplications; 0: unused here
    lacks: str  # what the next higher level would need


def in_force() -> str:
    """The SIMD level in use, as a value of HEADRACE_SIMD: ``"avx2"``."""
    return _core.simd_level()


def text(level: str | None = None, reason: Reason | None = None) -> str:
    """The instruction set in use, why, and what other CPUs would use. Default: those of this
    process.

    Example:
        >>> from headrace.insight.measure import instructions
        >>> instructions.text("avx2", instructions.Reason(False, "avx2", 1.0, "VBMI2, GFNI"))
        'AVX2: this CPU lacks VBMI2, GFNI; AVX-512 runs from Ice Lake and Zen 4 on'
    """
    level = level or in_force()
    reason = reason or Reason(*_core.simd_reason())
    name = NAMES.get(level, level)
    if reason.forced:
        best = "the same" if level == reason.best else NAMES[reason.best]
        return f"{name}, forced by HEADRACE_SIMD; the default would be {best}"
    if level == "neon":
        return (
            f"{name}, which every 64-bit ARM has; x86 runs AVX2 or AVX-512, with the same results"
        )
    if level == "avx512":
        return f"{name}, the best level; elsewhere AVX2 or scalar code, with the same results"
    slow = f", which takes {reason.pdep_cost:.0f} multiplications here"
    name += slow if level == "avx2-slow-pdep" else ""
    above = "AVX2 requires Haswell, Zen or newer"
    if level != "scalar":
        above = "AVX-512 requires Ice Lake, Zen 4 or newer"
    return f"{name}: this CPU lacks {reason.lacks}; {above}"
