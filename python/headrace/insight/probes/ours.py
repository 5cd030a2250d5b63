# SPDX-License-Identifier: Apache-2.0
"""Our loader's work per record: its stages, the cost of each operator, slow records.

Everything runs on separate loaders over the same source, with other transforms or one thread; the
user's loader is not touched. An operator's cost is the time that the pipeline saves without it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Container
from typing import Any

import numpy as np

from headrace import _core, transforms
from headrace.errors import Error
from headrace.insight.measure.file_reads import DEPTHS, Reads
from headrace.insight.measure.loop import WINDOWS, Timed, time_loop
from headrace.insight.measure.stored import read_ahead
from headrace.insight.model.case import Stage
from headrace.insight.probes.seeking import seek_share
from headrace.loader import Loader
from headrace.pipeline import Pipeline

_NEGLIGIBLE = 0.02  # of a record's time; lower costs are noise
_READ = 16  # minimum number of records read
_TOGETHER = 4  # records that a thread reads before it returns to Python
_DECODE = ("decode", "prepare", "transform")
_ENGINE = {"resample": "resizing", "store": "writing batches"}
_FEATURES = "extracting features"  # for audio, which the engine counts as transform
_SEEKING = "seeking in videos: frames that are decoded on the way to those of the clip"
_CHANGED = {  # replace the user's keywords: an examination caches and writes nothing
    "quarantine": None,
    "resident": False,
    "cache": None,
    "disk_cache": None,
    "shard": False,
    "sampler": None,
}


@dataclasses.dataclass(frozen=True)
class Price:
    """Cost of an operator: seconds of one thread per record; negative if it saves time."""

    name: str
    seconds: float
    spread: float  # the difference between repeated measurements, in seconds


@dataclasses.dataclass(frozen=True)
class Anatomy:
    """A record's path through a loader: stages, operators, rates with one thread and with all."""

    stages: tuple[Stage, ...]
    prices: list[Price]
    one_thread: float
    failure: str = ""


def like(
    loader: Loader, source: Any = None, pipeline: Pipeline | None = None, **changes: Any
) -> Loader:
    """A loader like the user's, with another source, other transforms or keywords."""
    given = {**loader.assembly.given, **_CHANGED, **changes}
    if given["index"] == "auto":
        given["index"] = "use"  # which stores no indexes
    if given.get("global_batch_size") or given.get("batch_size") is None:
        given.update(batch_size=loader.batch_size, global_batch_size=None)
    return _made(
        loader.source if source is None else source, pipeline or loader.assembly.pipeline, given
    )


def _made(source: Any, pipeline: Pipeline, given: dict[str, Any]) -> Loader:
    if pipeline.by_field or pipeline.dropped:
        transforms: Any = {**pipeline.by_field, **dict.fromkeys(pipeline.dropped)}
    else:
        transforms = pipeline.steps
    return Loader(source, transforms, **given)


def examine(loader: Loader, reads: Reads | None, seconds: float) -> Anatomy:
    """Stages with one thread, then each operator's cost, measured by omitting it."""
    names = names_of(loader.assembly.pipeline)
    share = seconds / (2 + len(names))
    parts, one = stages_of(like(loader, threads=1), reads, 2 * share)
    prices: list[Price] = []
    for number, name in enumerate(names):
        price = _price(loader, number, share, one)
        if price is not None:
            prices.append(dataclasses.replace(price, name=name))
    rate = one.rate if one.windows else 0.0
    return Anatomy(_with_operators(parts, prices, loader), prices, rate, one.failure)


def stages_of(loader: Loader, reads: Reads | None, seconds: float) -> tuple[list[Stage], Timed]:
    """Stages of a loader with one thread, and how it ran. Closes it."""
    with loader:
        before = loader.stats()
        timed = time_loop(loader, None, seconds)
        after = loader.stats()
        records = max(1, int(after["records"] - before["records"]))
        spent = {
            name: (value - before["stages"][name]) / records
            for name, value in after["stages"].items()
        }
    stages = [_reading(spent["read"], reads)]
    if _hears_only(loader):
        stages.append(Stage("decode", "decode", spent["decode"]))
        stages.append(Stage(_FEATURES, "operator", spent["transform"]))
    elif (lost := seek_share(loader)) is not None:
        stages.append(Stage("decoding video frames", "decode", (1 - lost) * spent["decode"]))
        stages.append(Stage(_SEEKING, "decode", lost * spent["decode"]))
        stages.append(Stage("cropping and colors", "operator", spent["transform"]))
    else:
        stages.append(Stage("decode", "decode", sum(spent[name] for name in _DECODE)))
    stages += [Stage(text, "operator", spent[name]) for name, text in _ENGINE.items()]
    if spent["python"] > 0:
        stages.append(Stage("Python transforms", "python", spent["python"], ("gil",)))
    return [stage for stage in stages if stage.seconds > 0], timed


def _hears_only(loader: Loader) -> bool:
    """Whether its records are audio clips without images."""
    kinds = {field.kind for field in loader.source.schema}
    return "audio" in kinds and not any(field.is_picture for field in loader.source.schema)


def _reading(seconds: float, reads: Reads | None) -> Stage:
    """Resources of reading: the storage and, if the data comes from memory, the cores."""
    busy = reads is not None and reads.cpu_share > 0.5
    return Stage("reading", "storage", seconds, ("disk", "cores") if busy else ("disk",))


def _price(loader: Loader, number: int, seconds: float, one: Timed) -> Price | None:
    """The cost of a transform; None if the pipeline is invalid without it, or there are too few
    windows."""
    try:
        with like(
            loader, pipeline=without(loader.assembly.pipeline, {number}), threads=1
        ) as without_it:
            timed = time_loop(without_it, None, seconds)
    except (Error, ValueError, TypeError):
        return None
    if timed.failure or min(len(timed.windows), len(one.windows)) < WINDOWS:
        return None
    return Price("", 1 / one.rate - 1 / timed.rate, _spread(one) + _spread(timed))


def _spread(timed: Timed) -> float:
    """The spread of the windows, in seconds per record."""
    rates = [window.rate for window in timed.windows]
    return 1 / min(rates) - 1 / max(rates)


def _with_operators(parts: list[Stage], prices: list[Price], loader: Loader) -> tuple[Stage, ...]:
    """The engine's stages, with the time of the steps subtracted and listed under their names."""
    total = sum(stage.seconds for stage in parts)
    steps = zip(
        names_of(loader.assembly.pipeline), loader.assembly.pipeline.all_steps(), strict=True
    )
    python = {name for name, step in steps if hasattr(step, "home")}
    stages = []
    for part in parts:
        if part.kind != "python":
            stages.append(part)
            continue
        # The engine counts all Python transforms in one stage, which is divided in proportion to
        # their costs.
        known = [p for p in prices if p.name in python and p.seconds > 0]
        whole = sum(price.seconds for price in known)
        named = [Stage(p.name, "python", part.seconds * p.seconds / whole, ("gil",)) for p in known]
        stages += named or [part]
    engine = [stage for stage in stages if stage.kind == "operator"]
    about = f"{_FEATURES}: " if any(stage.name == _FEATURES for stage in engine) else ""
    room = sum(stage.seconds for stage in engine)
    for price in prices:
        if price.name in python or price.seconds < max(_NEGLIGIBLE * total, price.spread):
            continue
        taken = min(price.seconds, room)
        if taken > 0:
            stages.append(Stage(about + price.name, "operator", taken))
            room -= taken
    rest = {stage: room * stage.seconds / (sum(s.seconds for s in engine) or 1) for stage in engine}
    kept = [dataclasses.replace(s, seconds=rest[s]) if s in rest else s for s in stages]
    return tuple(stage for stage in kept if stage.seconds > 0)


def names_of(pipeline: Pipeline) -> list[str]:
    """Names of all steps; a repeated name has a number."""
    names: list[str] = []
    for step in pipeline.all_steps():
        name = str(step.name)
        seen = sum(known.partition(" (")[0] == name for known in names)
        names.append(f"{name} ({seen + 1})" if seen else name)
    return names


def without(pipeline: Pipeline, numbers: Container[int]) -> Pipeline:
    """The pipeline without the steps of these numbers, as counted by all_steps()."""
    made, number = Pipeline(()), 0
    made.dropped = pipeline.dropped
    kept: list[list[Any]] = []
    for steps in (pipeline.steps, *pipeline.by_field.values()):
        kept.append([s for n, s in enumerate(steps, number) if n not in numbers])
        number += len(steps)
    made.steps = kept[0]
    made.by_field = dict(zip(pipeline.by_field, kept[1:], strict=True))
    return made


def read_records(loader: Loader, seconds: float) -> Reads:
    """Stored records, read randomly and in order, by more and more threads."""
    source = loader.source
    share = seconds / (len(DEPTHS) + 1)
    order = np.random.default_rng(0).permutation(len(source))
    rates: dict[int, float] = {}
    busy = size = 0.0
    for depth in DEPTHS:
        rates[depth], used, bytes_each = _stream(source, order, depth, share)
        if depth == 1:
            busy, size = used, bytes_each
    in_order, _, _ = _stream(source, np.arange(len(source)), 1, share)
    return Reads(rates, in_order * size, size, 1 / rates[1], busy, False, False)


def _stream(source: Any, order: Any, threads: int, seconds: float) -> tuple[float, float, float]:
    """Records per second, the fraction of time that a core was busy, and bytes per record."""
    stop = time.perf_counter() + seconds
    count = max(_READ, 4 * threads)
    while True:
        # Any source is read to the end, since an abandoned thread would continue reading.
        wall, cpu, size = _read_some(source, np.resize(order, count), threads)
        if time.perf_counter() + 2 * wall > stop:
            return count / wall, min(1.0, cpu / wall / threads), size / count
        count *= 2  # enough that starting threads does not matter


def _read_some(source: Any, numbers: Any, threads: int) -> tuple[float, float, float]:
    """Wall and CPU seconds, and bytes, of reading some records."""
    start, cpu, size = time.perf_counter(), time.process_time(), 0
    for batch in read_ahead(_core.StoredReader(source.engine), numbers, _TOGETHER, threads):
        for field in range(len(source.schema)):
            size += sum(_size(value) for value in batch.views(field))
    return time.perf_counter() - start, time.process_time() - cpu, size


def _size(value: Any) -> int:
    return int(getattr(value, "nbytes", 0) or (len(value) if hasattr(value, "__len__") else 0))


def _reader(loader: Loader) -> Callable[[int], Any]:
    """Decodes a record without transforms; for a video, a clip of it."""
    source = loader.source
    videos = tuple(field.name for field in source.schema if field.kind == "video")
    if not videos:
        return lambda number: source[number]
    clip = transforms.CenterVideoClip(16, stride=4)
    keywords: Any = {"batch_size": 1, "threads": 1, "shard": False, "ragged": "list"}
    single = Loader(source, [clip], fields=videos, **keywords)
    with contextlib.suppress(Error):
        single.batch(0, 0)  # starts the decoder
    return lambda number: single.batch(0, number)


def slowest_records(loader: Loader, seconds: float, count: int = 5) -> list[dict[str, Any]]:
    """Keys and milliseconds of the slowest records, as far as time allowed."""
    found: list[tuple[float, int]] = []
    read = _reader(loader)
    stop = time.perf_counter() + seconds
    order = np.random.default_rng(1).permutation(len(loader.source))
    for number in order:
        begin = time.perf_counter()
        try:
            read(int(number))
        except Error:
            continue
        found.append((time.perf_counter() - begin, int(number)))
        if time.perf_counter() >= stop:
            break
    found.sort(reverse=True)
    return [
        {"key": loader.source.key(number), "ms": round(1000 * took, 2), "record": number}
        for took, number in found[:count]
    ]
