# SPDX-License-Identifier: Apache-2.0
"""Meters in a loader's own iteration, so that ``for batch in loader`` is measured without changing
the script.

``for`` looks up ``__iter__`` on the class. So this one object gets its own class, derived from its
original one: other objects of that class are unaffected, ``isinstance`` still works, and the
original class is restored with the last meter. Objects whose class cannot be changed (a list, a
generator) are not measured.

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
_taps: dict[int, Tap] = {}  # by id(): not all loaders are hashable


class Tap:
    """Meters in the iteration of one object. REQUIRES: the lock, for all changes."""

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
    """The loader that is actually iterated: for a view, the loader below it."""
    return loader.loader if isinstance(loader, Delivered) else loader


def attach(loader: Any, meter: Meter) -> bool:
    """Adds a meter to the loader's iteration; False if that is impossible."""
    loader = inner_loader(loader)
    with _lock:
        tap = _taps.get(id(loader))
        if tap is None:
            try:
                tap = Tap(loader)
                _set_class(loader, tap.tapped)
            except Exception:  # of another layout, without __iter__, or not derivable
                return False
            _taps[id(loader)] = tap
        tap.meters.append(meter)
        return True


def detach(loader: Any, meter: Meter) -> None:
    """Removes the meter; with the last one, the loader is as before."""
    loader = inner_loader(loader)
    with _lock:
        tap = _taps.get(id(loader))
        if tap is None or meter not in tap.meters:
            return
        tap.meters.remove(meter)
        if not tap.meters:
            del _taps[id(loader)]
            if type(loader) is tap.tapped:  # otherwise, other code has changed it since
                _set_class(loader, tap.original)


def renew_lock() -> None:
    """For a forked child, which lacks the thread that held the lock."""
    global _lock
    _lock = threading.Lock()


def _set_class(loader: Any, kind: type) -> None:
    """Bypasses the object's own __setattr__."""
    object.__dict__["__class__"].__set__(loader, kind)


def _class_with(tap: Tap, method: str) -> type:
    original: Any = tap.original
    inner = getattr(original, method)

    @functools.wraps(inner)
    def iterate(self: Any, *arguments: Any) -> Any:
        def begin() -> Any:
            return inner(self, *arguments)

        # New objects of this class: code that makes a similar loader calls type(loader)(...).
        return begin() if self is not tap.loader else tap.through(begin, _count_for(arguments))

    def reduce_ex(self: Any, protocol: Any) -> Any:
        """Copies and pickles get the original class."""
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
        "__class__": property(lambda self: original),  # read by pickle, and shown to users
        "__reduce_ex__": reduce_ex,
        method: iterate,
    }
    metaclass: Any = type(original)
    tapped: type = metaclass(original.__name__, (original,), space)
    return tapped


def _count_for(arguments: tuple[Any, ...]) -> Callable[[Any], int] | None:
    """Records of a batch that one of our loaders divides over several devices."""
    form = arguments[0] if arguments else None
    if not isinstance(form, Form) or not form.devices or not form.is_divided:
        return None
    from headrace.insight.measure.loop import records_in

    return lambda parts: sum(map(records_in, parts))
