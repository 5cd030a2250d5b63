# SPDX-License-Identifier: Apache-2.0
"""A loader's batches of a stream, whose end is only known when it is reached.

The engine's loader is made for an epoch of ``ENDLESS`` records: records, transforms, random draws,
batches and delivery work as for any source. When the records have ended and the next batch cannot
be full, the engine's loader is replaced by one made for the actual number of records, which makes
the last batch as for a list of these records. So only the number of batches is determined late, and
batches are the same as from a list.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from headrace import _core
from headrace.arguments import seconds
from headrace.errors import Error
from headrace.loader.assembly import Assembly
from headrace.loader.deliveries import Delivery
from headrace.loader.form import Form
from headrace.loader.stream_ends import StreamEnds
from headrace.loader.stream_options import check_options
from headrace.sources.stream import OpenedStream
from headrace.sources.stream_look import NOTHING
from headrace.sources.stream_reader import CHANGED, Terms


def stream_of(assembly: Assembly) -> OpenedStream:
    assert assembly.stream is not None
    return assembly.stream


def resume_state(assembly: Assembly, state: Mapping[str, int]) -> dict[str, Any]:
    """The part of the state that the stream needs in order to continue there."""
    source = stream_of(assembly)
    ranks = assembly.shard.world_size if source.shards_itself else 1
    position = state["batch"] * (state["global_batch"] // ranks)
    return source.reader.state(state["epoch"], position)


class StreamBatches:
    """A delivery around another one, which delivers the engine's batches on the host or on
    devices."""

    def __init__(self, inner: Delivery, assembly: Assembly, ends: StreamEnds) -> None:
        self.inner = inner
        self._assembly = assembly
        self._ends = ends
        self._source = stream_of(assembly)
        self._reader = self._source.reader
        limit = assembly.given["record_timeout"]
        self._limit = math.inf if limit is None else seconds("record_timeout", limit)
        self._is_tail = False  # the engine's loader is the one for the actual number of records
        self._whole: dict[str, int] = {}  # a state of the loader for an endless epoch
        self._terms = Terms(1)
        self._begun = 0, 0  # a batch number, and the engine's count of batches at that time

    def suits(self, form: Form) -> bool:
        return self.inner.suits(form)

    def begin(self, engine: _core.Loader) -> None:
        state = self._whole = engine.state()
        self._terms = self._terms_of(engine, state)
        self._reader.begin(state["epoch"], self._position(state["batch"]), self._terms)
        self._begun = state["batch"], engine.stats()["batches"]
        self.inner.begin(engine)

    def _terms_of(self, engine: _core.Loader, state: Mapping[str, int]) -> Terms:
        source, shard, given = self._source, self._assembly.shard, self._assembly.given
        check_options(source, given, shard.world_size)
        divides = not source.shards_itself or shard.world_size == 1
        terms = Terms(
            state["global_batch"],
            shard.rank,
            shard.world_size,
            state["seed"],
            divides,
            pads=given["last_batch"] == "pad",
        )
        if not divides and source.length and source.length % terms.global_batch:
            last = engine.batches_per_epoch() - 1
            if last >= source.length // terms.global_batch:  # the last batch is not dropped
                terms = terms._replace(tail=engine.indices(state["epoch"], last)[0])
        return terms

    def _position(self, batch: int) -> int:
        """The position of a batch's first record, as the reader counts."""
        terms = self._terms
        return batch * terms.global_batch // (1 if terms.divides else terms.world_size)

    def _next_state(self) -> dict[str, int]:
        return self.inner.received() or self._assembly.engine().state()

    def next(self, ended: Callable[[], bool]) -> list[list[Any]] | None:
        if self._is_tail:
            return self._next_of_tail(ended)
        state = self._next_state()
        first, end = self._bounds(state["batch"])
        if first == end:
            return self.inner.next(ended)  # after the last batch of a known length
        self._reader.release(first)
        if not self._reader.cannot_fill(end):
            parts = None
            try:
                since = time.monotonic()
                parts = self.inner.next(lambda: ended() or self._is_over(end, since))
            except Error:
                if not self._reader.cannot_fill(end):
                    raise
            if ended() or not self._reader.cannot_fill(end):
                if parts is not None and self._source.length is None:
                    self._note_found(state["epoch"], end)
                return parts
            if parts is not None:
                self.inner.take_back()
        return self._at_end(state, ended)

    def _is_over(self, end: int, since: float) -> bool:
        self._reader.fail_if_late(since, self._limit)
        return self._reader.cannot_fill(end)

    def _note_found(self, epoch: int, records: int) -> None:
        try:
            self._ends.found(epoch, records)
        except BaseException:
            self.inner.take_back()
            raise

    def _bounds(self, batch: int) -> tuple[int, int]:
        """The positions of a batch; empty after the last one."""
        engine, length = self._assembly.engine(), self._source.length
        first = self._position(batch)
        if length is None:
            return first, self._position(batch + 1)
        if batch >= engine.batches_per_epoch():
            return first, first
        if self._terms.divides:
            return first, min(self._position(batch + 1), length)
        return first, first + len(engine.indices(0, batch))

    def _at_end(self, state: dict[str, int], ended: Callable[[], bool]) -> list[list[Any]] | None:
        """Handles the end of the records, in this batch or before it."""
        reader, epoch, batch = self._reader, state["epoch"], state["batch"]
        if reader.failure is not None:
            raise reader.failure[1]
        records = reader.end or 0
        if records == 0:
            raise NOTHING.error(f"{self._source.name} returned no records in epoch {epoch}")
        if self._source.length is None:
            self._ends.at_end(epoch, records, ended)
            if ended():
                return None
        self._end_whole(state)
        left = records - self._position(batch)
        if left <= -self._terms.global_batch:
            raise CHANGED.error(
                f"{self._position(batch):,} records of epoch {epoch} were received, but "
                f"{self._source.name} now returns {records:,}"
            )
        drops = self._assembly.given["last_batch"] == "drop"
        if left <= 0 or (drops and records >= self._terms.global_batch):
            self._begin_epoch(epoch + 1)
            return None
        self._make_tail(state, records)
        return self._next_of_tail(ended)

    def _end_whole(self, state: dict[str, int]) -> None:
        """Uncounts batches of repeated records, made while the end was unknown."""
        self._reader.leave()
        self.inner.end()
        engine, (first, counted) = self._assembly.engine(), self._begun
        more = engine.stats()["batches"] - counted - (state["batch"] - first)
        rows = len(engine.indices(state["epoch"], state["batch"]))
        self._assembly.discount(batches=more, records=more * rows)
        self._begun = state["batch"], engine.stats()["batches"]

    def _make_tail(self, state: dict[str, int], records: int) -> None:
        """Raises if the ranks do not fit the last batch, or if it is empty."""
        engine = self._assembly.engine()
        engine.load_state(state)  # which stops the engine
        self._whole = state
        self._source.records = records
        try:
            tail = self._assembly.exchange()
        except BaseException:
            self._source.records = self._endless()
            raise
        self._is_tail = True
        known = tail.state()
        tail.load_state({**state, "records": known["records"], "fingerprint": known["fingerprint"]})
        self._reader.begin(state["epoch"], self._position(state["batch"]), self._terms)
        if self._terms.pads:
            self._reader.read_first(min(self._terms.global_batch, records))
        self.inner.begin(tail)

    def _next_of_tail(self, ended: Callable[[], bool]) -> list[list[Any]] | None:
        parts = self.inner.next(ended)
        if parts is None and not ended():
            self._begin_epoch(self._whole["epoch"] + 1)
        return parts

    def _endless(self) -> int:
        return self._source.opened().records

    def _begin_epoch(self, epoch: int) -> None:
        """Puts the engine's loader for an endless epoch at the start of this one."""
        self._reader.leave()
        self.inner.end()
        self._give_up_tail()
        self._assembly.engine().set_epoch(epoch)  # which stops the engine
        self._reader.close()

    def _give_up_tail(self) -> None:
        if not self._is_tail:
            return
        self._source.records = self._endless()
        self._assembly.exchange()
        self._is_tail = False

    def take_back(self) -> None:
        self.inner.take_back()

    def end(self) -> None:
        self._reader.raise_if_hanging()  # the engine's thread cannot be stopped
        self._reader.leave()
        self.inner.end()
        state = self.received() or self._assembly.engine().state()
        self._give_up_tail()
        self._assembly.engine().load_state(state)  # which stops the engine

    def received(self) -> dict[str, int] | None:
        if not self._is_tail:
            return self.inner.received()
        tail = self._next_state()
        same = ("records", "fingerprint")
        return {**tail, **{name: self._whole[name] for name in same}}

    def stats(self) -> dict[str, Any]:
        return self.inner.stats()

    def close(self) -> None:
        self._reader.leave()
        self.inner.close()
        self._reader.close()
