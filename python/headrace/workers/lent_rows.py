# SPDX-License-Identifier: Apache-2.0
"""Rows of a loader's batches that remote processes make: ``Loader(..., workers=...)``.

The engine lends rows that no thread has claimed yet, starting with the rows that are needed last. A
remote maker returns the rows' bytes; if it fails to, the loader's threads make the rows. So makers
may be unreachable, die at any time, or get a request twice, without an effect on batches. The
makers decide how requests and bytes are transferred.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from headrace import _core
from headrace.errors import Error, declare, warn

OTHER_BATCHES = declare(
    "HR0837",
    "config",
    "remote worker makes different rows",
    "A worker on another machine must make the same bytes as this process. Before it is used, "
    "fingerprints of records and transforms, the version of Headrace and two rows are compared. "
    "Usually the machine has an older copy of the data or of Headrace, or another libjpeg.",
)

TOO_LARGE = declare(
    "HR0839",
    "config",
    "too large for remote workers",
    "One request, for a row or for the rows that MixUp and CutMix need together, must fit into "
    "the part of the object store reserved for rows in flight, which the ranks of a machine "
    "share; arrays in memory must fit into half of the store. Ray would spill anything more to "
    "disk.",
)

_PART_BYTES = 4 << 20  # bytes of rows that are requested together
_PATIENCE = 0.5  # seconds to wait for a part before making its rows here, while nothing is known
_LEAST_PATIENCE = 0.1
_LATE = 3.0  # times the median seconds of a part
_LAST_CALL = 5.0  # seconds to wait at the end: unreachable makers may not answer a call
_TRIES = 3  # requests for one part, before this process makes it
_WAITS = 0.02  # fraction of the time above which the consumer counts as waiting
_LOOK = 0.5  # seconds between checks of that
_PAYS = 2.0  # making a row must cost this many times as much as receiving it


class Terms(NamedTuple):
    """Values that determine rows, and may change while makers live."""

    seed: int = 0
    rank: int = 0
    world_size: int = 1
    streams: int = 0  # streams of the order; 0 if it has none


class Rows(NamedTuple):
    """Requested rows of one batch."""

    epoch: int
    batch: int
    first: int
    size: int
    terms: Terms


class Made(NamedTuple):
    """The result: a byte array for each output, and the report on them. carried: CPU seconds that
    other processes on this machine spent on the transfer, as far as known.
    """

    arrays: Sequence[Any]
    report: Mapping[str, Any]
    carried: float = 0.0


class Lost(Exception):
    """Raised when the maker is gone; another one may be used."""


class Failed(Exception):
    """Raised when the maker could not make the rows. This process makes them, and finds out whether
    the run ends."""


class Makers(Protocol):
    """Processes that make rows. Only ``answers`` blocks."""

    def begin(self, work: Work) -> None:
        """Starts the makers, and sets what they make."""

    def ask(self, rows: Rows, again: bool) -> Hashable | None:
        """Sends a request; returns the answer's key, or None if no maker can take more now."""

    def answers(self, seconds: float) -> list[tuple[Hashable, Made | Exception]]:
        """The answers so far; waits up to this long for the first one. Other exceptions than Lost
        and Failed end the use of makers."""

    def live(self) -> int:
        """The number of makers that accept requests."""

    def room(self) -> int:
        """Bytes of rows that may be in transit at once."""

    def connected(self) -> bool:
        """Whether any maker exists, or will exist."""

    def counters(self) -> dict[str, Any]:
        """Values for stats(); "actors" is the number that accept requests. Callable from any
        thread."""

    def close(self) -> None: ...


class Work(NamedTuple):
    """Everything a maker needs. keywords: the arguments of a loader, with the memory_limit of this
    one. facts: values that must be equal in the maker. terms: as in Rows. ranks_here: the number of
    the loader's ranks on this machine, which share its resources.
    """

    source: Any
    transforms: Any
    keywords: Mapping[str, Any]
    facts: Callable[[], dict[str, str]]
    terms: Callable[[], Terms]
    ranks_here: int = 1


def rows_of(engine: _core.Loader, rows: Rows) -> Made:
    """Makes the rows in this process. Raises if the storage fails, or memory is refused."""
    arrays = [np.empty(rows.size * each, np.uint8) for each in _core.row_bytes(engine)]
    place = rows.epoch, rows.batch, rows.first, rows.size
    begin = time.perf_counter()
    report = _core.make_rows(engine, *place, arrays)
    return Made(arrays, {**report, "seconds": time.perf_counter() - begin})


def probe(engine: _core.Loader, count: int) -> str:
    """A hash of the first ``count`` rows of epoch 0, and of their errors."""
    import hashlib  # slow to import

    if engine.batches_per_epoch() == 0:
        return ""
    made = rows_of(engine, Rows(0, 0, 0, count, Terms()))
    found = hashlib.blake2b(digest_size=8)
    for array in made.arrays:
        found.update(array.tobytes())
    found.update(repr([(bad["row"], bad["code"]) for bad in made.report["failures"]]).encode())
    return found.hexdigest()


class _Part(NamedTuple):
    """Rows that are lent, and the engine loader to return them to."""

    engine: _core.Loader
    number: int
    rows: Rows
    asked: float
    tries: int


class LentRows:
    """Transfers rows between one loader and its makers, on a separate thread. engine: returns the
    current engine loader. terms: as in Rows. always: whether to request rows even if the consumer
    does not wait for data, or remote rows do not pay off.
    """

    def __init__(
        self,
        makers: Makers,
        engine: Callable[[], _core.Loader | None],
        terms: Callable[[], Terms],
        work: Callable[[], Work],
        *,
        always: bool = False,
    ) -> None:
        self._makers, self._engine, self._terms, self._work = makers, engine, terms, work
        self._always = always
        self._ends = threading.Event()
        self._thread: threading.Thread | None = None
        self._out: dict[Hashable, _Part] = {}
        self._again: deque[_Part] = deque()
        self._times: deque[float] = deque(maxlen=64)
        self._group = 0  # rows that are lent together, if more than requested
        self._is_needed = True
        self._looked = (0.0, 0.0)  # a time, and how long the consumer had waited by then
        self.refused = ""  # reason why no rows are lent
        self._count = dict.fromkeys(
            ("requested", "received", "rows", "late", "repeated", "returned", "bytes"), 0
        )
        self._maker_seconds = 0.0
        self._own_seconds = 0.0  # CPU seconds of this machine for rows that arrived

    # Called by the loader.

    def begin(self) -> None:
        """An iteration begins; the thread starts with the first one."""
        if self._thread is None and not self._ends.is_set() and not self.refused:
            self._thread = threading.Thread(
                target=self._run, name="headrace lent rows", daemon=True
            )
            self._thread.start()

    def close(self) -> None:
        """Ends the makers. Outstanding rows are then made by the loader's threads, if these are
        still running.
        """
        self._ends.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_LAST_CALL)
        self._makers.close()

    def counters(self) -> dict[str, Any]:
        """The numbers of parts and rows so far, their cost, and whether they pay off."""
        rows = self._count["rows"]
        return {
            **self._count,
            **self._makers.counters(),
            "outstanding": len(self._out),
            "actor_ms_per_row": 1e3 * self._maker_seconds / rows if rows else 0.0,
            "local_ms_per_row": 1e3 * self._own_seconds / rows if rows else 0.0,
            "needed": self._is_needed,
            "summary": self.says(),
        }

    def says(self) -> str:
        """One sentence on whether the makers save CPU time in this process."""
        if self.refused:
            return f"rows are made here: {self.refused}"
        rows = self._count["rows"]
        if rows < 32:
            if not self._makers.counters()["actors"]:
                return "rows are made here: no remote worker is ready"
            return "too few rows have arrived to tell whether remote workers pay off"
        made, own = 1e3 * self._maker_seconds / rows, 1e3 * self._own_seconds / rows
        text = f"making a row takes {made:.2f} ms, receiving it {own:.2f} ms here"
        if made < _PAYS * own:
            return f"remote workers do not pay off: {text}"
        return f"remote workers save {made - own:.2f} of {made:.2f} ms per row: {text}"

    # Runs on the thread.

    def _run(self) -> None:
        try:
            self._makers.begin(self._work())
            while not self._ends.is_set():
                busy = self._ask()
                begin = time.thread_time()
                answers = self._makers.answers(0.002 if busy else 0.02)
                for token, answer in answers:
                    self._take(token, answer)
                if answers:
                    self._own_seconds += time.thread_time() - begin
        except Exception as failure:
            self.refused = f"{type(failure).__name__}: {failure}"
        finally:
            for part in [*self._out.values(), *self._again]:
                self._return(part)
            self._out.clear()
            self._again.clear()
        if self.refused and not self._ends.is_set():
            if self._makers.connected():
                warn(f"remote workers are abandoned, and rows are made here: {self.refused}")
            self._makers.close()

    def _ask(self) -> bool:
        """Requests lost rows again, then new ones. Whether anything was requested."""
        engine = self._engine()
        if engine is None or not self._makers.live():
            while self._again:
                self._return(self._again.popleft())
            return False
        any_asked = False
        while self._again:
            part = self._again[0]
            if self._is_out(part):
                token = self._makers.ask(part.rows, True)
                if token is None:
                    return any_asked
                self._out[token] = part._replace(asked=time.perf_counter(), tries=part.tries + 1)
                self._count["repeated"] += 1
                any_asked = True
            self._again.popleft()
        while self._wants(engine) and self._lend(engine):
            any_asked = True
        return any_asked

    def _lend(self, engine: _core.Loader) -> bool:
        row, room = max(1, sum(_core.row_bytes(engine))), self._makers.room()
        count = max(self._group, min(_PART_BYTES, room) // row, 1)
        out = sum(part.rows.size for part in self._out.values())
        if out and (out + count) * row > room:
            return False
        try:
            lent = _core.rows_ahead(engine, count, self._patience())
        except Error:  # the loader is closed
            return False
        if lent is None:
            return False
        number, epoch, batch, first, size = lent
        rows = Rows(epoch, batch, first, size, self._terms())
        part = _Part(engine, number, rows, time.perf_counter(), 1)
        if size > count:
            self._group = size
        if size * row > room:
            self._return(part)
            raise TOO_LARGE.error(
                f"{size} rows of {row:,} bytes, but only {room:,} bytes of the object store may "
                "be used",
                hint='use a larger store (ray.init(object_store_memory=)), or pool(store="50 %")',
            )
        token = self._makers.ask(rows, False)
        if token is None:
            self._return(part)
            return False
        self._out[token] = part
        self._count["requested"] += 1
        return True

    def _patience(self) -> float:
        if len(self._times) < 3:
            return _PATIENCE
        return max(_LEAST_PATIENCE, _LATE * sorted(self._times)[len(self._times) // 2])

    def _wants(self, engine: _core.Loader) -> bool:
        """Whether local threads alone are too slow, as far as known."""
        if self._always:
            return True
        at, waited = self._looked
        now = time.perf_counter()
        if now - at >= _LOOK:
            try:
                waits = float(engine.stats()["wait_seconds"])
            except Error:  # the loader is closed
                return False
            if at > 0:
                self._is_needed = waits - waited > _WAITS * (now - at) or waits < waited
            self._looked = now, waits
        rows = self._count["rows"]
        pays = rows < 256 or self._maker_seconds >= _PAYS * self._own_seconds
        return self._is_needed and pays

    def _take(self, token: Hashable, answer: Made | Exception) -> None:
        part = self._out.pop(token, None)
        if part is None:
            return
        if isinstance(answer, Lost) and part.tries < _TRIES:
            self._again.append(part)
            return
        if isinstance(answer, Exception):
            self._return(part)
            if not isinstance(answer, Lost | Failed):
                raise answer
            return
        try:
            arrived = _core.rows_arrived(
                part.engine, part.number, list(answer.arrays), dict(answer.report)
            )
        except Error:
            if self._engine() is part.engine:
                self._return(part)
                raise
            return  # closed meanwhile
        self._times.append(time.perf_counter() - part.asked)
        self._count["received" if arrived else "late"] += 1
        if arrived:
            self._count["rows"] += part.rows.size
            size = sum(memoryview(array).nbytes for array in answer.arrays)
            self._count["bytes"] += size
            self._own_seconds += answer.carried
            self._maker_seconds += float(answer.report["seconds"])

    def _return(self, part: _Part) -> None:
        self._count["returned"] += 1
        with contextlib.suppress(Error):  # it is closed
            _core.rows_returned(part.engine, part.number)

    def _is_out(self, part: _Part) -> bool:
        try:
            return part.engine is self._engine() and _core.rows_are_out(part.engine, part.number)
        except Error:
            return False
