# SPDX-License-Identifier: Apache-2.0
"""Promise: rows made by other processes are identical. These processes may die, answer late, twice
or not at all; bad records count as usual. Here threads simulate the processes:
tests/frameworks/test_ray.py uses Ray's."""

from __future__ import annotations

import os
import pickle
import queue
import random
import re
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from headrace.workers.lent_rows import Failed, Lost, Made, Rows, Work, rows_of
from PIL import Image
from timing import PATIENCE, with_attempts

import headrace as hr
from headrace import transforms as T
from headrace.loader import lending


class Makers:
    """Threads with a separate loader each. whims: possible fates of a part. carried: seconds that
    transferring a row takes. most: maximum number of bytes in transit."""

    def __init__(self, whims: str, count: int, carried: float, most: int) -> None:
        self.whims, self.count, self.carried, self.most = whims, count, carried, most
        self.out: dict[int, int] = {}  # rows requested
        self.largest = 0  # sum of them so far
        self.draws = random.Random(3)
        self.asked: queue.Queue[tuple[int, Rows] | None] = queue.Queue()
        self.made: queue.Queue[tuple[Hashable, Made | Exception]] = queue.Queue()
        self.threads: list[threading.Thread] = []
        self.number = 0
        self.closed = False

    def begin(self, work: Work) -> None:
        text = pickle.dumps((work.source, work.transforms, work.keywords))
        for _ in range(self.count):
            self.threads.append(threading.Thread(target=self.work, args=(text, work)))
            self.threads[-1].start()

    def work(self, text: bytes, work: Work) -> None:
        source, steps, keywords = pickle.loads(text)
        given = lending.keywords_under(work.terms(), keywords)
        with hr.Loader(source, steps, **given) as loader:
            engine = loader.assembly.engine()
            assert lending.facts(engine) == work.facts()
            while (part := self.asked.get()) is not None:
                token, rows = part
                whim = self.draws.choice(self.whims)
                if whim == "n":  # nothing
                    continue
                if whim in "df":
                    self.made.put((token, Lost("killed") if whim == "d" else Failed("no storage")))
                    continue
                made = rows_of(engine, rows)._replace(carried=self.carried * rows.size)
                self.made.put((token, made))
                if whim == "2":
                    self.made.put((token, made))

    def ask(self, rows: Rows, again: bool) -> Hashable | None:
        if self.asked.qsize() > 2 * self.count:
            return None
        self.number += 1
        self.out[self.number] = rows.size
        self.largest = max(self.largest, sum(self.out.values()))
        self.asked.put((self.number, Rows(*tuple(rows))))
        return self.number

    def answers(self, seconds: float) -> list[tuple[Hashable, Made | Exception]]:
        try:
            token, made = self.made.get(timeout=seconds)
        except queue.Empty:
            return []
        self.out.pop(token, None)
        return [(token, made)]

    def live(self) -> int:
        return len(self.threads)

    def room(self) -> int:
        return self.most

    def connected(self) -> bool:
        return True

    def counters(self) -> dict[str, Any]:
        return {"actors": self.live()}

    def close(self) -> None:
        for _ in self.threads:
            self.asked.put(None)
        for thread in self.threads:
            thread.join()
        self.threads.clear()
        self.closed = True


class Pool:
    """The argument of ``workers=``."""

    def __init__(
        self,
        whims: str = "o",
        count: int = 2,
        *,
        always: bool = True,
        carried: float = 0,
        most: int = 1 << 30,
    ) -> None:
        self.last: Makers | None = None
        self.given = whims, count, carried, most
        self.always = always

    def makers(self) -> Makers:
        self.last = Makers(*self.given)
        return self.last


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("photos")
    draws = np.random.default_rng(1)
    for number in range(60):
        pixels = draws.integers(0, 255, (40, 60, 3), np.uint8)
        path = folder / f"{number % 3}" / f"{number:02}.jpg"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(pixels).save(path)
        if number in (7, 31):
            path.write_bytes(path.read_bytes()[:300])
    yield folder


STEPS = [T.RandomResizedCrop(32), T.RandomHorizontalFlip(), T.ToDtype("float32", scale=True)]


def brighter(image: Any, rng: Any) -> Any:
    return image + np.float32(rng.random())


def told(loader: hr.Loader) -> list[Any]:
    return [{**bad, "file": os.path.basename(bad["file"])} for bad in loader.quarantine]


@pytest.mark.parametrize("whims", ["o", "ooodfn2"])
@pytest.mark.parametrize(
    "given",
    [
        {"transforms": STEPS, "shuffle": True, "on_error": "substitute"},
        {"transforms": STEPS, "shuffle": True, "on_error": "substitute", "shard": (1, 2)},
        {"transforms": STEPS, "shuffle": "streams", "on_error": "skip"},
        {"transforms": [*STEPS, T.MixUp(num_classes=3)], "on_error": "skip"},
        {"transforms": [*STEPS, brighter], "on_error": "substitute", "last_batch": "pad"},
    ],
)
def test_batches_and_bad_records_equal_those_of_one_process(
    photos: Path, given: dict[str, Any], whims: str
) -> None:
    given = {"global_batch_size": 16, "seed": 4, "threads": 1, "error_budget": 50, **given}
    pool = Pool(whims)
    with hr.Loader(photos, **given) as alone, hr.Loader(photos, **given, workers=pool) as helped:
        epochs = 0
        while epochs < 3 or (whims == "o" and not helped.stats().remote["received"]):
            epochs += 1
            assert epochs < 200
            for batch, other in zip(alone, helped, strict=True):
                for value, its in zip(batch, other, strict=True):
                    np.testing.assert_array_equal(value, its)
        assert told(helped) == told(alone) != []
        assert helped.state_dict() == alone.state_dict()
        stats = helped.stats()
        assert stats.records == alone.stats().records
        assert stats.remote["actors"] == 2
    assert pool.last is not None and pool.last.closed


def test_a_fatal_error_in_a_worker_is_raised_at_its_batch(photos: Path) -> None:
    given: dict[str, Any] = {"batch_size": 8, "threads": 1}
    with (
        hr.Loader(photos, STEPS, **given) as alone,
        hr.Loader(photos, STEPS, **given, workers=Pool()) as helped,
    ):
        seen = []
        for loader in (alone, helped):
            batches = 0
            with pytest.raises(hr.DataError) as failure:
                for _ in loader:
                    batches += 1
            seen.append((batches, str(failure.value)))
    assert seen[0] == seen[1]


def test_a_loader_continues_where_another_with_workers_stopped(photos: Path) -> None:
    given: dict[str, Any] = {"batch_size": 8, "shuffle": True, "on_error": "skip", "threads": 1}
    with hr.Loader(photos, STEPS, **given) as alone:
        wanted = [batch.image.copy() for batch in alone]
    with hr.Loader(photos, STEPS, **given, workers=Pool("od")) as first:
        batches = iter(first)
        got = [next(batches).image.copy() for _ in range(3)]
        state = first.state_dict()
    with hr.Loader(photos, STEPS, **given, workers=Pool("od")) as second:
        second.load_state_dict(state)
        got += [batch.image.copy() for batch in second]
    for image, its in zip(wanted, got, strict=True):
        np.testing.assert_array_equal(image, its)


def test_failing_workers_are_abandoned_and_rows_made_locally(
    photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(Pool):
        def makers(self) -> Makers:
            made = super().makers()

            def begin(work: Work) -> None:
                raise RuntimeError("no cluster")

            made.begin = begin  # type: ignore[method-assign]
            return made

    given: dict[str, Any] = {"batch_size": 8, "on_error": "skip", "threads": 1}
    expected = pytest.warns(hr.Warning, match="abandoned, and rows are made here: RuntimeError")
    with expected, hr.Loader(photos, STEPS, **given, workers=Failing()) as loader:
        for _ in range(2):
            assert sum(len(batch.image) for batch in loader) == 58
        loader.close()


def slowly(image: Any) -> Any:
    """Takes 3 ms without using a core, like work on other machines, which a test on one machine
    does not have."""
    time.sleep(0.003)
    return image


def until(loader: hr.Loader, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Runs epochs of the loader until its counters of remote workers have these values."""
    end = time.monotonic() + PATIENCE
    while not holds(remote := loader.stats().remote):
        assert time.monotonic() < end, remote
        for _ in loader:
            pass
    return remote


def test_remote_workers_that_do_not_pay_off_are_reported_and_not_used(
    photos: Path,
) -> None:
    given: dict[str, Any] = {"batch_size": 16, "on_error": "skip", "threads": 1}
    steps = [T.Resize(32), T.CenterCrop(32), slowly]

    def that_pay_off() -> None:
        with hr.Loader(photos, steps, **given, workers=Pool(always=False)) as loader:
            assert "workers" in repr(loader) and "no remote worker is ready" in repr(loader)
            remote = until(loader, lambda remote: remote["rows"] >= 300)
            made, own = remote["actor_ms_per_row"], remote["local_ms_per_row"]
            assert made >= 2 and made > 2 * own
            assert re.search(
                r"workers +remote workers save [\d.]+ of [\d.]+ ms per row", repr(loader)
            )
            assert remote["summary"] in repr(loader)
            asked = remote["requested"]
            assert until(loader, lambda remote: remote["requested"] > asked)["summary"].startswith(
                "remote"
            )

    # The same rows, if transferring one takes more than half as long as making it.
    def that_do_not() -> None:
        with hr.Loader(photos, steps, **given, workers=Pool(always=False, carried=10)) as loader:
            remote = until(
                loader, lambda remote: remote["rows"] >= 256 and not remote["outstanding"]
            )
            made, own = remote["actor_ms_per_row"], remote["local_ms_per_row"]
            assert own >= 10_000 and made < 2 * own
            says = f"remote workers do not pay off: making a row takes {made:.2f} ms, receiving it"
            assert remote["summary"].startswith(says) and says in repr(loader)
            for _ in range(3):
                for _ in loader:
                    pass
            assert loader.stats().remote["requested"] == remote["requested"]

    for check in (that_pay_off, that_do_not):
        with_attempts(check, 10)  # the times of rows are measured


def test_rows_in_transit_are_bounded_in_bytes(photos: Path) -> None:
    given: dict[str, Any] = {"batch_size": 16, "on_error": "skip", "threads": 1}
    row = 3 * 32 * 32 * 4 + 8
    for most in (row, 5 * row):
        pool = Pool(most=most)
        with hr.Loader(photos, STEPS, **given, workers=pool) as loader:
            until(loader, lambda remote: remote["received"] >= 10)
            assert pool.last is not None and 1 <= pool.last.largest <= most // row
    mixed = [*STEPS, T.MixUp(num_classes=3, group=8)]  # whose rows are sent in groups of eight
    for steps, most, rows in ((STEPS, row - 1, 1), (mixed, 7 * row, 8)):
        expected = pytest.warns(hr.Warning, match=rf"HR0839[^\0]*: {rows} rows of 12,\d+ bytes")
        workers = Pool(most=most)
        with expected, hr.Loader(photos, steps, **given, workers=workers) as loader:
            until(loader, lambda remote: "HR0839" in remote["summary"])
            assert "rows are made here: ConfigError" in repr(loader)
            loader.close()
        assert workers.last is not None and workers.last.closed


def test_rows_that_cannot_be_lent_are_made_locally_with_a_message(photos: Path) -> None:
    with hr.Loader(
        photos, STEPS, batch_size=8, on_error="skip", fields=["image", "key"], workers=Pool()
    ) as loader:
        assert sum(len(batch.image) for batch in loader) == 58
        assert 'rows are made here: "key" has values of different lengths' in repr(loader)
        assert loader.stats().remote["requested"] == 0
    with pytest.raises(hr.ConfigError, match="workers is a pool of remote workers"):
        hr.Loader(photos, STEPS, batch_size=8, workers=4)
