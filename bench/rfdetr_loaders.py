#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""RF-DETR's training loader and headrace.trainers.rfdetr's, side by side: rates and CPU time.

Usage: build/frameworks/migration/bin/python bench/rfdetr_loaders.py
       [--records N] [--rounds N] [--resolution N] [--multi-scale per-batch|per-sample|off]

Both are made from one configuration, over generated JPEGs of COCO's sizes with its annotations:
theirs with two worker processes, ours with two threads. They alternate, each time after an epoch
that does not count, so that neither starts with batches prepared while the other one was running.
The ratio of medians counts. CPU seconds cover the process and its children, from /proc.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "migration"), str(ROOT / "tests")]

import conftest  # noqa: E402, F401  (declares what torchvision needs in addition to a torch for the CPU)
import made_data  # noqa: E402
import torch  # noqa: E402
from headrace.trainers import rfdetr  # noqa: E402
from process_tree import cpu_seconds  # noqa: E402
from rfdetr.config import RFDETRMediumConfig, TrainConfig  # noqa: E402
from rfdetr.training import RFDETRDataModule  # noqa: E402

made_data.SIZES = ((640, 480), (480, 640), (640, 427), (612, 612), (500, 375))
WORKERS = 2


def second_epoch(loader: Any) -> tuple[float, float]:
    """Images per second of wall clock, and CPU milliseconds per image."""
    for _ in loader:
        pass
    begin, spent, images = time.perf_counter(), cpu_seconds(os.getpid()), 0
    for samples, targets in loader:
        assert len(targets) == len(samples.tensors)
        images += len(targets)
    used = cpu_seconds(os.getpid()) - spent
    return images / (time.perf_counter() - begin), used / images * 1000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=240)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--resolution", type=int, default=576)
    parser.add_argument("--multi-scale", default="per-batch")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable()
    torch.set_num_threads(1)
    made_data.COUNT = given.records
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        made_data.coco(Path(folder))
        model = RFDETRMediumConfig(pretrain_weights=None, resolution=given.resolution)
        train = TrainConfig(
            dataset_dir=folder,
            dataset_file="coco",
            batch_size=8,
            num_workers=WORKERS,
            augmentation_backend="torchvision",
            multi_scale=given.multi_scale,
        )
        modules = [RFDETRDataModule(model, train), rfdetr.DataModule(model, train)]
        for module in modules:
            module.setup("fit")
        theirs, ours = (module.train_dataloader() for module in modules)
        assert ours.view.loader.assembly.given["threads"] in (None, WORKERS)
        rounds = [(second_epoch(theirs), second_epoch(ours)) for _ in range(given.rounds)]
    for number, what in enumerate(("images/s", "CPU ms per image")):
        before, after = (
            statistics.median(pair[side][number] for pair in rounds) for side in (0, 1)
        )
        gain = after / before if number == 0 else before / after
        print(f"{what:18} RF-DETR {before:8.1f}   Headrace {after:8.1f}   {gain:5.1f}x")


if __name__ == "__main__":
    main()
