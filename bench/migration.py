#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gain from migrating a training script's DataLoader: records per CPU second, before and after.

Usage: build/frameworks/migration/bin/python bench/migration.py [--records N] [--rounds N] [WORD...]

The scripts are from tests/migration, at their usual sizes (224, 240 for masks, 400 to 800 for
boxes), over generated JPEGs. Each runs unchanged with num_workers=0, and through
hr.from_dataloader() with threads=1, alternating in one process; CPU seconds cover all threads of
the process. Scripts whose packages are missing are reported and skipped.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "migration"), str(ROOT / "tests")]

import conftest  # noqa: E402, F401  (declares what torchvision needs in addition to a torch for the CPU)
import made_data  # noqa: E402
import torch  # noqa: E402

import headrace as hr  # noqa: E402

made_data.SIZES = ((500, 375), (375, 500), (500, 333), (480, 360), (427, 500))


def cases(root: Path) -> dict[str, Callable[[], Any]]:
    """The training loader of each script, with its random transforms."""
    folder, coco, voc = root / "folder", root / "coco", root / "voc"

    def classification(**options: Any) -> Any:
        import torchvision_classification as script

        train = {"crop_size": 224, **options.pop("train", {})}
        return script.loaders(folder, batch_size=32, train=train, **options)[0]

    def detection(policy: str, **options: Any) -> Any:
        import torchvision_detection as script

        return script.loaders(coco, policy, size=800, **options)[0]

    def segmentation(**options: Any) -> Any:
        import torchvision_segmentation as script

        train = {"base_size": 260, "crop_size": 240}
        return script.loaders(voc, train=train, **options)[0]

    def timm(**options: Any) -> Any:
        import timm_train as script

        return script.loaders(folder, size=224, batch_size=32, **options)[0]

    def timm_mixup() -> Any:
        import timm_train as script

        return timm(mixup=script.MIXUP)

    def two_crops(aug_plus: bool) -> Any:
        import two_crops as script

        return script.train_loader(folder, aug_plus=aug_plus, batch_size=32, size=224)

    def huggingface() -> Any:
        import huggingface_trainer as script

        data = script.splits(folder, 224)["train"]
        return torch.utils.data.DataLoader(data, 32, shuffle=True, collate_fn=script.collate_fn)

    def usual(name: str, transform: str, size: int = 224) -> Any:
        import usual_datasets as script

        made = getattr(script, transform)(size)
        return getattr(script, name)(root / "table", made, batch_size=32, shuffle=True)

    def detr() -> Any:
        import detr as script

        return script.loaders(coco)[0]

    def lightning() -> Any:
        import lightning_module as script

        module = script.FolderDataModule(folder, batch_size=32, size=224)
        module.setup("fit")
        return module.train_dataloader()

    def ultralytics() -> Any:
        import ultralytics_train as script

        return script.loader(root / "yolo", imgsz=320)

    return {
        "torchvision classification v1": lambda: classification(),
        "torchvision classification v2": lambda: classification(use_v2=True),
        "torchvision classification v1, TrivialAugment": lambda: classification(
            train={"auto_augment_policy": "ta_wide", "random_erase_prob": 0.1}
        ),
        "torchvision classification v1, mixes": lambda: classification(
            mixup_alpha=0.2, cutmix_alpha=1.0
        ),
        "torchvision detection, hflip": lambda: detection("hflip"),
        "torchvision detection, multiscale, masks": lambda: detection(
            "multiscale", with_masks=True
        ),
        "torchvision detection, SSD": lambda: detection("ssd"),
        "torchvision segmentation v1": lambda: segmentation(),
        "torchvision segmentation v2": lambda: segmentation(use_v2=True),
        "timm": timm,
        "timm, FastCollateMixup": timm_mixup,
        "Hugging Face": huggingface,
        "MoCo v1": lambda: two_crops(False),
        "SimSiam": lambda: two_crops(True),
        "Pillow + CSV": lambda: usual("csv_loader", "train_transform"),
        "OpenCV + Albumentations": lambda: usual("opencv_loader", "albumentations_transform"),
        "DETR": detr,
        "Lightning": lightning,
        "Ultralytics": ultralytics,
    }


def epoch(loader: Any) -> tuple[int, float]:
    """Records and CPU seconds of one epoch."""
    begin, batches = time.process_time(), 0
    for _ in loader:
        batches += 1
    return batches, time.process_time() - begin


def measured(make: Callable[[], Any], rounds: int) -> str:
    with contextlib.redirect_stdout(io.StringIO()):
        theirs = make()
        loader = hr.from_dataloader(make(), verbose=False, threads=1, check=False)
    ours = loader.torch()
    epoch(ours), epoch(theirs)  # fills caches, and makes what is made only once
    pairs = [(epoch(theirs), epoch(ours)) for _ in range(rounds)]
    size = next(n for n in (getattr(theirs, "batch_size", None), _size_of(theirs), 2) if n)
    before, after = (
        statistics.median(batches * size / spent for batches, spent in each)
        for each in zip(*pairs, strict=True)
    )
    ratios = sorted((b[1] / b[0]) / (a[1] / a[0]) for b, a in pairs)
    python = [part.name.split("(")[0].split(":")[0] for part in loader.report.python]
    middle = statistics.median(ratios)
    said = f"  in Python: {', '.join(dict.fromkeys(python))}" if python else ""
    return (
        f"{before:8,.0f} {after:8,.0f} {middle:6.1f}x ({ratios[0]:.1f} to {ratios[-1]:.1f}){said}"
    )


def _size_of(loader: Any) -> int | None:
    inner = getattr(loader, "loader", loader)
    return getattr(getattr(inner, "batch_sampler", None), "batch_size", None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "words", nargs="*", help="only cases whose name contains one of these words"
    )
    parser.add_argument("--records", type=int, default=240)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    made_data.COUNT = args.records
    load = f"load {os.getloadavg()[0]:.1f} of {os.cpu_count()} cores"
    print(f"{args.records} records, {args.rounds} rounds, {load}")
    print(f"{'records a CPU second':<46}{'before':>8} {'after':>8}   ratio")
    with tempfile.TemporaryDirectory() as made:
        root = Path(made)
        made_data.image_folder(root / "folder")
        made_data.coco(root / "coco")
        made_data.voc(root / "voc")
        (root / "table").mkdir()
        made_data.table(root / "table")
        made_data.yolo(root / "yolo")
        for name, make in cases(root).items():
            if args.words and not any(word.lower() in name.lower() for word in args.words):
                continue
            try:
                line = measured(make, args.rounds)
            except ImportError as missing:
                line = f"  skipped: {missing}"
            except hr.Error as refused:
                line = f"  refused: {str(refused).splitlines()[0]}"
            print(f"{name:<46}{line}", flush=True)


if __name__ == "__main__":
    main()
