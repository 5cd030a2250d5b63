#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reading from a high-latency storage: records per second, and the wait between epochs.

    python bench/latency.py [--threads N] [--records N]

Files in memory answer after 0, 20 and 100 ms, with no limit of bandwidth (memory:// of the engine).
The pictures are small (64 x 64, about 4 kB), so that decoding does not limit the rate. The wait is
measured with a consumer that takes some time per batch, like a training step.
"""

from __future__ import annotations

import argparse
import io
import statistics
import tarfile
from typing import Any

import numpy as np
from PIL import Image
from waits import epoch_of

import headrace as hr
from headrace import _core, transforms

GOALS = {20: 4000, 100: 2000}  # records per second, by milliseconds of latency
GIANT = 58_000_000  # bytes


def pictures(count: int) -> list[bytes]:
    out = []
    for number in range(count):
        pixels = np.random.default_rng(number).integers(0, 256, (64, 64, 3), np.uint8)
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "JPEG", quality=80)
        out.append(file.getvalue())
    return out


def photos(volume: Any, contents: list[bytes]) -> str:
    for i, content in enumerate(contents):
        volume.write(f"photos/{i % 10}/{i:06}.jpg", content)
    return f"{volume.root}/photos"


def shards(volume: Any, contents: list[bytes]) -> str:
    each = len(contents) // 8
    for shard in range(8):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            for i in range(shard * each, (shard + 1) * each):
                for name, data in ((f"{i:06}.jpg", contents[i]), (f"{i:06}.cls", b"7")):
                    member = tarfile.TarInfo(name)
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
        volume.write(f"shards/train-{shard:02}.tar", out.getvalue())
    return f"{volume.root}/shards/train-{{00..07}}.tar"


def measure(name: str, volume: Any, path: str, options: argparse.Namespace) -> None:
    volume.behave(0)
    source = hr.open(path)
    for shuffle in (True, False):
        rates = {}
        for latency in (0, *GOALS):
            loader = hr.Loader(
                source,
                [transforms.CenterCrop(64)],
                batch_size=options.batch_size,
                threads=options.threads,
                shuffle=shuffle,
                memory_limit=options.memory_limit,
            )
            volume.behave(latency)
            before = volume.requests
            rates[latency] = statistics.median(epoch_of(loader).rate for _ in range(3))
            requests = (volume.requests - before) / (3 * len(source))
            pause = 0.6 * options.batch_size / rates[latency]
            epoch_of(loader, pause)
            turns = [epoch_of(loader, pause).waits for _ in range(3)]
            first = 1e3 * statistics.median(waits[0] for waits in turns)
            rest = [1e3 * wait for waits in turns for wait in waits[1:]]
            goal = f" (goal {GOALS[latency]:,})" if latency in GOALS else ""
            peak = loader.stats()["memory_peak"] / 2**20
            print(
                f"{name:7} shuffle={shuffle!s:5} {latency:3} ms: {rates[latency]:7,.0f} records/s"
                f"{goal}, {rates[latency] / rates[0]:4.0%} of no latency;"
                f" first wait {first:5.1f} ms, median {statistics.median(rest):4.1f} ms;"
                f" {requests:.2f} requests a record; peak {peak:.0f} MiB"
            )
            loader.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--records", type=int, default=8000)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--memory-limit", default="512MiB")
    options = parser.parse_args()
    contents = pictures(options.records)
    for name, make in (("photos", photos), ("tar", shards)):
        volume = _core.MemoryVolume(f"bench-{name}")
        measure(name, volume, make(volume, contents), options)
    # One file of 58 MB in the middle: a picture, followed by bytes that are never decoded.
    contents[options.records // 2] += bytes(GIANT)
    volume = _core.MemoryVolume("bench-giant")
    measure("giant", volume, photos(volume, contents), options)


if __name__ == "__main__":
    main()
