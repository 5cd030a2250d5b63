# SPDX-License-Identifier: Apache-2.0
"""One self-contained HTML file: no network, no fonts, no scripts. It is structured like a lab
report: the result, then figure by figure the evidence. Instead of a figure that could not be drawn,
a sentence says why. Text is escaped; markup comes from the functions here, from `figure.table` and
from `pictures`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headrace.drawing.markup import clean, data_uri, document
from headrace.insight.kit import figure
from headrace.insight.kit.figure import Chart
from headrace.insight.kit.style import STYLE
from headrace.whole_file import write_whole


class Page:
    """A page under construction: a head, and sections and figures, numbered in order.

    >>> page = Page("A title", "Headrace demo", "2026-11-27", "What it found.")
    >>> page.section("A part", ["Why there is no chart.", code("import headrace")])
    >>> '<p class="absent">Why there is no chart.</p><pre>import' in page.html()
    True
    """

    def __init__(
        self,
        title: str,
        maker: str,
        when: str,
        headline: str,
        lines: Sequence[str] = (),
        facts: Sequence[tuple[str, str]] = (),
        verdict: str = "",
        kind: str = "",
        footer: str = "",
    ) -> None:
        """``facts``: pairs of a number and its meaning. ``verdict`` is shown above the headline, in
        the color of its ``kind``: "bound" or "fine"."""
        word = f'<p class="verdict {kind}">{clean(verdict)}</p>' if verdict else ""
        plain = "".join(f"<p>{clean(line)}</p>" for line in lines)
        items = "".join(f"<div><dt>{clean(t)}</dt><dd>{clean(n)}</dd></div>" for n, t in facts)
        key = f'<dl class="key">{items}</dl>' if items else ""
        self._title, self._footer = title, footer
        self._parts = [
            f'<header><p class="run"><span><b>{clean(maker)}</b></span><span>{clean(when)}</span>'
            f'</p>{word}<h1>{clean(headline)}</h1><div class="plain">{plain}</div>{key}</header>'
        ]
        self._figures = self._sections = 0

    def section(self, title: str, parts: Sequence[Chart | str | None]) -> None:
        """Charts become figures; plain text is a sentence that says what is missing."""
        made = []
        for part in parts:
            if isinstance(part, Chart):
                self._figures += 1
                made.append(figure.html(part, self._figures))
            elif part:
                made.append(part if part[:1] == "<" else f'<p class="absent">{clean(part)}</p>')
        if made:
            self._sections += 1
            name = f'<span class="no">{self._sections}</span>{clean(title)}'
            self._parts.append(f"<section><h2>{name}</h2>{''.join(made)}</section>")

    def html(self) -> str:
        footer = f"<footer>{clean(self._footer)}</footer>" if self._footer else ""
        return document(self._title, STYLE, "".join(self._parts) + footer)

    def write(self, path: str | Path) -> Path:
        """Writes the page, making its folder if needed, and returns the path."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, self.html())
        return path


def note(text: str) -> str:
    return f'<p class="faint">{clean(text)}</p>'


def code(text: str) -> str:
    return f"<pre>{clean(text)}</pre>"


def terms(meanings: Sequence[tuple[str, str]]) -> str:
    """A list of terms: (name, meaning)."""
    lines = (f"<dt>{clean(name)}</dt><dd>{clean(text)}</dd>" for name, text in meanings)
    return f'<dl class="terms">{"".join(lines)}</dl>'


def image(png: bytes, text: str) -> str:
    return f'<img class="wide" alt="{clean(text)}" src="{data_uri("image/png", png)}">'
