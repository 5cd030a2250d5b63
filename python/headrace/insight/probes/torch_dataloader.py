# SPDX-License-Identifier: Apache-2.0
"""Measures a torch DataLoader's work per record by calling and timing its dataset and collate_fn.
Works on a copy of the dataset whose transforms are timed one by one; the user's dataset is
unchanged. Imports neither torch nor Pillow, and uses them only if the program has imported them.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from headrace.insight.measure import thread_clock
from headrace.insight.measure.loop import WINDOWS
from headrace.insight.model.case import Stage
from headrace.insight.probes.ours import Anatomy, Price

_ENDING = 5.0  # seconds that workers may take for batches that are not used


def is_dataloader(loader: Any) -> bool:
    """Whether it looks like torch's DataLoader over a map-style dataset."""
    dataset = getattr(loader, "dataset", None)
    return (
        hasattr(loader, "num_workers")
        and hasattr(loader, "collate_fn")
        and hasattr(dataset, "__getitem__")
        and hasattr(dataset, "__len__")
    )


class _Clock:
    """Wall and CPU seconds by name; the time of nested calls counts only for the inner one."""

    def __init__(self) -> None:
        self.busy: dict[str, float] = defaultdict(float)
        self.waited: dict[str, float] = defaultdict(float)
        self._inner = [(0.0, 0.0)]

    def timed(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            begin = thread_clock.now()
            self._inner.append((0.0, 0.0))
            try:
                return call(*args, **kwargs)
            finally:
                spent = thread_clock.now().since(begin)
                inner = self._inner.pop()
                outer = self._inner.pop()
                self._inner.append((outer[0] + spent.cpu, outer[1] + spent.waited))
                self.busy[name] += spent.cpu - inner[0]
                self.waited[name] += max(0.0, spent.waited - inner[1])

        return run


def examine(loader: Any, seconds: float) -> tuple[Anatomy, list[dict[str, Any]]]:
    """Stages of a record in one process, and the slowest records."""
    _let_workers_end(loader)
    clock = _Clock()
    dataset, operators = _timed_copy(loader.dataset, clock)
    get = clock.timed("rest", dataset.__getitem__)
    collate = clock.timed("collate", loader.collate_fn or (lambda items: items))
    batch_size = loader.batch_size or 1
    times: list[tuple[float, int]] = []
    passed: list[list[float]] = []  # cumulative time of each operator after each record
    items: list[Any] = []
    failure = ""
    stop = time.perf_counter() + seconds
    with _decoding_timed(clock):
        for number in _order(len(dataset)):
            begin = time.perf_counter()
            try:
                items.append(get(number))
                if len(items) == batch_size:
                    collate(items)
                    items = []
            except Exception as error:
                failure = f"record {number}: {type(error).__name__}: {error}"
                break
            times.append((time.perf_counter() - begin, number))
            passed.append([clock.busy[n] + clock.waited[n] for n in operators])
            if time.perf_counter() >= stop and len(times) > 3:
                break
    count = max(1, len(times))
    stages = _stages(clock, operators, count)
    prices = _prices(operators, passed)
    total = sum(stage.seconds for stage in stages)
    longest = {number: took for took, number in sorted(times)}
    slowest = sorted(((took, n) for n, took in longest.items()), reverse=True)[:5]
    found = [
        {"key": key_of(loader.dataset, n), "ms": round(1000 * took, 2), "record": n}
        for took, n in slowest
    ]
    return Anatomy(tuple(stages), prices, 1 / total if total > 0 else 0.0, failure), found


def _prices(operators: list[str], passed: list[list[float]]) -> list[Price]:
    """Each operator's mean, and the difference between thirds of the records."""
    if len(passed) < WINDOWS:
        return []
    third = len(passed) // WINDOWS
    ends = [third * window - 1 for window in range(1, WINDOWS + 1)]
    prices = []
    for number, name in enumerate(operators):
        upto = [0.0, *(passed[end][number] for end in ends)]
        parts = [(after - before) / third for before, after in pairwise(upto)]
        prices.append(Price(name, passed[-1][number] / len(passed), max(parts) - min(parts)))
    return prices


def _let_workers_end(loader: Any) -> None:
    """Waits until persistent workers have finished their requests, because they also use the
    disk."""
    iterator: Any = getattr(loader, "_iterator", None)
    results = getattr(iterator, "_worker_result_queue", None)
    stop = time.perf_counter() + _ENDING
    try:
        while results is not None and results.qsize() < iterator._tasks_outstanding:
            if time.perf_counter() > stop:
                return
            time.sleep(0.005)
    except (AttributeError, NotImplementedError, OSError, ValueError):
        return  # another version of torch, or a closed queue


def _stages(clock: _Clock, operators: list[str], count: int) -> list[Stage]:
    """Time in which a core was busy is attributed to the operator, waiting to the storage."""
    kinds = {
        "rest": ("the dataset's own code", "python"),
        "decode": ("decode", "decode"),
        "collate": ("collate", "collate"),
    }
    stages, waited = [], 0.0
    for name, busy in clock.busy.items():
        text, kind = kinds.get(name, (name, "operator"))
        if name in operators:  # waiting still makes a record slow
            busy += clock.waited[name]
        else:
            waited += clock.waited[name]
        stages.append(Stage(text, kind, busy / count))
    stages.append(Stage("reading", "storage", waited / count, ("disk",)))
    return [stage for stage in stages if stage.seconds > 0]


def _timed_copy(dataset: Any, clock: _Clock) -> tuple[Any, list[str]]:
    """A copy whose ``transform`` (a Compose, or one callable) is timed, and the names of the
    parts."""
    if not callable(getattr(dataset, "transform", None)):
        return dataset, []
    names: list[str] = []

    def timed(parts: list[Any]) -> list[Any]:
        names.extend(names_of(parts))
        return [clock.timed(name, part) for name, part in zip(names, parts, strict=True)]

    transform = with_parts(dataset.transform, timed)
    if transform is None:
        transform = timed([dataset.transform])[0]
    return _with_transform(dataset, transform), names


def _with_transform(dataset: Any, transform: Any) -> Any:
    """A copy of a dataset with this transform."""
    made = copy.copy(dataset)
    made.transform = transform
    pair = getattr(dataset, "transforms", None)
    if getattr(pair, "transform", None) is dataset.transform:
        made.transforms = copy.copy(pair)  # torchvision's pair with target_transform
        made.transforms.transform = transform
    return made


def with_parts(transform: Any, changed: Callable[[list[Any]], list[Any]]) -> Any:
    """A copy with another list of transforms: a Compose has one, and so does a wrapper with a
    Compose as its ``transforms``. None if there is no such list."""
    inner = getattr(transform, "transforms", None)
    if isinstance(inner, (list, tuple)) and inner and all(map(callable, inner)):
        other: Any = changed(list(inner))
    elif callable(inner):
        other = with_parts(inner, changed)
    else:
        return None
    if other is None:
        return None
    made = copy.copy(transform)
    try:
        made.transforms = other
    except (AttributeError, TypeError):  # it is read-only, or a torch submodule
        return None
    return made


def names_of(parts: list[Any]) -> list[str]:
    """Names of transforms; a repeated name has a number."""
    names: list[str] = []
    for part in parts:
        name = getattr(part, "__name__", type(part).__name__)
        names.append(name if name not in names else f"{name} ({len(names) + 1})")
    return names


@contextlib.contextmanager
def _decoding_timed(clock: _Clock) -> Iterator[None]:
    """Pillow's decoding, counted separately if the program uses Pillow; restored afterwards."""
    if "PIL.Image" not in sys.modules:
        yield
        return
    module = importlib.import_module("PIL.ImageFile")  # Pillow itself does so for its first file
    picture: Any = module.ImageFile
    original = picture.load
    timed = clock.timed("decode", original)

    def load(self: Any) -> Any:
        return timed(self)

    picture.load = load
    try:
        yield
    finally:
        picture.load = original


def _order(count: int) -> Iterator[int]:
    """Random records, repeatedly, independent of the global generators."""
    import numpy as np

    draw = np.random.default_rng(0)
    while count:
        yield from map(int, draw.permutation(count))


def key_of(dataset: Any, number: int) -> str:
    samples = getattr(dataset, "samples", None)
    if isinstance(samples, list) and isinstance(samples[number], tuple):
        return str(samples[number][0])
    return str(number)


def rebuilt(loader: Any, **changes: Any) -> Any:
    """A DataLoader of the same class, with the same samplers and other keywords."""
    names = [
        "dataset",
        "num_workers",
        "collate_fn",
        "pin_memory",
        "timeout",
        "worker_init_fn",
        "generator",
    ]
    if changes.get("num_workers", loader.num_workers) > 0:
        names += ["multiprocessing_context", "persistent_workers"]
        if loader.num_workers > 0:  # otherwise it is None
            names.append("prefetch_factor")
    keywords = {name: getattr(loader, name) for name in names if hasattr(loader, name)}
    if not changes.get("num_workers", loader.num_workers):
        keywords["timeout"] = 0  # invalid without workers
    if loader.batch_size is None and getattr(loader, "batch_sampler", None) is not None:
        keywords["batch_sampler"] = loader.batch_sampler  # a user-defined class
    else:
        keywords.update(batch_size=loader.batch_size, sampler=loader.sampler)
        keywords["drop_last"] = loader.drop_last
    return type(loader)(**{**keywords, **changes})


def without_transform(loader: Any, name: str) -> Any:
    """A loader like this one, without the dataset's transform of this name, as `examine` names
    them.
    """

    def others(parts: list[Any]) -> list[Any]:
        return [part for part, each in zip(parts, names_of(parts), strict=True) if each != name]

    transform = with_parts(loader.dataset.transform, others)
    return rebuilt(loader, dataset=_with_transform(loader.dataset, transform))
