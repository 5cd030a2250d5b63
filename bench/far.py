#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Remote training data, compared with the same data on the local disk.

    python bench/far.py PHOTOS --out build/far [--only rates|files|stalls|bytes]

A server in a separate process (object_store.py) answers after a lognormal latency of 50 ms and
sends 90 MB/s per connection; both use the same processors, so the server takes CPU time from the
client: `--threads 1` on two cores leaves it one. Local epochs (from the page cache) and remote ones
alternate in one process; of two consecutive remote epochs the second counts, because the first uses
data read ahead before. Rates are medians, CPU seconds are the client's.

    rates    photos in tar shards and in a pack, shuffle="blocks" and "streams"
    files    small pictures, one request per file, shuffled
    stalls   the same, while one request of 200 hangs for 5 s: how long the consumer waits for
             batches
    bytes    2, 3 and 4 processes with a shard each: bytes that the server sent per epoch, over the
             dataset's
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from far_sets import make_files, make_tars, photos_of, repeated, small_photos
from object_store import ObjectStore
from process_tree import cpu_seconds, pss_mib
from waits import epoch_of

import headrace as hr
from headrace import transforms as T

LATENCY, RATE = 0.05, 90e6
STEPS = [T.RandomResizedCrop(224), T.RandomHorizontalFlip()]
CASES = ("rates", "files", "stalls", "bytes")


def epoch(loader: hr.Loader) -> dict[str, Any]:
    """One epoch: records per second, CPU seconds per 1,000 records."""
    cpu = time.process_time()
    one = epoch_of(loader)
    used = time.process_time() - cpu
    return {"rate": one.rate, "cpu": used / one.records * 1000, "records": one.records}


def median(rounds: list[dict[str, Any]], what: str) -> float:
    return float(statistics.median(each[what] for each in rounds))


def beside_the_disk(
    name: str, near: str, far: str, store: ObjectStore, given: argparse.Namespace, **options: Any
) -> dict[str, Any]:
    """Epochs from both, alternating."""
    loaders = {
        place: hr.Loader(path, batch_size=64, threads=given.threads, seed=3, **options)
        for place, path in (("disk", near), ("far", far))
    }
    rounds: dict[str, list[dict[str, Any]]] = {place: [] for place in loaders}
    servers, requests = [], []
    for number in range(given.rounds + 1):  # the first one is start-up
        for place, loader in loaders.items():
            if place == "far":
                epoch(loader)  # uses what was read ahead while the other one ran
            before, asked = cpu_seconds(store.process.pid), store.counts()["requests"]
            one = epoch(loader)
            if number:
                rounds[place].append(one)
                if place == "far":
                    used = cpu_seconds(store.process.pid) - before
                    servers.append(used / one["records"] * 1000)
                    requests.append(store.counts()["requests"] - asked)
    memory = pss_mib(os.getpid())
    for loader in loaders.values():
        loader.close()
    ratios = [f["rate"] / d["rate"] for d, f in zip(rounds["disk"], rounds["far"], strict=True)]
    out = {
        "disk": median(rounds["disk"], "rate"),
        "far": median(rounds["far"], "rate"),
        "ratio": statistics.median(ratios),
        "ratios": ratios,
        "disk_cpu": median(rounds["disk"], "cpu"),
        "far_cpu": median(rounds["far"], "cpu"),
        "server_cpu": statistics.median(servers),
        "requests": statistics.median(requests),
        "pss_mib": memory,
    }
    print(
        f"{name:22} disk {out['disk']:6.0f}/s, far {out['far']:6.0f}/s: {out['ratio']:5.1%}"
        f" ({min(ratios):.1%} to {max(ratios):.1%}); CPU s per 1,000: {out['disk_cpu']:.3f},"
        f" {out['far_cpu']:.3f}, server {out['server_cpu']:.3f}; {out['requests']:.0f} requests per"
        f" epoch; PSS {memory:.0f} MiB",
        flush=True,
    )
    return out


def rates(given: argparse.Namespace) -> dict[str, Any]:
    photos = repeated(photos_of(given.photos), given.records)
    tars = f"tar/{make_tars(given.out / 'tar', photos)}"
    pack = given.out / "photos.hrpack"
    if not pack.exists():
        hr.pack(hr.open(str(given.out / tars)), str(pack))
    out = {}
    with ObjectStore(given.out, latency=LATENCY, rate=RATE) as store:
        for path in (tars, pack.name):
            for shuffle in ("blocks", "streams"):
                name = f"{path.split('/')[0].split('.')[-1]}, {shuffle}"
                out[name] = beside_the_disk(
                    name,
                    str(given.out / path),
                    f"{store.url}/data/{path}",
                    store,
                    given,
                    transforms=STEPS,
                    shuffle=shuffle,
                )
    return out


def small_files(given: argparse.Namespace) -> Path:
    folder = Path(given.out) / "small"
    make_files(folder, small_photos(given.files))
    return folder


def files(given: argparse.Namespace) -> dict[str, Any]:
    folder = small_files(given)
    with ObjectStore(given.out, latency=LATENCY, rate=RATE) as store:
        os.environ |= store.environment()
        out = beside_the_disk(
            "one file each, 64 x 64",
            str(folder),
            "s3://data/small",
            store,
            given,
            transforms=[T.CenterCrop(64)],
            shuffle=True,
        )
        counts = store.counts()
    return {"small": out, "requests": counts["requests"]}


def stalls(given: argparse.Namespace) -> dict[str, Any]:
    """A step takes 20 ms per batch of 64 files; in a third of the batches one file hangs."""
    small_files(given)
    out = {}
    for hang_every in (0, 200):
        options = {"latency": LATENCY, "rate": RATE, "hang_every": hang_every}
        with ObjectStore(given.out, **options) as store:
            os.environ |= store.environment()
            hr.remote.configure(endpoint=store.url)
            loader = hr.Loader(
                "s3://data/small",
                [T.CenterCrop(64)],
                batch_size=64,
                threads=given.threads,
                shuffle=True,
                seed=3,
            )
            waits: list[float] = []
            turns: list[float] = []
            epoch_of(loader, pause=0.02)  # start-up
            while len(waits) < given.batches:
                first, *rest = epoch_of(loader, pause=0.02).waits
                waits += rest
                turns.append(first)
            loader.close()
            counts = store.counts()
        waits.sort()
        figures = {
            "batches": len(waits),
            "requests": counts["requests"],
            "hung": counts["hung"],
            "p50_ms": 1e3 * waits[len(waits) // 2],
            "p99.9_ms": 1e3 * waits[int(0.999 * len(waits))],
            "longest_ms": 1e3 * waits[-1],
            "first_of_epochs_ms": 1e3 * statistics.median(turns),
        }
        out[f"one of {hang_every} hangs" if hang_every else "none hangs"] = figures
        print(f"hang_every={hang_every}: {json.dumps(figures)}", flush=True)
    return out


def shard(path: str, rank: int, world: int, epochs: int) -> None:
    """Runs in a separate process."""
    loader = hr.Loader(
        path,
        STEPS,
        batch_size=64,
        threads=1,
        seed=3,
        shuffle="streams",
        shard=(rank, world),
        last_batch="keep",
    )
    print(sum(len(batch.image) for _epoch in range(epochs) for batch in loader))
    loader.close()


def bytes_sent(given: argparse.Namespace) -> dict[str, Any]:
    photos = repeated(photos_of(given.photos), given.records)
    tars = f"tar/{make_tars(given.out / 'tar', photos)}"
    size = sum(file.stat().st_size for file in (given.out / "tar").glob("*.tar"))
    out = {}
    with ObjectStore(given.out, latency=LATENCY, rate=RATE) as store:
        path = f"{store.url}/data/{tars}"
        hr.open(path)  # the index, which is made once and cached
        for world in (2, 3, 4):
            sent = {}
            for epochs in (1, 3):  # the start of the next epoch is read ahead, in both
                before = store.counts()["bytes"]
                command = [sys.executable, __file__, str(given.photos), "--path", path]
                command += ["--epochs", str(epochs)]
                ranks = [
                    subprocess.Popen(
                        [*command, "--rank", f"{rank}/{world}"], stdout=subprocess.PIPE, text=True
                    )
                    for rank in range(world)
                ]
                records = sum(int(each.communicate()[0]) for each in ranks)
                assert records == epochs * given.records, (records, given.records)
                sent[epochs] = (store.counts()["bytes"] - before) / size
            each = (sent[3] - sent[1]) / 2
            out[str(world)] = {"an epoch": each, "one epoch and what is read ahead": sent[1]}
            print(
                f"streams, {world} processes: {each:.3f} of the dataset's bytes per epoch; where it"
                f" is the last one, {sent[1] - each:.3f} more are read ahead",
                flush=True,
            )
    return out


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("photos", type=Path, help="a folder of JPEGs")
    parser.add_argument("--out", type=Path, default=Path("build/far"))
    parser.add_argument("--only", choices=CASES, action="append")
    parser.add_argument("--records", type=int, default=6000, help="number of photos, by repetition")
    parser.add_argument(
        "--files", type=int, default=12000, help="number of small pictures, one file each"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, default=2000, help="batches of the part 'stalls'")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--path", help=argparse.SUPPRESS)
    parser.add_argument("--rank", help=argparse.SUPPRESS)
    parser.add_argument("--epochs", type=int, default=1, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.rank:
        rank, world = map(int, given.rank.split("/"))
        return shard(given.path, rank, world, given.epochs)
    given.out.mkdir(parents=True, exist_ok=True)
    os.environ["HEADRACE_CACHE"] = str(given.out.resolve() / "cache")
    cases = {"rates": rates, "files": files, "stalls": stalls, "bytes": bytes_sent}
    figures = {name: cases[name](given) for name in given.only or CASES}
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
