# SPDX-License-Identifier: Apache-2.0
"""Random pipelines, options and devices, drawn from a seed: on one to three devices, the batches
equal those made on the CPU."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_batches import MEAN, STD
from PIL import Image

import headrace as hr
from headrace import _core
from headrace import transforms as T

PIPELINES = 60
FILTERS = [
    {"interpolation": name, "antialias": antialias}
    for names, antialias in [
        (("bilinear", "bicubic", "box", "hamming", "lanczos"), True),
        (("bilinear", "bicubic", "nearest", "nearest-exact"), False),
    ]
    for name in names
]


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """30 files of three classes, including grayscale ones and PNGs, some damaged after indexing."""
    rng = np.random.default_rng(7)
    for number in range(30):
        folder = tmp_path / "abc"[number % 3]
        folder.mkdir(exist_ok=True)
        height, width = (int(side) for side in rng.integers(1, 160, 2))
        ramp = np.add.outer(np.arange(height) * 3, np.arange(width) * 2)
        pixels = (ramp[..., None] + [0, 60, 99] + rng.integers(0, 40, (height, width, 3))) % 256
        picture = Image.fromarray(pixels.astype(np.uint8))
        if number % 7 == 3:
            picture = picture.convert("L")
        options: dict[str, Any] = {"restart_marker_blocks": 2} if number % 4 == 1 else {}
        suffix = "png" if number % 11 == 5 else "jpg"
        exif = Image.Exif()
        exif[274] = 1 + number % 8
        picture.save(folder / f"{number:02}.{suffix}", exif=exif, subsampling=number % 3, **options)
    hr.index(tmp_path)
    for path in sorted(tmp_path.rglob("*.jpg"))[4::9]:
        path.write_bytes(path.read_bytes()[:-100])
    return tmp_path


class Drawn:
    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def sometimes(self, chance: float, *steps: Any) -> list[Any]:
        return list(steps) if self.draw.random() < chance else []

    def flips(self) -> list[Any]:
        vertical = self.sometimes(0.3, T.RandomVerticalFlip())
        return [*self.sometimes(0.3, T.RandomHorizontalFlip()), *vertical]

    def color(self) -> Any:
        return self.draw.choice([0, 255, (1, 200, 77)])

    def place(self, size: tuple[int, int]) -> list[Any]:
        """To the size, by a crop, a resize, a border."""
        draw, resize = self.draw, self.draw.choice(FILTERS)
        near = [max(1, side - draw.randint(-9, 9)) for side in size]
        return draw.choice(
            [
                [T.RandomResizedCrop(size, **resize)],
                [T.Resize(size, **resize)],
                [T.Resize(draw.randint(8, 80), **resize), T.CenterCrop(size)],
                [T.Letterbox(size, fill=self.color())],
                [T.RandomCrop(size, padding=5, pad_if_needed=True, fill=self.color())],
                [T.Pad(150, fill=self.color()), T.RandomCrop(size, pad_if_needed=True)],
                [T.Resize(near, **resize), T.RandomCrop(size, padding=9, fill=self.color())],
            ]
        )

    def steps(self, group: int) -> list[Any]:
        draw = self.draw
        size = (draw.choice([32, draw.randint(1, 60)]), draw.choice([32, draw.randint(1, 60)]))
        turn = T.RandomApply([T.RandomRotation((90, 90))], p=0.5)
        whose = draw.choice(["torch", "pillow"])
        tones = [
            T.ColorJitter(brightness=0.4),
            T.ColorJitter(0.4, 0.4, 0.4, 0.1, arithmetic=whose),
            T.RandomPhotometricDistort(arithmetic=whose),
            T.AdjustGamma(0.7),
            T.RandomGrayscale(p=0.5),
            T.RandomEqualize(),
            T.RandomAutocontrast(arithmetic=whose),
            T.RandAugment(2, 15, arithmetic=whose),
            T.TrivialAugmentWide(interpolation=draw.choice(["nearest", "bilinear"])),
            T.AutoAugment(),
            T.TimmAugment("rand-m9-mstd0.5-inc1"),
        ]
        steps = [*self.flips(), *self.sometimes(0.15, turn), *self.place(size), *self.flips()]
        steps += [*self.sometimes(0.6, draw.choice(tones)), *self.flips()]
        if dtype := draw.choice(["", "float16", "bfloat16", "float32"]):
            steps += [T.ToDtype(dtype, scale=True), *self.sometimes(0.7, T.Normalize(MEAN, STD))]
        steps += self.sometimes(0.3, T.RandomErasing(p=0.5))
        mix = draw.choice([T.MixUp, T.CutMix])
        return [*steps, mix(num_classes=3, group=group, uint8=True)] if group > 1 else steps

    def options(self, group: int) -> dict[str, Any]:
        draw = self.draw
        rank, last = draw.choice([((0, 1), "keep"), ((0, 1), "drop"), ((1, 2), "pad")])
        return {
            "batch_size": group * draw.randint(1, 7),
            "shuffle": draw.random() < 0.5,
            "seed": draw.randint(0, 9),
            "threads": draw.randint(1, 3),
            "last_batch": last,
            "shard": rank,
            "memory_format": draw.choice(["channels_first", "channels_last"]),
            "exif_orientation": draw.random() < 0.5,
            "on_error": "substitute",
            "error_budget": 1.0,
        }

    def devices(self) -> list[Any]:
        kinds = [lambda: _core.open_device("cpu"), lambda: _core.simulated_device(seed=3)]
        return [self.draw.choice(kinds)() for _ in range(self.draw.choice([1, 1, 2, 3]))]


def fields_of(parts: Any) -> list[Any]:
    """A batch that may be divided over devices, joined."""
    fields = [np.concatenate([np.asarray(v.bits()) for v in f]) for f in zip(*parts, strict=True)]
    return [(field.dtype, field.shape, field.tobytes()) for field in fields]


def test_batches_of_drawn_pipelines_equal_those_of_the_cpu(photos: Path) -> None:
    decoded = 0
    for seed in range(PIPELINES):
        drawn = Drawn(seed)
        group = drawn.draw.choice([1, 1, 2, 4])
        steps, options = drawn.steps(group), drawn.options(group)
        on_cpu = hr.Loader(photos, steps, decode="cpu", finish="cpu", **options)
        expected = [fields_of([batch]) for batch in on_cpu.dlpack()]
        devices = drawn.devices()
        loader = hr.Loader(photos, steps, decode="device", **options)
        view = loader.dlpack(devices, depth=drawn.draw.randint(1, 3))
        where = f"seed {seed}, {len(devices)} devices: {steps}, {options}"
        assert [fields_of(parts) for parts in view] == expected, where
        assert loader.state_dict() == on_cpu.state_dict(), where
        assert [str(bad) for bad in loader.quarantine] == [str(bad) for bad in on_cpu.quarantine]
        decoded += view.stats()["decoded"]["device"]
    assert decoded > 5 * PIPELINES
