# SPDX-License-Identifier: Apache-2.0
"""The datasets of far.py and far_peers.py: the same photos in every format, made once in a
folder."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
from PIL import Image

PER_SHARD = 250
SMALL = 64  # pixels


def photos_of(folder: Path) -> list[tuple[bytes, int]]:
    """(JPEG, class) of each file; one folder per class."""
    files = sorted(folder.rglob("*.jpg"))
    if not files:
        raise SystemExit(f"no .jpg below {folder}")
    names = sorted({file.parent.name for file in files})
    return [(file.read_bytes(), names.index(file.parent.name)) for file in files]


def repeated(photos: list[tuple[bytes, int]], count: int) -> list[tuple[bytes, int]]:
    return [photos[number % len(photos)] for number in range(count)]


def small_photos(count: int) -> list[tuple[bytes, int]]:
    out = []
    for number in range(min(count, 500)):
        pixels = np.random.default_rng(number).integers(0, 256, (SMALL, SMALL, 3), np.uint8)
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "JPEG", quality=80)
        out.append((file.getvalue(), number % 10))
    return repeated(out, count)


def make_tars(folder: Path, photos: list[tuple[bytes, int]]) -> str:
    """Shards in WebDataset format. Returns their pattern."""
    folder.mkdir(parents=True, exist_ok=True)
    shards = -(-len(photos) // PER_SHARD)
    for shard in range(shards):
        path = folder / f"train-{shard:03}.tar"
        if path.exists():
            continue
        part = path.with_suffix(".part")
        with tarfile.open(part, "w", format=tarfile.USTAR_FORMAT) as tar:
            for number in range(shard * PER_SHARD, min((shard + 1) * PER_SHARD, len(photos))):
                photo, label = photos[number]
                for name, data in (
                    (f"{number:06}.jpg", photo),
                    (f"{number:06}.cls", b"%d" % label),
                ):
                    member = tarfile.TarInfo(name)
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
        part.rename(path)
    return f"train-{{000..{shards - 1:03}}}.tar"


def make_files(folder: Path, photos: list[tuple[bytes, int]]) -> None:
    """One file per record, one folder per class."""
    for number, (photo, label) in enumerate(photos):
        path = folder / f"{label:03}" / f"{number:06}.jpg"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(photo)
