# SPDX-License-Identifier: Apache-2.0
"""Samplers and batch samplers in Python, called for their order before each epoch.

Their draws are made a function of seed and epoch, so that every order is reproducible: copies of
the samplers are iterated after set_epoch(epoch), with their own generators and the global
generators seeded with seed and epoch.
"""

from __future__ import annotations

import copy
import functools
import itertools
import random
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from headrace import _core
from headrace.migrate.known_dataset import REFUSED
from headrace.migrate.seeding import seeded
from headrace.sampling import Batches, Records, Sampling, as_indices

# Attributes of samplers that return one rank's records, also with a leading underscore.
_WORLDS = ("num_replicas", "world_size", "num_processes")
_RANKS = ("rank", "process_index")
_INNER = ("sampler", "batch_sampler")
_ENDLESS = 1000  # epochs: a sampler without len() that returns as many records counts as endless


def chain_of(sampler: Any) -> list[Any]:
    """A sampler and those that it wraps, outermost first."""
    out: list[Any] = []
    while sampler is not None and not any(sampler is each for each in out):
        out.append(sampler)
        inner = (_attributes(sampler).get(name) for name in _INNER)
        sampler = next((each for each in inner if each is not None), None)
    return out


def knows_ranks(sampler: Any) -> bool:
    """Whether it returns a single rank's records, which must not be divided again."""
    return bool(_integers(sampler, (*_WORLDS, *_RANKS)))


def knows_epochs(sampler: Any) -> bool:
    """Whether it, or one that it wraps, has a set_epoch()."""
    return any(hasattr(each, "set_epoch") for each in chain_of(sampler))


def _integers(sampler: Any, names: Iterable[str]) -> list[int]:
    """Attributes of these names, in it and in its inner ones."""
    spelled = [spelled for name in names for spelled in (name, f"_{name}")]
    found = (getattr(each, name, None) for each in chain_of(sampler) for name in spelled)
    return [value for value in found if isinstance(value, int)]


def _attributes(sampler: Any) -> dict[str, Any]:
    return getattr(sampler, "__dict__", {})


class Asked(Sampling):
    """The order of a torch Sampler, or of a batch sampler (``batches``), over this many records.
    Raises ConfigError HR0834 if it does not end, or returns a different order for the same epoch
    when iterated again.
    """

    def __init__(self, sampler: Any, records: int, batches: bool = False) -> None:
        self.sampler = sampler
        self.name = type(sampler).__name__
        self.records = records
        self.batches = batches
        self.sizes: list[int] = []  # batch sizes of every epoch, known from the first one
        self._asking = threading.Lock()
        self._engine: _core.Sampler | None = None
        sampler = self._copied()
        first = self._drawn(sampler, 0, 0)
        if first != self._drawn(sampler, 0, 0):
            raise REFUSED.error(
                f"its {self.name} returns a different order each time, which cannot be resumed or "
                "split",
                hint="a set_epoch(epoch) that decides its order, or from_dataloader(..., "
                "sampler=...) with a sampler of headrace.sampling or a list of indices for every "
                "epoch",
            )
        self.first = self._in_one(0, first)

    def __repr__(self) -> str:
        return f"{self.name}, called before each epoch"

    @property
    def is_fixed(self) -> bool:
        """Whether every epoch has the order of the first, judging by one other epoch."""
        return not knows_epochs(self.sampler) and self(1, 1) == self.first

    @property
    def batch_size(self) -> int | None:
        """A batch sampler's batch size; None if batches before the last differ in size."""
        size = self.sizes[0]
        alike = all(each == size for each in self.sizes[:-1]) and self.sizes[-1] <= size
        return size if alike else None

    def engine(self, source: Records, shuffle: bool, batches: Batches) -> _core.Sampler:
        del shuffle, batches
        if self._engine is None:
            self._engine = self._made(len(source))
        return self._engine

    def forget(self) -> None:
        """Discards cached orders: the sampler is iterated again for each epoch."""
        if self._engine is not None:
            self._engine.forget()

    def _made(self, records: int) -> _core.Sampler:
        import hashlib  # imported late, so that importing headrace is fast

        sizes = [] if not self.batches or self.batch_size else self.sizes
        about: list[Any] = [
            [type(each).__qualname__ for each in chain_of(self.sampler)],
            _integers(self.sampler, _WORLDS),
            len(self.first),
            self.sizes,
            # Ranks have different orders, but one state.
            [] if knows_ranks(self.sampler) else self.first,
        ]
        digest = hashlib.blake2b(repr(about).encode(), digest_size=8).digest()
        return _core.asked(
            functools.partial(_order_of, weakref.ref(self), records),  # which caches its results
            records,
            len(self.first),
            sizes,
            int.from_bytes(digest, "little"),
            repr(self),
        )

    def __call__(self, seed: int, epoch: int) -> list[int]:
        """Record indices of an epoch, with batches concatenated."""
        with self._asking:  # it draws from the process's global generators
            return self._in_one(epoch, self._drawn(self._copied(), seed, epoch))

    def _copied(self) -> Any:
        """Copies it and those that it wraps, so that the script's are unchanged."""
        try:
            outer = copy.copy(self.sampler)
            for each in chain_of(outer):
                for name in _INNER:
                    if _attributes(each).get(name) is not None:
                        each.__dict__[name] = copy.copy(each.__dict__[name])
        except TypeError as reason:
            raise REFUSED.error(
                f"its {self.name} cannot be iterated twice: {reason}",
                hint="an object whose iter() begins an epoch, or a list of indices",
            ) from None
        return outer

    def _drawn(self, sampler: Any, seed: int, epoch: int) -> list[Any]:
        words = random.Random(f"{seed} {epoch}")
        with seeded(words.getrandbits(63)):
            for each in chain_of(sampler):
                for name, value in _attributes(each).items():
                    if (fresh := _generator_like(value, words)) is not None:
                        each.__dict__[name] = fresh
                if hasattr(each, "set_epoch"):
                    each.set_epoch(epoch)
            return list(self._until_end(sampler))

    def _until_end(self, sampler: Any) -> Iterator[Any]:
        counted = hasattr(sampler, "__len__")
        limit = len(sampler) if counted else _ENDLESS * self.records
        for number, drawn in enumerate(itertools.islice(sampler, limit + 1)):
            if number == limit:
                raise REFUSED.error(
                    f"its {self.name} continues after {limit:,} "
                    + ("batches" if self.batches else "records")
                    + (", which is its len()" if counted else ""),
                    hint="a Loader's epochs are finite, but follow each other without "
                    "interruption: from_dataloader(..., shuffle=True), with shard= for ranks",
                )
            yield [int(index) for index in drawn] if self.batches else int(drawn)

    def _in_one(self, epoch: int, drawn: list[Any]) -> list[int]:
        if not self.batches:
            return drawn
        sizes = [len(batch) for batch in drawn]
        self.sizes = self.sizes or sizes
        if not sizes or not min(sizes):
            raise REFUSED.error(f"its {self.name} returns no batch, or an empty one")
        if sizes != self.sizes:
            pairs = enumerate(itertools.zip_longest(sizes, self.sizes, fillvalue=0))
            number, (size, before) = next(each for each in pairs if each[1][0] != each[1][1])
            raise REFUSED.error(
                f"batch {number} of epoch {epoch} of its {self.name} has {size} records, but "
                f"{before} in the first epoch",
                hint="batches of the same sizes in every epoch, or hr.sampling.budget() and "
                "hr.sampling.buckets(), which make batches of records that are alike in length",
            )
        return list(itertools.chain.from_iterable(drawn))


def _order_of(
    asked: Callable[[], Asked | None], records: int, seed: int, epoch: int
) -> np.ndarray[Any, np.dtype[np.int64]]:
    of = asked()
    assert of is not None, "because a loader keeps its sampler alive"
    return as_indices(of(seed, epoch), records)


def _generator_like(value: Any, words: random.Random) -> Any:
    """A new generator of the same type, seeded; None if it is not a generator."""
    if isinstance(value, random.Random):
        return random.Random(words.getrandbits(63))
    if isinstance(value, np.random.Generator):
        return np.random.default_rng(words.getrandbits(63))
    if isinstance(value, np.random.RandomState):
        return np.random.RandomState(words.getrandbits(32))
    if type(value).__name__ == "Generator" and type(value).__module__.startswith("torch"):
        return type(value)(device=value.device).manual_seed(words.getrandbits(63))
    return None


class Followed:
    """The epochs that a script sets on its samplers, as for DistributedSampler."""

    def __init__(self, sampler: Any) -> None:
        self._samplers = [each for each in chain_of(sampler) if self._epoch_of(each) is not None]
        self._seen: list[Any] = [0] * len(self._samplers)

    def __bool__(self) -> bool:
        return bool(self._samplers)

    @staticmethod
    def _epoch_of(sampler: Any) -> int | None:
        epoch = getattr(sampler, "epoch", None) if hasattr(sampler, "set_epoch") else None
        return epoch if isinstance(epoch, int) and epoch >= 0 else None

    def news(self) -> int | None:
        """The epoch set since the last call; None if none was set."""
        before, self._seen = self._seen, [self._epoch_of(each) for each in self._samplers]
        changed = (now for was, now in zip(before, self._seen, strict=True) if now != was)
        return next((epoch for epoch in changed if epoch is not None), None)
