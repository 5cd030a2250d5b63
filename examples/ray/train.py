# SPDX-License-Identifier: Apache-2.0
"""Train with CPUs of other machines: actors on a Ray cluster make rows where this machine has too
few cores. Batches are the same bytes with or without them.

    python examples/ray/train.py train/            # ray.init() starts Ray on this machine alone
    RAY_ADDRESS=auto python examples/ray/train.py train/
"""

from __future__ import annotations

import argparse

import numpy as np
import ray

import headrace as hr
from headrace import transforms as T


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="a path or URL that headrace.open() accepts")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--cpus", type=int, help="actors; default: the free CPUs of other machines")
    arguments = parser.parse_args()
    if not ray.is_initialized():
        ray.init(log_to_driver=False)

    steps = [T.RandomResizedCrop(64), T.RandomHorizontalFlip(), T.ToDtype("float32", scale=True)]
    pool = hr.ray.pool(cpus=arguments.cpus or "auto")
    with hr.Loader(arguments.data, steps, batch_size=16, shuffle=True, workers=pool) as loader:
        for epoch in range(arguments.epochs):
            mean = float(np.mean([batch.image.mean() for batch in loader]))  # a training step
            print(f"epoch {epoch}: mean {mean:.6f}")
        remote = loader.stats().remote
        print(f"{remote['rows']} rows by {remote['actors']} actors; {remote['summary']}")


if __name__ == "__main__":
    main()
