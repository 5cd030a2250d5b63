# SPDX-License-Identifier: Apache-2.0
"""Pages and charts are well-formed, escape what they are given, and PNG files hold their pixels."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from headrace.drawing.png import picture_grid, png_from_pixels
from headrace.insight.kit.chart import Bar, bar_chart, line_chart, share_chart, standalone
from headrace.insight.kit.page import Page

CHARTS = [
    bar_chart([Bar("a < b & c", 3, low=2, high=5, ours=True), Bar("d", 0)], "t & u", "1/s"),
    bar_chart([]),
    share_chart([("read", 1.0), ("<entropy>", 2.5), *((f"part {i}", 0.1) for i in range(9))], "x"),
    share_chart([("nothing", 0.0)]),
    line_chart([3.0, 2.0, 1.5], "loss", "3 steps"),
    line_chart([1.0]),
    line_chart([]),
    line_chart([2.0, 2.0]),
    line_chart([1e-9, 5e9]),
]


@pytest.mark.parametrize("chart", CHARTS)
def test_a_chart_is_well_formed_alone_and_in_a_page(chart: str) -> None:
    ElementTree.fromstring(chart)
    root = ElementTree.fromstring(standalone(chart))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "nan" not in chart and "inf" not in chart


def test_bars_of_charts_that_are_compared_have_one_scale() -> None:
    def width(chart: str) -> float:
        return float(re.findall(r'class="c1"[^>]* width="([\d.]+)"', chart)[0])

    alone = width(bar_chart([Bar("a", 300)], "x", "1/s"))
    assert width(bar_chart([Bar("a", 300)], "x", "1/s", longest=1200)) == pytest.approx(alone / 4)
    assert width(bar_chart([Bar("a", 1200)], "x", "1/s", longest=1200)) == pytest.approx(alone)


def test_a_page_escapes_text() -> None:
    page = Page("<title>", "<lead>")
    page.heading("<h>")
    page.text("<t>")
    page.code("<c>")
    page.facts([("<n>", "<f>")])
    page.terms([("<u>", "<v>")])
    page.table(["<a>", "<b>"], [["<c>", "<d>"]], ours=0)
    for text in (
        "<title>",
        "<lead>",
        "<h>",
        "<t>",
        "<c>",
        "<n>",
        "<f>",
        "<u>",
        "<v>",
        "<a>",
        "<b>",
        "<d>",
    ):
        assert text not in page.html().replace("<title>&lt;title", "").replace("<b>&lt;n", "")


@pytest.mark.parametrize("channels, mode", [(1, "L"), (3, "RGB"), (4, "RGBA")])
def test_a_png_holds_its_pixels(channels: int, mode: str) -> None:
    image_module = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, (channels, 7, 5), np.uint8)
    with image_module.open(io.BytesIO(png_from_pixels(pixels))) as picture:
        assert picture.mode == mode
        seen = np.array(picture).reshape(7, 5, channels)
    assert np.array_equal(seen.transpose(2, 0, 1), pixels)


def test_a_png_of_anything_else_is_refused() -> None:
    for bad in (np.zeros((2, 4, 4), np.uint8), np.zeros((3, 4, 4)), np.zeros((4, 4), np.uint8)):
        with pytest.raises(ValueError, match="uint8"):
            png_from_pixels(bad)


def test_a_grid_places_pictures_row_by_row() -> None:
    pictures = [np.full((3, 2, 2), value, np.uint8) for value in (10, 20, 30)]
    grid = picture_grid(pictures, columns=2, gap=1)
    assert grid.shape == (3, 5, 5)
    assert grid[0].tolist() == [
        [10, 10, 255, 20, 20],
        [10, 10, 255, 20, 20],
        [255] * 5,
        [30, 30, 255, 255, 255],
        [30, 30, 255, 255, 255],
    ]
