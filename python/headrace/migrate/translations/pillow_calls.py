# SPDX-License-Identifier: Apache-2.0
"""Translates the user's callables on Pillow images from their traced calls."""

from __future__ import annotations

import itertools
from typing import Any

from headrace import transforms as T
from headrace.migrate.look.marks import Op
from headrace.migrate.seeding import seeded
from headrace.migrate.translations.registry import Form, Made, NoOperator, own_callable


@own_callable
def pillow_calls(transform: Any, form: Form) -> Made:
    """Its possible sequences as our operators; several are chosen by their probabilities."""
    # Imported late to avoid a cycle: look imports the modules that recognize transforms.
    from headrace.migrate.look.pillow_calls import look_at_pillow

    if form.kind != "pil" or isinstance(form.probes[0], dict):
        raise NoOperator("a callable of your own")
    found = look_at_pillow(transform, form.probes)
    if not found.ways:
        raise NoOperator(f"a callable of your own, which {found.reason}".removesuffix(", which "))
    ways = [(way.probability, _steps(way.ops)) for way in found.ways]
    longest = max(found.ways, key=lambda way: len(way.ops))
    if len(ways) == 1 and any(op[0] == "resize" for op in longest.ops):
        form.fixed = True

    def steadily(value: Any) -> Any:
        with seeded(longest.seed):
            return transform(value)

    return _chosen(ways), _steps(longest.drawn), steadily


def _chosen(ways: list[tuple[float, list[Any]]]) -> list[Any]:
    if len(ways) == 1:
        return ways[0][1]
    doing = [way for way in ways if way[1]]
    if len(doing) == 1:
        return [T.RandomApply(doing[0][1], p=doing[0][0])]
    return [T.RandomChoice([steps for _, steps in ways], p=[p for p, _ in ways])]


def _steps(ops: tuple[Op, ...]) -> list[Any]:
    pairs = itertools.pairwise((*ops, ("",)))
    out = []
    before: Op = ("",)
    for op, after in pairs:
        if (op, after) == (("convert", "L"), ("convert", "RGB")):
            out.append(T.Grayscale(3, arithmetic="pillow"))
        elif (before, op) != (("convert", "L"), ("convert", "RGB")):
            out.append(_step(*op))
        before = op
    return out


def _step(name: str, *values: Any) -> Any:
    if name == "blur":
        return T.PillowGaussianBlur(_range(values[0]))
    if name in _COLORS:
        adjust, jitter = _COLORS[name]
        drawn = _range(values[0])
        if isinstance(drawn, float):
            return adjust(drawn)
        return T.ColorJitter(**{jitter: drawn}, arithmetic="pillow")
    if any(isinstance(value, tuple) for value in values):
        raise NoOperator(f"a callable of your own, which draws a random number for {name}")
    if name == "resize":
        width, height, interpolation = values
        return T.Resize([height, width], interpolation=interpolation)
    return _FIXED[name](*values)


def _range(value: Any) -> Any:
    return list(value[1:]) if isinstance(value, tuple) else float(value)


_COLORS: dict[str, Any] = {
    "Brightness": (lambda f: T.AdjustBrightness(f), "brightness"),
    "Contrast": (lambda f: T.AdjustContrast(f, arithmetic="pillow"), "contrast"),
    "Color": (lambda f: T.AdjustSaturation(f, arithmetic="pillow"), "saturation"),
}
_FIXED: dict[str, Any] = {
    "solarize": lambda threshold: T.RandomSolarize(float(threshold), p=1.0),
    "posterize": lambda bits: T.RandomPosterize(int(bits), p=1.0),
    "invert": lambda: T.RandomInvert(1.0),
    "equalize": lambda: T.RandomEqualize(1.0),
    "autocontrast": lambda: T.RandomAutocontrast(1.0, arithmetic="pillow"),
    "mirror": lambda: T.RandomHorizontalFlip(1.0),
    "flip": lambda: T.RandomVerticalFlip(1.0),
    "convert": lambda mode: T.Grayscale(3 if mode == "RGB" else 1, arithmetic="pillow"),
    "Sharpness": lambda factor: T.RandomAdjustSharpness(float(factor), 1.0, arithmetic="pillow"),
}
