# SPDX-License-Identifier: Apache-2.0
"""The data of the sections, made once in a folder: nothing is downloaded."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from rounds import say

CLASSES = ("angry", "disgust", "fear", "happy", "neutral", "sad", "surprise")  # FER-2013's


def faces(root: Path, count: int) -> Path:
    """Gray PNG files of 48 x 48, one folder per class: smooth shapes with noise."""
    folder = root / f"faces-{count}"
    if folder.exists():
        return folder
    say(f"  making {count:,} images of 48 x 48")
    unfinished = folder.with_suffix(".new")
    rng = np.random.default_rng(3)
    y, x = np.mgrid[:48, :48]
    for name in CLASSES:
        (unfinished / name).mkdir(parents=True, exist_ok=True)
    for number in range(count):
        row, column, width, height = rng.uniform((18, 18, 10, 12), (30, 30, 18, 22))
        oval = np.hypot((x - column) / width, (y - row) / height)
        pixels = 200 - 130 * np.clip(oval, 0, 1.2) + rng.normal(0, 8, (48, 48))
        image = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
        image.save(unfinished / CLASSES[number % len(CLASSES)] / f"{number:06}.png")
    unfinished.rename(folder)
    return folder


def stored(folder: Path) -> dict[str, Path]:
    """The same images in the containers that articles suggest for many small files."""
    import headrace as hr

    made = {name: folder.with_suffix(suffix) for name, suffix in SUFFIXES.items()}
    files = sorted(folder.rglob("*.png"))
    labels = np.array([CLASSES.index(path.parent.name) for path in files])
    if not made["pack"].exists():
        hr.pack(hr.open(folder), made["pack"])
    if not made["lmdb"].exists():
        _write_lmdb(made["lmdb"], files, labels)
    if not made["hdf5"].exists() or not made["pth"].exists():
        pixels = np.stack([np.asarray(Image.open(path)) for path in files])[:, None]
        _write_arrays(made, pixels, labels)
    return made


SUFFIXES = {"hdf5": ".h5", "lmdb": ".datum.lmdb", "pth": ".pth", "pack": ".pack"}


def _write_lmdb(path: Path, files: list[Path], labels: Any) -> None:
    """Caffe's Datum messages with the files' bytes."""
    import lmdb

    environment = lmdb.open(str(path), subdir=False, map_size=1 << 30)
    with environment, environment.begin(write=True) as transaction:
        for number, (file, label) in enumerate(zip(files, labels, strict=True)):
            transaction.put(b"%08d" % number, datum(file.read_bytes(), int(label)))
    path.with_name(path.name + "-lock").unlink(missing_ok=True)


def datum(encoded: bytes, label: int) -> bytes:
    """A Datum (caffe.proto): label (5), below 128; encoded (7); data (4)."""
    size, rest = b"", len(encoded)
    while rest > 127:
        size, rest = size + bytes([rest & 127 | 128]), rest >> 7
    return bytes([5 << 3, label, 7 << 3, 1, 4 << 3 | 2]) + size + bytes([rest]) + encoded


def _write_arrays(made: dict[str, Path], pixels: Any, labels: Any) -> None:
    import h5py
    import torch

    with h5py.File(made["hdf5"], "w") as file:
        file["image"], file["label"] = pixels, labels
    torch.save({"image": torch.from_numpy(pixels), "label": torch.from_numpy(labels)}, made["pth"])


def pairs(root: Path, each: int) -> Path:
    """faces/ and speech/ of the example on audio and images: four classes with this many each."""
    folder = root / f"pairs-{each}"
    if not folder.exists():
        sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
        from audio_and_image import make_clips

        unfinished = folder.with_suffix(".new")
        make_clips(unfinished / "faces", unfinished / "speech", each, seed=1)
        unfinished.rename(folder)
    return folder
