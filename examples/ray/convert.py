# SPDX-License-Identifier: Apache-2.0
"""Convert a dataset with tasks on a Ray cluster. The same call after an interruption keeps the
complete parts.

    RAY_ADDRESS=auto python examples/ray/convert.py /shared/train /shared/shards --parts 256
"""

from __future__ import annotations

import argparse

import ray

import headrace as hr


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="a path or URL that headrace.open() accepts")
    parser.add_argument("dest", help="a folder that all machines can access")
    parser.add_argument("--to", default="pack", help="pack, or a container: tar, tfrecord, ...")
    parser.add_argument("--parts", type=int, default=8)
    arguments = parser.parse_args()
    if not ray.is_initialized():
        ray.init(log_to_driver=False)

    def show(done: int, parts: int) -> None:
        print(f"{done} of {parts} parts")

    job = hr.ray.convert(
        arguments.data, arguments.dest, arguments.to, parts=arguments.parts, progress=show
    )
    print(f"{job['records']} records, {job['bytes']:,} bytes in {len(job['files'])} files")


if __name__ == "__main__":
    main()
