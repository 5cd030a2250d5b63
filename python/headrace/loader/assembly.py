# SPDX-License-Identifier: Apache-2.0
"""The parts of a loader, and the engine loaders made from them. Internal: for the modules of
Headrace that inspect a loader (inspection, the doctor, the watch, frameworks). An Assembly changes
only while the caller holds its loader's turn (loader/turn.py).
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from headrace import _core, counters, library_steps
from headrace.arguments import INT32, integer
from headrace.errors import warn
from headrace.loader.options import engine_options, sampler_given
from headrace.loader.shard import ALONE, Shard, machines, resolve_shard
from headrace.loader.turn import CLOSED
from headrace.per_record import Layout
from headrace.pipeline import Pipeline
from headrace.sampling import Batches, engine_sampler
from headrace.sources import Source
from headrace.sources import open as open_source
from headrace.surroundings import Surroundings
from headrace.workers.pool import Pool

if TYPE_CHECKING:
    from headrace.sources.stream import OpenedStream
    from headrace.sources.stream_reader import StreamReader


def _native(source: Source, transforms: Any) -> Any:
    """A torchvision Compose as our list; anything else unchanged."""
    if not library_steps.is_composed(transforms):
        return transforms
    from headrace.migrate.composed import native_steps  # late

    return native_steps(source, transforms)


def _warn(reader: StreamReader, message: str) -> None:
    """Warns; adds what a stream waits for to what the engine says about a long wait."""
    awaited = reader.awaited() if message.startswith(_LONG_WAIT) else ""
    warn(f"{message}; {awaited}" if awaited else message)


_LONG_WAIT = "no batch for "  # how the engine's warning begins
_TABLES = ("decoded", "finished_before_transfer", "stages")  # tables of counters, all of which grow


def _sum_of_counters(earlier: dict[str, Any], present: dict[str, Any]) -> dict[str, Any]:
    """The summed counters of two consecutive engine loaders; values that are not counters are the
    later one's.
    """
    if not earlier:
        return present
    out = dict(present)
    for name, value in present.items():
        if name in _TABLES:
            out[name] = {each: earlier[name].get(each, 0) + count for each, count in value.items()}
        elif counters.LOADER.get(name, {}).get("grows"):
            out[name] = earlier[name] + value
    return out


class Assembly:
    """A loader's parts: ``source``, ``pipeline``, the keywords ``given``, ``workers``, ``shard``;
    ``stream`` is the source if it is a stream. given: the keywords as the user wrote them. kept:
    options of the engine that are not keywords.
    """

    def __init__(
        self, source: Any, transforms: Any, given: dict[str, Any], kept: Mapping[str, Any]
    ) -> None:
        self.given = given
        self.source = open_source(source).opened()
        self.stream = cast("OpenedStream", self.source) if self.source.is_stream else None
        self.pipeline = Pipeline(_native(self.source.sample, transforms))
        self.workers = Pool(integer("python_workers", given["python_workers"], maximum=INT32))
        self.shard = resolve_shard(given["shard"])
        if self.stream is not None:
            from headrace.loader.stream_options import check_options, check_steps

            check_options(self.stream, given, self.shard.world_size)
            check_steps(self.pipeline.all_steps())
        self.is_settled = False  # an iteration has begun, so the shard is final
        self._surroundings = Surroundings()
        self._kept = {**kept, "lends": given["workers"] is not None}
        if self._kept["lends"] and given["finish"] == "auto":
            self._kept["finish"] = "cpu"  # rows that a device finishes are not lent
        self._streams = 0  # number of streams of the last loaded state
        self._renewed: dict[str, Any] = {}  # keywords of the present engine loader that differ
        self._counted: dict[str, Any] = {}  # counters of the engine loaders that were replaced
        self._in_vain: dict[str, int] = {}
        self._bad_records: list[str] = []  # of the replaced engine loaders
        self._inspector: _core.Loader | None = None
        self._engine: _core.Loader | None = self.make()

    @property
    def present_engine(self) -> _core.Loader | None:
        """The current engine loader, without checking the process group; None after close()."""
        return self._engine

    def make(self, pipeline: Pipeline | None = None, **changes: Any) -> _core.Loader:
        """A separate engine loader, with these keywords changed."""
        given = {**self.given, **self._kept, **changes}
        shard = self.shard if "shard" not in changes else resolve_shard(changes["shard"])
        steps = pipeline or self.pipeline
        runner = self.workers.runner if self.workers.count else self._surroundings.runner
        specs = steps.list_specs(runner), steps.field_specs(runner)
        options = engine_options(given, shard)
        options["python_workers"] = self.workers.processes
        sampler, options["shuffle"] = engine_sampler(
            sampler_given(given), self.source, options["shuffle"], self._batches(options, shard)
        )
        device = given.get("device")
        shown = contextlib.nullcontext() if self.stream is None else self.stream.reader.showing()
        told = warn if self.stream is None else functools.partial(_warn, self.stream.reader)
        with shown:
            return _core.Loader(
                self.source.engine, *specs, steps.dropped, options, sampler, device, told
            )

    def _batches(self, options: Mapping[str, Any], shard: Shard) -> Batches:
        size, together = options["batch_size"], options["global_batch_size"]
        records = together or (size or 1) * shard.world_size  # the engine rejects both and neither
        return Batches(min(records, INT32), machines(shard), self._streams)

    @contextlib.contextmanager
    def streams_of(self, state: Mapping[str, int]) -> Iterator[None]:
        """When a state is loaded: uses its number of streams unless the user set one. On an error,
        nothing changes.
        """
        engine, before = self.engine(), self._streams
        self._streams = state.get("streams", 0)
        made = self._streams if self._streams != engine.state().get("streams", 0) else 0
        try:
            if made:
                self._engine = self.make()
            yield
        except BaseException:
            if made and self._engine is not None and self._engine is not engine:
                self._engine.close()
            self._engine, self._streams = engine, before
            raise
        if self._engine is not engine:
            engine.close()

    def capture_surroundings(self) -> None:
        """Makes Python code on the engine's threads use this thread's context from now on."""
        self._surroundings.capture()
        for reader in self.source.readers:
            reader.surroundings = self._surroundings

    def engine(self) -> _core.Loader:
        """The engine's loader to iterate, recreated if the process group was initialized before the
        first iteration. Raises ConfigError HR0161 after close().
        """
        _core.throw_if_forked()
        if self._engine is None:
            raise CLOSED.error("this loader is closed", hint="create a new loader")
        if not self.is_settled:
            shard = resolve_shard(self.given["shard"])
            if shard[:2] != self.shard[:2]:
                engine = self.make(shard=shard[:2])  # raises if the number of ranks is invalid
                engine.set_epoch(self._engine.epoch())
                self._engine.close()
                self._engine = engine
                self.forget_inspector()
            self.shard = shard
        return self._engine

    def renew(self, **changes: Any) -> _core.Loader:
        """Replaces the engine's loader with one with slots pinned for a device, or not pinned."""
        engine = self.engine()
        state = engine.state()
        engine.close()
        self._renewed = changes
        engine = self._engine = self.make(**changes)
        engine.load_state(state)
        return engine

    def exchange(self) -> _core.Loader:
        """Replaces the engine's loader for a stream whose number of records has changed. Counters
        continue. An error changes nothing.
        """
        engine = self.engine()
        made = self.make(**self._renewed)
        self._counted = _sum_of_counters(self._counted, engine.stats())
        self._bad_records += engine.quarantine()
        engine.close()
        self._engine = made
        return made

    def discount(self, **counters: int) -> None:
        """Subtracts batches that the consumer did not receive from the engine's counters."""
        for name, count in counters.items():
            self._in_vain[name] = self._in_vain.get(name, 0) + count

    def counted(self) -> dict[str, Any]:
        """The engine's counters."""
        out = _sum_of_counters(self._counted, self.engine().stats())
        return {**out, **{name: out[name] - count for name, count in self._in_vain.items()}}

    def bad_records(self) -> list[str]:
        """The bad records as lines of JSON."""
        return self._bad_records + self.engine().quarantine()

    def set_shard(self, shard: Shard, state: Mapping[str, int]) -> None:
        """Replaces the engine's loader with one for another part of the global batch, at this
        state. An error changes nothing.
        """
        engine = self.engine()
        before, self._streams = self._streams, engine.state().get("streams", 0)
        made = None
        try:
            made = self.make(shard=shard[:2])
            made.load_state(dict(state))
        except BaseException:
            self._streams = before
            if made is not None:
                made.close()
            raise
        engine.close()
        self._renewed, self._counted, self._in_vain, self._bad_records = {}, {}, {}, []
        self._engine, self.shard, self.given["shard"] = made, shard, shard[:2]
        self.forget_inspector()

    def may_join_ranks(self) -> bool:
        """Whether a process group may still be initialized."""
        return not self.is_settled and self.shard.origin == ALONE

    def batch_sizes(self) -> tuple[int, int]:
        """Records of a full batch, or of the largest: of this rank, and of all ranks together."""
        size, world = self.given["batch_size"], self.shard.world_size
        if size is not None:
            return size, size * world
        together = self.given["global_batch_size"] or self.engine().state()["global_batch"]
        return -(-together // world), together

    def field_names(self) -> tuple[str, ...]:
        """The delivered fields, in order."""
        return tuple(output["name"] for output in self.engine().outputs())

    def layout(self) -> Layout:
        """The layout of a batch: its fields, and how they divide into records."""
        return Layout.of(self.engine().outputs())

    def inspector(self) -> _core.Loader:
        """Makes single batches independently of the iteration, with their ids and keys. Raises
        ConfigError HR0690 for a stream, which has none.
        """
        if self.stream is not None:
            self.stream.refuse("its batches can only be inspected in the iteration")
        if self._inspector is None:
            fields = self.field_names()
            hidden = [name for name in ("id", "key") if name not in fields]
            self._inspector = self.make(
                fields=[*fields, *hidden], quarantine=None, resident=False, view=False, lends=False
            )
        return self._inspector

    def forget_inspector(self) -> None:
        """Drops the inspector, which was made with the seed and rank of the engine loader."""
        inspector, self._inspector = self._inspector, None
        if inspector is not None:
            inspector.close()

    def close(self, for_good: bool = False) -> None:
        """for_good: whether the interpreter exits: then the source is released as well. A Python
        source may refer back to the loader, through its class and the script's globals; the garbage
        collector does not see that cycle.
        """
        self.workers.close()  # before the engine, which waits for their answers
        if self._engine is not None:
            self._engine.close()
        self.forget_inspector()
        self._engine = None
        if for_good:
            self.__dict__.pop("source", None)  # later cleanup may close it again
            self.stream = None
