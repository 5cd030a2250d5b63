#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Folders of image formats other than JPEG: Headrace and a DataLoader with Pillow, alternating.

    python bench/picture_kinds.py PHOTOS --limit 128 --rounds 7 --threads 2

The photos are written once in each format. Both do the ImageNet recipe (random resized crop to 224,
flip, normalize, float32), with as many threads as (persistent) workers. Prints pictures per second
and CPU seconds per 1,000 pictures, each the median over the rounds, and their ratios, which are
least affected by other load.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from PIL import Image
from torchvision.transforms import v2

import headrace as hr
from headrace import transforms as T

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
KINDS = {
    "WebP, lossy": (".webp", {"quality": 80}),
    "WebP, lossless": (".webp", {"lossless": True}),
    "PNG": (".png", {}),
    "TIFF, raw": (".tif", {}),
    "TIFF, LZW": (".tif", {"compression": "tiff_lzw"}),
    "TIFF, deflate": (".tif", {"compression": "tiff_adobe_deflate"}),
    "BMP": (".bmp", {}),
    "GIF": (".gif", {}),
    "AVIF": (".avif", {"quality": 75}),
    "JPEG 2000": (".jp2", {"quality_mode": "rates", "quality_layers": [10], "irreversible": True}),
}


class Photos(torch.utils.data.Dataset):
    def __init__(self, files: list[Path]) -> None:
        self.files = files
        self.transforms = v2.Compose(
            [
                v2.RandomResizedCrop(224, antialias=True),
                v2.RandomHorizontalFlip(),
                v2.PILToTensor(),
                v2.ToDtype(torch.float32, scale=True),
                v2.Normalize(MEAN, STD),
            ]
        )

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> torch.Tensor:
        with open(self.files[index], "rb") as file:
            return self.transforms(Image.open(file).convert("RGB"))


def cpu_seconds() -> float:
    """CPU seconds of this process and its finished workers."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = used.ru_utime + used.ru_stime
    for child in multiprocessing.active_children():
        text = Path(f"/proc/{child.pid}/stat").read_text()
        fields = text[text.rindex(")") + 2 :].split()
        seconds += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return seconds


def costs_of(epoch: Callable[[], object]) -> tuple[float, float]:
    """Wall-clock and CPU seconds."""
    start, began = cpu_seconds(), time.perf_counter()
    epoch()
    took = time.perf_counter() - began
    return took, cpu_seconds() - start


def compare(name: str, photos: list[Path], folder: Path, arguments: argparse.Namespace) -> None:
    suffix, options = KINDS[name]
    files = []
    for number, photo in enumerate(photos):
        files.append(folder / f"{number:04}{suffix}")
        with Image.open(photo) as picture:
            picture.convert("RGB").save(files[-1], **options)
    steps = [
        T.RandomResizedCrop(224),
        T.RandomHorizontalFlip(),
        T.ToDtype("float32", scale=True),
        T.Normalize(MEAN, STD),
    ]
    threads = arguments.threads
    ours = hr.Loader(hr.open(folder), steps, batch_size=16, threads=threads, shuffle=True)
    theirs = torch.utils.data.DataLoader(
        Photos(files), batch_size=16, shuffle=True, num_workers=threads, persistent_workers=True
    )
    costs: dict[str, list[tuple[float, float]]] = {"ours": [], "theirs": []}
    for _ in range(arguments.rounds + 1):
        costs["ours"].append(costs_of(lambda: [None for _ in ours]))
        costs["theirs"].append(costs_of(lambda: [None for _ in theirs]))
    took, spent = (
        [statistics.median(cost[which] for cost in costs[who][1:]) for who in ("ours", "theirs")]
        for which in (0, 1)
    )
    rates = [len(files) / seconds for seconds in took]
    per_thousand = [seconds * 1000 / len(files) for seconds in spent]
    print(
        f"| {name} | {rates[0]:,.0f} | {rates[1]:,.0f} | **{rates[0] / rates[1]:.1f}** "
        f"| {per_thousand[0]:.2f} | {per_thousand[1]:.2f} "
        f"| **{per_thousand[1] / per_thousand[0]:.1f}** |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photos", type=Path)
    parser.add_argument("--limit", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    photos = sorted(arguments.photos.rglob("*.jp*g"))
    photos = photos[:: max(1, len(photos) // arguments.limit)][: arguments.limit]
    torch.set_num_threads(1)
    print("| kind | images/s | DataLoader | ratio | CPU s for 1,000 | DataLoader | ratio |")
    print("|---|---|---|---|---|---|---|")
    for name in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            compare(name, photos, Path(folder), arguments)


if __name__ == "__main__":
    main()
