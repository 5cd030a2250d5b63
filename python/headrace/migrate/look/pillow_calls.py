# SPDX-License-Identifier: Apache-2.0
"""Traces a user's callable on a Pillow image, such as ``GaussianBlur`` in MoCo's script or
``Solarization`` in DINO's.

The callable is called in a forked child process with a mock image that records calls of Pillow, and
with mock random numbers (``draws``). The recorded calls are verified there with real random numbers
and real images: replaying them must give the same result.
"""

from __future__ import annotations

import functools
import importlib
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from headrace.migrate.look import child, draws, guards
from headrace.migrate.look.homes import homes_of
from headrace.migrate.look.marks import Attempt, Left, Op
from headrace.migrate.look.outside import Watch
from headrace.migrate.look.pictures import alike
from headrace.migrate.look.stand_ins import put
from headrace.migrate.seeding import seeded
from headrace.printable import in_a_line

_SEEDS = 400
LIMIT = 10.0  # time limit in seconds


class Way(NamedTuple):
    """A possible sequence of operations: its probability, its last mode, and a function from a seed
    of the generators to the operations with plain numbers.
    """

    probability: float
    ops: tuple[Op, ...]
    mode: str
    seed: int = -1
    drawn: tuple[Op, ...] = ()


class PillowCalls(NamedTuple):
    """All possible sequences, or the reason why they are unknown."""

    ways: tuple[Way, ...] = ()
    reason: str = ""


class _Unknown(Exception):
    """The callable does more than the recorded calls; the message describes it."""


def look_at_pillow(transform: Any, probes: Sequence[Any]) -> PillowCalls:
    """probes: real images of one mode."""
    if not child.can_fork() or len({picture.mode for picture in probes}) != 1:
        return PillowCalls(reason="")
    ended = child.run(functools.partial(_looked, transform, probes), LIMIT)
    return ended.value or PillowCalls(reason=ended.problem)


def _looked(transform: Any, probes: Sequence[Any], say: child.Say) -> PillowCalls:
    attempt = Attempt()
    try:
        return PillowCalls(_proven(transform, probes, attempt, say))
    except Left:
        return PillowCalls(reason=attempt.reason)
    except _Unknown as reason:
        return PillowCalls(reason=str(reason))
    except Exception as failure:
        raised = f"raises {in_a_line(failure)} with a mock of its image"
        return PillowCalls(reason=attempt.reason or raised)


def _proven(
    transform: Any, probes: Sequence[Any], attempt: Attempt, say: child.Say
) -> tuple[Way, ...]:
    spaces = [vars(sys.modules[name]) for name in homes_of(transform)]
    if isinstance(transform, types.FunctionType):
        spaces.append(transform.__globals__)
    held = guards.held(transform, spaces)
    doing = {name: make() for name, make in _DOING.items()}
    attempt.caller = ""
    watch = Watch(attempt)
    put(spaces, watch.replacements() | _stand_ins(attempt))
    states = guards.reader()
    mode = probes[0].mode

    def traced() -> Traced:
        with watch():
            out = transform(Traced(attempt, mode))
        if name := watch.read.first():
            raise _Unknown(f"reads {name}")
        if attempt.reason:  # even if the code swallowed the exception
            raise Left
        if type(out) is not Traced:
            raise _Unknown("returns something other than its image")
        return out

    drawn: dict[int, tuple[tuple[Op, ...], Any]] = {}
    for seed in range(_SEEDS):
        with seeded(seed):
            drawn[seed] = traced().ops, states()
    found = _symbolic(attempt, traced, states, spaces)
    if len({way.mode for way in found}) > 1:
        raise _Unknown("returns different modes for different images")
    out = []
    for done, way in enumerate(found):
        seed = next((each for each in drawn if _fits(drawn[each][0], way.ops)), -1)
        if seed < 0:
            raise _Unknown("treats some images in a way that is too rare to compare")
        ops, state = drawn[seed]
        for picture in probes:
            with seeded(seed):
                result = transform(picture.copy())
                if states() != state:
                    raise _Unknown("draws different random numbers for some images")
            expected = picture
            for op in ops:
                expected = doing[op[0]](expected, *op[1:])
            if not alike(result, expected):
                raise _Unknown("does something else with real images")
        out.append(way._replace(seed=seed, drawn=ops))
        say(done, len(found))
    if not all(any(_fits(ops, way.ops) for way in found) for ops, _ in drawn.values()):
        raise _Unknown("behaves differently for some numbers")
    changed = guards.changed(held, guards.held(transform, spaces))
    if changed:
        raise _Unknown("changes " + ", ".join(changed[:3]))
    return tuple(out)


def _symbolic(
    attempt: Attempt,
    traced: Callable[[], Traced],
    states: Callable[[], Any],
    spaces: list[dict[str, Any]],
) -> list[Way]:
    """All paths, with equal ones merged."""
    now: draws.Choices | None = None

    def run(choices: draws.Choices) -> tuple[tuple[Op, ...], str]:
        nonlocal now
        now = choices
        out = traced()
        now = None
        return out.ops, out.mode

    put(spaces, draws.replacements(lambda: now))
    before = states()
    found: dict[tuple[tuple[Op, ...], str], float] = {}
    for probability, what in draws.ways(attempt, run):
        found[what] = found.get(what, 0.0) + probability
    if states() != before:
        raise _Unknown("draws random numbers in an unsupported way")
    return [Way(probability, *what) for what, probability in found.items()]


def _fits(ops: tuple[Op, ...], way: tuple[Op, ...]) -> bool:
    """Whether these calls, with plain numbers, match the path."""
    return len(ops) == len(way) and all(
        len(one) == len(other) and all(map(_is_of, one, other))
        for one, other in zip(ops, way, strict=True)
    )


def _is_of(value: Any, expected: Any) -> bool:
    if isinstance(expected, tuple) and expected[:1] == ("uniform",):
        return isinstance(value, float) and expected[1] <= value <= expected[2]
    return bool(value == expected)


class Traced:
    """A mock image that records what Pillow would do."""

    def __init__(self, attempt: Attempt, mode: str, ops: tuple[Op, ...] = ()) -> None:
        self._attempt = attempt
        self.mode = mode
        self.ops = ops

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return importlib.import_module("PIL.Image").Image  # type: ignore[no-any-return]

    def then(self, *op: Any, mode: str = "") -> Traced:
        values = [each.interval() if type(each) is draws.Drawn else each for each in op]
        for each in values:
            if type(each) not in (str, int, float, tuple):
                raise self._attempt.leave(f"calls {op[0]} with a {type(each).__name__}")
        return Traced(self._attempt, mode or self.mode, (*self.ops, tuple(values)))

    def leave(self, what: str) -> Left:
        return self._attempt.leave(what)

    def copy(self) -> Traced:
        return self

    def load(self) -> None:
        return None

    def convert(self, mode: Any = None, *more: Any, **named: Any) -> Traced:
        if more or named or mode not in ("L", "RGB") or self.mode not in ("L", "RGB"):
            raise self.leave(f"converts its image to {mode}")
        return self if mode == self.mode else self.then("convert", mode, mode=mode)

    def filter(self, filter: Any) -> Traced:
        blur = importlib.import_module("PIL.ImageFilter").GaussianBlur
        if type(filter) is not blur or type(filter.radius) not in (int, float, draws.Drawn):
            raise self.leave("uses a filter other than GaussianBlur with one radius")
        return self.then("blur", filter.radius)

    def transpose(self, method: Any) -> Traced:
        if method not in (0, 1):
            raise self.leave("transposes its image")
        return self.then(("mirror", "flip")[int(method)])

    def resize(self, size: Any, resample: Any = None, *more: Any, **named: Any) -> Traced:
        filters = {None: "bicubic", 0: "nearest", 2: "bilinear", 3: "bicubic", 1: "lanczos"}
        whole = isinstance(size, (tuple, list)) and [type(each) for each in size] == [int, int]
        if more or named or not whole or resample not in filters:
            raise self.leave("resizes its image in an unsupported way")
        return self.then("resize", *size, filters[resample])

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__" and not name.startswith("__array"):
            raise AttributeError(name)
        raise self.leave(f"uses .{name} of its image")


class _Enhancer:
    """Pillow's methods, on a mock image."""

    def __init__(self, name: str, image: Traced) -> None:
        self._name, self._image = name, image

    def enhance(self, factor: Any) -> Traced:
        return self._image.then(self._name, factor)


# Functions of PIL.ImageOps, and their maximum number of plain arguments.
_OPS = {
    "solarize": 1,
    "invert": 0,
    "equalize": 0,
    "autocontrast": 0,
    "posterize": 1,
    "mirror": 0,
    "flip": 0,
}
_DEFAULTS = {"solarize": (128,)}
_ENHANCE = ("Brightness", "Contrast", "Color", "Sharpness")


def _stand_ins(attempt: Attempt) -> dict[tuple[str, str], Any]:
    importlib.import_module("PIL.ImageOps")
    importlib.import_module("PIL.ImageEnhance")
    importlib.import_module("PIL.ImageFilter")

    def function(real: Any, name: str) -> Any:
        def call(image: Any, *more: Any, **named: Any) -> Any:
            if type(image) is not Traced:
                return real(image, *more, **named)
            values = (*more, *named.values()) or _DEFAULTS.get(name, ())
            if len(values) != _OPS[name] or (
                named and list(named) not in (["threshold"], ["bits"])
            ):
                raise attempt.leave(f"calls ImageOps.{name} with other arguments")
            return image.then(name, *values)

        return call

    def grayscale(real: Any) -> Any:
        return lambda image: image.convert("L") if type(image) is Traced else real(image)

    def enhancer(real: Any, name: str) -> Any:
        return lambda image: _Enhancer(name, image) if type(image) is Traced else real(image)

    out: dict[tuple[str, str], Any] = {("PIL.ImageOps", "grayscale"): grayscale}
    for name in _OPS:
        out["PIL.ImageOps", name] = functools.partial(function, name=name)
    for name in _ENHANCE:
        out["PIL.ImageEnhance", name] = functools.partial(enhancer, name=name)
    return out


def _of_image_ops(name: str) -> Callable[..., Any]:
    return getattr(importlib.import_module("PIL.ImageOps"), name)  # type: ignore[no-any-return]


def _of_enhancer(name: str) -> Callable[..., Any]:
    kind = getattr(importlib.import_module("PIL.ImageEnhance"), name)
    return lambda image, factor: kind(image).enhance(factor)


def _blurring() -> Callable[..., Any]:
    kind = importlib.import_module("PIL.ImageFilter").GaussianBlur
    return lambda image, radius: image.filter(kind(radius))


def _resizing() -> Callable[..., Any]:
    sampling = importlib.import_module("PIL.Image").Resampling
    return lambda image, width, height, name: image.resize((width, height), sampling[name.upper()])


# How Pillow performs the recorded calls: created before mocks replace its functions.
_DOING: dict[str, Callable[[], Callable[..., Any]]] = {
    "blur": _blurring,
    "convert": lambda: lambda image, mode: image.convert(mode),
    "resize": _resizing,
    **{name: functools.partial(_of_image_ops, name) for name in _OPS},
    **{name: functools.partial(_of_enhancer, name) for name in _ENHANCE},
}
