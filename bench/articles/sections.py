# SPDX-License-Identifier: Apache-2.0
"""The comparisons published in articles: one table each, with a row for each variant."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sets
from peer import PeerKind
from picture_sets import list_files

PYTHON = sys.executable
OURS = "headrace"


@dataclass(frozen=True)
class Way:
    """One row: a peer's script and variant, and its differences from the section's job."""

    title: str
    script: str
    variant: str
    module: str = "torch"  # if it is missing, the row is skipped
    job: dict[str, Any] = field(default_factory=dict)

    def kind(self, interpreters: dict[str, str]) -> PeerKind:
        return PeerKind(
            self.title,
            self.script,
            self.variant,
            self.module,
            interpreters.get(self.module, PYTHON),
            ours=self.module == OURS,
        )


@dataclass(frozen=True)
class Section:
    name: str
    title: str
    unit: str  # rates are in units per second
    work: str  # one sentence on what each row does
    ways: list[Way]
    job: dict[str, Any]
    each_per: int = 1000  # CPU seconds are per this many units


@dataclass(frozen=True)
class Given:
    """The command line's arguments."""

    photos: Path
    folder: Path
    threads: int
    small: int
    openings: int


def one_image(given: Given) -> Section:
    libraries = {"opencv": "cv2", "pillow": "PIL", "torchvision": "torchvision", OURS: OURS}
    return Section(
        "one-image",
        "Read, resize, to a tensor",
        "images",
        "One photo after the other on one thread: decode, resize to 224 x 224, float32 (3, 224, "
        "224). OpenCV does not filter when it shrinks.",
        [Way(f"{name}", "one_image.py", name, module=module) for name, module in libraries.items()],
        {"photos": str(given.photos), "files": list_files(given.photos), "threads": 1},
    )


def small_images(given: Given) -> Section:
    folder = sets.faces(given.folder, given.small)
    return Section(
        "small-images",
        "Small images in folders",
        "images",
        f"{given.small:,} gray PNG files of 48 x 48 in seven folders: shifted crop, flip, float32, "
        "normalized, batches of 64, shuffled.",
        [
            *dataloaders("small_images.py", (0, given.threads)),
            Way("DALI", "small_images.py", "dali", "nvidia.dali"),
            Way("Headrace", "small_images.py", OURS, OURS),
        ],
        {"photos": str(folder), "batch_size": 64},
    )


def dataloaders(script: str, workers: tuple[int, ...], suffix: str = "") -> list[Way]:
    return [
        Way(f"DataLoader, {count} workers{suffix and ', augmented'}", script,
            f"dataloader:{count}{suffix}")
        for count in workers
    ]  # fmt: skip


def mnist(given: Given) -> Section:
    return Section(
        "mnist",
        "MNIST by number of workers",
        "images",
        "60,000 images of 28 x 28 in memory, to float32, batches of 64, shuffled.",
        [
            *dataloaders("mnist.py", (0, 1, 2, 4)),
            Way("DataLoader, 0 workers, batches from a thread's queue", "mnist.py", "prefetched:0"),
            Way("DataLoader, 2 workers, batches from a thread's queue", "mnist.py", "prefetched:2"),
            Way("hr.prefetch over DataLoader, 0 workers", "mnist.py", "hr.prefetch"),
            Way("slices of a converted tensor, by hand", "mnist.py", "slices"),
            Way("Headrace, hr.resident", "mnist.py", OURS, OURS),
        ],
        {"batch_size": 64, "photos": ""},
    )


def audio_and_images(given: Given) -> Section:
    folder = sets.pairs(given.folder, 250)
    return Section(
        "audio-and-images",
        "Audio and images together",
        "pairs",
        "1,000 pairs of a 48 x 48 JPEG and a WAV of a second: an image of 32 x 32, and 40 mel "
        "bands in decibels of 0.9 s; batches of 16. Augmented: random crop, flip, ColorJitter, "
        "a random part of the clip, masked bands and frames.",
        [
            way
            for suffix in ("", "+")
            for way in (
                *dataloaders("pairs.py", (0, given.threads), suffix),
                Way(
                    "Headrace" + (", augmented" if suffix else ""), "pairs.py", OURS + suffix, OURS
                ),
            )
        ],
        {"photos": str(folder), "batch_size": 16},
    )


def memory(given: Given) -> Section:
    sizes = (32, 128, 512)
    job = {"workload": "imagenet-train", "repeat": max(1, 1200 // len(list_files(given.photos)))}
    return Section(
        "memory",
        "Memory by batch size",
        "images",
        "Photos to random crops of 224 x 224, float32: the largest proportional set size of all "
        "processes.",
        [
            Way(f"{name}, batches of {size}", script, variant, module, {"batch_size": size})
            for name, script, variant, module in (
                ("DataLoader", "torch_dataloader.py", "tensor", "torchvision"),
                ("DALI", "dali_pipeline.py", "fused", "nvidia.dali"),
                ("Headrace", "headrace_loader.py", "plain", OURS),
            )
            for size in sizes
        ],
        {"photos": str(given.photos), "files": list_files(given.photos), **job},
    )


def reopened(given: Given) -> Section:
    return Section(
        "reopened",
        "A validation loader opened, used and closed",
        "runs",
        "Open a loader over the photos, take all batches of 32 (resize to 256, center crop of "
        f"224), close it; {given.openings} times, as between epochs of training.",
        [
            *dataloaders("reopened.py", (0, given.threads)),
            Way("DALI", "reopened.py", "dali", "nvidia.dali"),
            Way("Headrace", "reopened.py", OURS, OURS),
        ],
        {
            "photos": str(given.photos),
            "files": list_files(given.photos)[:96],
            "batch_size": 32,
            "times": given.openings,
        },
        each_per=1,
    )


def stored(given: Given) -> Section:
    folder = sets.faces(given.folder, given.small)
    made = sets.stored(folder)
    workers = f"dataloader:{given.threads}"
    ways = [Way("DataLoader, files", "small_images.py", workers)]
    ways += [
        Way(f"DataLoader, {name}", "small_images.py", workers, job={"photos": str(made[key])})
        for name, key in (("HDF5", "hdf5"), ("LMDB", "lmdb"), (".pth", "pth"))
    ]
    ways += [
        Way(f"Headrace, {name}", "small_images.py", OURS, OURS, {"photos": str(path)})
        for name, path in (
            *(("files", folder), ("HDF5", made["hdf5"]), ("LMDB", made["lmdb"])),
            *((".pth", made["pth"]), ("pack", made["pack"])),
        )
    ]
    return Section(
        "stored",
        "Many small files against containers",
        "images",
        "The same images of 48 x 48 in other containers; LMDB contains the PNG files, HDF5 and "
        f".pth the pixels. DataLoader with {given.threads} workers, Headrace with {given.threads} "
        "threads.",
        ways,
        {"photos": str(folder), "batch_size": 64},
    )


def ram_folder(given: Given) -> Section:
    folder = sets.faces(given.folder, given.small)
    shared = Path("/dev/shm") / f"headrace-articles-{folder.name}"
    shutil.rmtree(shared, ignore_errors=True)
    shutil.copytree(folder, shared)
    workers = f"dataloader:{given.threads}"
    return Section(
        "ram-folder",
        "A folder in memory",
        "images",
        "The images of 48 x 48 from a folder on disk, in the page cache, and from /dev/shm.",
        [
            Way(f"{name}, {where}", "small_images.py", variant, module, {"photos": str(path)})
            for name, variant, module in (
                ("DataLoader", workers, "torch"),
                ("Headrace", OURS, OURS),
            )
            for where, path in (("disk", folder), ("/dev/shm", shared))
        ],
        {"photos": str(folder), "batch_size": 64, "remove": str(shared)},
    )


SECTIONS: dict[str, Callable[[Given], Section]] = {
    "one-image": one_image,
    "small-images": small_images,
    "mnist": mnist,
    "audio-and-images": audio_and_images,
    "memory": memory,
    "reopened": reopened,
    "stored": stored,
    "ram-folder": ram_folder,
}
