# SPDX-License-Identifier: Apache-2.0
"""Records with all kinds of fields of an image, for tests of transforms that take whole records."""

from __future__ import annotations

from typing import Any

import numpy as np

import headrace as hr

HEIGHT, WIDTH = 24, 32
CUT = {n: ("uint8", (c, 12, 12)) for n, c in (("image", 3), ("mask", 1))}


def record(index: int, rows: int, box_format: str = "xyxy") -> dict[str, Any]:
    random = np.random.default_rng(index)
    low = random.uniform(0, (WIDTH - 8, HEIGHT - 8), (rows, 2))
    size = random.uniform(3, 8, (rows, 2))
    sides = {"xyxy": (low, low + size), "xywh": (low, size), "cxcywh": (low + size / 2, size)}
    return {
        "image": random.integers(0, 256, (3, HEIGHT, WIDTH), np.uint8),
        "mask": random.integers(0, 9, (1, HEIGHT, WIDTH), np.uint8),
        "boxes": np.concatenate(sides[box_format], 1).astype(np.float32),
        "labels": random.integers(0, 90, rows),
        "masks": random.integers(0, 2, (rows, HEIGHT, WIDTH), np.uint8),
        "points": random.uniform(0, 24, (rows, 5, 3)).astype(np.float32),
    }


ROWS = (3, 0, 1, 5)


def opened(fields: tuple[str, ...] | None = None, box_format: str = "xyxy") -> tuple[Any, Any]:
    """A source, and its records."""
    records = [record(index, rows, box_format) for index, rows in enumerate(ROWS)]
    if fields:
        records = [{name: each[name] for name in fields} for each in records]
    kinds = {
        "mask": "mask",
        "boxes": f"boxes:{box_format}",
        "masks": "masks",
        "points": "keypoints",
    }
    shapes = {
        name: (-1, *value.shape[1:])
        for name, value in records[0].items()
        if name not in ("image", "mask")
    }
    said = {name: kind for name, kind in kinds.items() if name in records[0]}
    return hr.open(records, kinds=said, shapes=shapes), records


def through(source: Any, steps: Any, **options: Any) -> list[dict[str, Any]]:
    given = {"batch_size": 2, "ragged": "list", "seed": 3, **options}
    with hr.Loader(source, steps, **given) as loader:
        return [target for batch in loader for target in batch.per_record()]
