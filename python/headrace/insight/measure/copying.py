# SPDX-License-Identifier: Apache-2.0
"""Cost of a batch's transfer to the device: bytes per second in host memory, and to a GPU."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.delivery.nested import take_apart

_BYTES = 64 << 20


def measure(batch_bytes: int, seconds: float) -> dict[str, float]:
    """Bytes per second by path: "host" (memory to memory), with a GPU "pageable" and "pinned"."""
    size = max(1 << 20, min(batch_bytes or _BYTES, 4 * _BYTES))
    source, target = np.ones(size, np.uint8), np.empty(size, np.uint8)
    gpu = has_gpu()
    share = seconds / (3 if gpu else 1)
    rates = {"host": _rate(lambda: np.copyto(target, source), size, share)}
    if gpu:
        rates.update(_to_gpu(sys.modules["torch"], source, size, share))
    return rates


def has_gpu() -> bool:
    """Whether the program uses torch, and torch has a GPU."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.cuda.is_available())


def _to_gpu(torch: Any, source: Any, size: int, seconds: float) -> dict[str, float]:
    pageable = torch.from_numpy(source)
    pinned = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    target = torch.empty(size, dtype=torch.uint8, device="cuda")
    pinned.copy_(pageable)
    rates = {}
    for name, held in (("pageable", pageable), ("pinned", pinned)):

        def copy(held: Any = held) -> None:
            target.copy_(held)
            torch.cuda.synchronize()

        rates[name] = _rate(copy, size, seconds)
    return rates


def _rate(call: Callable[[], None], size: int, seconds: float) -> float:
    call()  # to touch pages and raise clock rates
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < seconds or not count:
        call()
        count += 1
    return size * count / (time.perf_counter() - start)


def on_device(batch: Any) -> Any:
    """The batch in the memory of torch's GPU; unchanged without one."""
    if not has_gpu():
        return batch
    parts = take_apart(batch, lambda value: hasattr(value, "to"))
    return parts.put_together([tensor.to("cuda") for tensor in parts.leaves])
