# SPDX-License-Identifier: Apache-2.0
"""Cost and gain of making rows in actors on a Ray cluster.

    ./dev test --frameworks       # makes the environment
    PYTHONPATH=build/wheel/site:tests/frameworks build/frameworks/ray/bin/python bench/ray_rows.py

The cluster has two nodes on the loopback of this machine. First the transfer alone: an actor
returns a batch of 19.3 MB (128 x 3 x 224 x 224), which is taken from the object store and copied
once: CPU milliseconds of all processes per batch, minus Ray's idle use. Then two trainers with one
thread each read photos, alone and with two actors on the other node: plain photos, and with a step
that takes 4 ms on other cores (it sleeps, because this machine has none). `trainer` is the CPU of
the trainer's process and of the raylet on its node.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from ray_cluster import HERE, two_nodes  # before ray: sets where Ray listens

import headrace as hr
from headrace import transforms as T

ROOT = Path(__file__).parents[1]
BATCH = (128, 3, 224, 224)


class Holder:
    """An actor with a batch."""

    def __init__(self) -> None:
        self.batch = np.zeros(BATCH, np.uint8)

    def take(self) -> Any:
        return self.batch


def cpu(root: psutil.Process) -> Counter[str]:
    """Milliseconds so far: of this process, of actors, raylets and other processes it has
    started."""
    out: Counter[str] = Counter()
    for process in [root, *root.children(recursive=True)]:
        with contextlib.suppress(psutil.Error):
            times, name = process.cpu_times(), process.name()
            kind = "this process" if process == root else "others"
            if name.startswith("ray::") and "IDLE" not in name:
                kind = "actor"
            elif name == "raylet":
                kind = "raylets"
            out[kind] += round(1e3 * (times.user + times.system))
    return out


def hand_over(batches: int) -> None:
    import ray

    own = psutil.Process()
    into = np.empty(BATCH, np.uint8)
    for label, where in (("near", "one node"), ("far", "between two nodes")):
        holder = ray.remote(Holder).options(num_cpus=0, resources={label: 1}).remote()
        for _ in range(5):
            np.copyto(into, ray.get(holder.take.remote()))
        begin, before = time.perf_counter(), cpu(own)
        time.sleep(5)
        idle, seconds = cpu(own) - before, time.perf_counter() - begin
        begin, before = time.perf_counter(), cpu(own)
        for _ in range(batches):
            np.copyto(into, ray.get(holder.take.remote()))
        took, used = time.perf_counter() - begin, cpu(own) - before
        each = {
            kind: max(0.0, used[kind] - idle[kind] * took / seconds) / batches
            for kind in ("actor", "raylets", "this process", "others")
        }
        parts = ", ".join(f"{kind} {ms:.1f}" for kind, ms in each.items())
        print(f"{where}: {sum(each.values()):.1f} ms of CPU a batch ({parts}), ", end="")
        print(f"{1e3 * took / batches:.0f} ms by the clock", flush=True)
        ray.kill(holder)


def slowly(image: Any) -> Any:
    """4 ms of work that would run on other machines' cores."""
    time.sleep(0.004)
    return image


def trained(photos: str, rank: int, slow: bool, seconds: float, pool: Any) -> dict[str, Any]:
    """Epochs for this long, once actors are ready."""
    steps = [T.RandomResizedCrop(224), T.RandomHorizontalFlip(), *[slowly] * slow]
    given: dict[str, Any] = {"global_batch_size": 128, "shuffle": True, "threads": 1}
    loader = hr.Loader(photos, steps, **given, shard=(rank, 2), workers=pool)

    def batches() -> Iterator[Any]:
        while True:
            yield from loader

    endless = batches()
    next(endless)
    while pool and loader.stats().remote["actors"] < 2:
        time.sleep(0.05)
    for _ in range(10):
        next(endless)
    own = psutil.Process()
    raylet = [p for p in own.parent().children(recursive=True) if p.name() == "raylet"][:1]
    processes = [own, *raylet] if pool else [own]

    def used() -> float:
        return sum(sum(process.cpu_times()[:2]) for process in processes)

    rows, before, cpu_before = 0, loader.stats().remote, used()
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds:
        rows += len(next(endless)[0])
    took = time.perf_counter() - begin
    found = {"rows": rows / took, "trainer": 1e3 * (used() - cpu_before) / rows, "remote": 0.0}
    if pool:
        remote = loader.stats().remote
        found["remote"] = (remote["rows"] - before["rows"]) / rows
        found["summary"] = remote["summary"]
    loader.close()
    return found


def trainer(given: argparse.Namespace) -> None:
    pool = None
    if given.pool:
        import ray

        ray.init(address=given.pool, _node_ip_address=HERE, log_to_driver=False)
        pool = hr.ray.pool(cpus=2, cpus_per_actor=0, resources={"far": 1}, offload="auto")
    print(json.dumps(trained(given.photos, given.rank, given.slow, given.seconds, pool)))


def end_to_end(address: str, photos: str, seconds: float) -> None:
    for slow in (False, True):
        name = "a step of 4 ms" if slow else "plain photos"
        for pool in ("", address):
            command = [sys.executable, __file__, "--photos", photos, "--seconds", str(seconds)]
            command += ["--pool", pool, *["--slow"] * slow, "--rank"]
            ranks = [
                subprocess.Popen([*command, str(rank)], stdout=subprocess.PIPE) for rank in range(2)
            ]
            reports = [json.loads(rank.communicate()[0].splitlines()[-1]) for rank in ranks]
            rows = sum(report["rows"] for report in reports)
            own, share = (
                np.mean([report[key] for report in reports]) for key in ("trainer", "remote")
            )
            print(
                f"{name}, {'two actors a rank' if pool else 'alone'}: {rows:.0f} rows/s by both, ",
                end="",
            )
            print(
                f"{own:.2f} ms of the trainer's CPU a row, {100 * share:.0f} % by actors",
                flush=True,
            )
            if pool:
                print(f"  {reports[0]['summary']}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--batches", type=int, default=60)
    parser.add_argument(
        "--seconds", type=float, default=15, help="duration of each end-to-end measurement"
    )
    parser.add_argument("--photos", help="default: 512 generated photos")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--pool", help=argparse.SUPPRESS)
    parser.add_argument("--slow", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.rank is not None:
        trainer(given)
        return
    with tempfile.TemporaryDirectory() as folder, two_nodes(store=512 << 20) as nodes:
        hand_over(given.batches)
        photos = given.photos
        if not photos:
            from headrace.insight.demo.photos import make_photos

            photos = f"{folder}/photos"
            Path(photos).mkdir()
            make_photos(ROOT / "examples" / "images", Path(photos), 512)
        end_to_end(nodes.address, photos, given.seconds)


if __name__ == "__main__":
    main()
