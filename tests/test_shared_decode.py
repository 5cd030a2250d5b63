# SPDX-License-Identifier: Apache-2.0
"""Views of one image share its decode: each equals, to the byte, a view that is decoded alone."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import headrace as hr
from headrace import transforms as T

SMALL_DINO = hr.presets.dino(64, small=32, locals=4)
RECIPES: dict[str, list[Any]] = {
    "simclr": hr.presets.simclr(64),
    "dino": SMALL_DINO,
    "no pixels asked for": [
        T.Fork(
            "image",
            view1=[T.RandomResizedCrop(64), T.RandomHorizontalFlip()],
            view2=[T.RandomResizedCrop(32, scale=(0.05, 0.2))],
        )
    ],
    "one of open size": [
        T.Fork("image", view1=[], view2=[T.RandomResizedCrop(40), T.AdjustContrast(0.5)]),
    ],
    "a list first": [
        T.Fork(
            "image",
            view1=[T.RandomApply([T.RandomCrop(90)], p=0.5), T.Resize((40, 40))],
            view2=[T.RandomCrop(80), T.AdjustContrast(0.5), T.RandomCrop(60)],
            view3=[T.RandomCrop(70), T.RandomAutocontrast(0.5)],
            view4=[T.RandomChoice([[T.RandomCrop(64)], [T.CenterCrop(64), T.RandomInvert()]])],
        ),
    ],
    "views of views": [
        T.Fork(
            "image",
            view1=[
                T.RandomCrop(110),
                T.Fork("image", view3=[T.RandomCrop(50)], view4=[T.CenterCrop(60)]),
            ],
            view2=[T.RandomCrop(100), T.AdjustContrast(0.5)],
        ),
        T.RandomEqualize(0.5),
    ],
    "five crops": [T.Resize(110), T.FiveCrop(64), T.ColorJitter(0.4, 0.4, 0.4, 0.1)],
}

CORNERS = ("top_left", "top_right", "bottom_left", "bottom_right", "center")
FIELDS = {
    "simclr": ("view1", "view2"),
    "dino": ("global1", "global2", "local1", "local2", "local3", "local4"),
    "no pixels asked for": ("view1", "view2"),
    "one of open size": ("view1", "view2"),
    "a list first": ("view1", "view2", "view3", "view4"),
    "views of views": ("view2", "view3", "view4"),
    "five crops": CORNERS,
}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """JPEGs (some rotated by EXIF, some progressive) and PNGs of several sizes."""
    folder = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(0)
    for i in range(36):
        height, width = rng.integers(120, 400, 2)
        coarse = rng.integers(0, 256, (height // 16 + 1, width // 16 + 1, 3), np.uint8)
        picture = Image.fromarray(coarse).resize(
            (int(width), int(height)), Image.Resampling.BICUBIC
        )
        options: dict[str, Any] = {"quality": 90, "progressive": i % 5 == 2}
        if i % 4 == 1:
            exif = Image.Exif()
            exif[0x0112] = 1 + i % 8
            options["exif"] = exif
        path = folder / f"{i:02d}.{'png' if i % 7 == 3 else 'jpg'}"
        picture.save(path, **({} if path.suffix == ".png" else options))
    return folder


@pytest.fixture(scope="module")
def damaged(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same; some are truncated, and some have changed bytes in the middle."""
    folder = tmp_path_factory.mktemp("damaged")
    for i, path in enumerate(sorted(pictures.iterdir())):
        data = bytearray(path.read_bytes())
        if i % 3 == 0:
            del data[len(data) * (i % 5 + 5) // 10 :]
        elif i % 3 == 1:
            middle = len(data) * 2 // 3
            data[middle : middle + 3] = b"\x55\xaa\x11"
        (folder / path.name).write_bytes(data)
    return folder


def digests(
    folder: Path, steps: list[Any], fields: tuple[str, ...], **options: Any
) -> dict[int, tuple[str, ...]]:
    """Each field, by record; bad records are left out."""
    options = {"batch_size": 1, "threads": 1, "on_error": "skip", "ragged": "list"} | options
    out = {}
    with hr.Loader(hr.open(folder), steps, seed=3, fields=("id", *fields), **options) as loader:
        for batch in loader:
            for record, *values in zip(*(batch[name] for name in ("id", *fields)), strict=True):
                arrays = [np.ascontiguousarray(value) for value in values]
                out[int(record)] = tuple(hashlib.sha256(a.tobytes()).hexdigest() for a in arrays)
    return out


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("damage", [False, True])
@pytest.mark.filterwarnings("ignore:.*damage that the decoder repaired")
@pytest.mark.filterwarnings("ignore:.*skipped")
def test_a_view_equals_one_decoded_alone(
    pictures: Path, damaged: Path, name: str, damage: bool
) -> None:
    folder, steps, fields = damaged if damage else pictures, RECIPES[name], FIELDS[name]
    alone = [digests(folder, steps, (field,)) for field in fields]
    good = set.intersection(*(set(view) for view in alone))
    assert len(good) > 10
    expected = {record: tuple(view[record][0] for view in alone) for record in good}
    assert digests(folder, steps, fields) == expected
    assert digests(folder, steps, fields, batch_size=16, threads=3) == expected


def test_the_plan_shows_where_views_are_decoded(pictures: Path) -> None:
    """After its cropping steps, before the first step that needs pixels."""

    def steps(recipe: str) -> list[str]:
        text = hr.Loader(hr.open(pictures), RECIPES[recipe], batch_size=1, ragged="list").plan()
        return [line for line in text.splitlines() if line[:4].strip().isdigit()]

    simclr = steps("simclr")
    at = next(i for i, line in enumerate(simclr) if "decode once" in line)
    assert "view1, view2" in simclr[at]
    assert sum("RandomResizedCrop" in line for line in simclr[:at]) == 2
    assert not any("ColorJitter" in line for line in simclr[:at])
    assert not any("decode once" in line for line in steps("no pixels asked for"))
    assert not any("decode once" in line for line in steps("one of open size"))


def test_views_fit_into_little_memory(pictures: Path) -> None:
    """The memory that ten views hold at once is reserved before a record is begun."""
    steps = hr.presets.dino(224, dtype="uint8")
    fields = ("global1", "local8")
    expected = digests(pictures, steps, fields)
    assert digests(pictures, steps, fields, batch_size=4, threads=2, memory_limit="48 MiB") == (
        expected
    )
