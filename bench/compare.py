#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Headrace and its peers on the same work, in one run, in alternating rounds.

    python bench/compare.py PHOTOS --out build/bench

docs/benchmarks.md says what is measured and what the numbers do not say.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import results
import scaling
from peer import Measured, Peer, PeerKind
from process_tree import cached_share, drop_cache

WORKLOADS = ("imagenet-train", "cifar10")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "photos",
        nargs="?",
        type=Path,
        help="JPEGs, one folder a class (default: the demo's photos)",
    )
    parser.add_argument("--workload", choices=WORKLOADS, default="imagenet-train")
    parser.add_argument("--threads", type=int, default=2, help="and as many cores, pinned")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--repeat", type=int, help="list the folder so many times")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--cold", type=int, default=3, metavar="ROUNDS", help="rounds without the page cache"
    )
    parser.add_argument(
        "--peers", default="", help="only those whose name contains one of these (a,b)"
    )
    parser.add_argument("--python-torch", default=sys.executable, help="has torch and torchvision")
    parser.add_argument("--python-dali", default=sys.executable, help="has nvidia.dali")
    parser.add_argument(
        "--scaling",
        action="store_true",
        help="also measure against separate libjpeg-turbo processes",
    )
    parser.add_argument("--out", type=Path, default=Path("build/bench"))
    return parser.parse_args()


def peer_kinds(args: argparse.Namespace) -> list[PeerKind]:
    torch, dali = args.python_torch, args.python_dali
    kinds = [
        PeerKind("Headrace", "headrace_loader.py", "", "headrace", sys.executable, ours=True),
        PeerKind("DataLoader, tensors", "torch_dataloader.py", "tensor", "torchvision", torch),
        PeerKind("DataLoader, Pillow", "torch_dataloader.py", "pil", "torchvision", torch),
        PeerKind("DALI on the CPU, fused", "dali_pipeline.py", "fused", "nvidia.dali", dali),
    ]
    if args.workload == "imagenet-train":  # for tiny pictures DALI's two variants are one
        kinds.append(
            PeerKind("DALI on the CPU, plain", "dali_pipeline.py", "plain", "nvidia.dali", dali)
        )
    wanted = [part.strip().lower() for part in args.peers.split(",") if part.strip()]
    return [k for k in kinds if not wanted or any(part in k.name.lower() for part in wanted)]


def demo_photos() -> Path:
    """The photos that the demo makes, made if they are not there."""
    from headrace.demo.photos import make_photos

    root = Path(__file__).parent.parent
    folder = root / "build" / "demo" / "photos"
    folder.mkdir(parents=True, exist_ok=True)
    workers = len(os.sched_getaffinity(0))
    make_photos(root / "examples" / "pictures", folder, 3000, workers=workers)
    return folder


def list_photos(root: Path) -> list[tuple[str, int]]:
    """(path, label), sorted as image folders are."""
    classes = sorted(path for path in root.iterdir() if path.is_dir())
    return [(str(f.resolve()), i) for i, c in enumerate(classes) for f in sorted(c.iterdir())]


def run_rounds(
    kinds: dict[PeerKind, str], job: dict[str, Any], cores: set[int], rounds: int, cold_rounds: int
) -> list[Measured]:
    """All peers are started and warmed up, then take turns, so that noise meets all of them."""
    measured: dict[PeerKind, Measured] = {}
    with ExitStack() as stack:
        peers = []
        for kind, version in kinds.items():
            say(f"  starting {kind.name} ({version})")
            peer = stack.enter_context(Peer(kind, job, cores))
            peers.append(peer)
            measured[kind] = Measured(kind.name, version, kind.ours)
            measured[kind].built_seconds = peer.built_seconds
            measured[kind].start_seconds = peer.start_seconds
        for number in range(rounds):
            # Each round begins with another peer, so that none is always after the same one.
            order = peers[number % len(peers) :] + peers[: number % len(peers)]
            for peer in order:
                note(measured[peer.kind], peer.epoch())
            rates = "  ".join(f"{m.name} {m.warm[-1]:,.0f}" for m in measured.values())
            say(f"  round {number + 1}: {rates}")
    if cold_rounds:
        run_cold(list(kinds), job, cores, cold_rounds, measured)
    return list(measured.values())


def note(measured: Measured, epoch: dict[str, float]) -> None:
    measured.warm.append(epoch["images"] / epoch["seconds"])
    measured.first_batch_ms.append(1000 * epoch["first_batch_seconds"])
    measured.cpu_seconds_per_1000.append(1000 * epoch["cpu_seconds"] / epoch["images"])
    measured.peak_pss_mib = max(measured.peak_pss_mib, epoch["peak_pss_mib"])


def run_cold(
    kinds: list[PeerKind],
    job: dict[str, Any],
    cores: set[int],
    rounds: int,
    measured: dict[PeerKind, Measured],
) -> None:
    """The folder once an epoch, its files dropped from the page cache before each."""
    files = [path for path, _ in job["files"]]
    with ExitStack() as stack:
        once = {**job, "repeat": 1, "cold": True}
        peers = [stack.enter_context(Peer(kind, once, cores)) for kind in kinds]
        for number in range(rounds):
            for peer in peers:
                drop_cache(files)
                left = cached_share(files)
                epoch = peer.epoch()
                measured[peer.kind].cold.append(epoch["images"] / epoch["seconds"])
            say(f"  cold round {number + 1}: {100 * left:.0f} % of the pages were still cached")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    args = parse_arguments()
    args.photos = args.photos or demo_photos()
    photos = list_photos(args.photos)
    if not photos:
        say(f"compare: no photos in {args.photos}")
        return 3
    if not args.repeat:  # an epoch of some thousand pictures, or of fifty thousand tiny ones
        wanted = 2000 if args.workload == "imagenet-train" else 50_000
        args.repeat = -(-wanted // len(photos))
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < args.threads:
        say(f"compare: {args.threads} threads asked for, {len(allowed)} cores allowed")
        return 4
    cores = set(allowed[: args.threads])
    kinds: dict[PeerKind, str] = {}
    for kind in peer_kinds(args):
        version = kind.version()
        if version:
            kinds[kind] = version
        else:
            say(f"  {kind.name} is left out: {kind.interpreter} has no {kind.module}")
    if not kinds:
        return 4
    job = {
        "workload": args.workload,
        "photos": str(args.photos.resolve()),
        "files": photos,
        "threads": args.threads,
        "batch_size": args.batch_size,
        "repeat": args.repeat,
        "cold": False,
    }
    report: dict[str, Any] = results.describe(args, photos, cores)
    measured = run_rounds(kinds, job, cores, args.rounds, args.cold)
    report["peers"] = [m.to_json() for m in measured]
    if args.scaling:
        report["scaling"] = scaling.measure(args.photos, [p for p, _ in photos], sorted(cores))
    results.write(args.out, report)
    print(results.markdown(report))
    say(f"written to {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
