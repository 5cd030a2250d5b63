# SPDX-License-Identifier: Apache-2.0
"""The demo's report."""

from __future__ import annotations

import platform
import time
from typing import Any, NamedTuple

import numpy as np

import headrace
from headrace.drawing.png import picture_grid, png_from_pixels
from headrace.insight.demo.terminal import ratio, share_waited
from headrace.insight.kit.chart import Bar, bar_chart, line_chart, share_chart
from headrace.insight.kit.page import Page


class Stage(NamedTuple):
    parts: tuple[str, ...]  # of the loader's stats(); waiting is the loop's, not the threads'
    meaning: str


STAGES = {
    "reading": Stage(("read",), "a photo's bytes, from the disk or the system's page cache"),
    "decoding": Stage(
        ("entropy", "transform"), "JPEG's bits to pixels, as far as the random crop shows them"
    ),
    "resizing": Stage(("resample",), "the crop to 224 x 224 pixels, antialiased"),
    "writing": Stage(("store",), "flip, normalize, float32, into the batch's memory; one pass"),
    "steps in Python": Stage(("python",), "functions in the list of transforms"),
}
SAMPLE_SIDE = 112
SAMPLE_COLUMNS = 8


def processor() -> str:
    """The processor's name where the system tells it."""
    try:
        with open("/proc/cpuinfo") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def sample_pictures(source: Any, count: int) -> list[np.ndarray]:
    """A few augmented pictures as uint8 (3, side, side), before they are normalized."""
    transforms = headrace.presets.imagenet_train(SAMPLE_SIDE, dtype="uint8")
    loader = headrace.Loader(source, transforms, batch_size=count, shuffle=True).numpy()
    pictures = list(np.array(next(iter(loader))[0]))
    loader.close()
    return pictures


def make_page(ours: dict[str, Any], peer: dict[str, Any] | None) -> Page:
    page = Page("Headrace demo", lead(ours, peer))
    facts = [(f"{ours['feeding'].images_per_second:,.0f}", "images/s, feeding alone")]
    facts.append((f"{ours['training'].images_per_second:,.0f}", "images/s, with training"))
    if peer:
        facts.append((ratio(ours, peer, "feeding"), "a plain DataLoader's rate"))
    facts.append((f"{share_waited(ours['training']):.0f} %", "of training spent waiting for data"))
    page.facts(facts)
    page.heading("Images per second")
    sides = [ours] + ([peer] if peer else [])
    longest = max(s[phase].images_per_second for s in sides for phase in ("feeding", "training"))
    for phase, title in (("feeding", "Feeding alone"), ("training", "With training")):
        bars = [Bar(s["name"], s[phase].images_per_second, ours=s is ours) for s in sides]
        page.chart(bar_chart(bars, title, "images/s, longer is better", longest))
    page.table(
        ["", "feeding alone", "with training", "loop waits"],
        [
            [
                side["name"],
                f"{side['feeding'].images_per_second:,.0f}",
                f"{side['training'].images_per_second:,.0f}",
                f"{share_waited(side['training']):.0f} %",
            ]
            for side in sides
        ],
        ours=0,
    )
    page.text(method(ours, peer), faint=True)
    add_training(page, ours)
    page.heading("What the net sees")
    page.text(
        "Each picture once through the training recipe: random resized crop and flip.", faint=True
    )
    columns = min(SAMPLE_COLUMNS, len(ours["samples"]))
    page.picture(png_from_pixels(picture_grid(ours["samples"], columns)), "augmented samples")
    page.heading("The same in your code")
    page.code(
        "import headrace as hr\n\n"
        f'train = hr.Loader("{ours["folder"]}", hr.presets.imagenet_train(224),\n'
        f"                  batch_size={ours['batch_size']}, shuffle=True).torch()\n"
        "for images, labels in train:\n    ..."
    )
    return page


def lead(ours: dict[str, Any], peer: dict[str, Any] | None) -> str:
    text = f"{ours['records']:,} photos, decoded, cropped, flipped and normalized on "
    text += f"{ours['threads']} threads"
    return text + (", beside a PyTorch DataLoader with as many workers." if peer else ".")


def method(ours: dict[str, Any], peer: dict[str, Any] | None) -> str:
    text = (
        f"{processor()}, {ours['threads']} loading threads, batches of {ours['batch_size']} at "
        f"224x224 float32, measured one after the other for {ours['feeding'].seconds:.0f} s each "
        "after a warm-up, files in the page cache. "
        f"Load average before it {ours['load']:.1f}. Training: {ours['trainer']}. "
        f"Written {time.strftime('%Y-%m-%d %H:%M')}."
    )
    if peer:
        text += f" The other side: {peer['name']}, {ours['threads']} worker processes."
    return text


def add_training(page: Page, ours: dict[str, Any]) -> None:
    losses = ours["training"].losses
    if losses:
        page.heading("Training")
        page.chart(line_chart(losses, "Loss", f"{len(losses)} steps"))
    spent = {
        name: sum(ours["stages"].get(part, 0.0) for part in s.parts) for name, s in STAGES.items()
    }
    spent = {name: seconds for name, seconds in spent.items() if seconds > 0}
    if not spent:
        return
    page.heading("Where the loader's time went")
    page.chart(share_chart(list(spent.items()), "While training, all threads together"))
    page.terms([(name, STAGES[name].meaning) for name in spent])
    page.text(
        "The loop itself waits only where these threads are slower than the training step.",
        faint=True,
    )
