#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the batches of `headrace bench` made on the CPU, finished on a device, and decoded
there: their hashes must be equal.

    python tools/one_hash.py cuda examples/images

Prints a line for each way, and exits with 1 if one gives different batches.
"""

from __future__ import annotations

import json
import subprocess
import sys

COMMON = ("--repeat", "32", "--batch-size", "64", "--epochs", "2", "--json")


def ways(device: str) -> list[list[str]]:
    there = ["--device", device]
    return [
        [],
        [*there, "--finish", "cpu"],
        [*there, "--finish", "auto"],
        [*there, "--decode", "device"],
    ]


def main(device: str, source: str) -> int:
    hashes = set()
    for options in ways(device):
        command = [sys.executable, "-m", "headrace", "bench", source, *COMMON, *options]
        done = subprocess.run(command, capture_output=True, text=True)
        name = " ".join(options) or "on the CPU"
        if done.returncode != 0:
            print(f"{name}: {done.stderr.strip()}")
            return 1
        found = json.loads(done.stdout)
        hashes.add(found["batch_hash"])
        print(
            f"{name:34} {found['images_per_second']:9.0f} images/s"
            f" {found['copied_bytes_per_record']:10.0f} bytes a record  {found['batch_hash']}"
        )
    return len(hashes) != 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
