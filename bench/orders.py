# SPDX-License-Identifier: Apache-2.0
"""Cost of orders and batch samplers, and the padding that remains.

    python bench/orders.py padding [--lhotse PYTHON]   padded batches, against other samplers
    python bench/orders.py state                       resuming a bucketed run over 30,000 hours
    python bench/orders.py huge                        10^8 records: an order, a batch, a state

padding: one lognormal column (sigma 0.6), batches of one budget. "random" cuts a shuffled epoch;
"group_by_length" is the rule of transformers' LengthGroupedSampler, reimplemented here (megabatches
of 50 batches, each sorted); "lhotse" is Lhotse's own DynamicBucketingSampler, if --lhotse gives a
Python that has it. together_again: the fraction of record pairs that share a batch in epoch 0 and
again in epoch 1, as a multiple of chance: the cost of bucketing in randomness.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterable
from typing import Any

import numpy as np

RECORDS, ROWS = 100_000, 64
HOURS, MEAN_SECONDS = 30_000, 12.0


def lengths_of(records: int, seed: int = 1) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Seconds, lognormal, with a mean of about twelve."""
    draws = np.random.default_rng(seed).normal(0, 0.6, records)
    return np.round(np.exp(draws) * MEAN_SECONDS / np.exp(0.18), 2)


def padding(batches: Iterable[Any], lengths: np.ndarray[Any, Any]) -> float:
    """The fraction of padding in the batches."""
    taken = padded = 0.0
    for batch in batches:
        of_batch = lengths[np.asarray(batch)]
        taken += of_batch.sum()
        padded += of_batch.max() * len(of_batch)
    return float(1 - taken / padded)


def together_again(first: list[Any], second: list[Any], records: int) -> float:
    """See above."""
    at = np.zeros(records, np.int64)
    for number, batch in enumerate(second):
        at[np.asarray(batch)] = number
    pairs = met = 0
    for batch in first:
        counts = np.bincount(at[np.asarray(batch)])
        met += int((counts * (counts - 1)).sum())
        pairs += len(batch) * (len(batch) - 1)
    sizes = np.array([len(batch) for batch in second], float)
    chance = float((sizes * (sizes - 1)).sum()) / (records * (records - 1))
    return met / pairs / chance


def cut(order: Any, rows: int) -> list[Any]:
    return [order[at : at + rows] for at in range(0, len(order), rows)]


def grouped_by_length(lengths: np.ndarray[Any, Any], seed: int) -> list[Any]:
    """A reimplementation of transformers' get_length_grouped_indices()."""
    order = np.random.default_rng(seed).permutation(len(lengths))
    batches = max(1, min(len(lengths) // (ROWS * 4), 50))
    out = [part[np.argsort(-lengths[part], kind="stable")] for part in cut(order, batches * ROWS)]
    return cut(np.concatenate(out), ROWS)


def epoch_of(sampler: Any, source: Any, epoch: int, rows: int = 0) -> list[Any]:
    """Record indices of all batches of one of our orders."""
    import headrace as hr

    engine = sampler.engine(source, False, hr.sampling.Batches(rows or 1))
    order = np.asarray(engine.indices(3, epoch, 0, len(engine)))
    if not engine.batch_sizes:
        return cut(order, rows)
    largest = max(engine.batch_sizes)
    return [
        order[number * largest : number * largest + size]
        for number, size in enumerate(engine.batch_sizes)
    ]


LHOTSE = """
import json, sys
import numpy as np
from lhotse import CutSet, MonoCut
from lhotse.dataset import DynamicBucketingSampler

lengths, total = json.load(sys.stdin)
def cuts():
    for number, seconds in enumerate(lengths):
        yield MonoCut(id=str(number), start=0.0, duration=seconds, channel=0)
out = []
for epoch in (0, 1):
    sampler = DynamicBucketingSampler(
        CutSet(list(cuts())), max_duration=total, num_buckets=30, shuffle=True, seed=3,
        buffer_size=20000, drop_last=False)
    sampler.set_epoch(epoch)
    out.append([[int(cut.id) for cut in batch] for batch in sampler])
print(json.dumps(out))
"""


def measure_padding(lhotse: str) -> dict[str, Any]:
    import headrace as hr

    lengths = lengths_of(RECORDS)
    source = hr.records(seconds=lengths)
    total = float(ROWS * lengths.mean())
    random = [cut(np.random.default_rng(epoch).permutation(RECORDS), ROWS) for epoch in (0, 1)]
    buckets = hr.sampling.buckets("seconds", batch_size=ROWS)
    budget = hr.sampling.budget("seconds", total=total)
    ways: dict[str, list[Any]] = {
        "random": random,
        "group_by_length": [grouped_by_length(lengths, epoch) for epoch in (0, 1)],
        "buckets": [epoch_of(buckets, source, epoch, ROWS) for epoch in (0, 1)],
        "budget": [epoch_of(budget, source, epoch) for epoch in (0, 1)],
    }
    if lhotse:
        given = json.dumps([lengths.tolist(), total])
        run = subprocess.run(
            [lhotse, "-c", LHOTSE], input=given, stdout=subprocess.PIPE, text=True, check=True
        )
        ways["lhotse"] = json.loads(run.stdout)
    out = {}
    for name, (first, second) in ways.items():
        records = sum(map(len, first))
        out[name] = {
            "padding": round(padding(first, lengths), 4),
            "batches": len(first),
            "records": records,
            "together_again": round(together_again(first, second, RECORDS), 1),
        }
    return out


def measure_state() -> dict[str, Any]:
    """A run over a manifest with durations, whose state is loaded in mid-epoch."""
    import headrace as hr

    records = int(HOURS * 3600 / MEAN_SECONDS)
    source = hr.records(seconds=lengths_of(records))
    order = hr.sampling.budget("seconds", total=600.0)
    begin = time.process_time()
    loader = hr.Loader(source, sampler=order)
    opened = time.process_time() - begin
    next(iter(loader))
    first = time.process_time() - begin - opened
    loader.seek(len(loader) + len(loader) // 2)
    next(iter(loader))
    state = json.dumps(loader.state_dict())
    other = hr.Loader(source, sampler=order)
    begin = time.perf_counter()
    other.load_state_dict(json.loads(state))
    loaded = time.perf_counter() - begin
    batch = next(iter(other))
    return {
        "records": records,
        "batches": len(loader),
        "open_cpu_s": round(opened, 2),
        "first_batch_cpu_s": round(first, 4),
        "load_state_s": round(loaded, 4),
        "load_state_and_batch_s": round(time.perf_counter() - begin, 4),
        "state_bytes": len(state),
        "rows": len(batch.seconds),
    }


def measure_huge() -> dict[str, Any]:
    """Each order in a separate process, to measure its memory."""
    orders = {
        "shuffle": "None, shuffle=True",
        "repeat": "hr.sampling.repeat(num_samples=1000 * 256), shuffle=True",
        "endless": "hr.sampling.repeat(), shuffle=True",
        "streams": "hr.sampling.streams(), shuffle=False",
    }
    return {name: _huge(text) for name, text in orders.items()}


HUGE = """
import json, resource, time
import headrace as hr

source = hr.simulated(100_000_000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
begin = time.perf_counter()
loader = hr.Loader(source, batch_size=256, fields="number", threads=2, sampler={order})
opened = time.perf_counter() - begin
next(iter(loader))
first = time.perf_counter() - begin
state = json.dumps(loader.state_dict())
print(json.dumps(dict(
    open_ms=round(opened * 1e3, 1), first_batch_ms=round(first * 1e3, 1), state_bytes=len(state),
    more_mib=(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024,
    peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)))
"""


def _huge(order: str) -> Any:
    run = subprocess.run(
        [sys.executable, "-c", HUGE.replace("{order}", order)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(run.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["padding", "state", "huge"])
    parser.add_argument("--lhotse", default="", metavar="PYTHON", help="a Python that has Lhotse")
    given = parser.parse_args()
    if given.what == "padding":
        figures = measure_padding(given.lhotse)
    else:
        figures = measure_state() if given.what == "state" else measure_huge()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({given.what: figures, "peak_mib": peak}, indent=1))


if __name__ == "__main__":
    main()
