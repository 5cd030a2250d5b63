#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the doctor's predictions: each remedy is applied for real, to the whole set.

    python bench/doctor_predictions.py PHOTOS --json build/bench/predictions.json

The doctor examines a loop and predicts. Then the unchanged loop and the loop with the remedy
alternate whole epochs, and the medians give the actual gain. Loops: one thread of all; float32
batches; a costly operator; a costly step in Python. The steps sleep, like a program that waits for
its GPU. A gain is a ratio of rates, 1.84x; its error is predicted / measured - 1.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from headrace.insight.examination.conclusion import case_of
from headrace.insight.examination.examine import chosen, examine
from headrace.insight.examination.findings import Findings
from headrace.insight.model.prediction import Prediction, predict

import headrace as hr
from headrace import transforms as T

SIZE = 224
CORES = len(os.sched_getaffinity(0))
STEPS = {"none": 0.0, "light": 40e-6, "heavier": 120e-6}  # seconds per record
COLUMNS = ("loop", "batch", "step", "remedy", "before", "predicted", "found", "error", "inside")

Make = Callable[[], hr.Loader]


def speckle(image: Any) -> Any:
    """A Python step of about a millisecond that releases the GIL for part of it, as most do."""
    from PIL import Image, ImageFilter

    picture = Image.fromarray(image.transpose(1, 2, 0)).filter(ImageFilter.GaussianBlur(2))
    return __import__("numpy").asarray(picture).transpose(2, 0, 1).copy()


class Loops:
    """The loaders to examine, each with the remedies to apply, by the doctor's names."""

    def __init__(self, photos: Path, repeat: int, scratch: Path) -> None:
        self.source = hr.concat(*[hr.open(photos)] * repeat)
        self._packed = scratch / "photos.hrpack"

    def packed(self) -> str:
        if not self._packed.exists():
            hr.pack(self.source, self._packed)
        return str(self._packed)

    def named(self, name: str, batch: int) -> tuple[Make, dict[str, Make]]:
        train = hr.presets.imagenet_train(SIZE)

        def loader(steps: Any = train, source: Any = self.source, threads: int = CORES) -> Make:
            options = {"batch_size": batch, "threads": threads, "shuffle": True}
            return lambda: hr.Loader(source, steps, **options)

        if name == "one thread":
            return loader(threads=1), {f"{CORES} workers": loader()}
        if name == "float32":
            return loader(), {
                "pack": loader(source=self.packed()),
                "uint8, normalized on the device": loader(
                    hr.presets.imagenet_train(SIZE, dtype="uint8")
                ),
                "resident": lambda: hr.Loader(
                    self.source, train, batch_size=batch, shuffle=True, resident=True
                ),
            }
        if name == "costly operator":
            return loader([T.Resize(512), *train]), {"without Resize": loader()}
        blurred = [*train[:2], speckle, *train[2:]]
        return loader(blurred), {"without speckle": loader()}


LOOPS = ("one thread", "float32", "costly operator", "costly Python")


def step_of(seconds: float) -> Callable[[Any], None] | None:
    """Sleeps this long per record of a batch; None if there is nothing to wait for."""
    return (lambda batch: time.sleep(seconds * len(batch[0]))) if seconds else None


def predictions_of(make: Make, step: Any, seconds: float) -> tuple[dict[str, Prediction], float]:
    """The doctor's prediction for every remedy that it tried, recommended or not; and the loop's
    rate."""
    with make() as loader:
        found = Findings(loader, step)
        examine(found, chosen(["cold"]), seconds, lambda name, number: None)
        case, timed = case_of(found), found.real or found.alone
        if case is None or timed is None:
            return {}, 0.0
        offers = [predict(case, offer, timed.rate) for offer in found.offers]
        return {offer.name: offer for offer in offers}, timed.rate


def rate(loader: hr.Loader, step: Any, seconds: float) -> float:
    """Records per second over whole epochs."""
    begin, records = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        for batch in loader:
            records += len(batch[0])
            if step:
                step(batch)
    return records / (time.perf_counter() - begin)


def in_turns(
    makes: Sequence[Make], step: Any, rounds: int, turn: float
) -> list[tuple[float, float]]:
    """For each loader its median rate, and its median gain over the first one."""
    loaders = [make() for make in makes]
    try:
        for loader in loaders:
            rate(loader, step, 0.0)  # this epoch touches memory for the first time
        rates = [[rate(loader, step, turn) for loader in loaders] for _ in range(rounds)]
    finally:
        for loader in loaders:
            loader.close()
    return [
        (statistics.median(one), statistics.median(r[n] / r[0] for r in rates))
        for n, one in enumerate(zip(*rates, strict=True))
    ]


def examined(loops: Loops, name: str, batch: int, step: str, args: Any) -> list[dict[str, Any]]:
    """The rows of one loop: a row for each remedy."""
    make, remedies = loops.named(name, batch)
    sleep = step_of(STEPS[step])
    predicted, before = predictions_of(make, sleep, args.seconds)
    measured = in_turns([make, *remedies.values()], sleep, args.rounds, args.turn)
    rows = []
    for remedy, (_, gain) in zip(remedies, measured[1:], strict=True):
        row: dict[str, Any] = {"loop": name, "batch": batch, "step": step, "remedy": remedy}
        row.update(before=measured[0][0], doctor_before=before, found=gain, predicted=None)
        if remedy in predicted:
            low, high = predicted[remedy].low / before, predicted[remedy].high / before
            middle = (low + high) / 2
            row.update(low=low, high=high, predicted=middle, error=middle / gain - 1)
            row["inside"] = low <= gain <= high
        rows.append(row)
    return rows


def line(row: dict[str, Any]) -> str:
    cells = [row["loop"], row["batch"], row["step"], row["remedy"], f"{row['before']:,.0f}"]
    if row["predicted"] is None:
        cells += ["not tried", f"{row['found']:.2f}x", "", ""]
    else:
        cells.append(f"{row['predicted']:.2f}x ({row['low']:.2f} to {row['high']:.2f})")
        cells += [f"{row['found']:.2f}x", f"{row['error']:+.0%}", "yes" if row["inside"] else "no"]
    return "| " + " | ".join(map(str, cells)) + " |"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photos", type=Path, help="a folder of JPEGs")
    parser.add_argument("--repeat", type=int, default=8, help="number of times to list the folder")
    parser.add_argument("--loops", nargs="+", choices=LOOPS, default=LOOPS)
    parser.add_argument("--batch", nargs="+", type=int, default=(128, 32))
    parser.add_argument("--step", nargs="+", choices=STEPS, default=tuple(STEPS))
    parser.add_argument("--seconds", type=float, default=40.0, help="duration of each examination")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--turn", type=float, default=1.0, help="minimum seconds of a turn, in whole epochs"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="add the rows to this file")
    return parser.parse_args()


def main() -> int:
    args = parse_arguments()
    rows: list[dict[str, Any]] = []
    print("| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|")
    with tempfile.TemporaryDirectory() as scratch:
        loops = Loops(args.photos, args.repeat, Path(scratch))
        for batch in args.batch:
            for name in args.loops:
                for step in args.step:
                    made = examined(loops, name, batch, step, args)
                    rows += made
                    print("\n".join(map(line, made)), flush=True)
    known = [row for row in rows if row["predicted"] is not None]
    if known:
        worst = max(abs(row["error"]) for row in known)
        inside = sum(row["inside"] for row in known)
        widths = [row["high"] / row["low"] for row in known]
        print(
            f"{len(known)} predictions: off by {worst:.0%} at most, {inside} inside their range, "
            f"whose width is {statistics.median(widths):.2f}x in the median"
        )
    if args.json:
        old = json.loads(args.json.read_text()) if args.json.exists() else []
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps([*old, *rows], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
