# SPDX-License-Identifier: Apache-2.0
"""Detects ranks that disagree. If loaders divide batches of different data, order or size, or are
at different positions, training would silently use wrong batches, or hang when the shorter loader
ends.

Before its first batch, and after each jump to another position, a loader writes its card
(rank_card.py) to the process group's store, and waits until every rank has written the same card,
or some rank has written a different card. Nothing here is a collective: a rank that makes no such
loader delays the others once, for ``PATIENCE`` seconds.

Two ranks disagree only if neither has ever had the other's current card: a rank that is ahead, that
repeats a part, or that has an additional loader has had it. Loaders made in different lines of a
program are not compared, nor are those that the other rank has created but not started.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import json
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from headrace import process_group
from headrace.errors import Error, declare
from headrace.loader.assembly import Assembly
from headrace.loader.rank_card import (
    Card,
    as_given,
    at_position,
    call_site,
    differences,
    digest_of,
    site_of,
)

DISAGREE = declare(
    "HR0733",
    "config",
    "ranks disagree",
    "Each rank of a process group takes its part of the same global batches. So all ranks must "
    "make the loader with the same records, seed, order, batch size and transforms, and load the "
    "same state. The message says what differs, and on which ranks. Common causes: a seed or a "
    "path that depends on the rank, a file that is missing on one machine, a checkpoint per rank. "
    "For loaders that differ on purpose, give shard=False (all records on this rank) or "
    "shard=(rank, world_size): these are not compared.",
)
PATIENCE = 10.0  # seconds to wait for ranks that have not begun such a loader
GRACE = 2.0  # seconds for which ranks must disagree: threads may begin loaders in a different order
_FAREWELL = 5.0  # seconds to wait until other ranks have read why this one ends
_POLL = 1.0  # seconds between looks of a loader whose ranks have not all arrived


class _Seen(NamedTuple):
    """A card of another rank."""

    digest: str
    card: Card
    given: str  # digest of what the loader was given
    made: tuple[str, ...]  # the same of all loaders that the rank has made in the same place
    is_first: bool  # the loader was never moved: its rank may only look at a batch, and move then


class _Place:
    """The cards of one line of the program, by rank."""

    def __init__(self) -> None:
        self.mine: list[_Seen] = []
        self.others: dict[int, list[_Seen]] = {}
        self.is_alone = False  # not all ranks came here in time


class Board:
    """The cards of the ranks of a process group, in the store of the default one. Ranks have their
    numbers in the default group.
    """

    def __init__(self, rank: int, ranks: tuple[int, ...], store: Any) -> None:
        self.rank, self.ranks = rank, ranks
        self._store = store
        self._places: dict[str, _Place] = {}
        self._lock = threading.Lock()

    def place(self, site: str) -> _Place:
        with self._lock:
            return self._places.setdefault(site, _Place())

    def write(self, site: str, seen: _Seen) -> None:
        """Adds this rank's card, unless it was here before."""
        place = self.place(site)
        with self._lock:
            if any(each.digest == seen.digest for each in place.mine):
                return
            place.mine.append(seen)
            number = len(place.mine) - 1
        self._store.set(f"{site}/{self.rank}/{number}", json.dumps(seen))
        ranks = self._store.add(f"{site}/{seen.digest}", 1)
        if ranks == 1:
            self._store.add(f"{site}/kinds", 1)
        if ranks == len(self.ranks):
            self._store.set(f"{site}/{seen.digest}/all", "1")

    def is_common(self, site: str, digest: str) -> bool:
        """Whether all ranks were at this card."""
        return bool(self._store.check([f"{site}/{digest}/all"]))

    def read(self, site: str) -> bool:
        """Reads the cards of the other ranks; False if they are all of a kind that this rank has
        had, so that nothing can differ.
        """
        place = self.place(site)
        if self._store.add(f"{site}/kinds", 0) <= len(place.mine):
            return False
        for rank in self.ranks:
            if rank == self.rank:
                continue
            with self._lock:  # two threads would add a card twice, and miss the next one
                cards = place.others.setdefault(rank, [])
                while self._store.check([f"{site}/{rank}/{len(cards)}"]):
                    cards.append(_Seen(*json.loads(self._store.get(f"{site}/{rank}/{len(cards)}"))))
        return True

    def told(self, site: str, digest: str) -> tuple[str, int] | None:
        """Why ranks at this card disagree, and how many ranks have to know it."""
        if not self._store.check([f"{site}/{digest}/differ"]):
            return None
        text, ranks = json.loads(self._store.get(f"{site}/{digest}/differ"))
        return text, ranks

    def tell(self, site: str, digests: set[str], text: str, ranks: int) -> None:
        for digest in digests:
            self._store.set(f"{site}/{digest}/differ", json.dumps((text, ranks)))

    def note(self, site: str, value: Any, is_last: bool) -> None:
        """Writes this rank's present value, in place of the one before."""
        self._store.set(f"{site}/{self.rank}", json.dumps(value))
        if is_last:
            self._store.set(f"{site}/last", "1")

    def has_last(self, site: str) -> bool:
        """Whether a rank has written its last value."""
        return bool(self._store.check([f"{site}/last"]))

    def noted(self, site: str) -> dict[int, Any]:
        """The present values of the ranks that have written one."""
        keys = {rank: f"{site}/{rank}" for rank in self.ranks}
        return {
            rank: json.loads(self._store.get(key))
            for rank, key in keys.items()
            if self._store.check([key])
        }

    def take_leave(self, site: str, text: str, ranks: int) -> None:
        """Waits until the other ranks know it too: the store ends with the rank that holds it."""
        key = f"{site}/{digest_of({'text': text})}/known"
        stop = time.monotonic() + _FAREWELL
        known = self._store.add(key, 1)
        while known < ranks and time.monotonic() < stop:
            time.sleep(0.02)
            known = self._store.add(key, 0)


class _Boards:
    """Those of the present default process group."""

    def __init__(self, rank: int, world_size: int, store: Any) -> None:
        self.group = weakref.ref(process_group.default_group())
        self._rank, self._world_size, self._store = rank, world_size, store
        self._boards: dict[tuple[int, ...], Board] = {}

    def of(self, ranks: tuple[int, ...]) -> Board:
        if ranks not in self._boards:
            prefix = digest_of({"ranks": str(ranks)})
            store = process_group.with_prefix(self._store, prefix)
            self._boards[ranks] = Board(self._rank, ranks, store)
        return self._boards[ranks]


_present: _Boards | None = None
_lock = threading.Lock()
_made: dict[str, list[weakref.ref[Assembly]]] = {}  # by call site
_numbers: collections.Counter[str] = collections.Counter()  # loaders made so far, by call site


def board_of(shard: Any) -> Board | None:
    """The board for a loader with this shard=; None if it has no process group of several ranks."""
    global _present
    if (found := process_group.initialized()) is None or found[1] < 2:
        return None
    ranks = tuple(range(found[1]))
    if not isinstance(shard, str):
        if not callable(getattr(shard, "size", None)):
            return None
        ranks = process_group.members_of(shard)
    if len(ranks) < 2 or found[0] not in ranks:
        return None
    with _lock:
        if _present is None or _present.group() is not process_group.default_group():
            _present = None
            with contextlib.suppress(RuntimeError):  # the store is gone with its rank
                shared = process_group.shared_store("agreement", together=False)
                _present = None if shared is None else _Boards(*shared)
        return None if _present is None else _present.of(ranks)


class Agreement:
    """Compares one loader with those of the other ranks."""

    def __init__(self, assembly: Assembly) -> None:
        self._site = call_site()
        self._seen: _Seen | None = None  # the card that is being compared
        self._is_due = self._is_first = True
        self._next_look = 0.0
        self._differs_since: float | None = None
        with _lock:
            made = [each for each in _made.get(self._site, ()) if each() is not None]
            _made[self._site] = [*made, weakref.ref(assembly)]
            self._number = _numbers[self._site]  # equal on ranks that make the same loaders
            _numbers[self._site] += 1

    @functools.cached_property
    def _key(self) -> str:
        """The place of its cards."""
        return site_of(self._site)

    def key_of(self, assembly: Assembly) -> str:
        """The key of what only this loader writes, on each rank."""
        return f"{self._key}/{_digest_as_given(assembly)}/{self._number}"

    def moved(self) -> None:
        """The loader continues at another position, which the other ranks must do too."""
        self._is_due, self._is_first = True, False

    def check(
        self, assembly: Assembly, state: Callable[[], dict[str, int]], ended: Callable[[], bool]
    ) -> None:
        """Called before each batch. Raises ConfigError HR0733 if ranks disagree. ended: called
        while it waits; it returns early if that is true.
        """
        if not self._is_due and self._seen is None:
            return
        if (board := board_of(assembly.given["shard"])) is None:
            self._is_due, self._seen = False, None
            return
        if not self._is_due and time.monotonic() < self._next_look:
            return
        place = board.place(self._key)
        patience = PATIENCE if self._is_due and not place.is_alone else 0.0
        try:
            if self._is_due:
                self._begin(board, assembly, state())
            agreed = self._wait(board, patience, ended)
        except RuntimeError:  # the store is gone with its rank
            agreed = True
        if agreed:
            self._seen = None
        elif ended():
            return  # the next iteration begins with a look
        pause = 0.0 if self._is_due else _POLL  # a rank that only looked at a batch has moved then
        self._is_due, place.is_alone = False, not agreed
        self._next_look = time.monotonic() + pause

    def _begin(self, board: Board, assembly: Assembly, state: dict[str, int]) -> None:
        card, given = at_position(assembly, state), _digest_as_given(assembly)
        self._seen = _Seen(digest_of(card), card, given, self._made_here(), self._is_first)
        self._differs_since = None
        board.write(self._key, self._seen)

    def _wait(self, board: Board, patience: float, ended: Callable[[], bool]) -> bool:
        """Whether all ranks were at this card in time."""
        stop = time.monotonic() + patience
        pause = 0.005
        while not self._look(board):
            late = time.monotonic() >= stop or self._is_elsewhere(board)
            if ended() or (late and self._differs_since is None):
                return False
            time.sleep(pause)
            pause = min(2 * pause, 0.25)
        return True

    def _look(self, board: Board) -> bool:
        """Whether all ranks were at this card."""
        assert self._seen is not None
        place, digest = board.place(self._key), self._seen.digest
        if board.is_common(self._key, digest):
            return True
        if (told := board.told(self._key, digest)) is not None:
            raise self.error(board, *told)
        grace = self._contradiction(place) if board.read(self._key) else None
        if grace is None:
            self._differs_since = None
            return False
        now = time.monotonic()
        if self._differs_since is None:
            self._differs_since = now
        if now - self._differs_since >= grace:
            seen = {rank: cards[-1] for rank, cards in place.others.items() if cards}
            seen[board.rank] = self._seen
            text = differences({rank: each.card for rank, each in seen.items()})
            board.tell(self._key, {each.digest for each in seen.values()}, text, len(seen))
            raise self.error(board, text, len(seen))
        return False

    def _contradiction(self, place: _Place) -> float | None:
        """Whether another rank was not here, and this rank was not where that one is: the seconds
        after which this is an error.
        """
        seen, found = self._seen, None
        assert seen is not None
        mine = {each.digest for each in place.mine}
        for cards in place.others.values():
            if not cards or cards[-1].digest in mine:
                continue
            if any(each.digest == seen.digest for each in cards):
                continue
            last = cards[-1]
            if _may_move(seen, last):
                found = None if self._is_due else PATIENCE
                continue
            made = seen.given in last.made or last.given in self._made_here()
            if seen.given == last.given or not made:
                return GRACE
        return found

    def _is_elsewhere(self, board: Board) -> bool:
        """Whether all ranks that were not here have gone to loaders that this one has not begun."""
        place, seen = board.place(self._key), self._seen
        assert seen is not None
        mine = {each.digest for each in place.mine}
        missing = [
            cards
            for cards in place.others.values()
            if not any(each.digest == seen.digest for each in cards)
        ]
        return bool(missing) and all(cards and cards[-1].digest not in mine for cards in missing)

    def _made_here(self) -> tuple[str, ...]:
        """Digests of the loaders made in this place that exist now."""
        with _lock:
            made = [each() for each in _made[self._site]]
        found = set()
        for assembly in made:
            with contextlib.suppress(AttributeError):  # closed
                found.add("" if assembly is None else _digest_as_given(assembly))
        return tuple(found)

    def error(self, board: Board, text: str, ranks: int) -> Error:
        board.take_leave(self._key, text, ranks)
        return DISAGREE.error(
            text,
            hint="give all ranks the same source, seed, batch size and state",
            note=f"this is rank {board.rank}",
        )


def _may_move(seen: _Seen, other: _Seen) -> bool:
    """Whether only the positions differ, and one rank may have looked at a batch before it moves to
    where the other one is, as rank 0 does that needs shapes or logs images before it resumes.
    """
    same = (seen.card[name] == other.card[name] for name in seen.card if name != "position")
    return seen.is_first != other.is_first and all(same)


def _digest_as_given(assembly: Assembly) -> str:
    return digest_of(as_given(assembly))
