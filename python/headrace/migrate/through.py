# SPDX-License-Identifier: Apache-2.0
"""Looks through objects that only pass an image on, such as torchvision's reference presets.

``ClassificationPresetTrain(crop_size=224)`` has a list in ``.transforms``, and its ``__call__``
returns ``self.transforms(image)``. Whether it does nothing else is not inferred from its code, but
tested: the preset is called with opaque marks instead of images, and with real images, where each
transform must get the very object that the previous one returned. Both happen in a forked child,
and calls must not change the preset's state: a preset that counts its calls may behave differently
later.
"""

from __future__ import annotations

import sys
import types
from typing import Any

from headrace.migrate.look import child, guards
from headrace.migrate.look.homes import homes_of
from headrace.migrate.look.marks import Attempt, Left, Mark
from headrace.migrate.look.outside import Watch
from headrace.migrate.look.recorders import Stand, clone
from headrace.migrate.look.snapshots import Snapshot
from headrace.migrate.look.stand_ins import put
from headrace.migrate.seeding import seeded
from headrace.printable import in_a_line


class PassesNot(Exception):
    """Raised if it does more than pass its arguments on; the message says what."""


def passed_through(transform: Any, probes: list[Any]) -> list[Any]:
    """The transforms to which the object passes its image, in order. Raises PassesNot. probes: its
    arguments: images, tuples of arguments, or dictionaries whose image and remaining entries are
    the two arguments."""
    if not callable(transform) or isinstance(transform, (type, types.FunctionType)):
        raise PassesNot("it is a function")
    if not child.can_fork():
        raise PassesNot("this platform cannot fork a process to try it")
    ended = child.run(lambda say: _tried(transform, probes), child.SILENCE)
    problem, names = ended.value or (ended.problem, [])
    if problem:
        raise PassesNot(problem)
    reals: dict[str, Any] = {}

    def kept(name: str, real: Any) -> Any:
        reals[name] = real
        return real

    clone(transform, kept)
    return [reals[name] for name in names]


def _tried(transform: Any, probes: list[Any]) -> tuple[str, list[str]]:
    """In a child process: the error, or names of the transforms that it passes its arguments
    through."""
    arguments = [_arguments(probe) for probe in probes]
    try:
        names = _traced(transform, len(arguments[0]) if arguments else 1)
        for each in arguments:
            _prove(transform, names, each)
    except PassesNot as reason:
        return str(reason), []
    except Left as reason:
        return str(reason), []
    except Exception as failure:
        return in_a_line(failure), []
    return "", names


def _arguments(probe: Any) -> tuple[Any, ...]:
    if isinstance(probe, tuple):
        return probe
    if not isinstance(probe, dict):
        return (probe,)
    return probe["image"], {name: value for name, value in probe.items() if name != "image"}


def _traced(transform: Any, count: int) -> list[str]:
    """Names of the transforms that it passes marks through."""
    attempt = Attempt()
    attempt.caller = "it"

    def passing(name: str, real: Any) -> Any:
        return _Passing(name, real, attempt)

    marks = [Mark(attempt, "pil", str(place)) for place in range(count)]
    with seeded(0):
        generators = guards.reader()
        before = generators()
        try:
            copy = clone(transform, passing)
            held = Snapshot({"it": transform, "its copy": copy})
            watch = Watch(attempt)
            put([vars(sys.modules[name]) for name in homes_of(transform)], watch.replacements())
            with watch():
                out = copy(*marks)
        except Left:
            raise PassesNot(attempt.reason) from None
        except Exception as failure:
            raise PassesNot(attempt.reason or f"{type(failure).__name__}: {failure}") from None
        if attempt.reason:
            raise PassesNot(attempt.reason)
        if name := watch.read.first():
            raise PassesNot(f"it reads {name}")
        if generators() != before:
            raise PassesNot("it draws random numbers")
        if name := held.changed() or next(iter(held.unwatched.values()), ""):
            raise PassesNot(f"its call changes {name}")
    results = out if count > 1 and type(out) is tuple else (out,)
    if not _are_arguments(results, count):
        raise PassesNot("it does not return the result of its transforms")
    return [op[1] for op in results[0].ops]


def _are_arguments(values: Any, count: int) -> bool:
    """Whether these are marks of all arguments, in order, after the same transforms."""
    return (
        len(values) == count
        and all(type(value) is Mark for value in values)
        and all(value.path == str(place) for place, value in enumerate(values))
        and all(value.ops == values[0].ops for value in values)
    )


class _Passing(Stand):
    """Records the marks that are passed to it."""

    def __init__(self, name: str, real: Any, attempt: Attempt) -> None:
        super().__init__(name, real, attempt)

    def __call__(self, *args: Any, **named: Any) -> Any:
        if not any(type(value) is Mark for value in (*args, *named.values())):
            return self.own_real(*args, **named)
        if named or not _are_arguments(args, len(args)):
            raise self.own_attempt.leave(
                f"it does not pass its arguments to its {self.own_name} unchanged and in order"
            )
        out = tuple(mark.then("out", "call", self.own_name) for mark in args)
        return out if len(out) > 1 else out[0]


def _prove(transform: Any, names: list[str], given: Any) -> None:
    """With real values: each transform gets the result of the previous one."""
    now, called, attempt = list(given), [], Attempt()
    attempt.caller = "it"

    def relaying(name: str, real: Any) -> Any:
        def call(*args: Any) -> Any:
            if len(args) != len(now) or any(a is not b for a, b in zip(args, now, strict=True)):
                raise PassesNot(
                    f"it does not pass its arguments to its {name} unchanged and in order"
                )
            called.append(name)
            out = real(*args)
            now[:] = out if len(args) > 1 else [out]
            return out

        return _Relaying(name, real, attempt, call)

    with seeded(0):
        out = clone(transform, relaying)(*given)
    results = out if len(given) > 1 else (out,)
    if len(results) != len(now) or any(a is not b for a, b in zip(results, now, strict=True)):
        raise PassesNot("it does not return the result of its transforms")
    if called != names:
        raise PassesNot("it calls other transforms for some images")


class _Relaying(Stand):
    """Calls the original, and checks its input."""

    def __init__(self, name: str, real: Any, attempt: Attempt, call: Any) -> None:
        super().__init__(name, real, attempt)
        self.__dict__.update(own_call=call)

    def __call__(self, *args: Any, **named: Any) -> Any:
        if named or not args:
            return self.own_real(*args, **named)
        return self.own_call(*args)
