# SPDX-License-Identifier: Apache-2.0
"""Ranks whose streams end after different numbers of records. If all ranks read a stream without
length=, and one of them finds fewer batches, it ends its epoch while the others wait for it in a
collective.

Before each batch, a rank of a process group writes into the group's store how many records it has
found. At the end of the epoch, the rank writes the total, and waits until the other ranks have
ended, too, for ``agreement.PATIENCE`` seconds. The rank that sees a difference raises HR0733.
Loaders of different ranks are paired by the line that made them, their number among the loaders
made there, and their arguments.
"""

from __future__ import annotations

import collections
import functools
import time
from collections.abc import Callable
from typing import NamedTuple

from headrace.loader import agreement
from headrace.loader.assembly import Assembly
from headrace.loader.rank_card import differences


class _Found(NamedTuple):
    """Records that a rank has found in an epoch."""

    records: int
    are_all: bool

    def __str__(self) -> str:
        return f"{self.records:,}" if self.are_all else f"at least {self.records:,}"


class StreamEnds:
    """Compares where the epochs of one loader end with the other ranks."""

    def __init__(self, assembly: Assembly, agreed: agreement.Agreement) -> None:
        self._assembly = assembly
        self._agreed = agreed
        self._ended: collections.Counter[int] = collections.Counter()  # passes over each epoch
        self._is_alone = False  # the other ranks did not come to the last end in time

    def found(self, epoch: int, records: int) -> None:
        """Called before a full batch is returned. Raises ConfigError HR0733 if another rank has
        ended the epoch with fewer records.
        """
        self._compare(epoch, _Found(records, are_all=False), lambda: True)

    def at_end(self, epoch: int, records: int, ended: Callable[[], bool]) -> None:
        """Called at the end of an epoch of these records. Waits for the other ranks unless
        ``ended()``. Raises ConfigError HR0733 if they have another number of records.
        """
        stop = time.monotonic() + (0.0 if self._is_alone else agreement.PATIENCE)

        def late() -> bool:
            return ended() or time.monotonic() >= stop

        self._is_alone = not self._compare(epoch, _Found(records, are_all=True), late)
        self._ended[epoch] += not ended()

    def _compare(self, epoch: int, mine: _Found, late: Callable[[], bool]) -> bool:
        """Whether all ranks have ended the epoch."""
        if (board := agreement.board_of(self._assembly.given["shard"])) is None:
            return True
        site = f"{self._key}/{epoch}/{self._ended[epoch]}"
        try:
            board.note(site, mine, is_last=mine.are_all)
            pause = 0.005
            while board.has_last(site):
                found = {rank: _Found(*each) for rank, each in board.noted(site).items()}
                self._refuse_differences(board, site, epoch, found)
                if len(found) == len(board.ranks) and all(each.are_all for each in found.values()):
                    return True
                if late():
                    break
                time.sleep(pause)
                pause = min(2 * pause, 0.25)
        except RuntimeError:  # the store is gone with its rank
            return True
        return False

    @functools.cached_property
    def _key(self) -> str:
        return self._agreed.key_of(self._assembly)

    def _refuse_differences(
        self, board: agreement.Board, site: str, epoch: int, found: dict[int, _Found]
    ) -> None:
        if (told := board.told(site, "end")) is not None:
            raise self._agreed.error(board, *told)
        end = min(each.records for each in found.values() if each.are_all)
        if max(each.records for each in found.values()) == end:
            return
        name = f"records of epoch {epoch}"
        text = differences({rank: {name: str(each)} for rank, each in found.items()})
        board.tell(site, {"end"}, text, len(found))
        raise self._agreed.error(board, text, len(found))
