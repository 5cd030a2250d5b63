#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rows of text and images, compared with a torch DataLoader that makes the same rows.

    python bench/vision_language.py [--samples 400] [--rounds 3] [--threads 2]

The DataLoader's dataset reads the samples of a row, resizes their images with Pillow, normalizes
and divides them into patches with NumPy; its collate function concatenates. Samples are in memory,
images are JPEG files of 480 x 640 and of other sizes. Rounds alternate; prints the medians of
rows per second and of CPU time per row, over all processes.
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from tokens import compare, rows_of
from torch.utils.data import DataLoader, Dataset

import headrace as hr
from headrace import transforms as T

IMAGE, LENGTH, MOST = 151655, 2048, 448 * 448
MEAN = np.float32([0.481, 0.458, 0.408])
STD = np.float32([0.269, 0.261, 0.276])
PHOTOS = Path(__file__).resolve().parent.parent / "examples" / "images"
STEPS = [
    T.SmartResize(28, 56 * 56, MOST, interpolation="bicubic"),
    T.ToDtype("float32", scale=True),
    T.Normalize(MEAN.tolist(), STD.tolist()),
    T.Patchify(14, "qwen2-vl"),
]


def make_samples(count: int) -> list[dict[str, Any]]:
    random = np.random.default_rng(0)
    photos = [Image.open(path).convert("RGB") for path in sorted(PHOTOS.glob("*.jpg"))]
    files = []
    for number in range(32):
        size = (640, 480) if number % 2 else tuple(int(n) for n in random.integers(200, 900, 2))
        out = io.BytesIO()
        photos[number % len(photos)].resize(size).save(out, "JPEG", quality=90)
        files.append(out.getvalue())
    samples = []
    for _ in range(count):
        tokens = random.integers(0, 150_000, int(random.integers(30, 400)))
        tokens[1] = IMAGE
        samples.append({"tokens": tokens, "image": files[int(random.integers(32))]})
    return samples


def smart_size(height: int, width: int) -> tuple[int, int]:
    h, w = round(height / 28) * 28, round(width / 28) * 28
    if h * w > MOST:
        beta = (height * width / MOST) ** 0.5
        h, w = int(height / beta // 28) * 28, int(width / beta // 28) * 28
    return max(h, 28), max(w, 28)


def patches_of(file: bytes) -> np.ndarray[Any, Any]:
    image = Image.open(io.BytesIO(file)).convert("RGB")
    h, w = smart_size(image.height, image.width)
    pixels = np.asarray(image.resize((w, h), Image.Resampling.BICUBIC), np.float32)
    pixels = ((pixels * np.float32(1 / 255) - MEAN) / STD).transpose(2, 0, 1)
    frames = np.stack([pixels, pixels]).reshape(1, 2, 3, h // 28, 2, 14, w // 28, 2, 14)
    return frames.transpose(0, 3, 6, 4, 7, 2, 1, 5, 8).reshape(-1, 3 * 2 * 14 * 14)


class Rows(Dataset[Any]):
    def __init__(self, samples: list[dict[str, Any]], rows: list[list[int]]) -> None:
        self.samples, self.rows = samples, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        tokens = np.zeros(LENGTH, np.int64)
        targets = np.full(LENGTH, -100, np.int64)
        positions = np.zeros(LENGTH, np.int64)
        patches, at = [], 0
        for number in self.rows[index]:
            sample = self.samples[number]
            patches.append(patches_of(sample["image"]))
            own = np.repeat(
                sample["tokens"], np.where(sample["tokens"] == IMAGE, len(patches[-1]) // 4, 1)
            )
            end = at + len(own)
            tokens[at:end] = own
            targets[at : end - 1] = np.where(own == IMAGE, -100, own)[1:]
            positions[at:end] = np.arange(len(own))
            at = end
        return tokens, targets, positions, np.concatenate(patches)


def collate(rows: list[tuple[Any, ...]]) -> dict[str, torch.Tensor]:
    tokens, targets, positions, patches = zip(*rows, strict=True)
    return {
        "tokens": torch.from_numpy(np.stack(tokens)),
        "targets": torch.from_numpy(np.stack(targets)),
        "position_ids": torch.from_numpy(np.stack(positions)),
        "images": torch.from_numpy(np.concatenate(patches)),
    }


def length_of(sample: dict[str, Any]) -> int:
    """Its number of tokens, with the placeholder expanded to the image's tokens."""
    with Image.open(io.BytesIO(sample["image"])) as image:
        h, w = smart_size(image.height, image.width)
    return len(sample["tokens"]) - 1 + h * w // 28 // 28


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(1)
    samples = make_samples(options.samples)
    source = hr.packed(
        hr.open(samples, shapes={"tokens": (-1,)}),
        "tokens",
        length=LENGTH,
        method="sequential",
        images="image",
        placeholder=IMAGE,
        image_transforms=STEPS,
        patches_per_token=4,
    )
    rows = rows_of(source, np.array([length_of(sample) for sample in samples]), LENGTH)
    loader = hr.Loader(
        source,
        [T.EachImage(STEPS)],
        batch_size=2,
        shuffle=True,
        threads=options.threads,
        ragged="packed",
        fields=("tokens", "targets", "position_ids", "images"),
    )
    other = DataLoader(
        Rows(samples, rows),
        batch_size=2,
        shuffle=True,
        num_workers=options.threads,
        collate_fn=collate,
    )
    view = loader.torch(batch="dict")
    compare("rows of text and images", lambda: view, lambda: other, len(rows), options.rounds)


if __name__ == "__main__":
    main()
