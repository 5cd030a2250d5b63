# SPDX-License-Identifier: Apache-2.0
"""The containers that formats.py measures: noise records, and photos, in each format."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
from rounds import say

SUFFIXES = {
    "tar": ".tar",
    "tfrecord": ".tfrecord",
    "recordio": ".rec",
    "lmdb": ".lmdb",
    "hdf5": ".h5",
}
BLOCK = 40 << 20  # bytes of noise, of which records are slices


def noise_tar(path: Path, records: int, record_bytes: int) -> Path:
    """A tar of samples with a .jpg, noise after a JPEG's signature, and a .cls."""
    if path.exists():
        return path
    say(f"  making {path.name}: {records:,} records of {record_bytes:,} bytes")
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(5)
    noise = rng.integers(0, 256, BLOCK, dtype=np.uint8).tobytes()
    places = rng.integers(0, BLOCK - record_bytes, records).tolist()
    unfinished = path.with_suffix(".new")
    with tarfile.open(unfinished, "w", format=tarfile.USTAR_FORMAT) as tar:
        for number, place in enumerate(places):
            head = b"\xff\xd8\xff\xe0" + number.to_bytes(4, "little")
            add(tar, f"{number:08}.jpg", head + noise[place : place + record_bytes - len(head)])
            add(tar, f"{number:08}.cls", str(number % 1000).encode())
    unfinished.rename(path)
    return path


def add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))


def converted(source: Any, stem: Path, formats: list[str]) -> dict[str, Path]:
    """The source in each of the formats, converted if it is not there yet."""
    import headrace

    made = {}
    for name in formats:
        made[name] = stem.with_name(stem.name + SUFFIXES[name])
        if not made[name].exists():
            say(f"  making {made[name].name}")
            made[name].parent.mkdir(parents=True, exist_ok=True)
            headrace.convert(source, made[name], name)
    return made
