# SPDX-License-Identifier: Apache-2.0
"""A loader's records in the log: its shard, the states it loads, its epochs, its bad records."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from headrace.counters import counted_up
from headrace.loader.assembly import Assembly
from headrace.log import INFO, WARNING, is_heard, log


class LoaderLog:
    def __init__(self) -> None:
        self._shard: tuple[Any, ...] | None = None  # the one in the log
        self._bad = 0  # bad records that are in the log
        self._place = (-1, 0)  # epoch, and its bad records, when they were last looked at
        self._begin: tuple[float, dict[str, float]] = (0.0, {})  # of the epoch

    def begins(self, assembly: Assembly) -> None:
        """Logs the shard at the start of an iteration, if it is new."""
        if not is_heard():
            return
        if self._shard != assembly.shard and assembly.shard.world_size > 1:
            rank, world_size, origin = self._shard = assembly.shard
            text = f"rank {rank} of {world_size} ({origin})"
            log(INFO, "shard", text, rank=rank, world_size=world_size)
        self._begin = time.perf_counter(), counted_up(assembly.counted())

    def loaded(self, state: Mapping[str, int]) -> None:
        """Logs that a state was loaded."""
        place: dict[str, Any] = {name: state[name] for name in ("epoch", "batch", "seed")}
        text = f"resumes at batch {place['batch']:,} of epoch {place['epoch']:,}"
        log(INFO, "resume", text, **place)

    def goes_on(self, state: Mapping[str, int], assembly: Assembly, failed: bool) -> None:
        """Logs new bad records after a batch, or after an error, which may have exceeded the budget
        of bad records.
        """
        place = state["epoch"], state["bad_records"]
        if place == self._place and not failed:
            return
        self._place = place
        lines = assembly.bad_records()
        if len(lines) < self._bad:  # of another shard
            self._bad = 0
        for line in lines[self._bad :]:
            entry = json.loads(line)
            file, text = entry.pop("file"), f"{entry['code']} {entry.pop('what')}"
            where = f"{entry['key']} in {file}" if entry["key"] not in file else file
            text = f"bad record {entry['record']} ({where}): {text}: {entry['action']}"
            log(WARNING, "bad_record", text, file=file, **entry)
        self._bad = len(lines)

    def ends(self, epoch: int, assembly: Assembly) -> None:
        """Logs the end of an epoch, when all its batches were received."""
        if not is_heard():
            return
        begin, before = self._begin
        seconds = time.perf_counter() - begin
        counts = {
            name: count - before.get(name, 0.0)
            for name, count in counted_up(assembly.counted()).items()
        }
        text = (
            f"epoch {epoch:,}: {counts['batches']:,.0f} batches, {counts['records']:,.0f} records "
            f"in {seconds:.1f} s, of which the loop waited {counts['wait_seconds']:.1f} s"
        )
        for name, what in _OF_NOTE.items():
            if counts.get(name):
                text += f"; {counts[name]:,.0f} {what}"
        log(INFO, "epoch", text, epoch=epoch, seconds=seconds, counters=counts)


_OF_NOTE = {
    "bad_records": "bad records",
    "repaired": "repaired images",
    "disk_cache.evicted": "blocks evicted from the disk cache",
    "disk_cache.failed": "blocks not stored in the disk cache",
}
