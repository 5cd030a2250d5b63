# SPDX-License-Identifier: Apache-2.0
"""Cost of a loader at sizes that do not fit on disk: empty records, a thousand ranks.

Usage: scale.py [--records N] [--world N] [--order ORDER ...] [--json]

For each order, a separate process opens hr.simulated(N), as one rank of the world. It measures the
seconds to the first batch, from a mid-epoch state to the next batch, and from the last batch of an
epoch to the first of the next; the resident memory, beyond that of a loader of 1,000 records; and
the bytes of the state. Records themselves cost almost nothing, so this measures orders, blocks and
indexes.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from typing import Any

ORDERS = {"records": True, "blocks": "blocks", "streams": "streams", "sequential": False}
ROWS = 32  # records per batch of a rank


def resident_mib() -> float:
    with open("/proc/self/smaps_rollup") as file:
        sizes = {line.split()[0]: line.split()[1] for line in file if line.endswith("kB\n")}
    return int(sizes["Pss:"]) / 1024


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(records: int, order: str, world: int) -> dict[str, Any]:
    import headrace as hr

    def loader(count: int, rank: int, of: int) -> Any:
        src = hr.simulated(count, image=(1, 1, 1))
        made = hr.Loader(
            src, batch_size=ROWS, shuffle=ORDERS[order], shard=(rank, of), threads=1, seed=1
        )
        return made.numpy()

    def first(loaded: Any) -> float:
        begin = time.perf_counter()
        next(iter(loaded))
        return time.perf_counter() - begin

    small = loader(max(1000, ROWS * world), 0, world)
    first(small)
    small.close()
    before = resident_mib()
    begin, cpu = time.perf_counter(), time.process_time()
    whole = loader(records, world // 2, world)
    first(whole)
    opened = time.perf_counter() - begin
    opened_cpu = time.process_time() - cpu
    memory = resident_mib() - before
    state = whole.state_dict()
    batches = len(whole)
    resumed = loader(records, world // 3, world)
    cpu = time.process_time()
    resumed.load_state_dict({**state, "batch": batches // 3})
    resume = first(resumed)
    resume_cpu = time.process_time() - cpu
    resumed.close()
    turn = loader(records, 0, world)
    turn.load_state_dict({**state, "batch": batches - 1})
    for _ in turn:
        pass
    cpu = time.process_time()
    turned = first(turn)
    turn_cpu = time.process_time() - cpu
    turn.close()
    whole.close()
    return {
        "order": order,
        "records": records,
        "world": world,
        "first_batch_seconds": round(opened, 3),
        "first_batch_cpu": round(opened_cpu, 3),
        "resume_seconds": round(resume, 3),
        "resume_cpu": round(resume_cpu, 3),
        "turn_seconds": round(turned, 3),
        "turn_cpu": round(turn_cpu, 3),
        "index_mib": round(memory, 1),
        "peak_rss_mib": round(peak_mib(), 1),
        "state_bytes": len(json.dumps(state)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=1_000_000_000)
    parser.add_argument("--world", type=int, default=1000)
    parser.add_argument(
        "--order", nargs="+", default=["sequential", "records", "blocks", "streams"]
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measured(given.records, given.one, given.world)))
        return
    rows = []
    for order in given.order:
        command = [sys.executable, __file__, "--one", order]
        command += ["--records", str(given.records), "--world", str(given.world)]
        ended = subprocess.run(command, capture_output=True, text=True, env=os.environ)
        if ended.returncode != 0:
            sys.exit(ended.stderr)
        rows.append(json.loads(ended.stdout))
    if given.json:
        print(json.dumps(rows))
        return
    print(f"{given.records:,} records, rank of {given.world:,}; seconds (CPU)")
    heads = ("order", "first batch", "resume", "epoch turn", "index MiB", "peak MiB", "state")
    print("{:11}{:>17}{:>17}{:>17}{:>11}{:>10}{:>7}".format(*heads))
    for row in rows:
        times = [
            f"{row[f'{name}_seconds']:.2f} ({row[f'{name}_cpu']:.2f})"
            for name in ("first_batch", "resume", "turn")
        ]
        print(
            f"{row['order']:11}{times[0]:>17}{times[1]:>17}{times[2]:>17}"
            f"{row['index_mib']:>11,.1f}{row['peak_rss_mib']:>10,.0f}{row['state_bytes']:>7}"
        )


if __name__ == "__main__":
    main()
