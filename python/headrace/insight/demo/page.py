# SPDX-License-Identifier: Apache-2.0
"""The demo's HTML report."""

from __future__ import annotations

import platform
import time
from typing import Any, NamedTuple

import numpy as np

import headrace
from headrace.drawing.png import picture_grid, png_from_pixels
from headrace.insight.demo.terminal import ratio
from headrace.insight.kit.charts import Axis, Bar, Words, bars, curve
from headrace.insight.kit.figure import Chart
from headrace.insight.kit.page import Page, code, image, note, terms
from headrace.insight.kit.svg import Drawing, Scale


class Stage(NamedTuple):
    parts: tuple[str, ...]  # from the loader's stats(), without waiting, which is the loop's
    meaning: str


STAGES = {
    "reading": Stage(("read",), "a photo's bytes, from the disk or the system's page cache"),
    "decoding": Stage(
        ("decode", "transform"), "JPEG to pixels, only as much as the random crop needs"
    ),
    "resizing": Stage(("resample",), "the crop to 224 x 224 pixels, antialiased"),
    "writing": Stage(("store",), "flip, normalize, float32, into the batch's memory; one pass"),
    "Python transforms": Stage(("python",), "functions in the list of transforms"),
}
PHASES = {"feeding": "feeding alone", "training": "with training"}
SAMPLE_SIDE = 112
SAMPLE_COLUMNS = 8
SMOOTH = 9  # losses per running mean


def processor() -> str:
    """The processor's name, if the system reports it."""
    try:
        with open("/proc/cpuinfo") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def sample_pictures(source: Any, count: int) -> list[np.ndarray]:
    """A few augmented images as uint8 (3, side, side), before normalization."""
    transforms = headrace.presets.imagenet_train(SAMPLE_SIDE, dtype="uint8")
    loader = headrace.Loader(source, transforms, batch_size=count, shuffle=True).numpy()
    pictures = list(np.array(next(iter(loader))[0]))
    loader.close()
    return pictures


def make_page(ours: dict[str, Any], peer: dict[str, Any] | None) -> Page:
    facts = [
        (f"{ours[phase].images_per_second:,.0f}", f"images/s, {told}")
        for phase, told in PHASES.items()
    ]
    if peer:
        facts.append((ratio(ours, peer, "feeding"), "a plain DataLoader's rate"))
    facts.append((f"{ours['training'].stall:.0%}", "of training spent waiting for data"))
    when = time.strftime("%Y-%m-%d %H:%M")
    page = Page("Headrace demo", "Headrace demo", when, lead(ours, peer), (), facts)
    page.section("Images per second", [rates(ours, peer), note(method(ours, peer))])
    if ours["training"].losses:
        page.section("Training", [losses(ours["training"].losses)])
    spent = {
        name: sum(ours["stages"].get(part, 0.0) for part in s.parts) for name, s in STAGES.items()
    }
    spent = {name: seconds for name, seconds in spent.items() if seconds > 0}
    if spent:
        page.section(
            "Where the loader's time went",
            [stages(spent), terms([(name, STAGES[name].meaning) for name in spent])],
        )
    columns = min(SAMPLE_COLUMNS, len(ours["samples"]))
    page.section("What the network sees", [
        note("Each image after the training transforms: random resized crop and flip."),
        image(png_from_pixels(picture_grid(ours["samples"], columns)), "augmented samples"),
    ])  # fmt: skip
    page.section("The same loader in your code", [code(
        "import headrace as hr\n\n"
        f'train = hr.Loader("{ours["folder"]}", hr.presets.imagenet_train(224),\n'
        f"                  batch_size={ours['batch_size']}, shuffle=True).torch()\n"
        "for images, labels in train:\n    ..."
    )])  # fmt: skip
    return page


def lead(ours: dict[str, Any], peer: dict[str, Any] | None) -> str:
    text = f"{ours['records']:,} photos, decoded, cropped, flipped and normalized on "
    text += f"{ours['threads']} threads"
    return text + (
        ", compared with a PyTorch DataLoader with as many worker processes" if peer else ""
    )


def method(ours: dict[str, Any], peer: dict[str, Any] | None) -> str:
    text = (
        f"{processor()}, {ours['threads']} loading threads, batches of {ours['batch_size']} at "
        f"224x224 float32, each measured for {ours['feeding'].seconds:.0f} s each "
        "after a warm-up, files in the page cache. "
        f"Load average before it {ours['load']:.1f}. Training: {ours['trainer']}."
    )
    if peer:
        text += f" Compared with: {peer['name']}, {ours['threads']} worker processes."
    return text


def rates(ours: dict[str, Any], peer: dict[str, Any] | None) -> Chart:
    """The bars of both loaders, feeding alone and with training."""
    sides = [ours] + ([peer] if peer else [])
    shown = [
        Bar(f"{side['name'].split(',')[0]}, {told}", side[phase].images_per_second,
            f"{side[phase].images_per_second:,.0f}", "step" if side is ours else "mute")
        for phase, told in PHASES.items()
        for side in sides
    ]  # fmt: skip
    told = f"The loop waits for data {ours['training'].stall:.0%} of its time"
    told += f", with the DataLoader {peer['training'].stall:.0%}." if peer else "."
    rows = [
        (side["name"], *(f"{side[phase].images_per_second:,.0f}" for phase in PHASES),
         f"{side['training'].stall:.0%}")
        for side in sides
    ]  # fmt: skip
    words = Words("Images per second", told, ("", *PHASES.values(), "loop waits"), rows)
    return bars(words, shown, lambda value: f"{value:,.0f}", "images/s")


def losses(values: list[float]) -> Chart:
    """Each step's loss as a faint dot, and their running mean as a line."""
    means = []
    for i in range(len(values)):
        near = values[max(0, i - SMOOTH // 2) : i + SMOOTH // 2 + 1]
        means.append((float(i), sum(near) / len(near)))

    def dots(drawing: Drawing, x: Scale, y: Scale) -> None:
        for i, value in enumerate(values):
            drawing.dot("faint", x(i), y(value), 2.6)

    words = Words(
        "Loss",
        f"After {len(values)} steps the loss is {means[-1][1]:.3f}; it started at "
        f"{means[0][1]:.3f}. Dots: one step; line: the mean of {SMOOTH}.",
        ("step", "loss"),
        [(str(i), f"{value:.4f}") for i, value in enumerate(values)],
    )
    top = max(*values, 1e-9)
    across = Axis(0, max(1, len(values) - 1), "{:g}".format, "steps")
    return curve(words, means, across, Axis(min(0.0, *values), top, "{:g}".format, "loss"), dots)


def stages(spent: dict[str, float]) -> Chart:
    total, most = sum(spent.values()), max(spent.values())
    shown = [
        Bar(name, seconds, f"{seconds:.2f} s, {seconds / total:.0%}",
            "data" if seconds == most else "mute")
        for name, seconds in spent.items()
    ]  # fmt: skip
    told = (
        "While training, all threads together. The training loop waits only when these threads "
        "are slower than its step."
    )
    rows = [(bar.label, f"{bar.value:.2f} s", f"{bar.value / total:.0%}") for bar in shown]
    words = Words("Seconds of the loader's threads", told, ("stage", "seconds", "share"), rows)
    return bars(words, shown, "{:g}".format, "seconds")
