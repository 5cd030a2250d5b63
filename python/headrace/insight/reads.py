# SPDX-License-Identifier: Apache-2.0
"""Predicts an epoch's requests to a storage, by order and number of machines.

Runs the loader's own samplers over a source without bytes that has the dataset's records and
blocks, and counts which machine reads which block. No data is read.

>>> import headrace as hr
>>> plan = planned_reads(hr.simulated(100_000), nodes=4)
>>> [(way.order, way.requests) for way in plan.orders][:1]
[('records', 100000)]
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from headrace import _core, arguments, sampling
from headrace.loader import Loader
from headrace.sources import Source
from headrace.sources import open as open_source
from headrace.sources.simulated import simulated

BLOCK_BYTES = 8 << 20
PRICE = 0.0004  # dollars for 1,000 read requests, typical of large object stores
_COUNTED = 2_000_000  # number of positions; larger epochs are extrapolated from this many
_LOOKED_AT = 64  # sampled records, if the dataset's size is unknown
ORDERS: dict[str, Any] = {"records": True, "blocks": "blocks", "streams": "streams"}


@dataclasses.dataclass(frozen=True)
class Way:
    """One order: what all machines together request in an epoch."""

    order: str
    shuffle: str  # the loader's keyword
    requests: int
    bytes: int
    share: float  # multiple of the dataset's bytes: 1 if each byte is read once
    dollars: float


@dataclasses.dataclass(frozen=True)
class ReadPlan:
    """The dataset, and what reading it costs in each order."""

    records: int
    bytes: int
    blocks: int
    nodes: int
    global_batch: int
    file_per_record: bool  # each record is a file
    estimated: bool  # whether `bytes` is estimated from a sample
    orders: tuple[Way, ...]
    packed: Way | None  # the best way, if records in single files were in shards

    @property
    def best(self) -> Way:
        return min(self.orders, key=lambda way: (way.dollars, way.bytes))


def planned_reads(
    source: Any,
    nodes: int,
    *,
    global_batch: int = 2048,
    dataset_bytes: int | None = None,
    price: float = PRICE,
    shuffle_window: int | None = None,
) -> ReadPlan:
    """Predicts requests, bytes and dollars of an epoch for each order.

    nodes: machines, each with an equal slice of every global batch. dataset_bytes: default:
    estimated from a sample of the records. price: dollars per 1,000 requests. Raises ConfigError
    HR0160 for an invalid argument.
    """
    src = open_source(source)
    nodes = arguments.integer("nodes", nodes, 1)
    global_batch = arguments.integer("global_batch", global_batch, nodes)
    size = record_bytes_of(src) * len(src) if dataset_bytes is None else dataset_bytes
    per_record = max(1, round(size / max(1, len(src))))
    in_block = max(1, BLOCK_BYTES // per_record)
    blocks = -(-len(src) // in_block)
    own_files = has_own_files(src)

    def way(order: str, of_files: bool) -> Way:
        times = 1.0
        if order != "records":
            times = _times_read(
                len(src), per_record, in_block, nodes, global_batch, order, shuffle_window
            )
        # A block of small files takes one request per file; one record may take several.
        requests = len(src) if of_files or order == "records" else blocks
        requests *= max(1, -(-per_record // BLOCK_BYTES))
        asked = round(requests * times)
        shuffle = repr(ORDERS[order])
        return Way(order, shuffle, asked, round(size * times), times, asked * price / 1000)

    orders = tuple(way(order, own_files) for order in ORDERS)
    packed = None
    if own_files:
        packed = min((way(order, False) for order in ORDERS), key=lambda each: each.dollars)
    return ReadPlan(
        records=len(src),
        bytes=size,
        blocks=blocks,
        nodes=nodes,
        global_batch=global_batch,
        file_per_record=own_files,
        estimated=dataset_bytes is None,
        orders=orders,
        packed=packed,
    )


def record_bytes_of(src: Source) -> int:
    """The mean over evenly spaced sample records."""
    if src.recipe and src.recipe.make is simulated:
        return int(src.recipe.arguments["record_bytes"])
    numbers = np.unique(np.linspace(0, len(src) - 1, min(_LOOKED_AT, len(src))).astype(int))
    total = 0
    for number in numbers.tolist():
        values = src.engine.read(number).values()
        total += sum(
            len(v) if isinstance(v, (bytes, str)) else np.asarray(v).nbytes for v in values
        )
    return max(1, total // max(1, len(numbers)))


def has_own_files(src: Source) -> bool:
    """Whether neighboring records are in separate files."""
    if len(src) < 2:
        return False
    firsts = np.unique(np.linspace(0, len(src) - 2, 16).astype(int)).tolist()
    return all(src.engine.file(i) != src.engine.file(i + 1) for i in firsts)


def _times_read(
    records: int,
    record_bytes: int,
    in_block: int,
    nodes: int,
    global_batch: int,
    order: str,
    window: int | None,
) -> float:
    """How many machines read a block per epoch, on average."""
    stand_in = simulated(records, record_bytes=record_bytes, shards=1, image=(1, 1, 1))
    global_batch = min(global_batch, records)
    how: dict[str, Any] = {"shuffle": ORDERS[order], "shuffle_window": window}
    if order == "streams":
        count = _core.streams_for(
            nodes
        )  # without it, this process would count only its own requests
        how = {"sampler": sampling.streams(count=count, window=window or 8)}
    loader = Loader(stand_in, batch_size=global_batch, fields=["number"], threads=1, **how)
    met: list[np.ndarray[Any, Any]] = []
    counted = 0
    for batch in loader.numpy():
        numbers = batch["number"]
        node = np.arange(len(numbers), dtype=np.int64) * nodes // len(numbers)
        met.append(np.unique(numbers // in_block * nodes + node))
        counted += len(numbers)
        if counted >= _COUNTED:
            break
    loader.close()
    pairs = np.unique(np.concatenate(met))
    return len(pairs) / len(np.unique(pairs // nodes))
