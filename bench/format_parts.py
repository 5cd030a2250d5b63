# SPDX-License-Identifier: Apache-2.0
"""The measurements of formats.py that involve only Headrace.

Read rates, opening times and index sizes of containers, the benefit of the record cache, disk
throughput.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from pread_probe import Probe
from process_tree import cached_share, drop_cache
from rounds import say


def seconds_of(batches: Iterable[Any]) -> float:
    start = time.perf_counter()
    for _ in batches:
        pass
    return time.perf_counter() - start


def raw_rates(
    path: Path, program: Path, record_bytes: int, threads: int, batch_size: int, rounds: int
) -> dict[str, Any]:
    """Records per second as measured by `headrace bench --preset raw`, and of plain pread."""
    from headrace.insight.measure.stored import RawReader

    import headrace

    source = headrace.open(path)
    count = len(source)
    found: dict[str, Any] = {}
    orders = {"file": np.arange(count), "random": np.random.default_rng(0).permutation(count)}
    for name, order in orders.items():
        reader = RawReader(source, batch_size, threads, order)
        step = path.stat().st_size // count
        # Stored bytes per record; in LMDB's pages that is far more than is read.
        size = record_bytes if path.suffix == ".lmdb" else step
        ours, plain = [], []
        with Probe(program, path, order, step, size, threads) as probe:
            seconds_of(reader)
            probe.seconds()
            for _ in range(rounds):
                ours.append(count / seconds_of(reader))
                plain.append(count / probe.seconds())
        reader.close()
        shares = [a / b for a, b in zip(ours, plain, strict=True)]
        found[name] = {
            "records_per_second": round(statistics.median(ours)),
            "pread_records_per_second": round(statistics.median(plain)),
            "share": round(statistics.median(shares), 3),
            "shares": [round(share, 3) for share in shares],
        }
        say(f"  {path.name}, {name} order: {found[name]}")
    return found


OPENING = """
import gc, json, sys, time
import headrace
small, path = sys.argv[1:]
def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon:")) * 1024
headrace.open(small)  # libraries and code are loaded
gc.collect()
before = resident()
start = time.perf_counter()
source = headrace.open(path)
seconds = time.perf_counter() - start
print(json.dumps({"seconds": seconds, "bytes": resident() - before, "records": len(source)}))
"""


def opening(path: Path, small: Path, rounds: int) -> dict[str, Any]:
    """Milliseconds with a cached index, GB/s without, bytes of memory per record."""
    scans, kept, memory = [], [], []
    records = 1
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            environment = dict(os.environ, HEADRACE_CACHE=cache)
            for times in (scans, kept):
                command = [sys.executable, "-c", OPENING, str(small), str(path)]
                ran = subprocess.run(command, env=environment, capture_output=True, check=True)
                answer = json.loads(ran.stdout)
                records = answer["records"]
                times.append(answer["seconds"])
            memory.append(answer["bytes"] / records)
    found = {
        "records": records,
        "cached_ms": round(1000 * statistics.median(kept), 2),
        "scan_seconds": round(statistics.median(scans), 3),
        "scan_gb_per_second": round(path.stat().st_size / statistics.median(scans) / 1e9, 2),
        "resident_bytes_per_record": round(statistics.median(memory), 1),
    }
    say(f"  {path.name}: {found}")
    return found


def cache_of_half(path: Path, threads: int) -> dict[str, Any]:
    """What a second epoch reads if half of the set fits into the RAM cache."""
    import headrace

    source = headrace.open(path)
    total = sum(len(source.engine.read(i)["image"]) for i in range(len(source)))
    loader = headrace.Loader(
        source,
        headrace.presets.imagenet_train(224),
        batch_size=50,
        shuffle=True,
        threads=threads,
        cache=total // 2,
    ).numpy()
    epochs = []
    for _ in range(3):
        before = dict(loader.stats()["cache"])
        seconds_of(loader)
        after = loader.stats()["cache"]
        epochs.append({name: after[name] - before.get(name, 0) for name in after})
    loader.close()
    say(f"  {path.name}: {total:,} bytes of pictures; by epoch: {epochs}")
    return {"bytes": total, "epochs": epochs}


def cold_reads(path: Path, program: Path, record_bytes: int, rounds: int) -> dict[str, Any]:
    """Random reads that miss the page cache: ours, and pread at increasing depth, MB/s."""
    import headrace

    source = headrace.tfrecord(path, content="bytes")
    count = len(source)
    order = np.random.default_rng(0).permutation(count)
    step = path.stat().st_size // count
    rates: dict[str, list[float]] = {}
    loader = headrace.Loader(source, batch_size=64, shuffle=True, threads=2).numpy()
    depths = [1, 2, 4, 8, 16, 32]
    for number in range(rounds):
        for depth in depths:
            with Probe(program, path, order, step, record_bytes, depth) as probe:
                rate = count * record_bytes / probe.seconds(cold=True) / 1e6
                rates.setdefault(f"pread, depth {depth}", []).append(rate)
        drop_cache([str(path)])
        left = cached_share([str(path)])
        rates.setdefault("Headrace", []).append(count * record_bytes / seconds_of(loader) / 1e6)
        say(f"  cold round {number + 1}, {100 * left:.0f} % still cached: ")
        say("    " + ", ".join(f"{name} {values[-1]:,.0f}" for name, values in rates.items()))
    loader.close()
    return {name: round(statistics.median(values), 1) for name, values in rates.items()}
