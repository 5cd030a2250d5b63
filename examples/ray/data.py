# SPDX-License-Identifier: Apache-2.0
"""Read images for Ray Data: blocks of a dataset are batches of a loader, in its order.

RAY_ADDRESS=auto python examples/ray/data.py train/
"""

from __future__ import annotations

import argparse
from typing import Any

import ray

import headrace as hr
from headrace import transforms as T


def brightness(batch: dict[str, Any]) -> dict[str, Any]:
    return {"label": batch["label"], "brightness": batch["image"].mean((1, 2, 3))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="a path or URL that headrace.open() accepts")
    arguments = parser.parse_args()
    if not ray.is_initialized():
        ray.init(log_to_driver=False)

    steps = [T.Resize(256), T.CenterCrop(224)]
    photos = ray.data.read_datasource(hr.ray.datasource(arguments.data, steps))
    rows = photos.map_batches(brightness).take_all()
    mean = sum(row["brightness"] for row in rows) / len(rows)
    print(f"{len(rows)} images, mean brightness {mean:.4f}")


if __name__ == "__main__":
    main()
