#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPU time of reading ranges of a remote object, compared with obstore and boto3: `python
bench/remote.py`.

    python -m venv build/remote && build/remote/bin/pip install obstore boto3
    build/remote/bin/python bench/remote.py --engine FOLDER     # with libheadrace.so

One server on the loopback interface, without TLS, and each client in a separate process,
alternating in each round; figures are CPU seconds of the client's process (user and system), the
minimum over the rounds. Requests to S3 are signed. "libcurl alone" is the minimum for a client
based on it. A busy machine increases all times, but hardly affects the ratios.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OBJECT = 64_000_000
# name: ranges, bytes per range, concurrent requests
CASES = {"100 kB": (3000, 100_000, 32), "8 MiB": (200, 8 << 20, 16)}
PEERS = ("obstore", "boto3")


def build(engine: Path, folder: Path) -> Path:
    """range_probe.cc, linked with the engine."""
    program = folder / "range_probe"
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        raise SystemExit("no C++ compiler for range_probe.cc")
    source = Path(__file__).with_name("range_probe.cc")
    command = [compiler, "-O2", "-std=c++20", "-pthread", f"-I{ROOT}", source]
    command += [engine / "libheadrace.so", f"-Wl,-rpath,{engine}", "-o", program]
    subprocess.run([str(part) for part in command], check=True)
    return program


@contextmanager
def served(program: Path) -> Iterator[str]:
    server = subprocess.Popen(
        [program, "serve", str(OBJECT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdin and server.stdout
    try:
        yield f"http://127.0.0.1:{int(server.stdout.readline())}"
    finally:
        server.stdin.close()
        server.wait()


def places(count: int, each: int) -> list[int]:
    return [number * 7919 * 4096 % (OBJECT - each) for number in range(count)]


def read_by(peer: str, url: str, case: str) -> None:
    """In a separate process: reads the ranges and prints its CPU seconds."""
    count, each, at_once = CASES[case]
    read: Any
    if peer == "obstore":
        import obstore
        from obstore.store import S3Store

        store = S3Store(
            "bucket",
            endpoint=url,
            region="us-east-1",
            access_key_id="a",
            secret_access_key="b",
            client_options={"allow_http": True},
        )

        def read(place: int) -> int:
            return len(obstore.get_range(store, "object", start=place, length=each))
    else:
        import boto3
        from botocore.config import Config

        client = boto3.client(
            "s3",
            endpoint_url=url,
            region_name="us-east-1",
            aws_access_key_id="a",
            aws_secret_access_key="b",
            config=Config(max_pool_connections=at_once),
        )

        def read(place: int) -> int:
            span = f"bytes={place}-{place + each - 1}"
            return len(client.get_object(Bucket="bucket", Key="object", Range=span)["Body"].read())

    with ThreadPoolExecutor(at_once) as threads:
        list(threads.map(read, places(at_once, each)))  # warm up connections and late imports
        before, began = cpu_seconds(), time.perf_counter()
        assert all(size == each for size in threads.map(read, places(count, each)))
        print(cpu_seconds() - before, time.perf_counter() - began)


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def seconds_of(name: str, program: Path, url: str, case: str) -> tuple[float, float]:
    """(CPU, wall) of one client."""
    count, each, at_once = CASES[case]
    environment = dict(os.environ, AWS_ENDPOINT_URL=url, AWS_REGION="us-east-1")
    if name in ("headrace, https", "libcurl alone"):
        path: str = f"{url}/bucket/object"
    else:
        path = "s3://bucket/object"
        environment |= {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    if name not in PEERS:
        what = "raw" if name == "libcurl alone" else "read"
        command = [program, what, path, OBJECT, count, each, at_once]
    else:
        command = [sys.executable, __file__, "--peer", name, "--url", url, "--case", case]
    done = subprocess.run(
        [str(part) for part in command],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    cpu, wall, *_ = map(float, done.stdout.split())
    return cpu, wall


def engine_folder() -> Path:
    found = importlib.util.find_spec("headrace")
    return Path(found.origin).parent if found and found.origin else ROOT / "build" / "release"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0] if __doc__ else "")
    parser.add_argument("--engine", type=Path, help="the folder of libheadrace.so")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    for inner in ("--peer", "--url", "--case"):
        parser.add_argument(inner, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.peer:
        read_by(given.peer, given.url, given.case)
        return
    peers = [peer for peer in PEERS if importlib.util.find_spec(peer)]
    names = ["libcurl alone", "headrace, https", "headrace, s3", *peers]
    least = {(name, case): (float("inf"), 0.0) for name in names for case in CASES}
    with tempfile.TemporaryDirectory() as folder:
        program = build((given.engine or engine_folder()).resolve(), Path(folder))
        with served(program) as url:
            for _round in range(given.rounds):
                for key in least:
                    least[key] = min(least[key], seconds_of(key[0], program, url, key[1]))
    print(f"{'':16} {'us per 100 kB':>14} {'s/GB at 8 MiB':>14}")
    figures = {}
    for name in names:
        small = least[name, "100 kB"][0] / CASES["100 kB"][0] * 1e6
        large = least[name, "8 MiB"][0] / (CASES["8 MiB"][0] * CASES["8 MiB"][1] / 1e9)
        figures[name] = {"us_per_100_kb": small, "seconds_per_gb": large}
        print(f"{name:16} {small:14.0f} {large:14.2f}")
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
