# SPDX-License-Identifier: Apache-2.0
"""Regions of a torch step that need no annotation: forward and each child of the model, loss,
backward, the optimizer. Everything is restored afterwards. Imports no torch."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

from headrace.insight.measure.regions import FORWARD, Recorder

_STEP, _ZERO = "optimizer.step", "optimizer.zero_grad"


@contextlib.contextmanager
def watched(recorder: Recorder, model: Any, optimizer: Any) -> Iterator[None]:
    """Model and optimizer (either may be None) report to the recorder."""
    with contextlib.ExitStack() as undo:
        if hasattr(model, "register_forward_pre_hook"):
            _watch_module(undo, recorder, model, FORWARD, recorder.forward_ends)
            # The hooks must not cause torch.compile to recompile a compiled module.
            children = () if hasattr(model, "_orig_mod") else model.named_children()
            for name, child in children:
                _watch_module(undo, recorder, child, name)
        torch = sys.modules.get("torch")
        if torch is not None:
            _watch_backward(undo, recorder, torch.Tensor)
            _watch_backward(undo, recorder, torch.autograd)
        if optimizer is not None:
            _watch_optimizer(undo, recorder, optimizer)
        yield


def _watch_module(
    undo: contextlib.ExitStack,
    recorder: Recorder,
    module: Any,
    name: str,
    afterwards: Callable[[], None] = lambda: None,
) -> None:
    def before(*_: object) -> None:
        recorder.begin(name)

    def after(*_: object) -> None:
        recorder.end(name)
        afterwards()

    with contextlib.suppress(RuntimeError):  # scripted modules, which do not support hooks
        undo.callback(module.register_forward_pre_hook(before).remove)
        undo.callback(module.register_forward_hook(after, always_call=True).remove)


def _watch_backward(undo: contextlib.ExitStack, recorder: Recorder, owner: Any) -> None:
    original = owner.backward

    @functools.wraps(original)
    def backward(*args: Any, **kwargs: Any) -> Any:
        with recorder.backward():
            return original(*args, **kwargs)

    owner.backward = backward
    undo.callback(setattr, owner, "backward", original)


def _watch_optimizer(undo: contextlib.ExitStack, recorder: Recorder, optimizer: Any) -> None:
    if hasattr(optimizer, "register_step_pre_hook"):
        undo.callback(optimizer.register_step_pre_hook(lambda *_: recorder.begin(_STEP)).remove)
        undo.callback(optimizer.register_step_post_hook(lambda *_: recorder.end(_STEP)).remove)
    else:
        _watch_method(undo, recorder, optimizer, "step", _STEP)
    _watch_method(undo, recorder, optimizer, "zero_grad", _ZERO)


def _watch_method(
    undo: contextlib.ExitStack, recorder: Recorder, owner: Any, method: str, name: str
) -> None:
    """Sets it in the object's own dictionary, so that no other object is affected."""
    original = getattr(owner, method, None)
    places = getattr(owner, "__dict__", None)
    if original is None or places is None:
        return

    @functools.wraps(original)
    def timed(*args: Any, **kwargs: Any) -> Any:
        recorder.begin(name)
        try:
            return original(*args, **kwargs)
        finally:
            recorder.end(name)

    before = places.get(method, _watch_method)  # no other code sets it
    places[method] = timed

    def put_back() -> None:
        if before is _watch_method:
            places.pop(method, None)
        else:
            places[method] = before

    undo.callback(put_back)
