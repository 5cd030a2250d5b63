# SPDX-License-Identifier: Apache-2.0
"""SVG for the guides, in the colours of the charts."""

from __future__ import annotations

from html import escape

from headrace.insight.kit.chart import DARK, LIGHT, STYLE, WIDTH

MORE_STYLE = """
.mono{font-family:ui-monospace,"DejaVu Sans Mono",monospace}.small{font-size:12px}
.edge{fill:none;stroke:var(--faint);stroke-width:1}.thick{stroke:var(--ink);stroke-width:2}
.crop{fill:none;stroke:var(--c5);stroke-width:2.5}.dim{opacity:.45}.soft{opacity:.28}
.arrow{stroke:var(--faint);stroke-width:1.4;fill:none;marker-end:url(#head)}.head{fill:var(--faint)}
"""


class Drawing:
    """SVG text, in the colours of the charts."""

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
        """Below what it spans."""
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
