# SPDX-License-Identifier: Apache-2.0
"""Meters in a loader's own iteration, so that ``for batch in loader`` is seen without an edit.

``for`` looks for ``__iter__`` on the class. So this one object gets a class of its own, derived
from the one it had: no other object of that class changes, ``isinstance`` holds, and the old class
comes back with the last meter. Objects whose class cannot be changed (a list, a generator) are left
alone.

A Headrace loader is tapped below its views, which all iterate by its ``iterate_as``: the loader and
``loader.torch()`` are one iteration.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from headrace.insight.live.meter import Meter
from headrace.loader import Loader
from headrace.loader.form import Form
from headrace.loader.views import Delivered

_lock = threading.Lock()
_taps: dict[int, Tap] = {}  # by id(): not all loaders can be hashed


class Tap:
    """One object with meters in its iteration. REQUIRES: the lock, for all that changes it."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader
        self.meters: list[Meter] = []
        self.original = type(loader)
        self.tapped = _class_with(self, "iterate_as" if isinstance(loader, Loader) else "__iter__")

    def through(self, begin: Callable[[], Any], count: Callable[[Any], int] | None) -> Any:
        """The iteration that ``begin`` starts, timed by all meters."""
        for meter in list(self.meters):
            begin = functools.partial(meter.timed, begin, count)
        return begin()


def inner_loader(loader: Any) -> Any:
    """The loader that is iterated in the end: for a view, the loader below it."""
    return loader.loader if isinstance(loader, Delivered) else loader


def attach(loader: Any, meter: Meter) -> bool:
    """Puts a meter into the loader's iteration; False where that cannot be done."""
    loader = inner_loader(loader)
    with _lock:
        tap = _taps.get(id(loader))
        if tap is None:
            try:
                tap = Tap(loader)
                _set_class(loader, tap.tapped)
            except (
                Exception
            ):  # of another layout, without __iter__, or it refuses to be derived from
                return False
            _taps[id(loader)] = tap
        tap.meters.append(meter)
        return True


def detach(loader: Any, meter: Meter) -> None:
    """Takes the meter out; with the last one the loader is what it was."""
    loader = inner_loader(loader)
    with _lock:
        tap = _taps.get(id(loader))
        if tap is None or meter not in tap.meters:
            return
        tap.meters.remove(meter)
        if not tap.meters:
            del _taps[id(loader)]
            if type(loader) is tap.tapped:  # else other code has changed it since
                _set_class(loader, tap.original)


def renew_lock() -> None:
    """In a forked child, where the thread that held it is gone."""
    global _lock
    _lock = threading.Lock()


def _set_class(loader: Any, kind: type) -> None:
    """Whatever the object's own classes say about setting attributes."""
    object.__dict__["__class__"].__set__(loader, kind)


def _class_with(tap: Tap, method: str) -> type:
    original: Any = tap.original
    inner = getattr(original, method)

    @functools.wraps(inner)
    def iterate(self: Any, *arguments: Any) -> Any:
        def begin() -> Any:
            return inner(self, *arguments)

        # Others of this class: code that makes a loader like this one calls type(loader)(...).
        return begin() if self is not tap.loader else tap.through(begin, _count_for(arguments))

    def reduce_ex(self: Any, protocol: Any) -> Any:
        """Copies and pickles are of the class that everybody knows."""
        how: Any = original.__reduce_ex__(self, protocol)
        if not isinstance(how, tuple):
            return how
        make, known, *rest = how
        return (make, tuple(original if part is tapped else part for part in known), *rest)

    space = {
        "__slots__": (),
        "__module__": original.__module__,
        "__qualname__": original.__qualname__,
        "__doc__": original.__doc__,
        "__class__": property(lambda self: original),  # pickle reads it, and people do
        "__reduce_ex__": reduce_ex,
        method: iterate,
    }
    metaclass: Any = type(original)
    tapped: type = metaclass(original.__name__, (original,), space)
    return tapped


def _count_for(arguments: tuple[Any, ...]) -> Callable[[Any], int] | None:
    """Records of a batch that a loader of ours divides over several devices."""
    form = arguments[0] if arguments else None
    if not isinstance(form, Form) or not form.devices or not form.is_divided:
        return None
    from headrace.insight.measure.loop import records_in

    return lambda parts: sum(map(records_in, parts))
