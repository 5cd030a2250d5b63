# SPDX-License-Identifier: Apache-2.0
"""A report as one HTML page that needs nothing else: no network, no font, no script."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from headrace.doctor import summary, text

if TYPE_CHECKING:
    from headrace.doctor.report import Report


def of(report: Report) -> str:
    """The page."""
    first, *others = summary.lines(report)
    lines = "".join(f"<p>{escape(line)}</p>" for line in others)
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Headrace doctor</title></head><body><h1>{escape(first)}</h1>{lines}"
        f"<pre>{escape(text.of(report))}</pre></body></html>\n"
    )
