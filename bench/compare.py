#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Headrace and its peers on the same work, in one run, in alternating rounds.

    python bench/compare.py PHOTOS... --out build/bench

docs/internals/benchmarks.md explains what is measured, and the limits of the numbers.
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import micro
import results
import scaling
from peer import PeerKind
from picture_sets import PictureSet, open_set, sets_of
from rounds import Contest, say

WORKLOADS = tuple(results.DOES)
# Which peers to compare; default: all.
AUGMENTED = (
    "DALI, fused",
    "DataLoader, tensors",
    "DataLoader, Pillow",
    "DataLoader, Albumentations",
)
OTHERS = {
    # its two variants are the same here
    "cifar10": ("DALI, fused", "DataLoader, tensors", "DataLoader, Pillow"),
    "color-jitter": AUGMENTED,
    "trivial-augment": AUGMENTED,
    "mix": ("DataLoader, tensors", "DataLoader, Pillow"),
    "ssd300": ("torchvision, tensors", "torchvision, Pillow"),
    "mosaic": ("Ultralytics",),
}
DETECTION = ("ssd300", "mosaic")  # these need --annotations


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "photos",
        nargs="*",
        type=Path,
        help="folders of JPEGs, flat or with one folder per class (default: the demo's photos)",
    )
    parser.add_argument("--workload", choices=WORKLOADS, default="imagenet-train")
    parser.add_argument(
        "--threads",
        type=int,
        default=2,
        help="number of threads, and of cores that they are pinned to",
    )
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--repeat", type=int, help="number of times to list each folder")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--turn",
        type=float,
        default=3.0,
        metavar="SECONDS",
        help="minimum seconds of a turn, in whole epochs",
    )
    parser.add_argument(
        "--cold",
        type=int,
        default=0,
        metavar="ROUNDS",
        help="number of rounds without the page cache",
    )
    parser.add_argument(
        "--apart",
        default="4:2:0",
        metavar="SUBSAMPLING",
        help="also measure the pictures with this subsampling separately ('' for none)",
    )
    parser.add_argument(
        "--peers", default="", help="only peers whose name contains one of these (a,b)"
    )
    parser.add_argument(
        "--annotations", type=Path, help="COCO's file of the photos, for " + " and ".join(DETECTION)
    )
    for package in ("torch", "albumentations", "dali", "tf", "ffcv", "spdl", "ultralytics"):
        parser.add_argument(
            f"--python-{package}",
            default=sys.executable,
            metavar="PYTHON",
            help="the interpreter in which it is installed",
        )
    parser.add_argument(
        "--micro",
        type=Path,
        metavar="BUILD",
        help="also run the single-core benchmarks built in this folder",
    )
    parser.add_argument(
        "--scaling",
        action="store_true",
        help="also measure against separate libjpeg-turbo processes",
    )
    parser.add_argument("--out", type=Path, default=Path("build/bench"))
    args = parser.parse_args()
    if args.workload in DETECTION and not (args.annotations and args.photos):
        parser.error(f"{args.workload} needs pictures and their --annotations")
    return args


def our_kinds(workload: str) -> list[PeerKind]:
    script = "headrace_detection.py" if workload in DETECTION else "headrace_loader.py"

    def ours(name: str, variant: str, **fields: Any) -> PeerKind:
        return PeerKind(name, script, variant, "headrace", sys.executable, ours=True, **fields)

    kinds = [
        ours("Headrace, packed", "fast", prepares=True, reads_files=False),
        ours("Headrace, packed dense", "dense", prepares=True, reads_files=False),
        ours("Headrace, indexed", "indexed", prepares=True),
        ours("Headrace, plain files", "plain"),
    ]
    if workload == "mosaic":  # partners from the last positions, as in its peer
        near = "three of the four pictures are from the last 128 positions, as in its peer"
        for kind in kinds[:2] + kinds[3:]:
            variant = f"{kind.variant}-near"
            kinds.append(replace(kind, name=f"{kind.name}, near", variant=variant, differs=near))
    return [kind for kind in kinds if workload not in DETECTION or kind.variant != "indexed"]


def other_kinds(args: argparse.Namespace) -> list[PeerKind]:
    dali = "its own decoding and antialiasing, not Pillow's"
    spdl = "uint8 and channels last, nothing is normalized"
    beton = "OpenCV's area filter, channels last"
    kinds = [
        PeerKind(
            "DALI, fused",
            "dali_pipeline.py",
            "fused",
            "nvidia.dali",
            args.python_dali,
            package="nvidia-dali-cuda130",
            differs=dali,
        ),
        PeerKind(
            "DALI, plain",
            "dali_pipeline.py",
            "plain",
            "nvidia.dali",
            args.python_dali,
            package="nvidia-dali-cuda130",
            differs=dali,
        ),
        PeerKind(
            "DataLoader, tensors", "torch_dataloader.py", "tensor", "torchvision", args.python_torch
        ),
        PeerKind(
            "DataLoader, Pillow", "torch_dataloader.py", "pil", "torchvision", args.python_torch
        ),
        PeerKind(
            "DataLoader, Albumentations",
            "albumentations_dataloader.py",
            "",
            "albumentations",
            args.python_albumentations,
            differs="OpenCV's filters and colors",
        ),
        PeerKind(
            "tf.data",
            "tf_data.py",
            "",
            "tensorflow",
            args.python_tf,
            package="tensorflow-cpu",
            differs="does not antialias",
        ),
        PeerKind(
            "FFCV, raw",
            "ffcv_beton.py",
            "raw",
            "ffcv",
            args.python_ffcv,
            prepares=True,
            reads_files=False,
            differs=beton,
        ),
        PeerKind(
            "FFCV, JPEG",
            "ffcv_beton.py",
            "jpg",
            "ffcv",
            args.python_ffcv,
            prepares=True,
            reads_files=False,
            differs=f"encoded again at quality 90, chroma halved; {beton}",
        ),
        PeerKind("SPDL", "spdl_pipeline.py", "", "spdl.io", args.python_spdl, "spdl", differs=spdl),
    ]
    if args.workload in DETECTION:
        kinds = detection_kinds(args)
    those = OTHERS.get(args.workload)
    return [kind for kind in kinds if not those or kind.name in those]


def detection_kinds(args: argparse.Namespace) -> list[PeerKind]:
    def torchvision(name: str, variant: str) -> PeerKind:
        script = "torchvision_detection.py"
        return PeerKind(name, script, variant, "torchvision", args.python_torch)

    return [
        torchvision("torchvision, tensors", "tensor"),
        torchvision("torchvision, Pillow", "pil"),
        PeerKind(
            "Ultralytics",
            "ultralytics_mosaic.py",
            "",
            "ultralytics",
            args.python_ultralytics,
            differs="OpenCV's filters; three of the four pictures are among the last ones "
            "decoded, which are still in memory",
        ),
    ]


def available(args: argparse.Namespace) -> dict[PeerKind, str]:
    """The peers that can run, with their versions; prints which ones cannot."""
    wanted = [part.strip().lower() for part in args.peers.split(",") if part.strip()]
    kinds: dict[PeerKind, str] = {}
    for kind in our_kinds(args.workload) + other_kinds(args):
        if wanted and not any(part in kind.name.lower() for part in wanted):
            continue
        if version := kind.version():
            kinds[kind] = version
        else:
            say(f"  {kind.name} is skipped: {kind.interpreter} has no {kind.module}")
    return kinds


def demo_photos() -> Path:
    """The demo's photos, made if they do not exist."""
    from headrace.insight.demo.photos import make_photos

    root = Path(__file__).parent.parent
    folder = root / "build" / "demo" / "photos"
    folder.mkdir(parents=True, exist_ok=True)
    workers = len(os.sched_getaffinity(0))
    make_photos(root / "examples" / "images", folder, 3000, workers=workers)
    return folder


def compare(
    args: argparse.Namespace, pictures: PictureSet, kinds: dict[PeerKind, str], cores: set[int]
) -> dict[str, Any]:
    """One set of pictures."""
    # An epoch of about 200 MB, or of fifty thousand tiny pictures.
    wanted = 5e4 / len(pictures.files) if args.workload == "cifar10" else 2e8 / pictures.bytes
    repeat = args.repeat or math.ceil(wanted)
    say(f"{pictures.name}: {len(pictures.files)} pictures, listed {repeat} times")
    job = {
        "workload": args.workload,
        "photos": str(pictures.folder),
        "files": pictures.files,
        "threads": args.threads,
        "batch_size": args.batch_size,
        "repeat": repeat,
        "cold": False,
        "annotations": args.annotations and str(args.annotations.resolve()),
    }
    with tempfile.TemporaryDirectory(prefix="prepared-", dir=args.out) as scratch:
        contest = Contest(kinds, pictures, job, cores, Path(scratch))
        contest.warm(args.rounds, args.turn)
        if args.cold:
            contest.cold(args.cold)
        return {
            **pictures.to_json(),
            "repeat": repeat,
            "peers": [measured.to_json() for measured in contest.values()],
            "failed": contest.failed,
            # The command line makes the batches, with the preset of this workload.
            "batch_hashes": contest.hashes() if args.workload == "imagenet-train" else {},
        }


def main() -> int:
    args = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # also ends the peers
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < args.threads:
        say(f"compare: {args.threads} threads asked for, {len(allowed)} cores allowed")
        return 4
    cores = set(allowed[: args.threads])
    kinds = available(args)
    if not kinds:
        return 4
    args.out.mkdir(parents=True, exist_ok=True)
    report = results.describe(args, cores)
    if args.workload == "cifar10":
        sets = [open_set(path.resolve().name, path) for path in args.photos]
    else:
        sets = list(sets_of(args.photos or [demo_photos()], args.apart, args.out / "sets"))
    for pictures in sets:
        if not pictures.files:
            say(f"compare: no photos in {pictures.folder}")
            return 3
    for pictures in sets:
        report["sets"].append(compare(args, pictures, kinds, cores))
        results.write(args.out, report)  # partial results, in case the rest is interrupted
    if args.micro:
        report["micro"] = micro.measure(args.micro, sets, min(cores))
    if args.scaling:
        files = [path for path, _ in sets[0].files]
        report["scaling"] = scaling.measure(sets[0].folder, files, sorted(cores))
    results.write(args.out, report)
    print(results.markdown(report))
    say(f"written to {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
