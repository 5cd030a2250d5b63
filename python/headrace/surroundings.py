# SPDX-License-Identifier: Apache-2.0
"""Thread-local state around Python code: context variables and, for torch, grad mode, inference
mode, autocast and the default device. Transforms and sources in Python run on a thread of the
engine with the state of the thread that called ``iter``, as in worker processes that a DataLoader
forks there.
"""

from __future__ import annotations

import contextvars
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from headrace import _core
from headrace.steps import Run, Step

_END = object()
_DEVICES = ("cpu", "cuda")


class Surroundings:
    """The context of the thread that last called ``capture``; before that, of any other thread."""

    def __init__(self) -> None:
        self._context: contextvars.Context | None = None
        self._torch: dict[str, Any] = {}

    def capture(self) -> None:
        """Captures this thread's context."""
        self._context = contextvars.copy_context()
        self._torch = _of_torch()

    def runner(self, step: Step) -> Run:
        """The engine's function that runs a transform."""
        return lambda records, kinds: self.within(lambda: step.run(records, kinds))

    def within(self, make: Callable[[], Iterable[Any]]) -> Iterator[Any]:
        """The results of ``make()`` in order, each made in this context; threads not started by the
        engine use their own.
        """
        if self._context is None or not _core.on_engine_thread():
            yield from make()
            return
        context = self._context.copy()  # a context cannot be entered by two threads
        with ExitStack() as stack:
            for each in _changes(self._torch):
                stack.enter_context(each)
            results = context.run(lambda: iter(make()))
            while (result := context.run(next, results, _END)) is not _END:
                yield result


def _of_torch() -> dict[str, Any]:
    torch = sys.modules.get("torch")
    if torch is None:
        return {}
    found = {
        "grad": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "device": torch.get_default_device(),
    }
    for device in _DEVICES:
        found[device] = torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)
    return found


def _changes(wanted: dict[str, Any]) -> list[AbstractContextManager[Any]]:
    """Context managers that give this thread the captured state of torch."""
    if not wanted:
        return []
    torch, now = sys.modules["torch"], _of_torch()
    made: list[AbstractContextManager[Any]] = []
    if wanted["inference"] != now["inference"]:
        made.append(torch.inference_mode(wanted["inference"]))
    if wanted["grad"] != now["grad"] or made:
        made.append(torch.set_grad_enabled(wanted["grad"]))
    if wanted["device"] != now["device"]:
        made.append(wanted["device"])  # a torch.device is a context manager, too
    for device in _DEVICES:
        if wanted[device] != now[device]:
            enabled, dtype = wanted[device]
            made.append(torch.autocast(device, dtype=dtype, enabled=enabled))
    return made
