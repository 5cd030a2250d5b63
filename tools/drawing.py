# SPDX-License-Identifier: Apache-2.0
"""SVG for the guides: seven colors, light and dark."""

from __future__ import annotations

from html import escape

WIDTH = 760
STYLE = """
text{font:14px system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif;fill:var(--ink)}
text.strong{font-weight:650}.faint{fill:var(--faint);font-size:12.5px}
text.end{text-anchor:end}text.middle{text-anchor:middle}text.inside{fill:#fff}
.track{fill:var(--track)}.grid{stroke:var(--track);stroke-width:1}
.c0{fill:var(--c0)}.c1{fill:var(--c1)}.c2{fill:var(--c2)}.c3{fill:var(--c3)}
.c4{fill:var(--c4)}.c5{fill:var(--c5)}.c6{fill:var(--c6)}
.line{fill:none;stroke:var(--c0);stroke-width:2.2;stroke-linejoin:round;stroke-linecap:round}
.dots{fill:var(--c0);opacity:.28}.whisker{stroke:var(--ink);stroke-width:1.4}
"""
LIGHT = (
    "--ink:#1c2733;--faint:#5d6b7a;--paper:#fff;--track:#e4e9ee;--c0:#0b6e8f;--c1:#93a3b3;"
    "--c2:#d98e2b;--c3:#5c8a3a;--c4:#8a5ea8;--c5:#c2564b;--c6:#b7c2cc"
)
DARK = (
    "--ink:#e3e9ef;--faint:#97a5b3;--paper:#11181f;--track:#2a3641;--c0:#35a7cc;--c1:#66788a;"
    "--c2:#e0a04a;--c3:#7fb257;--c4:#ad86c9;--c5:#dd7a70;--c6:#4b5a68"
)
MORE_STYLE = """
.mono{font-family:ui-monospace,"DejaVu Sans Mono",monospace}.small{font-size:12px}
.edge{fill:none;stroke:var(--faint);stroke-width:1}.thick{stroke:var(--ink);stroke-width:2}
.crop{fill:none;stroke:var(--c5);stroke-width:2.5}.dim{opacity:.45}.soft{opacity:.28}
.arrow{stroke:var(--faint);stroke-width:1.4;fill:none;marker-end:url(#head)}.head{fill:var(--faint)}
"""


class Drawing:
    """SVG text."""

    def __init__(self, height: float, about: str) -> None:
        self._height, self._about = height, about
        self._parts: list[str] = []

    def box(
        self, x: float, y: float, width: float, height: float, kind: str, text: str = "", ink=""
    ) -> None:
        self._parts.append(
            f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"/>'
        )
        if text:
            self.text(x + width / 2, y + height / 2 + 4.5, text, f"middle {ink}")

    def text(self, x: float, y: float, text: str, kind: str = "") -> None:
        self._parts.append(
            f'<text class="{kind.strip()}" x="{x:g}" y="{y:g}">{escape(text)}</text>'
        )

    def path(self, data: str, kind: str = "edge") -> None:
        self._parts.append(f'<path class="{kind}" d="{data}"/>')

    def bracket(self, left: float, right: float, y: float, text: str) -> None:
        """A bracket below the range that it spans, with text."""
        self.path(f"M{left + 1:g} {y:g}v6H{right - 1:g}v-6")
        self.text((left + right) / 2, y + 22, text, "middle faint")

    def svg(self) -> str:
        pad = 18
        style = (
            f":root{{{LIGHT}}}@media (prefers-color-scheme:dark){{:root{{{DARK}}}}}{STYLE}"
            f"{MORE_STYLE}.paper{{fill:var(--paper)}}"
        )
        width, height = WIDTH + 2 * pad, self._height + 2 * pad
        head = (
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path class="head" d="M0 0L8 4L0 8z"/></marker></defs>'
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(self._about)}"'
            f' viewBox="{-pad} {-pad} {width:g} {height:g}" width="{width:g}" height="{height:g}">'
            f"<style>{style}</style>{head}"
            f'<rect class="paper" x="{-pad}" y="{-pad}" width="{width:g}" height="{height:g}"/>'
            f"{''.join(self._parts)}</svg>\n"
        )
