# SPDX-License-Identifier: Apache-2.0
"""Restores state changed by examining: weights, optimizer, a loader's position, generators."""

from __future__ import annotations

import contextlib
import copy
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def kept(
    loader: Any,
    model: Any,
    optimizer: Any,
    notes: list[str],
    hangs: Callable[[], bool] = lambda: False,
) -> Iterator[None]:
    """Restores everything afterwards, even after an exception; reports what could not be restored.

    hangs: returns whether the loader hangs, in which case restoring it would hang as well.
    """
    undo = contextlib.ExitStack()
    with undo:
        _keep_generators(undo)
        if loader is not None:
            _keep_state(undo, loader, "The loader's position", notes, hangs)
        if model is not None:
            _keep_state(undo, model, "The model", notes)
            _keep_flags(undo, model)
        if optimizer is not None:
            _keep_state(undo, optimizer, "The optimizer", notes)
        yield


def _keep_state(
    undo: contextlib.ExitStack,
    owner: Any,
    what: str,
    notes: list[str],
    hangs: Callable[[], bool] = lambda: False,
) -> None:
    if not hasattr(owner, "state_dict") or not hasattr(owner, "load_state_dict"):
        notes.append(f"{what} has no state_dict(), so it was not restored.")
        return
    before = copy.deepcopy(owner.state_dict())

    def put_back() -> None:
        if hangs():
            notes.append(f"{what} was not restored, because it hangs.")
            return
        try:
            owner.load_state_dict(before)
        except Exception as error:
            notes.append(f"{what} could not be restored: {error}")

    undo.callback(put_back)


def _keep_flags(undo: contextlib.ExitStack, model: Any) -> None:
    """train() or eval() mode of each module, and gradients: removed if there were none."""
    modules = list(model.modules()) if hasattr(model, "modules") else []
    flags = [(module, module.training) for module in modules]
    parameters = list(model.parameters()) if hasattr(model, "parameters") else []
    gradients = [None if p.grad is None else p.grad.detach().clone() for p in parameters]

    def put_back() -> None:
        for module, training in flags:
            module.training = training
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient

    undo.callback(put_back)


def _keep_generators(undo: contextlib.ExitStack) -> None:
    import numpy as np

    undo.callback(random.setstate, random.getstate())
    undo.callback(np.random.set_state, np.random.get_state())
    torch = sys.modules.get("torch")
    if torch is not None:
        undo.callback(torch.random.set_rng_state, torch.random.get_rng_state())
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            undo.callback(torch.cuda.set_rng_state_all, torch.cuda.get_rng_state_all())
