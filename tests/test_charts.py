# SPDX-License-Identifier: Apache-2.0
"""Pages and charts are well-formed, escape their input, and PNG files contain their pixels."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from headrace.drawing.png import picture_grid, png_from_pixels
from headrace.insight.kit import figure
from headrace.insight.kit.charts import Axis, Bar, Words, bars, curve
from headrace.insight.kit.figure import Chart, standalone
from headrace.insight.kit.page import Page, code, note, terms

WORDS = Words("t & u", "<told>", ("a", "b"), [("<c>", "1")])


def chart_of(shown: list[Bar]) -> Chart:
    return bars(WORDS, shown, "{:g}".format, "1/s")


def curve_of(*values: float) -> Chart:
    across = Axis(0, max(1, len(values) - 1), "{:g}".format, "steps")
    return curve(WORDS, list(enumerate(values)), across, Axis(0, max(values), "{:g}".format))


CHARTS = [
    chart_of([Bar("a < b & c", 3, "<3>", "step", low=2, high=5), Bar("d", 0, "0")]),
    chart_of([]),
    curve_of(3.0, 2.0, 1.5),
    curve_of(1.0),
    curve_of(0.0, 0.0),
    curve_of(1e-9, 5e9),
]


@pytest.mark.parametrize("chart", CHARTS)
def test_a_chart_is_well_formed_by_itself_and_in_a_page(chart: Chart) -> None:
    root = ElementTree.fromstring(standalone(chart))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    markup = figure.html(chart, 1)
    for one in re.findall("<svg.*?</svg>", markup):
        ElementTree.fromstring(one)
    assert "nan" not in markup and "inf" not in markup


@pytest.mark.parametrize("width", [figure.WIDE, figure.NARROW])
def test_bars_are_as_long_as_their_values(width: float) -> None:
    drawing, _ = chart_of([Bar("a", 300, "x"), Bar("b", 1200, "y")]).draw(width)
    found = re.findall(r'<rect class="mute"[^>]* width="([\d.]+)"', "".join(drawing.parts))
    short, long = map(float, found)
    assert long == pytest.approx(4 * short, rel=1e-3)


def test_a_page_escapes_text() -> None:
    page = Page("<title>", "<m>", "<w>", "<h>", ["<l>"], [("<n>", "<f>")], "<v>", "", "<foot>")
    page.section("<s>", ["not markup: <x>", note("<t>"), code("<c>"), terms([("<u>", "<z>")])])
    markup = page.html().replace("<title>&lt;title", "")
    for text in re.findall("<[a-z]+>", "<title><m><w><h><l><n><f><v><foot><s><x><t><c><u><z>"):
        assert text not in markup


@pytest.mark.parametrize("channels, mode", [(1, "L"), (3, "RGB"), (4, "RGBA")])
def test_a_png_contains_its_pixels(channels: int, mode: str) -> None:
    image_module = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, (channels, 7, 5), np.uint8)
    with image_module.open(io.BytesIO(png_from_pixels(pixels))) as picture:
        assert picture.mode == mode
        seen = np.array(picture).reshape(7, 5, channels)
    assert np.array_equal(seen.transpose(2, 0, 1), pixels)


def test_a_png_of_another_shape_or_dtype_is_refused() -> None:
    for bad in (np.zeros((2, 4, 4), np.uint8), np.zeros((3, 4, 4)), np.zeros((4, 4), np.uint8)):
        with pytest.raises(ValueError, match="uint8"):
            png_from_pixels(bad)


def test_a_grid_places_images_row_by_row() -> None:
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
