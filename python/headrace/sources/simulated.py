# SPDX-License-Identifier: Apache-2.0
"""A source without bytes, for tests and for planning with datasets of any size.

>>> import headrace as hr
>>> src = hr.simulated(1_000_000_000)
>>> len(src), src[123_456_789]["label"]
(1000000000, 789)
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace import _core, arguments
from headrace.sources.recipe import Recipe, makes_sources
from headrace.sources.source import Source

_SHARD_BYTES = 1 << 30


@makes_sources
def simulated(
    records: int,
    *,
    record_bytes: int = 110_000,
    shards: int | None = None,
    classes: int = 1000,
    image: Sequence[int] = (3, 32, 32),
) -> Source:
    """A simulated source of any size, whose records are computed from their number.

    record_bytes: simulated size of a record in its shard, which determines the number of records
    per block. shards: default: shards of 1 GiB. image: (C, H, W) of the delivered images.
    Fields: image, label (number % classes) and number, the record's number. Raises ConfigError
    HR0160 for an invalid argument.
    """
    count = arguments.integer("records", records, 1, 1 << 40)
    size = arguments.integer("record_bytes", record_bytes, 1, 1 << 40)
    usual = max(1, min(count, count * size // _SHARD_BYTES))
    number = usual if shards is None else arguments.integer("shards", shards, 1, count)
    names = "image[0]", "image[1]", "image[2]"
    if len(image) != len(names):
        raise arguments.BAD_VALUE.error(f"image must be (C, H, W) (got {image!r})")
    shape = [arguments.integer(*pair, 1, 4096) for pair in zip(names, image, strict=True)]
    classes = arguments.integer("classes", classes, 1)
    call = {"record_bytes": size, "shards": number, "classes": classes, "image": shape}
    recipe = Recipe(simulated, {"records": count, **call})
    return Source(_core.simulated(count, size, number, classes, shape), recipe=recipe)
