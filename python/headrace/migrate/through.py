# SPDX-License-Identifier: Apache-2.0
"""Looks through objects that only pass an image on: torchvision's reference presets and their kin.

``ClassificationPresetTrain(crop_size=224)`` has a list in ``.transforms``, and its ``__call__``
returns ``self.transforms(image)``. That it does nothing else is not read off its code: it is called
with marks in place of images, which show it nothing, and with real images, where each transform
must be given the very object that the one before returned.
"""

from __future__ import annotations

import types
from typing import Any

from headrace.migrate.look import guards
from headrace.migrate.look.marks import Attempt, Left, Mark
from headrace.migrate.look.recorders import Stand, clone
from headrace.migrate.originals import seeded


class PassesNot(Exception):
    """It does more than to pass its arguments on; the message says what."""


def passed_through(transform: Any, probes: list[Any]) -> list[Any]:
    """The transforms that the object hands its image to, one after the other. Raises PassesNot.

    probes: what it is called with: images, or dictionaries of which the image and the rest are two
    arguments.
    """
    if not callable(transform) or isinstance(transform, (type, types.FunctionType)):
        raise PassesNot("it is a function")
    arguments = [_arguments(probe) for probe in probes]
    names = _traced(transform, len(arguments[0]) if arguments else 1)
    found: dict[str, Any] = {}
    for each in arguments:
        _prove(transform, names, each, found)
    return [found[name] for name in names]


def _arguments(probe: Any) -> tuple[Any, ...]:
    if not isinstance(probe, dict):
        return (probe,)
    return probe["image"], {name: value for name, value in probe.items() if name != "image"}


def _traced(transform: Any, count: int) -> list[str]:
    """Names of what it passes marks through."""
    attempt = Attempt()

    def passing(name: str, real: Any) -> Any:
        return _Passing(name, real, attempt)

    marks = [Mark(attempt, "pil", str(place)) for place in range(count)]
    with seeded(0):
        generators = guards.reader()
        before = generators()
        try:
            copy = clone(transform, passing)
            out = copy(*marks)
        except Left:
            raise PassesNot(attempt.reason) from None
        except Exception as failure:
            raise PassesNot(attempt.reason or f"{type(failure).__name__}: {failure}") from None
        if attempt.reason:
            raise PassesNot(attempt.reason)
        if generators() != before:
            raise PassesNot("it draws random numbers")
    results = out if count > 1 and type(out) is tuple else (out,)
    if not _are_arguments(results, count):
        raise PassesNot("it returns something else than what its transforms returned")
    return [op[1] for op in results[0].ops]


def _are_arguments(values: Any, count: int) -> bool:
    """Whether these are marks of all arguments in order, that have come the same way."""
    return (
        len(values) == count
        and all(type(value) is Mark for value in values)
        and all(value.path == str(place) for place, value in enumerate(values))
        and all(value.ops == values[0].ops for value in values)
    )


class _Passing(Stand):
    """Notes that marks are passed to it."""

    def __init__(self, name: str, real: Any, attempt: Attempt) -> None:
        super().__init__(name, real)
        self._attempt = attempt

    def __call__(self, *args: Any, **named: Any) -> Any:
        if not any(type(value) is Mark for value in (*args, *named.values())):
            return self.own_real(*args, **named)
        if named or not _are_arguments(args, len(args)):
            raise self._attempt.leave(f"its {self.own_name} is called with other values")
        out = tuple(mark.then("out", "call", self.own_name) for mark in args)
        return out if len(out) > 1 else out[0]


def _prove(transform: Any, names: list[str], given: Any, found: dict[str, Any]) -> None:
    """With real values: each transform is given what the one before returned."""
    now, called = list(given), []

    def relaying(name: str, real: Any) -> Any:
        def call(*args: Any) -> Any:
            if len(args) != len(now) or any(a is not b for a, b in zip(args, now, strict=True)):
                raise PassesNot(f"its {name} is called with other values")
            called.append(name)
            found[name] = real
            out = real(*args)
            now[:] = out if len(args) > 1 else [out]
            return out

        return _Relaying(name, real, call)

    with seeded(0):
        out = clone(transform, relaying)(*given)
    results = out if len(given) > 1 else (out,)
    if len(results) != len(now) or any(a is not b for a, b in zip(results, now, strict=True)):
        raise PassesNot("it returns something else than what its transforms returned")
    if called != names:
        raise PassesNot("it calls other transforms for some images")


class _Relaying(Stand):
    """Calls the original, and looks at what it is given."""

    def __init__(self, name: str, real: Any, call: Any) -> None:
        super().__init__(name, real)
        self._call = call

    def __call__(self, *args: Any, **named: Any) -> Any:
        if named or not args:
            return self.own_real(*args, **named)
        return self._call(*args)
