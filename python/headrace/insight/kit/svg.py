# SPDX-License-Identifier: Apache-2.0
"""Drawings as SVG text: a few shapes, axes, and scales. Colors are classes of the page's style.

Drawings have a title and a description for screen readers. All text is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headrace.drawing.markup import clean

GLYPH = 6.6  # approximate width of a label's character in pixels
LINE = 16  # pixels from one line of text to the next


@dataclass(frozen=True)
class Scale:
    """Values to pixels, linear or logarithmic; values outside are clamped."""

    low: float
    high: float
    begin: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high = self._of(self.low), self._of(self.high)
        place = (self._of(max(value, self.low)) - low) / ((high - low) or 1.0)
        return self.begin + (self.end - self.begin) * min(1.0, max(0.0, place))

    def _of(self, value: float) -> float:
        return math.log10(value) if self.log else value

    def ticks(self, most: int = 6) -> list[float]:
        """About ``most`` or fewer round numbers within the range."""
        return _decades(self.low, self.high, most) if self.log else _steps(self, most)


def _steps(scale: Scale, most: int) -> list[float]:
    room = scale.high - scale.low
    if not room > 0:
        return [scale.low]
    step = 10 ** math.floor(math.log10(room / most))
    step *= next(f for f in (1, 2, 5, 10, 20) if room / (step * f) <= most)
    first, last = math.ceil(scale.low / step - 1e-9), math.floor(scale.high / step + 1e-9)
    return [n * step for n in range(first, last + 1)]


def _decades(low: float, high: float, most: int) -> list[float]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for digits in ((1, 2, 5), (1, 3), (1,)):
        found = [d * 10.0**n for n in range(first, last + 1) for d in digits]
        found = [value for value in found if low * 0.999 <= value <= high * 1.001]
        if len(found) <= most:
            return found
    return found[:: math.ceil(len(found) / most)]


class Drawing:
    """An image of ``width`` pixels under construction; the height is set at the end."""

    def __init__(self, width: float) -> None:
        self.width = float(width)
        self.parts: list[str] = []

    def text(self, x: float, y: float, text: object, kind: str = "", most: int = 200) -> None:
        """``kind``: CSS classes; "end" and "mid" align the text at x by its end or middle."""
        self.parts.append(
            f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{clean(text, most)}</text>'
        )

    def rect(self, kind: str, x: float, y: float, width: float, height: float) -> None:
        self.parts.append(
            f'<rect class="{kind}" x="{x:.2f}" y="{y:.2f}" width="{max(0.0, width):.2f}" '
            f'height="{max(0.0, height):.2f}"/>'
        )

    def line(self, kind: str, x: float, y: float, to_x: float, to_y: float) -> None:
        self.parts.append(f'<path class="{kind}" d="M{x:.2f} {y:.2f}L{to_x:.2f} {to_y:.2f}"/>')

    def path(self, kind: str, points: Sequence[tuple[float, float]]) -> None:
        if points:
            way = "L".join(f"{x:.2f} {y:.2f}" for x, y in points)
            self.parts.append(f'<path class="{kind}" d="M{way}"/>')

    def dot(self, kind: str, x: float, y: float, radius: float = 4.0) -> None:
        self.parts.append(f'<circle class="{kind}" cx="{x:.2f}" cy="{y:.2f}" r="{radius:g}"/>')

    def axis_below(
        self, scale: Scale, top: float, bottom: float, say: Callable[[float], str], unit: str
    ) -> None:
        """Vertical lines at round values, with their numbers and the axis title below."""
        room = max(2, int((scale.end - scale.begin) / 68))
        for tick in scale.ticks(room):
            x = scale(tick)
            self.line("grid", x, top, x, bottom)
            self.text(x, bottom + LINE, say(tick), "faint mid")
        self.text(scale.end, bottom + 2 * LINE + 1, unit, "faint end")

    def axis_left(
        self, scale: Scale, left: float, right: float, say: Callable[[float], str], most: int = 5
    ) -> None:
        """Horizontal lines at round values, with their numbers on the left."""
        for tick in scale.ticks(most):
            y = scale(tick)
            self.line("grid", left, y, right, y)
            self.text(left - 7, y + 4, say(tick), "faint end")

    def svg(self, height: float, name: str, title: str, told: str, kind: str) -> str:
        """The element in a page. ``name``: prefix of its ids, unique on a page."""
        head = f'class="{kind}" viewBox="0 0 {self.width:g} {height:g}"'
        return self._element(head, name, title, told)

    def file(self, top: float, height: float, title: str, told: str, style: str) -> str:
        """An SVG file of the drawing below ``top``, with its own style, on white, with a margin."""
        pad = 18
        x, y, width, height = -pad, top - pad, self.width + 2 * pad, height - top + 2 * pad
        paper = f'<rect class="paper" x="{x}" y="{y:g}" width="{width:g}" height="{height:g}"/>'
        head = f'viewBox="{x} {y:g} {width:g} {height:g}" width="{width:g}" height="{height:g}"'
        return self._element(head, "chart", title, told, f"<style>{style}</style>{paper}") + "\n"

    def _element(self, head: str, name: str, title: str, told: str, inside: str = "") -> str:
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {head} role="img" '
            f'aria-labelledby="{name}-t {name}-d">'
            f'<title id="{name}-t">{clean(title)}</title><desc id="{name}-d">{clean(told)}</desc>'
            f"{inside}{''.join(self.parts)}</svg>"
        )


def finite(value: float | None) -> bool:
    """Whether the value is a number that can be drawn."""
    return value is not None and math.isfinite(value)
