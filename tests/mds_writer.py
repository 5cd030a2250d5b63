# SPDX-License-Identifier: Apache-2.0
"""Writes MDS shards in the layout of MosaicML Streaming's MDSWriter, without using Headrace or
streaming."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

Columns = Mapping[str, tuple[str, int | None]]  # name -> encoding, size; None: variable


def shard(columns: Columns, samples: Sequence[Sequence[bytes]]) -> bytes:
    sizes = [size for _, size in columns.values()]
    config = json.dumps({"columns": list(columns)}).encode()
    bodies = []
    for sample in samples:
        lengths = [len(v) for v, size in zip(sample, sizes, strict=True) if size is None]
        bodies.append(np.array(lengths, "<u4").tobytes() + b"".join(sample))
    begin = 4 * (len(bodies) + 2) + len(config)
    offsets = np.cumsum([begin, *map(len, bodies)]).astype("<u4")
    return np.uint32(len(bodies)).tobytes() + offsets.tobytes() + config + b"".join(bodies)


def write(
    folder: Path, columns: Columns, samples: Sequence[Sequence[bytes]], per_shard: int = 8
) -> Path:
    """Shards and their index.json. Columns must be sorted by name, as MDSWriter does."""
    folder.mkdir(parents=True)
    shards = []
    for number, begin in enumerate(range(0, len(samples), per_shard)):
        some = samples[begin : begin + per_shard]
        data = shard(columns, some)
        name = f"shard.{number:05}.mds"
        (folder / name).write_bytes(data)
        shards.append(
            {
                "column_encodings": [encoding for encoding, _ in columns.values()],
                "column_names": list(columns),
                "column_sizes": [size for _, size in columns.values()],
                "compression": None,
                "format": "mds",
                "hashes": [],
                "raw_data": {"basename": name, "bytes": len(data), "hashes": {}},
                "samples": len(some),
                "size_limit": 1 << 26,
                "version": 2,
                "zip_data": None,
            }
        )
    (folder / "index.json").write_text(json.dumps({"shards": shards, "version": 2}, sort_keys=True))
    return folder
