# SPDX-License-Identifier: Apache-2.0
"""Packed rows of a stream: a fixed number of documents at a time is packed like a list. A pass over
the rows is a pass over the documents, ``buffer`` at a time. The state is the documents' state
before the current buffer, and the number of rows delivered from it; so a resume rereads at most
``buffer`` documents, or those that were inspected to determine the fields.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from headrace.errors import Error, declare, warn
from headrace.sources.source import Source
from headrace.sources.stream import Stream, int_or_none
from headrace.sources.stream_look import own
from headrace.sources.stream_origin import Origin, Pass, Shares

_NOT_OF_STREAMS = declare(
    "HR0195",
    "config",
    "stream cannot be packed this way",
    "The rows of a stream are filled from its next documents, so the number of rows per epoch is "
    "known only at its end. The length of a stream of documents does not determine it: pass rows=.",
)
_NO_ROWS = declare(
    "HR0199",
    "data",
    "documents of a stream yield no rows",
    'This many consecutive documents were empty, or dropped by too_long="drop" or '
    'bad_images="drop". Reading on might never yield a row.',
)
_NOTHING_LEFT = "HR1460"  # every document of a buffer is dropped
_MOST_IN_VAIN = 10_000  # consecutive documents without a row, or ten buffers, if that is more
_OPEN: dict[str, tuple[int, ...]] = {
    "cu_seqlens": (-1,),
    "image_positions": (-1,),
    "image_sizes": (-1, 2),
}

# The rows of a source, and counts of what is not in them: {"tokens left out": 12, ...}.
_Pack = Callable[[Source], tuple[Source, Mapping[str, int]]]


def pack_stream(
    documents: Stream, pack: _Pack, call: Mapping[str, Any], buffer: int, rows: int | None
) -> Stream:
    """The rows as a stream. pack: packs a source; call: the arguments of hr.packed. Raises HR0195
    for a stream of documents whose length is given.
    """
    if documents.length is not None:
        raise _NOT_OF_STREAMS.error(
            f"length={documents.length:,} of {documents.name} counts documents",
            hint="omit it there; hr.packed(..., rows=) sets the number of rows per epoch",
        )
    if documents.shards_itself and rows is None:
        raise _NOT_OF_STREAMS.error(
            f"each rank has its own documents of {documents.name}, and ranks could have different "
            "numbers of rows",
            hint="pass hr.packed(..., rows=), summed over all ranks; or use a function that takes "
            "no rank",
        )

    def of_all(epoch: int) -> Iterable[Any]:
        return _rows_of(documents, pack, buffer, Shares(epoch))

    def of_rank(epoch: int, rank: int, world_size: int) -> Iterable[Any]:
        return _rows_of(documents, pack, buffer, Shares(epoch, rank, world_size))

    function: Any = of_rank if documents.shards_itself else of_all
    function.__name__ = f"packed {documents.name}"
    kinds = {"images": "bytes"} if call["images"] else {}
    made = Stream(
        Origin(function),
        int_or_none("rows", rows),
        documents.shuffle_buffer,
        documents.shards_itself,
        documents.replays,
        {"shapes": _OPEN, "names": (), "said": kinds},
        (),
        made_by=repr((documents.fingerprint, buffer, sorted(call.items()))),
    )
    return made.with_row_group("image_positions", "image_sizes") if kinds else made


def _rows_of(documents: Stream, pack: _Pack, buffer: int, shares: Shares) -> Iterable[Any]:
    opened, looked_at = documents.open_pass(shares)
    given = (documents, pack, buffer, shares, opened, looked_at)
    rows = _Rows(*given)
    return _RowsWithState(rows) if opened.has_state else rows.generate()


class _Rows:
    """One pass over the rows."""

    def __init__(
        self,
        documents: Stream,
        pack: _Pack,
        buffer: int,
        shares: Shares,
        opened: Pass,
        looked_at: tuple[Any, ...],
    ) -> None:
        self._documents, self._pack, self._buffer = documents, pack, buffer
        self._shares, self._pass, self._waiting = shares, opened, list(looked_at)
        self._before: Any = None  # a state of the documents; None for their start
        self._given = 0  # rows delivered from the documents after that state
        self._lost: Counter[str] = Counter()
        self._read = self._warned_at = self._in_vain = 0  # documents

    def generate(self) -> Iterator[dict[str, Any]]:
        skipped = self._given
        try:
            while records := self._next_documents():
                self._read += len(records)
                self._in_vain += len(records)
                for row in self._rows(records):
                    self._in_vain = 0
                    if skipped:
                        skipped -= 1
                        continue
                    self._given += 1
                    yield row
                if self._pass.has_state and not self._waiting and not skipped:
                    self._before, self._given = self._pass.state(), 0
                self._check_not_in_vain()
        finally:
            self._pass.close()
            self._say_lost()

    def _check_not_in_vain(self) -> None:
        if self._in_vain >= max(_MOST_IN_VAIN, 10 * self._buffer):
            raise _NO_ROWS.error(
                f"{self._in_vain:,} consecutive documents of {self._documents.name}",
                hint="use a larger length=, or check the documents",
            )

    def _say_first_loss(self) -> None:
        if not self._warned_at:
            self._say_lost()

    def _say_lost(self) -> None:
        if not self._lost.total() or self._warned_at == self._read:
            return
        self._warned_at = self._read
        counts = ", ".join(
            f"{count:,} {what}" for what, count in sorted(self._lost.items()) if count
        )
        warn(
            f"rows packed from {self._documents.name}: {counts}, of {self._read:,} documents so "
            f"far in epoch {self._shares.epoch}"
        )

    def _rows(self, records: list[Any]) -> Iterator[dict[str, Any]]:
        try:
            rows, lost = self._pack(self._documents.source_of(records))
        except Error as failure:
            if failure.code != _NOTHING_LEFT:
                raise
            self._lost["documents left out"] += len(records)
            self._say_first_loss()
            return
        self._lost.update(lost)
        self._say_first_loss()
        for row in rows:
            yield _plain(row)

    def _next_documents(self) -> list[Any]:
        taken, self._waiting = self._waiting[: self._buffer], self._waiting[self._buffer :]
        while len(taken) < self._buffer:
            try:
                taken.append(own(next(self._pass)))
            except StopIteration:
                break
        return taken

    def state(self) -> dict[str, Any]:
        return {"documents": self._before, "rows": self._given}

    def load(self, state: Mapping[str, Any]) -> None:
        self._pass.close()
        self._before, self._given = state["documents"], int(state["rows"])
        self._pass, looked_at = self._documents.open_pass(self._shares, self._before)
        self._waiting = list(looked_at)


class _RowsWithState:
    """The same for documents whose iterable has a state."""

    def __init__(self, rows: _Rows) -> None:
        self._rows = rows
        self._all = rows.generate()

    def __iter__(self) -> Iterator[Any]:
        return self._all

    def state_dict(self) -> dict[str, Any]:
        return self._rows.state()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._rows.load(state)
        self._all = self._rows.generate()


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as a record of a stream, without the padding of cu_seqlens."""
    out = {name: value for name, value in row.items() if name != "key"}
    ends = out["cu_seqlens"]
    out["cu_seqlens"] = ends[: int(np.searchsorted(ends, ends[-1])) + 1]
    return out
