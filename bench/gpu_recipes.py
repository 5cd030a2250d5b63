#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole recipes on a device: images per second decoded there and on the CPU, from one source.

    python bench/gpu_recipes.py PHOTOS                        # JPEG files or a dense pack, cuda
    python bench/gpu_recipes.py PHOTOS --device cpu --seconds 1   # shows that it works

Each recipe is a random resized crop to 224, a flip, what is named, and normalization to float16,
batches of 256. Both ways give the same batches: with --device cpu the first two are compared. Of
decoding on the device it prints which share of the images went there.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import headrace as hr
from headrace import _core
from headrace import transforms as T

RECIPES: dict[str, list[Any]] = {
    "none": [],
    "ColorJitter": [T.ColorJitter(0.4, 0.4, 0.4, 0.1)],
    "saturation, hue": [T.ColorJitter(saturation=0.4, hue=0.1)],
    "contrast, equalize": [T.AdjustContrast(1.3), T.RandomEqualize(p=0.5)],
    "sharpness": [T.RandomAdjustSharpness(2.0)],
    "blur": [T.GaussianBlur(9)],
    "affine, bilinear": [T.RandomAffine(15, (0.1, 0.1), interpolation="bilinear")],
    "RandAugment": [T.RandAugment()],
    "TrivialAugmentWide": [T.TrivialAugmentWide()],
    "AutoAugment": [T.AutoAugment()],
    "TimmAugment": [T.TimmAugment("rand-m9-mstd0.5-inc1")],
}


def loader_of(source: Any, steps: list[Any], decode: str, given: argparse.Namespace) -> Any:
    around = [T.RandomResizedCrop(224), T.RandomHorizontalFlip()]
    end = [T.ToDtype("float16", scale=True), T.Normalize(hr.IMAGENET_MEAN, hr.IMAGENET_STD)]
    return hr.Loader(
        source,
        [*around, *steps, *end],
        batch_size=given.batch,
        shuffle=True,
        seed=1,
        threads=given.threads,
        last_batch="drop",
        memory_format="channels_last",
        memory_limit="12 GiB",
        decode=decode,
    )


def first_batches(view: Any, count: int) -> list[bytes]:
    out = []
    for batch, _ in zip(view, range(count), strict=False):
        value = batch[0]
        out.append(np.asarray(value.bits() if hasattr(value, "bits") else value).tobytes())
    return out


def rate_of(view: Any, given: argparse.Namespace) -> float:
    """Images per second, after ten batches."""
    batches, begin = 0, 0.0
    for _ in range(1000):
        for _batch in view:
            batches += 1
            if batches == 10:
                begin = time.perf_counter()
            elif batches > 10 and time.perf_counter() - begin > given.seconds:
                return (batches - 10) * given.batch / (time.perf_counter() - begin)
    return 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=1.5, help="measured per loader")
    parser.add_argument("--records", type=int, default=40_000, help="of the repeated source")
    given = parser.parse_args()
    source = hr.open(given.source)
    device = _core.open_device("cpu") if given.device == "cpu" else given.device
    repeated = hr.subset(source, list(range(len(source))) * -(-given.records // len(source)))
    print(f"{'recipe':20} {'device':>10} {'CPU':>10}  decoded there")
    for name, steps in RECIPES.items():
        rates = {}
        for decode in ("device", "cpu"):
            view = loader_of(repeated, steps, decode, given).dlpack(device)
            rates[decode] = rate_of(view, given)
            if decode == "device":
                counts = {k: n for k, n in view.stats()["decoded"].items() if n}
        share = counts.get("device", 0) / max(1, sum(counts.values()))
        same = ""
        if given.device == "cpu":
            first = [
                first_batches(loader_of(repeated, steps, decode, given).dlpack(device), 2)
                for decode in ("device", "cpu")
            ]
            same = "same bits" if first[0] == first[1] else "OTHER BITS"
        line = f"{name:20} {rates['device']:10,.0f} {rates['cpu']:10,.0f}  {share:6.1%} {same}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
