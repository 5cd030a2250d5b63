# SPDX-License-Identifier: Apache-2.0
"""One HTML file that needs nothing else: style, charts and pictures are inside."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headrace.drawing.markup import clean, data_uri, document
from headrace.insight.kit.chart import DARK, LIGHT, STYLE
from headrace.whole_file import write_whole

_PAGE_STYLE = """
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);line-height:1.55;
  font:16px/1.55 system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif}
main{max-width:840px;margin:0 auto;padding:48px 40px 64px}
h1{font-size:30px;line-height:1.2;margin:0 0 6px;letter-spacing:-.01em}
h2{font-size:19px;margin:44px 0 14px}
p{margin:0 0 12px}.lead{font-size:18px}.faint{color:var(--faint);font-size:14px}
svg{display:block;width:100%;height:auto;margin:6px 0 20px;overflow:visible}
figure{margin:0}img{display:block;width:100%;height:auto;border-radius:6px}
table{border-collapse:collapse;width:100%;margin:4px 0 16px;font-size:15px}
th,td{padding:7px 10px;border-bottom:1px solid var(--track);text-align:left}
th{font-weight:600;color:var(--faint)}
td.number,th.number{text-align:right;font-variant-numeric:tabular-nums}
tr.ours td{font-weight:650}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:14px;
  margin:26px 0 8px}
.fact{border:1px solid var(--track);border-radius:8px;padding:14px 16px}
.fact b{display:block;font-size:25px;line-height:1.25}.fact span{color:var(--faint);font-size:14px}
dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 16px;margin:0 0 14px;font-size:15px}
dt{font-weight:600}dd{margin:0;color:var(--faint)}
code,pre{font-family:ui-monospace,"DejaVu Sans Mono",monospace;font-size:14px}
pre{background:var(--track);padding:14px 16px;border-radius:8px;overflow-x:auto}
"""


class Page:
    """A page under construction; `write` puts it into a file.

    >>> page = Page("A title", "what it is about")
    >>> page.heading("A part")
    >>> page.table(["loader", "images/s"], [["headrace", "5,000"]])
    >>> "<h2>A part</h2>" in page.html()
    True
    """

    def __init__(self, title: str, lead: str = "") -> None:
        self._title = title
        self._parts = [f"<h1>{clean(title)}</h1>"]
        if lead:
            self._parts.append(f'<p class="lead">{clean(lead)}</p>')

    def heading(self, text: str) -> None:
        self._parts.append(f"<h2>{clean(text)}</h2>")

    def text(self, text: str, faint: bool = False) -> None:
        kind = ' class="faint"' if faint else ""
        self._parts.append(f"<p{kind}>{clean(text)}</p>")

    def code(self, text: str) -> None:
        self._parts.append(f"<pre>{clean(text)}</pre>")

    def chart(self, svg: str) -> None:
        """`svg` as chart.py makes it; it is not escaped."""
        self._parts.append(f"<figure>{svg}</figure>")

    def facts(self, facts: Sequence[tuple[str, str]]) -> None:
        """Big numbers in a row: (number, what it is)."""
        boxes = (
            f'<div class="fact"><b>{clean(number)}</b><span>{clean(name)}</span></div>'
            for number, name in facts
        )
        self._parts.append(f'<div class="facts">{"".join(boxes)}</div>')

    def terms(self, terms: Sequence[tuple[str, str]]) -> None:
        """What names mean: (name, meaning)."""
        lines = (f"<dt>{clean(name)}</dt><dd>{clean(text)}</dd>" for name, text in terms)
        self._parts.append(f"<dl>{''.join(lines)}</dl>")

    def picture(self, png: bytes, text: str) -> None:
        seen = f'<img alt="{clean(text)}" src="{data_uri("image/png", png)}">'
        self._parts.append(f"<figure>{seen}</figure>")

    def table(
        self, header: Sequence[str], rows: Sequence[Sequence[str]], ours: int | None = None
    ) -> None:
        """The first column is text, the others are numbers; row `ours` is emphasized."""
        kinds = ["", *[' class="number"'] * (len(header) - 1)]
        head = "".join(f"<th{k}>{clean(h)}</th>" for k, h in zip(kinds, header, strict=True))
        body = []
        for i, row in enumerate(rows):
            cells = "".join(f"<td{k}>{clean(c)}</td>" for k, c in zip(kinds, row, strict=True))
            body.append(f'<tr class="ours">{cells}</tr>' if i == ours else f"<tr>{cells}</tr>")
        self._parts.append(
            f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
        )

    def html(self) -> str:
        style = (
            f":root{{{LIGHT};color-scheme:light dark}}"
            f"@media (prefers-color-scheme:dark){{:root{{{DARK}}}}}{STYLE}{_PAGE_STYLE}"
        )
        return document(self._title, style, "".join(self._parts))

    def write(self, path: str | Path) -> Path:
        """Writes the page, making its folder where needed, and returns the path."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, self.html())
        return path
