# SPDX-License-Identifier: Apache-2.0
"""Self-contained HTML pages and SVG charts, made with the standard library and NumPy only."""

from headrace.report.chart import Bar, bar_chart, line_chart, share_chart, standalone
from headrace.report.page import Page
from headrace.report.png import picture_grid, png_from_pixels

__all__ = [
    "Bar",
    "Page",
    "bar_chart",
    "line_chart",
    "picture_grid",
    "png_from_pixels",
    "share_chart",
    "standalone",
]
