# SPDX-License-Identifier: Apache-2.0
"""The picture sets of a comparison: folders with one folder of JPEGs per class, and their
properties.

A set with another layout (a flat folder), or a subset (only its 4:2:0 pictures), is copied, so that
every loader gets the same kind of folder.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

JPEG_SUFFIXES = (".jpg", ".jpeg")
SAMPLINGS = {
    ((1, 1),): "gray",
    ((1, 1), (1, 1), (1, 1)): "4:4:4",
    ((2, 1), (1, 1), (1, 1)): "4:2:2",
    ((2, 2), (1, 1), (1, 1)): "4:2:0",
    ((1, 2), (1, 1), (1, 1)): "4:4:0",
    ((4, 1), (1, 1), (1, 1)): "4:1:1",
}
START_OF_FRAME = {0xC0: "baseline", 0xC1: "baseline", 0xC2: "progressive"}
NO_FRAME = {0xC4, 0xC8, 0xCC}  # DHT, JPG, DAC have codes in the range of frames


@dataclass
class PictureSet:
    """One set, as given to loaders."""

    name: str
    folder: Path
    files: list[tuple[str, int]]  # path and label, sorted as image folders are
    bytes: int = 0
    kinds: Counter[str] = field(default_factory=Counter)  # most common type, such as "4:2:0
    # baseline", and how many

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "photos": len(self.files),
            "bytes": self.bytes,
            "kinds": dict(self.kinds.most_common()),
        }


def open_set(name: str, folder: Path) -> PictureSet:
    files = list_files(folder)
    made = PictureSet(name, folder.resolve(), files, sum(os.path.getsize(f) for f, _ in files))
    made.kinds.update(" ".join(kind_of(Path(path))) for path, _ in files)
    return made


def sets_of(paths: list[Path], apart: str, staging: Path) -> Iterator[PictureSet]:
    """The sets to measure: each path, then separately its pictures with the subsampling `apart`."""
    for path in paths:
        name = path.resolve().name
        if not any(child.is_dir() for child in path.iterdir()):
            name = f"{path.resolve().parent.name}-{name}"  # coco/images
            path = stage(staging / name, [(str(f), 0) for f in sorted(path.iterdir())])
        whole = open_set(name, path)
        yield whole
        part = [(f, label) for f, label in whole.files if kind_of(Path(f))[0] == apart]
        if apart and 0 < len(part) < len(whole.files):
            name = f"{name}-{apart.replace(':', '')}"
            yield open_set(name, stage(staging / name, part))


def list_files(root: Path) -> list[tuple[str, int]]:
    classes = sorted(path for path in root.iterdir() if path.is_dir())
    return [(str(f.resolve()), i) for i, c in enumerate(classes) for f in sorted(c.iterdir())]


def stage(folder: Path, files: list[tuple[str, int]]) -> Path:
    """Copies JPEG files into one folder per class."""
    shutil.rmtree(folder, ignore_errors=True)
    for path, label in files:
        if not path.lower().endswith(JPEG_SUFFIXES):
            continue
        place = folder / f"{label:04}"
        place.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place / Path(path).name)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def kind_of(path: Path) -> tuple[str, str]:
    """Subsampling and coding from the frame header, ("other", "other") if it has none."""
    data = path.read_bytes()
    at = 2
    while data[:2] == b"\xff\xd8" and at + 9 < len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in NO_FRAME:
            factors = data[at + 11 : at + 10 + 3 * data[at + 9] : 3]
            sampling = tuple((f >> 4, f & 15) for f in factors)
            if len(sampling) == 1:
                sampling = ((1, 1),)  # the factors of a single component have no effect
            return SAMPLINGS.get(sampling, "other"), START_OF_FRAME.get(marker, "other")
        at += 1 if marker == 0xFF else 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return "other", "other"
