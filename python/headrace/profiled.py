# SPDX-License-Identifier: Apache-2.0
"""Makes the wait for a batch, and the stages of ``hr.prefetch``, named regions in traces of
PyTorch's profiler and Nsight Systems. ``torch.profiler`` and ``torch.autograd.profiler.emit_nvtx``
show time between torch's operators only if it is in a named region. Costs one dictionary lookup
while no profiler runs.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any

WAIT = "headrace.next"  # for a batch, on the consumer's thread
SOURCE = "headrace.source"  # the next batch of a prefetcher's source, on the prefetcher's thread
TRANSFORM = "headrace.transform"  # the prefetcher's `transform=`, on the thread that runs it
_UNPROFILED = contextlib.nullcontext()


def region(name: str) -> Any:
    """A context manager: a region of this name while one of the profilers runs, otherwise nothing.
    Imports no torch."""
    profiler = sys.modules.get("torch.autograd.profiler")
    if profiler is None or not getattr(profiler, "_is_profiler_enabled", False):
        return _UNPROFILED
    return profiler.record_function(name)
