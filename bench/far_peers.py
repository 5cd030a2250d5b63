#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loaders that read from object stores, on the same server, photos and processors.

    python bench/far_peers.py PHOTOS --python litdata=ENV/bin/python --python lance=...

Each peer has its own format, written beforehand by its own writer, and runs in a separate process
for an epoch or `--seconds`, alternating in each round, starting without a cache: imports are not
counted, opening is. The server is the one in far.py. Peers whose interpreter is not given, or that
fail, are reported and skipped.

MosaicML Streaming (mosaicml-streaming 0.13.0, which needs numpy below 2.2) is a peer that often
fails: of two runs with 1,000 photos one delivered its first batch after 64 s and no other, one
ended with "index 0 is out of bounds" where an `int` column of a sample came back empty. The server
is not the reason: boto3, as Streaming calls it (TransferConfig(use_threads=False)), brings the same
shards of 32 MB from it intact, 12 of 12, in 0.3 to 1 s each.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from far import LATENCY, RATE
from far_sets import make_files, make_tars, photos_of, repeated
from object_store import ObjectStore

import headrace as hr

OURS = ("headrace_tar", "headrace_pack", "headrace_files")
PEERS = ("webdataset", "litdata", "streaming", "lance", "s3torchconnector")
FORMS = {"litdata": "litdata", "streaming": "mds", "lance": "photos.lance"}
LOADERS = Path(__file__).with_name("peers") / "far_loaders.py"


def run(python: str, name: str, job: dict[str, Any], what: str, limit: float) -> dict[str, Any]:
    environment = os.environ | {"HEADRACE_CACHE": job["cache"], "HOME": job["cache"]}
    done = subprocess.run(
        [python, str(LOADERS), name, json.dumps(job), what],
        env=environment,
        capture_output=True,
        text=True,
        timeout=limit,
        check=False,
    )
    for line in done.stdout.splitlines():
        if line.startswith("FIGURES "):
            figures: dict[str, Any] = json.loads(line.removeprefix("FIGURES "))
            return figures
    if done.returncode or what == "read":
        raise RuntimeError("\n".join(done.stderr.splitlines()[-12:]))
    return {}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("photos", type=Path, help="a folder of JPEGs")
    parser.add_argument("--out", type=Path, default=Path("build/far-peers"))
    parser.add_argument("--python", action="append", default=[], metavar="PEER=PYTHON")
    parser.add_argument("--records", type=int, default=2000, help="number of photos, by repetition")
    parser.add_argument("--seconds", type=float, default=30.0, help="maximum seconds of each run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    out = given.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    photos = repeated(photos_of(given.photos), given.records)
    make_files(out / "photos", photos)
    tars = f"tar/{make_tars(out / 'tar', photos)}"
    if not (out / "photos.hrpack").exists():
        hr.pack(hr.open(str(out / tars)), str(out / "photos.hrpack"))
    pythons = dict(each.split("=", 1) for each in given.python)
    failed = {name: "no --python" for name in PEERS if name not in pythons}
    cache = out / "cache"

    def job_of(store: ObjectStore | None) -> dict[str, Any]:
        shutil.rmtree(cache, ignore_errors=True)
        cache.mkdir()
        job = {"folder": str(out), "tars": tars, "cache": str(cache), "seconds": given.seconds}
        return job | {"url": store.url if store else ""}

    for name in pythons:
        if name in FORMS and not (out / FORMS[name]).exists():
            try:
                run(pythons[name], name, job_of(None), "prepare", 600)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                failed[name] = str(error)
    figures: dict[str, list[dict[str, Any]]] = {}
    names = [*OURS, *(name for name in pythons if name not in failed)]
    with ObjectStore(out, latency=LATENCY, rate=RATE) as store:
        os.environ |= store.environment()
        for _round in range(given.rounds):
            for name in [name for name in names if name not in failed]:
                python = pythons.get(name, sys.executable)
                before, began = store.counts(), time.perf_counter()
                try:
                    one = run(python, name, job_of(store), "read", given.seconds * 4 + 60)
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    failed[name] = str(error)
                    continue
                after = store.counts()
                one["sent"] = (after["bytes"] - before["bytes"]) / one["images"]
                one["requests"] = (after["requests"] - before["requests"]) / one["images"]
                one["with_imports"] = time.perf_counter() - began
                figures.setdefault(name, []).append(one)
    columns = ("rate", "after_first", "first_batch", "cpu", "pss_mib", "requests", "sent")
    print(f"{'':18}" + "".join(f"{column:>13}" for column in columns))
    for name, rounds in figures.items():
        values = (statistics.median(each[column] for each in rounds) for column in columns)
        print(f"{name:18}" + "".join(f"{value:13.2f}" for value in values))
    for name, why in failed.items():
        print(f"{name}: skipped: {why}")
    if given.json:
        given.json.write_text(json.dumps({"figures": figures, "failed": failed}, indent=1) + "\n")


if __name__ == "__main__":
    main()
