# SPDX-License-Identifier: Apache-2.0
"""Makes the wait for a batch a named region in traces of PyTorch's profiler and Nsight Systems.
``torch.profiler`` and ``torch.autograd.profiler.emit_nvtx`` show time between torch's operators
only if it is in a named region. Costs one dictionary lookup while neither runs.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any

NAME = "headrace.next"
_UNPROFILED = contextlib.nullcontext()


def wait_region() -> Any:
    """A context manager around the wait for a batch: a region called ``headrace.next`` while one of
    the profilers runs, otherwise nothing. Imports no torch."""
    profiler = sys.modules.get("torch.autograd.profiler")
    if profiler is None or not getattr(profiler, "_is_profiler_enabled", False):
        return _UNPROFILED
    return profiler.record_function(NAME)
