# SPDX-License-Identifier: Apache-2.0
"""The demo's terminal output: facts, a progress line, and the table of results."""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import Any

from headrace.insight.demo.timing import Timing
from headrace.printable import printable

LABEL = 34
REDRAW_SECONDS = 0.1


def _styled(text: str, code: str) -> str:
    plain = (
        not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    )
    text = printable(text)
    return text if plain else f"\x1b[{code}m{text}\x1b[0m"


def title(text: str) -> None:
    print(f"\n{_styled(text, '1')}\n", flush=True)


def fact(name: str, text: str) -> None:
    print(f"  {_styled(f'{name:<12}', '2')}{printable(text)}", flush=True)


class Line:
    """A status line for slow work; redrawn on a terminal, printed once elsewhere."""

    def __init__(self, label: str) -> None:
        self._label, self._text, self._drawn = label, "", 0.0
        self._live = sys.stdout.isatty()

    def __enter__(self) -> Line:
        self.show("…")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live:
            sys.stdout.write("\r\x1b[K")
        if self._text not in ("", "…") and "making" not in self._text:
            print(f"  {self._label:<{LABEL}}{self._text}", flush=True)

    def show(self, text: str) -> None:
        self._text = text = printable(text)
        now = time.perf_counter()
        if self._live and now - self._drawn > REDRAW_SECONDS:
            self._drawn = now
            sys.stdout.write(f"\r\x1b[K  {self._label:<{LABEL}}{text}")
            sys.stdout.flush()

    def end(self, text: str) -> None:
        self._text = text

    def count(self, images: int, losses: list[float]) -> None:
        text = f"{images:>7,} images"
        self.show(text + (f"     loss {losses[-1]:.3f}" if losses else ""))

    def timing(self, timing: Timing) -> None:
        text = f"{timing.images_per_second:>7,.0f} images/s"
        if timing.losses:
            text += f"   loss {timing.losses[-1]:.3f}   waits {timing.stall:.0%}"
        self.end(text)


def comparison(ours: dict[str, Any], peer: dict[str, Any] | None) -> None:
    """The table of both loaders, or of ours alone."""
    sides = [ours] + ([peer] if peer else [])
    width = max(17, *(len(side["name"]) for side in sides)) + 2
    header = f"{'feeding alone':>15}{'with training':>15}{'loop waits':>12}"
    print(f"\n  {'images per second':<{width}}{header}")
    print("  " + "─" * (width + 42))
    for side in sides:
        feeding, training = side["feeding"], side["training"]
        text = f"{side['name']:<{width}}{feeding.images_per_second:>15,.0f}"
        text += f"{training.images_per_second:>15,.0f}{training.stall:>12.0%}"
        print("  " + (_styled(text, "1") if side is ours else text))
    if peer:
        print(
            f"  {'':<{width}}{ratio(ours, peer, 'feeding'):>15}{ratio(ours, peer, 'training'):>15}"
        )
    print(flush=True)


def ratio(ours: dict[str, Any], peer: dict[str, Any], phase: str) -> str:
    """A speed-up: "2.6x"."""
    return f"{ours[phase].images_per_second / max(1e-9, peer[phase].images_per_second):.1f}x"
