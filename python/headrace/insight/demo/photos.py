# SPDX-License-Identifier: Apache-2.0
"""Makes a few thousand photos from a few images: crops, scales, qualities, chroma subsamplings."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

VERSION = 1  # version of the recipe below; folders of other versions are replaced
SAMPLINGS = (0, 0, 0, 1, 2)  # Pillow's names: 0 is 4:4:4, 1 is 4:2:2, 2 is 4:2:0
CHUNK = 50  # photos of one picture made by one call


def make_photos(
    pictures: Path,
    folder: Path,
    count: int,
    seed: int = 0,
    workers: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> bool:
    """Fills `folder` with `count` JPEG photos, one folder per class; False if they existed already.

    The photos are a pure function of the images, `count` and `seed`. Sizes are like ImageNet's:
    the shorter side 300 to 420 pixels.
    """
    originals = sorted(pictures.glob("*.jpg"))
    if not originals:
        raise FileNotFoundError(f"no .jpg images in {pictures}")
    recipe = {
        "version": VERSION,
        "count": count,
        "seed": seed,
        "pictures": [p.name for p in originals],
    }
    note = folder.with_suffix(".json")  # next to the folder: inside it, the file would be a record
    if note.exists() and json.loads(note.read_text()) == recipe:
        return False
    jobs = []
    for number in range(0, count, CHUNK):
        original = originals[(number // CHUNK) % len(originals)]
        jobs.append((original, folder, range(number, min(number + CHUNK, count)), seed))
    # spawn: it is not safe to fork a process that has threads.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        done = 0
        for made in as_completed([pool.submit(_make_some, *job) for job in jobs]):
            done += made.result()
            progress(done, count)
    note.write_text(json.dumps(recipe))
    return True


def _make_some(original: Path, folder: Path, numbers: range, seed: int) -> int:
    from PIL import Image

    target = folder / original.stem
    target.mkdir(parents=True, exist_ok=True)
    with Image.open(original) as opened:
        picture = opened.copy()
    for number in numbers:
        _make_one(picture, target / f"{number:05d}.jpg", random.Random(f"{seed}/{number}"))
    return len(numbers)


def _make_one(picture: Any, path: Path, rng: random.Random) -> None:
    """One photo: a crop of 40 to 100 % of each side, scaled, possibly mirrored, compressed."""
    from PIL import Image

    share = rng.uniform(0.4, 1.0)
    ratio = rng.choice((4 / 3, 3 / 2, 1.0, 3 / 4))
    height = share * min(picture.height, picture.width / ratio)
    width = height * ratio
    x, y = rng.uniform(0, picture.width - width), rng.uniform(0, picture.height - height)
    scale = rng.uniform(300, 420) / min(width, height)
    size = (round(width * scale), round(height * scale))
    photo = picture.resize(size, Image.Resampling.BICUBIC, box=(x, y, x + width, y + height))
    if rng.random() < 0.5:
        photo = photo.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    sampling = rng.choice(SAMPLINGS)
    photo.save(path, quality=rng.randint(70, 98), subsampling=sampling)
