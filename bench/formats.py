#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Containers of records: how fast they are read, opened and trained from, compared with other
readers.

    python bench/formats.py --photos PHOTOS --out build/bench/formats

docs/internals/container-speed.md explains what is measured and the limits of the numbers. The
containers are made in --out once (some 9 GB), and stay there.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import format_parts
import pread_probe
from format_sets import SUFFIXES, converted, noise_tar
from peer import Measured, Peer, PeerKind
from results import processor
from rounds import in_turn, note, say, started

PARTS = ("raw", "peers", "open", "train", "cache", "cold")
RAW_FORMATS = ["tar", "tfrecord", "recordio", "lmdb"]
# The format of its file, the peer's script, and the module and package that it needs.
OTHERS = {
    "webdataset": ("tar", "records_webdataset.py", "webdataset", "webdataset"),
    "tf.data": ("tfrecord", "records_tf.py", "tensorflow", "tensorflow"),
    "mxnet": ("recordio", "records_mxnet.py", "mxnet", "mxnet"),
    "h5py": ("hdf5", "records_h5py.py", "h5py", "h5py"),
    "lmdb": ("lmdb", "records_lmdb.py", "lmdb", "lmdb"),
}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", default=",".join(PARTS), help="formats to measure (a,b)")
    parser.add_argument("--photos", type=Path, help="a folder of JPEGs, one folder per class")
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--record-bytes", type=int, default=10_000)
    parser.add_argument(
        "--cold-records", type=int, default=10_000, help="number of records of 100 kB"
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=2,
        help="number of threads, and of cores that they are pinned to",
    )
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--repeat", type=int, default=10, help="number of times to list the photos")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turn", type=float, default=1.0, metavar="SECONDS", help="turn of a peer")
    for name in OTHERS:
        parser.add_argument(
            f"--python-{name}",
            dest=name,
            default=sys.executable,
            metavar="PYTHON",
            help="the interpreter in which it is installed",
        )
    parser.add_argument("--out", type=Path, default=Path("build/bench/formats"))
    return parser.parse_args()


class Run:
    """One run: its files, its cores, and the results."""

    def __init__(self, args: argparse.Namespace, cores: set[int]) -> None:
        self.args, self.cores = args, cores
        self.cache = args.out.resolve() / "cache"
        os.environ["HEADRACE_CACHE"] = str(self.cache)

    def records(self, formats: list[str]) -> dict[str, Path]:
        import headrace

        stem = self.args.out / f"records-{self.args.records}"
        tar = noise_tar(stem.with_suffix(".tar"), self.args.records, self.args.record_bytes)
        return converted(headrace.open(tar), stem, formats)

    def photos(self) -> dict[str, Path]:
        import headrace

        if self.args.photos is None:
            raise SystemExit("formats: this part needs --photos")
        source = headrace.open(self.args.photos)
        return {
            "folder": self.args.photos,
            **converted(source, self.args.out / "photos", list(SUFFIXES)),
        }

    def probe(self) -> Path:
        return pread_probe.build(self.args.out)

    def contest(self, kinds: dict[PeerKind, dict[str, Any]]) -> list[Measured]:
        """Peers in alternating rounds, each with its own job."""
        args = self.args
        with ExitStack() as stack:
            peers: list[tuple[Measured, Peer]] = []
            for kind, job in kinds.items():
                job = {
                    "workload": "records",
                    "threads": args.threads,
                    "batch_size": args.batch_size,
                    "repeat": 1,
                    "cold": False,
                    "files": [],
                    "prepared": str(self.cache),
                    **job,
                }
                measured = Measured(kind, "")
                try:
                    peers.append((measured, started(stack, measured, job, self.cores)))
                except RuntimeError as error:
                    say(f"  {kind.name} is skipped: {error}")
            for number in range(args.rounds):
                for measured, peer in in_turn(peers, number):
                    note(measured, peer.turn(args.turn))
            say("  " + ", ".join(f"{m.kind.name} {m.warm[-1]:,.0f}" for m, _ in peers))
            return [measured for measured, _ in peers]

    def raw(self) -> dict[str, Any]:
        args, program = self.args, self.probe()
        return {
            name: format_parts.raw_rates(
                path, program, args.record_bytes, args.threads, args.batch_size, args.rounds
            )
            for name, path in self.records(RAW_FORMATS).items()
        }

    def peers(self) -> dict[str, Any]:
        files = self.records(list(SUFFIXES))
        found: dict[str, Any] = {}
        for name, (container, script, module, package) in OTHERS.items():
            other = PeerKind(name, script, "", module, getattr(self.args, name), package)
            version = other.version()
            if version is None:
                say(f"  {name} is skipped: {other.interpreter} has no {module}")
                continue
            for order in ("file", "random"):
                job = {"photos": str(files[container].resolve()), "order": order}
                kinds = {other: job}
                for variant in ("raw", "values"):
                    kinds[ours(f"Headrace, {variant}", variant)] = job
                rates = {
                    measured.kind.name: round(statistics.median(measured.warm))
                    for measured in self.contest(kinds)
                }
                found[f"{name}, {order} order"] = {"version": version, "format": container, **rates}
        return found

    def open(self) -> dict[str, Any]:
        small = self.records_of(100)
        found = {}
        with tempfile.TemporaryDirectory(dir=self.args.out) as folder:
            for name, path in self.records(list(SUFFIXES)).items():
                alone = Path(folder) / path.name  # without an index next to it
                os.link(path, alone)
                alone.read_bytes()  # reads the files into the page cache
                found[name] = format_parts.opening(alone, small[name], self.args.rounds)
        return found

    def records_of(self, records: int) -> dict[str, Path]:
        import headrace

        stem = self.args.out / f"records-{records}"
        tar = noise_tar(stem.with_suffix(".tar"), records, self.args.record_bytes)
        return converted(headrace.open(tar), stem, list(SUFFIXES))

    def train(self) -> dict[str, Any]:
        kinds = {
            ours(name, "train"): {
                "workload": "imagenet-train",
                "photos": str(path.resolve()),
                "repeat": self.args.repeat,
            }
            for name, path in self.photos().items()
        }
        measured = self.contest(kinds)
        folder = next(one for one in measured if one.kind.name == "folder")
        return {
            one.kind.name: {
                "images_per_second": round(statistics.median(one.warm), 1),
                "of_folder": round(
                    statistics.median(a / b for a, b in zip(one.warm, folder.warm, strict=True)), 4
                ),
                "rounds": [round(rate, 1) for rate in one.warm],
            }
            for one in measured
        }

    def cache_part(self) -> dict[str, Any]:
        return format_parts.cache_of_half(self.photos()["tar"], self.args.threads)

    def cold(self) -> dict[str, Any]:
        import headrace

        stem = self.args.out / f"large-{self.args.cold_records}"
        tar = noise_tar(stem.with_suffix(".tar"), self.args.cold_records, 100_000)
        path = converted(headrace.open(tar), stem, ["tfrecord"])["tfrecord"]
        return format_parts.cold_reads(path, self.probe(), 100_000, min(3, self.args.rounds))


def ours(name: str, variant: str) -> PeerKind:
    script = "headrace_records.py"
    return PeerKind(name, script, variant, "headrace", sys.executable, ours=True)


def main() -> int:
    args = parse_arguments()
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < args.threads:
        say(f"formats: {args.threads} threads asked for, {len(allowed)} cores allowed")
        return 4
    cores = set(allowed[: args.threads])
    os.sched_setaffinity(0, cores)
    args.out.mkdir(parents=True, exist_ok=True)
    run = Run(args, cores)
    target = args.out / "formats.json"
    report = json.loads(target.read_text()) if target.exists() else {}
    for part in args.parts.split(","):
        say(f"{part}:")
        load = os.getloadavg()[0]
        report[part] = run.cache_part() if part == "cache" else getattr(run, part)()
        report[part]["circumstances"] = {
            "date": time.strftime("%Y-%m-%d %H:%M"),
            "processor": processor(),
            "load_average_before": load,
        }
        target.write_text(json.dumps(report, indent=1) + "\n")
    say(f"written to {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
