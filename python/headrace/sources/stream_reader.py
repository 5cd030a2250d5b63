# SPDX-License-Identifier: Apache-2.0
"""The engine's view of a stream: records by position, pulled in order as they are requested. The
engine numbers the records of an epoch from 0, and its loader assumes that there are ``ENDLESS`` of
them. The end of the iterable is recorded here (``end``), and later positions repeat the last
record; batches that contain such repetitions are not delivered. Records are held until their batch
has been received, since the engine may request them again.
"""

from __future__ import annotations

import bisect
import contextlib
import threading
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from headrace import _core
from headrace.errors import Error, declare, warn
from headrace.sources.objects import ObjectReader
from headrace.sources.stream_look import Looked, own
from headrace.sources.stream_order import ShuffleBuffer
from headrace.sources.stream_origin import FAILED, Origin, Pass, Shares
from headrace.sources.stream_wait import StreamWait
from headrace.steps import describe
from headrace.surroundings import Surroundings

ENDLESS = _core.ENDLESS  # number of records in an epoch whose length is unknown

_PATIENCE = 0.5  # seconds to wait for a record when its pass is closed

ENDED_EARLY = declare(
    "HR0692",
    "data",
    "stream ended early",
    "An epoch has length= records, over all ranks. Additional records are not read; an iterable "
    "that ends earlier is an error, because ranks would get out of step.",
)
CHANGED = declare(
    "HR0697",
    "data",
    "stream is shorter than before",
    "A run that resumes, or goes back within its epoch, reads the iterable again, which must yield "
    "the same records. This iterable ends before the position to resume at.",
)
STATELESS = declare(
    "HR0695",
    "config",
    "stream has no state",
    "A stream resumes exactly if its iterable has state_dict() and load_state_dict(), like those "
    "of Hugging Face and torchdata. Other iterables are read again from the epoch's start, "
    "skipping the records already received; replay=False makes that an error.",
)


class Terms(NamedTuple):
    """How the engine's positions are divided over ranks, and what determines the order."""

    global_batch: int
    rank: int = 0
    world_size: int = 1
    seed: int = 0
    divides: bool = True  # every rank reads all records and takes its part of them
    tail: int = 0  # if ranks have separate streams: the first position of the last batch
    pads: bool = False  # whether the first records pad the last batch


class _Snapshot(NamedTuple):
    number: int  # number of the next record
    state: Any


class StreamReader:
    """Maps positions to records; the engine calls read, key and integer_column.

    A loader has one. ``begin``, ``release`` and ``state`` are called by its consumer; the others by
    a reader of the engine and, occasionally, its workers.
    """

    def __init__(
        self, origin: Origin, rows: ObjectReader, looked_at: Looked, buffer: int, length: int | None
    ) -> None:
        self.surroundings = Surroundings()  # those of the loader that was iterated last
        self.end: int | None = None  # number of records in the epoch, once known
        self.failure: tuple[int, Error] | None = None  # and the position where it takes effect
        self.counted = {"read": 0, "dropped": 0}
        self._origin, self._rows, self._looked_at = origin, rows, looked_at
        self._buffer, self._length = buffer, length
        self._lock = threading.Lock()
        self._terms = Terms(1)
        self._epoch = -1  # not begun
        self._pass: Pass | None = None
        self._order: Iterator[tuple[int, Any]] = iter(())
        self._next = 0  # position of the next record in order
        self._low = 0  # lowest position that may be requested
        self._received = 0  # positions below were received by the consumer
        self._number = 0  # number of records taken from the iterable
        self._wait = StreamWait(origin.name)
        self._held: dict[int, tuple[int, Any]] = {}
        self._first: dict[int, tuple[int, Any]] = {}  # records that pad the last batch
        self._last: tuple[int, Any] = 0, looked_at.records[0]
        self._leaving = self._shows = False
        self._snapshots: list[_Snapshot] = []
        self._snapshots_of = 0  # the epoch of the snapshots
        self._loaded: tuple[int, _Snapshot] | None = None  # a loaded snapshot and its epoch

    # Calls by the consumer. No read is in progress during begin and close.

    def begin(self, epoch: int, position: int, terms: Terms) -> None:
        """The engine will request records starting at this position, of this rank or of all.
        Raises ConfigError HR0693 if the records cannot be read again, HR0695 if that is necessary
        but not allowed.
        """
        self._leaving = False
        same = (self._epoch, *self._terms[:5]) == (epoch, *terms[:5])
        self._terms = terms
        if same and self._low <= position <= self._next and self._pass is not None:
            self._received = position
            self._drop_received()
            if self.failure is not None:  # consumers that continue after a failure read again
                self._open(epoch, position)
            return
        if self._snapshots_of != epoch:
            self._snapshots, self._snapshots_of = [], epoch
        self._open(epoch, position)

    def _open(self, epoch: int, position: int) -> None:
        order = ShuffleBuffer(self._buffer, self._terms.seed, epoch)
        number, left_out = order.begin(position)
        snapshot = self._snapshot_before(epoch, number)
        if number > snapshot.number and snapshot.number == 0:
            self._say_replay(epoch, number)
        self.close()
        shares = Shares(epoch, self._terms.rank, self._terms.world_size)
        self._pass, looked_at = self._looked_at.open_pass(shares, snapshot.state)
        self._epoch, self._next, self._number = epoch, position - left_out, snapshot.number
        self._low = self._received = position
        self.end, self.failure = None, None
        self._held, self._first = {}, {}
        self._order = order.of(self._records(self._pass, looked_at, snapshot.number, number))

    def _snapshot_before(self, epoch: int, number: int) -> _Snapshot:
        if self._loaded is not None and self._loaded[0] == epoch:
            bisect.insort(self._snapshots, self._loaded[1], key=lambda each: each.number)
            self._loaded = None
        return self._fitting(epoch, number)

    def _fitting(self, epoch: int, number: int) -> _Snapshot:
        """The last snapshot of this epoch before the record."""
        taken = list(self._snapshots) if epoch == self._snapshots_of else []
        fit = [each for each in taken if each.number <= number]
        return fit[-1] if fit else _Snapshot(0, None)

    def _say_replay(self, epoch: int, records: int) -> None:
        if not self._looked_at.replay:
            raise STATELESS.error(
                f"{self._origin.name} cannot continue after {records:,} records of epoch {epoch}",
                hint="an iterable with state_dict() and load_state_dict(), or replay=True",
            )
        warn(
            f"{records:,} records of epoch {epoch} are read again and dropped, because "
            f"{self._origin.name} has no state to resume from (state_dict() and load_state_dict())"
        )

    def release(self, position: int) -> None:
        """Records before this position were received. Does not wait for a read."""
        self._received = max(self._received, position)

    def _drop_received(self) -> None:
        position = self._received
        for done in range(self._low, min(position, self._next)):
            self._held.pop(done, None)
        self._low = max(self._low, position)
        needed = ShuffleBuffer(self._buffer, 0, 0).begin(position)[0]
        while len(self._snapshots) > 1 and self._snapshots[1].number <= needed:
            del self._snapshots[0]

    def cannot_fill(self, end: int) -> bool:
        """Whether the records are known to end, or fail, before this position."""
        known = self.end if self.failure is None else self.failure[0]
        return known is not None and known < end

    def fail_if_late(self, since: float, seconds: float) -> None:
        """Makes it a failure of all positions that a record is awaited for longer, counted from
        ``since`` at the earliest: the engine reads several at a time, and hangs with all of them.
        """
        if self.failure is None and (late := self._wait.error_after(since, seconds)):
            self.failure = 0, late

    def raise_if_hanging(self) -> None:
        """Raises the failure again if the iterable is still making the record that was late."""
        if self.failure is not None and self._wait.hangs:
            raise self.failure[1]

    def state(self, epoch: int, position: int) -> dict[str, Any]:
        """The state to resume from at this position: a record number, and the iterable's state
        before it.
        """
        number = ShuffleBuffer(self._buffer, 0, 0).begin(position)[0]
        if self._loaded is not None and self._loaded[0] == epoch:
            snapshot = self._loaded[1]
        else:
            snapshot = self._fitting(epoch, number)
        return {"epoch": epoch, **snapshot._asdict()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Loads a ``state()`` for the next pass over its epoch. An empty one has no snapshot."""
        self._loaded, self._snapshots = None, []
        self.close()
        if state.get("state") is not None:
            self._loaded = state["epoch"], _Snapshot(state["number"], state["state"])

    def read_first(self, records: int) -> None:
        """Reads the first records of the epoch again if they pad a last batch and are no longer
        held.
        """
        if all(number in self._first for number in range(records)):
            return
        warn(f'last_batch="pad" reads the first {records:,} records of the epoch again')
        shares = Shares(self._epoch, self._terms.rank, self._terms.world_size)
        again, number = self._origin.open(shares), 0
        numbered = self._records(again, (), 0, 0)
        order = ShuffleBuffer(self._buffer, self._terms.seed, self._epoch).of(numbered)
        for number, record in zip(range(records), order, strict=False):
            self._first[number] = record
        again.close()

    def awaited(self) -> str:
        """See StreamWait.text."""
        return self._wait.text()

    def leave(self) -> None:
        """Cancels work in progress: a call from the engine returns after its current record."""
        self._leaving = True

    @contextlib.contextmanager
    def showing(self) -> Iterator[None]:
        """Inside, the engine reads the inspected records by number, for the headers of audio
        files."""
        self._shows = True
        try:
            yield
        finally:
            self._shows = False

    def close(self) -> None:
        """Ends the running pass, unless the iterable hangs in its next record."""
        if not self._lock.acquire(timeout=_PATIENCE):
            return
        opened, self._pass = self._pass, None
        self._order = iter(())
        self._epoch = -1
        self._lock.release()
        if opened is not None:
            opened.close()

    # Calls by the engine.

    def read(self, indices: list[int], wanted: list[bool]) -> Iterator[list[Any] | str]:
        """For each position the values by field (None if not requested), or an error text."""
        return self.surroundings.within(lambda: (self._read_one(i, wanted) for i in indices))

    def _read_one(self, index: int, wanted: list[bool]) -> list[Any] | str:
        number = index
        try:
            if self._shows:
                return self._rows.crossed(self._looked_at.records[index], number, wanted)
            if self._leaving:
                return "the loader no longer needs this record"
            number, record = self._at(index)
            return self._rows.crossed(record, number, wanted)
        except KeyboardInterrupt:
            raise
        except BaseException as failure:
            return f"record {number} of {self._origin.name}: {describe(failure)}"

    def key(self, index: int) -> str:
        """The record's number in the iterable."""
        found = self._held.get(self._own(index))
        return str(found[0] if found else index)

    def integer_column(self, name: str) -> list[int]:
        raise TypeError(f"a stream has no column {name!r}")

    def _at(self, index: int) -> tuple[int, Any]:
        with self._lock:
            if self._pass is None:
                raise LookupError("no epoch has begun")
            self._drop_received()
            position = self._own(index)
            if position in self._first and position not in self._held:
                return self._first[position]
            while self._next <= self._through(position) and self._pull():
                pass
            return self._held.get(position) or self._last

    def _own(self, index: int) -> int:
        """The engine's position as counted by this rank: the same if every rank reads all."""
        terms = self._terms
        if terms.divides or terms.world_size == 1:
            return index
        batch, within = divmod(index, terms.global_batch)
        first = terms.rank * _rows(terms)
        if terms.tail and index >= terms.tail:
            within, first = index - terms.tail, 0
        return batch * _rows(terms) + within - first

    def _through(self, position: int) -> int:
        """The last position that must be read to deliver this one. If ranks take parts of a batch,
        none of them delivers its part before the whole batch is known to exist.
        """
        terms = self._terms
        if not terms.divides or terms.world_size == 1:
            return position
        end = (position // terms.global_batch + 1) * terms.global_batch
        return min(end, self._length or end) - 1

    def _pull(self) -> bool:
        """Takes the next record in order; False if there is none."""
        if self.end is not None or self.failure is not None:
            return False
        if self._leaving:
            raise LookupError("the loader no longer needs this record")
        try:
            numbered = next(self._order, None)
        except Error as failure:
            self.failure = self._next, failure
            return False
        if numbered is None:
            self._note_end()
            return False
        if self._next >= self._low:
            self._held[self._next] = self._last = numbered
        if self._next < self._terms.global_batch and self._terms.pads:
            self._first[self._next] = numbered
        self._next += 1
        self._drop_others()
        return True

    def _note_end(self) -> None:
        records = self._number
        if self._length is None:
            self.end = records
            return
        of_rank = "" if self._terms.divides else f"rank {self._terms.rank} of "
        self.failure = (
            records,
            ENDED_EARLY.error(
                f"{of_rank}{self._origin.name} ended after {records:,} records in epoch "
                f"{self._epoch}; length={self._length:,} counts all ranks",
                hint="set length= to the actual number, or let the iterable start over",
            ),
        )

    def _drop_others(self) -> None:
        """Drops the other ranks' parts of a complete global batch."""
        terms = self._terms
        if terms.world_size == 1 or not terms.divides or self._next % terms.global_batch:
            return
        base = self._next - terms.global_batch
        first, end = (terms.global_batch * (terms.rank + k) // terms.world_size for k in (0, 1))
        for within in [*range(first), *range(end + 1, terms.global_batch)]:
            self.counted["dropped"] += self._held.pop(base + within, None) is not None

    def _records(
        self, opened: Pass, looked_at: tuple[Any, ...], number: int, first: int
    ) -> Iterator[tuple[int, Any]]:
        """Numbers records starting at ``first``; ``opened`` yields those starting at ``number``, or
        after the inspected ones.
        """
        waiting = list(looked_at)
        while True:
            due = number > 0 and number % self._terms.global_batch == 0
            snapshot = None
            if due and opened.has_state and opened is self._pass and not waiting:
                known = self._snapshots[-1].number if self._snapshots else 0
                if number > known:
                    snapshot = _Snapshot(number, opened.state())
            try:
                self._wait.begin(number)
                record = waiting.pop(0) if waiting else own(next(opened))
            except StopIteration:
                return
            except Exception as failure:
                raise FAILED.error(
                    f"{self._origin.name} failed at record {number} of epoch {self._epoch}: "
                    f"{describe(failure)}"
                ) from failure
            finally:
                self._wait.end()
            self.counted["read"] += 1
            if snapshot is not None:  # from a state at their end, some begin again
                self._snapshots.append(snapshot)
            if opened is self._pass:
                self._number = number + 1
            if number >= first:
                yield number, record
            number += 1


def _rows(terms: Terms) -> int:
    return terms.global_batch // terms.world_size
