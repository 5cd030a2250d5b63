# SPDX-License-Identifier: Apache-2.0
"""The doctor's page is self-contained, draws the measurements, and escapes all its input."""

from __future__ import annotations

import base64
import dataclasses
import html.parser
import io
import itertools
import math
import random
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from headrace.insight.examination import samples
from headrace.insight.kit import figure, style, svg
from headrace.insight.measure.loop import Spread
from headrace.insight.measure.process_sampler import Vitals
from headrace.insight.measure.recording import Event, Recording, Span, Timeline, histogram
from headrace.insight.measure.regions import Region
from headrace.insight.model.case import Case, Stage
from headrace.insight.model.prediction import Prediction
from headrace.insight.model.verdict import WORDS, Verdict
from headrace.insight.model.verified import Verified
from headrace.insight.probes.ours import Price
from headrace.insight.probes.sample import Sample
from headrace.insight.report import charts, page, text, time_charts
from headrace.insight.report.report import Report

import headrace as hr
from headrace import transforms as T

PICTURES = Path(__file__).parent.parent / "examples" / "images"
HOSTILE = "</title><script>alert(1)</script><img src=x onerror=y>\"'&\x00\x1b[2J\ud800 ]]>"
VOID = {"meta", "img", "br", "wbr"}


def loop_of(waits: list[float], step: float = 0.008) -> Recording:
    """Batches one after another, the first of them before the first window."""
    events, now = [], 50.0
    for number, wait in enumerate(waits):
        events.append(Event(number, min(0, number - 1), now, wait, step, 4, number == 0))
        now += wait + step
    return Recording(
        tuple(events), len(waits), histogram(waits[1:]), histogram([step] * (len(waits) - 1))
    )


def full() -> Report:
    """A report with every feature, in round numbers."""
    stages = (
        Stage("reading", "storage", 0.0001, ("disk",)),
        Stage("decode", "decode", 0.0006),
        Stage("flip", "operator", 0.0003),
    )
    return Report(
        verdict="decode",
        stall_share=0.4,
        rates={"real": 1200.0, "ceiling": 4000.0, "loader": 2000.0, "one_thread": 1000.0},
        resources={"cores": 2000.0, "disk": 10000.0, "device": 4000.0},
        predictions=[
            Prediction("pack", "headrace pack SOURCE", 2400.0, 3600.0),
            Prediction("index", "headrace index SOURCE", 1200.0, 1800.0),
        ],
        detail=Verdict("decode", "decode", 1.0, 0.02),
        case=Case(stages, workers=2, cores=2, step_seconds=0.00025),
        waits=Spread(0.005, 0.004, 0.009, 0.04),
        steps=Spread(0.008, 0.008, 0.008, 0.008),
        start_seconds=0.1,
        regions=[Region(("step",), 0.008, 0.002, 1.0, 1.0),
                 Region(("step", "loss"), 0.006, 0.006, 0.75, 1.0)],
        operator_costs=[Price("flip", 0.0003, 0.00002)],
        slowest=[{"key": "a/b.jpg", "ms": 9.5, "record": 3}],
        samples=[Sample("a/b.jpg", 9.5, True, np.zeros((3, 4, 6), np.uint8)),
                 Sample("c.jpg", 1.5, False, None)],
        storage={"record bytes": 110_000.0, "random reads per second": {1: 400.0, 8: 900.0}},
        copies={"host": 20e9},
        host={"cores": 2, "memory_bytes": 16 * 10**9, "memory_limit_bytes": 2 * 10**9},
        sweep=[{"workers": 1, "rate": 1000.0, "start_s": 0.1},
               {"workers": 2, "rate": 2000.0, "start_s": 0.1}],
        script={"name": "train.py", "loop": "line 7", "loader": "DataLoader", "other_loops": []},
        ranks=[{"rank": 1, "rate": 700.0, "wait_seconds": 0.004, "step_seconds": 0.008,
                "data_seconds": None, "cores": 4}],
        verified=Verified("pack", 2400.0, 3600.0, 1200.0, 1210.0, 2987.0, 48, 800),
        notes=["A note."],
        seconds=35.0,
        vitals=Vitals(memory=((0.0, 10**9), (5.0, 15 * 10**8)), memory_growth=2000.0),
        timeline=Timeline(
            zero_ns=1_700_000_000_000_000_000,
            experiments=[Span("real", 50.0, 2.0)],
            loops={"real": loop_of([0.1, *[0.004] * 20, 0.04, *[0.004] * 20])},
        ),
    )  # fmt: skip


class Structure(html.parser.HTMLParser):
    """Checks that every element is closed correctly; collects references to other resources."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.refers: list[tuple[str, str]] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), (tag, name)
            if name in ("src", "href", "action", "data", "srcset", "style"):
                self.refers.append((name, value or ""))
            if name == "id":
                self.ids.append(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def drawings(markup: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(one) for one in re.findall(r"<svg.*?</svg>", markup, re.DOTALL)]


def assert_stands_alone(markup: str) -> Structure:
    """Well-formed, without scripts or external resources, and with text in its drawings."""
    structure = Structure()
    structure.feed(markup)
    structure.close()
    assert structure.open == []
    allowed = {"data:image/png;base64", "data:image/jpeg;base64"}
    assert {value.split(",")[0] for _, value in structure.refers} <= allowed
    assert not {"script", "link", "iframe", "object", "embed", "form"} & set(structure.seen)
    assert "@import" not in markup and "url(" not in markup
    assert len(structure.ids) == len(set(structure.ids))
    numbers = r'[ "](nan|inf|-inf)[ ",LM]'
    for drawing in drawings(markup):
        names = (drawing.get("aria-labelledby") or "").split()
        assert len(names) == 2 and set(names) <= set(structure.ids)
        assert drawing.get("role") == "img"
        title, told = drawing[0], drawing[1]
        assert title.tag.endswith("title") and told.tag.endswith("desc")
        assert title.text and told.text
        assert not re.search(numbers, ElementTree.tostring(drawing, "unicode"))
    return structure


def marks(chart: Any, kind: str, tag: str = "rect", width: float = 760) -> list[dict[str, float]]:
    """The shapes of a class in a chart's drawing."""
    drawing, height = chart.draw(width)
    root = ElementTree.fromstring(drawing.svg(height, "x", "t", "d", ""))
    found = [e for e in root if e.tag.endswith(tag) and e.get("class") == kind]
    return [{k: float(v) for k, v in e.attrib.items() if k != "class"} for e in found]


# The page.


def page_of(report: Report) -> str:
    return page.of(report).html()


def test_a_full_page_is_self_contained_and_has_every_figure() -> None:
    markup = page_of(full())
    assert_stands_alone(markup)
    assert len(re.findall("<figcaption>", markup)) == 8
    assert len(drawings(markup)) == 16  # one version of each figure for desktops and one for phones
    assert "was not" not in re.sub("<svg.*?</svg>", "", markup)
    for words in ("Your loop waits for data", "A note.", "a/<wbr>b.jpg", "9.5 ms", "headrace pack",
                  "train.py", "700", "2,987"):  # fmt: skip
        assert words in markup
    assert markup.index("Your loop waits for data") < markup.index("<figure")
    assert "2023-11-14 22:14 UTC, 35.00 s" in markup  # 50 s after Unix second 1.7e9
    assert markup == page_of(full())


def test_the_five_plain_lines_come_first() -> None:
    report = full()
    header = page_of(report).split("</header>")[0]
    first, *others = str(report).splitlines()[:5]
    for line in (first.split(": ", 1)[1], *others):
        assert svg.clean(line) in header


@pytest.mark.parametrize("report", [Report(), Report(verdict="fed"), Report(notes=["x" * 5000])])
def test_an_empty_report_says_why_there_are_no_figures(report: Report) -> None:
    markup = page_of(report)
    assert_stands_alone(markup)
    assert drawings(markup) == []
    assert markup.count('class="absent"') >= 8
    assert "Without a training step" in markup


@pytest.mark.parametrize("field", [f.name for f in dataclasses.fields(Report)])
def test_each_part_may_be_missing(field: str) -> None:
    made = dataclasses.replace(full(), **{field: getattr(Report(), field)})
    assert_stands_alone(page_of(made))
    assert str(made) and text.of(made, 80, bars=True)


@pytest.mark.parametrize("word", WORDS)
def test_every_verdict_has_its_sentence(word: str) -> None:
    for stall in (0.4, None):
        detail = Verdict(word, "the cause", math.inf, 0.1, likely=word)
        report = Report(verdict=word, detail=detail, stall_share=stall, rates={"loader": 10.0})
        assert all(line.endswith(".") for line in str(report).splitlines()[:5]), report
        assert_stands_alone(page_of(report))


def test_strings_from_the_data_are_text_everywhere() -> None:
    report = full()
    report.verdict = HOSTILE
    report.detail = Verdict("unsure", HOSTILE, 1.0, 0.1, likely=HOSTILE)
    report.predictions = [Prediction(HOSTILE, HOSTILE, 1.0, 2.0)]
    report.case = Case((Stage(HOSTILE, HOSTILE, 0.1, ("cores",)),), 1, 1)
    report.resources[HOSTILE] = 5.0
    report.operator_costs = [Price(HOSTILE, 0.1, 0.1)]
    report.slowest = [{"key": HOSTILE, "ms": 1.0}]
    report.samples = [Sample(HOSTILE, 1.0, True)]
    report.regions = [Region((HOSTILE,), 1.0, 1.0, 1.0, 1.0)]
    report.notes = [HOSTILE]
    report.script = dict.fromkeys(("name", "loop", "loader"), HOSTILE) | {"other_loops": []}
    report.host = {HOSTILE: HOSTILE, "disk": HOSTILE}
    report.storage, report.copies = {HOSTILE: HOSTILE}, {HOSTILE: 1e9}
    report.timeline.experiments.append(Span(HOSTILE, 1.0, 1.0))
    report.timeline.loops[HOSTILE] = report.timeline.loops["real"]
    markup = page_of(report)
    structure = assert_stands_alone(markup)
    assert structure.seen.count("img") == 0  # the one in the string is not an element
    assert "\x00" not in markup and "\x1b" not in markup
    markup.encode("utf-8")
    shown = str(report)
    assert "\x1b" not in shown and "\x00" not in shown
    shown.encode("utf-8")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.0, -1.0, 1e300, 1e-300])
def test_numbers_that_cannot_be_drawn_are_left_out(value: float) -> None:
    report = full()
    report.stall_share = value
    report.rates = dict.fromkeys(report.rates, value)
    report.resources = dict.fromkeys(report.resources, value)
    report.predictions = [Prediction("x", "y", value, value)]
    report.detail = Verdict("decode", "decode", value, value)
    report.case = Case((Stage("a", "decode", value), Stage("b", "decode", 0.01)), 1, 1)
    report.waits = report.steps = Spread(value, value, value, value)
    report.operator_costs = [Price("p", value, value)]
    report.sweep = [{"workers": 1, "rate": value, "start_s": value}]
    report.seconds = report.start_seconds = value
    report.vitals = Vitals(memory=((value, 5), (1.0, 5)), memory_growth=value)
    event = Event(1, 0, value, value, value, 1)
    bins = histogram([value, 0.01])
    report.timeline.loops = {"real": Recording((event,), 1, bins, bins)}
    assert_stands_alone(page_of(report))
    assert text.of(report, 80, bars=True)


def test_rates_have_their_unit_and_memory_its_direction() -> None:
    report = full()
    report.storage = {"sequential bytes per second": 600e6}
    assert re.search(r"sequential reads +600\.0 MB/s\n", str(report))
    assert "growing by 2.0 kB per step" in str(report)
    report.vitals = Vitals(memory=((0.0, 10**9), (1.0, 10**9)), memory_growth=-14_100.0)
    assert "shrinking by 14.1 kB per step" in str(report)


def test_ten_thousand_notes_are_counted_not_shown() -> None:
    report = dataclasses.replace(full(), notes=[f"note {n}" for n in range(10_000)])
    report.predictions = [Prediction(f"r{n}", "w", 2000.0, 3000.0 + n) for n in range(5000)]
    markup = page_of(report)
    assert_stands_alone(markup)
    assert "9,900 more are not shown" in markup and "4,800 more are not shown" in markup
    assert len(markup) < 500_000
    assert "9,900 more notes are not shown" in str(report)


def test_a_dataset_of_one_record_gets_a_page(tmp_path: Path) -> None:
    with hr.Loader(hr.subset(PICTURES, range(1)), [T.Resize((8, 8))], batch_size=1) as loader:
        report = hr.doctor(loader, lambda batch: None, seconds=0.5, sweep=True)
    report.html(tmp_path / "page.html")
    markup = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert_stands_alone(markup)
    assert markup.count("data:image/") == 1
    assert report.sweep[0]["workers"] == 1


def test_text_has_the_contrast_required_for_accessibility() -> None:
    """WCAG 2.1, 1.4.3: at least 4.5 to 1 for text; 1.4.11: 3 to 1 for graphics."""
    palettes = re.findall(r"--paper:[^}]*", style.STYLE)
    assert len(palettes) >= 2
    for palette in palettes:
        colors = dict(re.findall(r"--(\w+):(#[0-9a-f]+)", palette))
        for name in ("ink", "faint", "data", "step", "good", "mute"):
            least = 3.0 if name == "mute" else 4.5
            assert contrast(colors[name], colors["paper"]) >= least - 0.02, (name, palette)


def contrast(one: str, other: str) -> float:
    """By WCAG 2.1's formula."""

    def luminance(color: str) -> float:
        digits = color[1:] if len(color) == 7 else "".join(2 * c for c in color[1:])
        parts = [int(digits[n : n + 2], 16) / 255 for n in (0, 2, 4)]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


# The charts.


def test_shares_of_data_and_step_divide_the_width() -> None:
    chart = charts.shares(full())
    assert marks(chart, "data")[0]["width"] == pytest.approx(0.4 * 760)
    assert marks(chart, "step")[0]["width"] == pytest.approx(0.6 * 760)


def test_a_device_that_hides_waits_is_mentioned() -> None:
    report = full()  # whose process waited 5 ms of 13
    assert "the process itself" not in charts.shares(report).told
    report.stall_share = 0.75
    assert "the process itself waited 38%" in charts.shares(report).told


def test_stages_are_drawn_as_long_as_they_take() -> None:
    chart = charts.stages(full())
    (heaviest,) = marks(chart, "data")
    reading, flip = marks(chart, "mute")
    assert reading["width"] / heaviest["width"] == pytest.approx(1 / 6, rel=1e-3)
    assert flip["width"] / heaviest["width"] == pytest.approx(1 / 2, rel=1e-3)
    assert [row[2] for row in chart.rows] == ["10%", "60%", "30%"]


def test_remedies_share_an_axis_with_the_measured_rate() -> None:
    chart = charts.predictions(full())
    best, other = marks(chart, "good")
    each = best["width"] / (3600 - 2400)  # pixels per record per second
    assert other["width"] == pytest.approx(each * (1800 - 1200), rel=1e-3)
    # starting at zero
    assert best["x"] == pytest.approx(figure.Rows(760, 0).left + each * 2400, abs=0.1)
    assert best["x"] - other["x"] == pytest.approx(each * (2400 - 1200), rel=1e-3)
    assert "2.00 times to 3.00 times" in chart.told


def test_resources_are_on_a_logarithmic_axis() -> None:
    chart = charts.resources(full())
    (least,) = marks(chart, "data", "circle")
    device, disk = marks(chart, "mute", "circle")
    decade = (disk["cx"] - least["cx"]) / math.log10(10000 / 2000)
    assert device["cx"] - least["cx"] == pytest.approx(decade * math.log10(2), abs=0.1)
    assert chart.rows[0] == ("processor cores", "2,000")


def test_a_sweep_is_drawn_from_zero() -> None:
    chart = charts.threads(full())
    one, two = marks(chart, "step", "circle")
    zero = 230 - 44
    assert zero - two["cy"] == pytest.approx(2 * (zero - one["cy"]), abs=0.1)


def test_a_waterfall_shows_typical_batches_and_the_slowest() -> None:
    report = full()
    typical, slow = time_charts.stretches(report.timeline.loops["real"])
    assert {round(event.waited, 6) for event in typical} == {0.004}
    assert 21 in [event.number for event in slow]  # whose wait was ten times as long
    assert [e.number for e in typical] == list(range(typical[0].number, typical[0].number + 8))
    chart = time_charts.waterfall(report)
    waits, steps = marks(chart, "data")[:8], marks(chart, "step")[:8]
    for wait, step in zip(waits, steps, strict=True):
        assert step["x"] == pytest.approx(wait["x"] + wait["width"], abs=0.02)
        assert step["width"] == pytest.approx(2 * wait["width"], abs=0.05)  # 8 ms and 4 ms
    assert "40.00 ms" in chart.told


def test_a_histogram_counts_every_batch_once() -> None:
    draw = random.Random(1)
    values = [10 ** draw.uniform(-5, 1) for _ in range(5000)] + [0.0]
    bins = histogram(values)
    assert sum(one.number for one in bins) == len(values)
    for one in bins[1:]:
        assert one.number == sum(one.low <= value < one.high for value in values)
    assert all(a.high == b.low for a, b in itertools.pairwise(bins))
    assert histogram([]) == histogram([math.nan]) == ()
    chart = time_charts.latencies(full())
    assert len(marks(chart, "data")) == 2 and len(marks(chart, "step")) == 1


def test_memory_is_drawn_against_its_limit() -> None:
    chart = time_charts.memory(full())
    assert "1.5 GB" in chart.told and "2.0 kB per step" in chart.told
    drawing, _ = chart.draw(360)
    assert any("limit 2.0 GB" in part for part in drawing.parts)


@pytest.mark.parametrize("width", [figure.WIDE, figure.NARROW])
def test_nothing_is_drawn_outside_the_chart(width: float) -> None:
    report = full()
    for chart in (charts.shares, charts.resources, charts.stages, charts.predictions,
                  charts.threads, time_charts.waterfall, time_charts.latencies,
                  time_charts.memory):  # fmt: skip
        drawing, height = chart(report).draw(width)
        root = ElementTree.fromstring(drawing.svg(height, "x", "t", "d", ""))
        for shape in root.iter():
            if shape.tag.endswith("rect"):
                x, y, w, h = (float(shape.get(k, 0)) for k in ("x", "y", "width", "height"))
                assert x >= 0 and x + w <= width + 1 and y >= 0 and y + h <= height, chart
            if shape.tag.endswith("text"):
                assert 0 <= float(shape.get("x", 0)) <= width
                assert 0 <= float(shape.get("y", 0)) <= height + 1


def test_ticks_are_round_numbers_inside_the_axis() -> None:
    assert svg.Scale(0, 10, 0, 1).ticks(5) == [0, 2, 4, 6, 8, 10]
    assert svg.Scale(1, 1000, 0, 1, log=True).ticks(4) == [1, 10, 100, 1000]
    draw = random.Random(2)
    for _ in range(300):
        low = 10 ** draw.uniform(-9, 9)
        high = low * 10 ** draw.uniform(0.01, 9)
        for log in (False, True):
            ticks = svg.Scale(low, high, 0, 1, log).ticks(6)
            assert len(ticks) <= 8 and ticks == sorted(ticks)
            assert all(0.99 * low <= tick <= 1.01 * high for tick in ticks)


# Pictures.


@pytest.mark.parametrize("shape", [(3, 300, 200), (1, 10, 1000), (3, 1, 1), (4, 50, 50)])
def test_small_images_are_means_of_areas(shape: tuple[int, int, int]) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    small = samples.picture_in({"label": 3, "image": pixels})
    assert small is not None and max(small.shape) <= max(3, samples.SIDE)
    assert small.shape[0] == min(3, shape[0])
    assert abs(float(small.mean()) - float(pixels[:3].mean())) < 3


def test_an_image_may_be_pillows_or_a_float_array() -> None:
    image_module = pytest.importorskip("PIL.Image")
    red = image_module.new("RGB", (20, 10), (255, 0, 0))
    found = samples.picture_in((red, 7))
    assert found is not None and found.shape == (3, 10, 20) and found[0].min() == 255
    floats = np.linspace(-2, 2, 3 * 8 * 8, dtype=np.float32).reshape(8, 8, 3)
    found = samples.picture_in([floats])
    assert found is not None and (found.min(), found.max()) == (0, 255)
    assert samples.picture_in("text") is None and samples.picture_in(3) is None
    assert samples.picture_in({"x": np.zeros((5, 7))}) is None


@pytest.mark.parametrize("pillow", [True, False])
def test_images_in_a_page_are_files(pillow: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from headrace.insight.report import pictures

    image_module = pytest.importorskip("PIL.Image")
    if not pillow:
        monkeypatch.setattr(pictures, "_jpeg", lambda pixels: None)
    for channels in (1, 3):
        pixels = np.full((channels, 6, 9), 200, np.uint8)
        kind, data = pictures.picture_uri(pixels).split(";base64,")
        assert kind == f"data:image/{'jpeg' if pillow else 'png'}"
        with image_module.open(io.BytesIO(base64.b64decode(data))) as picture:
            assert picture.size == (9, 6)
            assert abs(np.asarray(picture).mean() - 200) < 2


def test_slow_records_are_shown_with_their_images() -> None:
    with hr.Loader(PICTURES, [T.Resize((8, 8))], batch_size=1) as loader:
        skipped = ["cold", "storage", "copy", "remedies", "real"]
        report = hr.doctor(loader, seconds=1, skip=skipped)
    slow = [one for one in report.samples if one.slow]
    assert [one.key for one in slow] == [item["key"] for item in report.slowest]
    assert all(one.pixels is not None and one.pixels.shape[0] in (1, 3) for one in report.samples)


# The text.


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_text_fits_the_terminals_width(columns: int) -> None:
    lines = text.of(full(), columns, bars=True).splitlines()
    assert max(map(len, lines)) <= max(columns, 64)
    assert any("█" in line for line in lines)


def test_plain_text_is_the_same_for_equal_reports() -> None:
    shown = str(full())
    assert shown == str(full()) and "█" not in shown
    assert max(len(line) for line in shown.splitlines()[5:]) <= 80
    for words in ("  both, as trained       1,200", "1,200 to 1,800  index (headrace index SOURCE)",
                  "600 µs  60%", "20.0 GB/s"):  # fmt: skip
        assert words in shown
