# SPDX-License-Identifier: Apache-2.0
"""The loader: source + transforms + order -> batches.

import headrace as hr
from headrace import transforms as T

train = hr.Loader("train/", hr.presets.imagenet_train(224), batch_size=256, shuffle=True)
for images, labels in train.torch("cuda"):
    ...
"""

from __future__ import annotations

import functools
import json
import os
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headrace import _core, inspection, options, resume_state
from headrace.charts.grid import Grid
from headrace.delivered import Form, Outputs
from headrace.delivery.device_run import DeviceRun
from headrace.errors import warn
from headrace.frameworks.numpy import hand_over
from headrace.iteration import CLOSED, Iteration, exiting, live, refuse_dataloader_worker
from headrace.pipeline import Pipeline
from headrace.sampling import engine_sampler
from headrace.sources import Source
from headrace.sources import open as open_source
from headrace.turn import Turn

_NUMPY = Form(hand_over)
_PATIENCE = 1.0  # seconds that close() waits for a consumer that is asked to leave


class Loader(Outputs):
    """Batches of a source, in exact order, epoch after epoch.

    ``for batch in loader`` runs one epoch; each loop is the next one. A batch is a namedtuple of
    fields; arrays are NumPy's, share the engine's memory, may be written to and may be kept.
    ``loader.torch()`` is the loader with torch's tensors; see also tensorflow, jax, paddle, mxnet.

    Args:
        source: what ``headrace.open`` takes.
        transforms: a list of headrace.transforms and callables, or a dictionary that gives each
            field its own list (None drops the field).
        batch_size: records a batch of this process. global_batch_size: of all ranks together;
            exactly one of the two is given.
        shuffle: each epoch in another order, a function of (seed, epoch). True: all records.
            "blocks": blocks of neighbouring records (a few MiB each), and the records in
            shuffle_window of them at a time: for disks on which random reads are slow.
        seed: of every order and draw.
        sampler: record indices, or an object of headrace.sampling.
        fields: names and order of what is delivered; beside the source's also id, key, valid.
        python_workers: processes for the steps in Python, instead of one thread of this one: for
            steps that hold the GIL. The same batches; see docs/migrating.md.
        threads: default, the allowed cores. memory_limit: bytes or "2 GiB"; default, a quarter of
            what is available. cache: bytes of it for records as they are stored: what was read
            first stays in memory for all epochs, shared by the loaders of this process.
        resident: keep all records in memory as the steps before the first random one leave them
            (uint8), inside memory_limit: the same batches, decoded once. "auto": where they take at
            most half of memory_limit. They are made when the first batch is asked for. See
            docs/resident.md.
        on_error: "raise", "substitute" or "skip" a bad record. error_budget: how many an epoch may
            have, as a count, a share or both. quarantine: a JSON-lines file that lists them.
        last_batch: "keep", "drop" or "pad" the incomplete one; the field ``valid`` then says which
            records count.
        shard: "auto" (torch.distributed or torchrun), False, or (rank, world_size).
        memory_format: "channels_first" or "channels_last" in memory; the shape is (B, C, H, W).
        ragged: "list" delivers fields whose records differ in shape as lists.
        damaged: "refuse": a JPEG that lacks rows which are wanted is a bad record, as every PNG
            that does; other damage is repaired as libjpeg does it, counted in ``stats()`` and said
            once an epoch. "repair" delivers grey where rows are missing. strict: any damage inside
            a picture is an error. exif_orientation: turn pictures upright.
        sixteen_bit: grey pictures of 16 bits are refused; "high_byte" delivers value / 256, "clip"
            min(value, 255), as Pillow's convert() does.
        max_pixels: a cap on a picture's declared size.
        patience: seconds that a wait for a batch may take before a warning says what it waits for.
        index: where in each JPEG its rows begin, for less decoding and the same pixels. "use" the
            one that ``headrace.index`` made, if it did; "auto": also note it while decoding, so
            that the next epochs are faster; a path of one made elsewhere; False.

    docs/loader.md has the cost of each, and an example. Raises ConfigError before any thread starts
    where the call makes no sense.
    """

    def __init__(
        self,
        source: Any,
        transforms: Any = (),
        *more: Any,
        batch_size: int | None = None,
        global_batch_size: int | None = None,
        shuffle: bool | str = False,
        shuffle_window: int = 32,
        seed: int = 0,
        sampler: Any = None,
        fields: str | Sequence[str] | None = None,
        python_workers: int = 0,
        threads: int | None = None,
        memory_limit: int | str | None = None,
        cache: int | str | None = None,
        resident: bool | str = False,
        on_error: str = "raise",
        error_budget: int | float | tuple[int, float] | None = None,
        quarantine: str | os.PathLike[str] | None = None,
        last_batch: str = "keep",
        shard: Any = "auto",
        memory_format: Any = "channels_first",
        ragged: str | None = None,
        strict: bool = False,
        damaged: str = "refuse",
        sixteen_bit: str = "refuse",
        exif_orientation: bool = False,
        max_pixels: int | None = None,
        index: str | os.PathLike[str] | bool = "use",
        patience: float = 60.0,
        **unknown: Any,
    ) -> None:
        given = dict(locals())
        options.check_keywords(unknown, _KEYWORDS)
        options.refuse_positional(more)
        self._given = {name: given[name] for name in _KEYWORDS}
        self._source = open_source(source)
        self._pipeline = Pipeline(transforms)
        from headrace.workers.pool import Pool  # with what starts processes

        self._workers = Pool(
            options.integer("python_workers", python_workers, maximum=options.INT32)
        )
        self._shard = options.resolve_shard(shard)
        self._shard_frozen = False
        self._turn = Turn()
        self._loaded: dict[str, int] | None = None  # a state behind which nothing was received yet
        self._passed = False  # it is of an epoch's end, and there was an iterator over that nothing
        self._unused: Form | None = None  # of the present iterator, while nobody asked it
        self._device_run: DeviceRun | None = None
        self._cut_on = ""  # the device where resident data lies and is cut into batches
        self._wall_seconds = 0.0  # of iteration, the consumer's own work included
        self._last_seen = 0.0
        self._engine = self._make_engine()
        live.add(self)
        weakref.finalize(self, self._workers.close)

    def _make_engine(self, **changes: Any) -> _core.Loader:
        """An engine's loader with these keywords changed: to iterate, or to inspect."""
        given = {**self._given, **changes}
        shard = self._shard if "shard" not in changes else options.resolve_shard(changes["shard"])
        pipeline = changes.get("pipeline", self._pipeline)
        runner = self._workers.runner if self._workers.count else None
        specs = pipeline.list_specs(runner), pipeline.field_specs(runner)
        engine_options = options.engine_options(given, shard)
        engine_options["host_workers"] = self._workers.processes
        engine_options["device"] = changes.get("device")
        engine_options["resident_on_device"] = changes.get("resident_on_device", True)
        sampler, engine_options["shuffle"] = engine_sampler(
            given["sampler"], self._source, engine_options["shuffle"]
        )
        return _core.Loader(
            self._source.engine,
            *specs,
            pipeline.dropped,
            engine_options,
            sampler,
            warn,
        )

    def _current(self) -> _core.Loader:
        """The engine's loader, made anew where the world came up before the first iteration."""
        _core.throw_if_forked()
        if self._engine is None:
            raise CLOSED.error("this loader is closed", hint="make another one")
        if not self._shard_frozen:
            shard = options.resolve_shard(self._given["shard"])
            if shard[:2] != self._shard[:2]:
                engine = self._make_engine(shard=shard[:2])  # raises where the ranks do not fit
                engine.set_epoch(self._engine.epoch())
                self._engine.close()
                self._engine = engine
                self._forget_inspector()
            self._shard = shard
        return self._engine

    def _placed(self) -> _core.Loader:
        """The engine's loader where the iteration will begin. ConfigError HR0711 where the world
        came up after the state was loaded, and is one in which that state has no place."""
        engine = self._current()
        if self._loaded is not None and not self._shard_frozen:
            engine.load_state(self._loaded)
        return engine

    def _idle(self) -> _core.Loader:
        """The engine's loader, with no batch of it on its way to a device. In a turn of ours."""
        engine = self._current()
        self._unused = None
        if self._device_run is not None:
            self._device_run.end()
        return engine

    def _state(self) -> dict[str, int]:
        """What was received, as the engine counts it."""
        engine = self._current()
        if self._loaded is not None:
            return self._loaded
        received = self._device_run.received() if self._device_run is not None else None
        return engine.state() if received is None else received

    # Iteration.

    def __len__(self) -> int:
        """Batches of a full epoch, equal on all ranks."""
        return self._current().batches_per_epoch()

    def __iter__(self) -> Iterator[Any]:
        return self._iterate(_NUMPY)

    def _iterate(self, form: Form) -> Iterator[Any]:
        refuse_dataloader_worker()
        self._current()
        return self._turn.take_over(lambda: self._begin(form))

    def _begin(self, form: Form) -> Iterator[Any]:
        engine = self._idle()
        self._workers.start()
        if self._loaded is not None and not self._passed:
            engine.load_state(self._loaded)
            self._passed = self._loaded["batch"] >= engine.batches_per_epoch()
        else:
            self._loaded = None
            engine.restart()
        self._shard_frozen = True
        self._begin_device_run(form)
        self._unused = form
        self._last_seen = time.perf_counter()
        return Iteration(self, self._turn, form)

    def _begin_device_run(self, form: Form) -> None:
        run = self._device_run
        if run is not None and not run.is_to(form.devices, form.depth):
            run.close()
            self._device_run = run = None
        names = [device.name for device in form.devices]
        if self._cut_on and names != [self._cut_on]:
            self._renew_engine()  # the data lies elsewhere
        if not form.devices or self._cut_on:
            return
        if run is None:
            # Data can lie on one device; batches for several are divided on the host.
            self._renew_engine(device=form.devices[0], resident_on_device=len(names) == 1)
            if self._engine.settle():
                self._cut_on = names[0]
                return
            patience = options.seconds("patience", self._given["patience"])
            run = DeviceRun(form.devices, form.depth, patience, warn)
            self._device_run = run
        run.begin(self._engine)

    def _renew_engine(self, **changes: Any) -> None:
        """Another engine in the same place: one whose slots are pinned for a device, or not."""
        state = self._engine.state()
        self._engine.close()
        self._engine = self._make_engine(**changes)
        self._engine.load_state(state)
        self._cut_on = ""

    def _next(self, iteration: Iteration) -> Any:
        if not iteration.has_ended():
            self._unused = None
            batch = self._take(iteration)
        if iteration.has_ended():
            raise iteration.ended()
        self._loaded = None  # from now on the engine counts
        now = time.perf_counter()
        self._wall_seconds += now - self._last_seen
        self._last_seen = now
        return batch

    def _take(self, iteration: Iteration) -> Any:
        """A batch in its form; None at the end of the epoch. What fails on the way was not
        received: the next call gives it again."""
        form, ended = iteration.form, iteration.has_ended
        source = (self._device_run if form.devices else None) or self._current()
        if isinstance(source, DeviceRun):
            parts = source.next(ended)
        else:
            taken = source.next(ended)
            parts = None if taken is None else [taken[2]]
        if parts is None:
            return None
        try:
            if isinstance(source, DeviceRun) or self._cut_on:
                return form.batch_on_devices(self._fields, parts)
            return form.batch(self._fields, parts[0])
        except BaseException:
            if not ended():
                source.take_back()
            raise

    @functools.cached_property
    def _fields(self) -> tuple[str, ...]:
        return tuple(output["name"] for output in self._current().outputs())

    # State.

    @property
    def epoch(self) -> int:
        """The present epoch; it advances on exhaustion."""
        return self._state()["epoch"]

    def set_epoch(self, epoch: int) -> None:
        """The next iteration is this epoch's: from its start, or from where a loaded state stands
        in it, if no batch was received since. So is an iterator that has given no batch yet."""
        number = options.integer("epoch", epoch, maximum=resume_state.MOST)
        state = self._state()
        if state["epoch"] == number and (state["batch"] == 0 or self._loaded is not None):
            return
        unused, iteration = self._unused, self._turn.number
        self._turn.take_over(lambda: self._set_epoch(number, unused, iteration))

    def _set_epoch(self, number: int, unused: Form | None, iteration: int) -> None:
        engine = self._idle()
        self._loaded = None
        engine.set_epoch(number)
        if unused is not None:
            self._begin_device_run(unused)
            self._turn.number, self._unused = iteration, unused  # which goes on

    def state_dict(self) -> dict[str, int]:
        """What was received so far: a few numbers, valid on other numbers of threads and ranks."""
        return {"headrace": resume_state.VERSION, **self._state()}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """The next iteration begins behind the last batch that ``state`` has counted.

        ``set_epoch`` with the epoch of the state leaves it there. ConfigError HR0162 for what is no
        state, HR0711 for one of other records, another order or another global batch; where this
        process joins its ranks only later, the last is found out when the iteration begins.
        """
        self._current()
        self._turn.take_over(lambda: self._load_state(state))

    def _load_state(self, state: Mapping[str, int]) -> None:
        engine = self._idle()
        loaded = resume_state.state_from(state, engine.state())
        engine.load_state(self._as_far_as_known(loaded, engine))
        self._loaded, self._passed = loaded, False
        self._given["seed"] = loaded["seed"]  # for whatever is made of this loader from now on
        self._forget_inspector()

    def _as_far_as_known(self, state: dict[str, int], engine: _core.Loader) -> dict[str, int]:
        """The state, less its place where that lies in batches of ranks that are not there yet."""
        alone, size = engine.state()["global_batch"], self._given["batch_size"]
        may_grow = (
            not self._shard_frozen and self._shard.origin == options.ALONE and size is not None
        )
        if may_grow and state["global_batch"] > alone and state["global_batch"] % size == 0:
            return {**state, "global_batch": alone, "batch": 0}
        return state

    # Looking at it; nothing here counts as received.

    def batch(self, epoch: int, index: int) -> Any:
        """Batch ``index`` of an epoch, as the iteration gives it, with ``.id`` and ``.key``."""
        return self._batch(epoch, index, _NUMPY)

    def _batch(self, epoch: int, index: int, form: Form) -> Any:
        self._workers.start()
        _, _, values = self._inspector.batch(
            options.integer("epoch", epoch), options.integer("index", index)
        )
        names = (output["name"] for output in self._inspector.outputs())
        return form.inspected(self._fields, dict(zip(names, values, strict=True)))

    @functools.cached_property
    def _inspector(self) -> _core.Loader:
        hidden = [name for name in ("id", "key") if name not in self._fields]
        return self._make_engine(
            fields=[*self._fields, *hidden], quarantine=None, resident=False, view=False
        )

    def _forget_inspector(self) -> None:
        """It has the seed and the rank of the engine that it was made beside."""
        if inspector := self.__dict__.pop("_inspector", None):
            inspector.close()

    def peek(self) -> Any:
        """The batch that comes next, without taking it."""
        return self._peek(_NUMPY)

    def _peek(self, form: Form) -> Any:
        self._placed()
        state = self._state()
        last = len(self) - 1
        if state["batch"] > last:
            return self._batch(state["epoch"] + 1, 0, form)
        return self._batch(state["epoch"], state["batch"], form)

    def show(self, n: int = 16) -> Grid:
        """The next ``n`` pictures as a grid: notebooks show it, ``.save(path)`` writes a PNG."""
        return inspection.show(self, options.integer("n", n, 1))

    def trace(self, index: int = 0) -> inspection.Trace:
        """The record at a position of the present epoch, after each step of the pipeline."""
        return inspection.trace(self, options.integer("index", index))

    def plan(self) -> inspection.Text:
        """The steps and outputs, as the engine runs them."""
        return inspection.Text(self._current().plan_text())

    def stats(self) -> inspection.Stats:
        """Counters since the loader was made; ``stages`` in seconds summed over threads."""
        counted = self._current().stats()
        workers = self._workers.counters()
        copies = {} if self._device_run is None else self._device_run.stats()
        return inspection.Stats(
            counted, wall_seconds=self._wall_seconds, python_workers=workers, devices=copies
        )

    def bottleneck(self) -> str:
        """One sentence: who waits for whom, and for what."""
        return inspection.bottleneck(self.stats())

    @property
    def quarantine(self) -> list[dict[str, Any]]:
        """Bad records so far: epoch, position, record, key, code, what, file, action."""
        return [json.loads(line) for line in self._current().quarantine()]

    @property
    def source(self) -> Source:
        """Where the records come from."""
        return self._source

    @property
    def batch_size(self) -> int:
        """Records a full batch of this rank has."""
        return self._engine_numbers()[0]

    def _engine_numbers(self) -> tuple[int, int]:
        world = self._shard.world_size
        if self._given["batch_size"] is not None:
            return self._given["batch_size"], self._given["batch_size"] * world
        return self._given["global_batch_size"] // world, self._given["global_batch_size"]

    def __repr__(self) -> str:
        return inspection.describe(self)

    # The end.

    def close(self) -> None:
        """Ends the iteration and frees the engine's memory; batches that are kept stay valid."""
        self._turn.take_over(self._close, patience=0 if exiting() else _PATIENCE)

    def _close(self) -> None:
        if self._device_run is not None:
            self._device_run.close()
            self._device_run = None
        self._workers.close()  # before the engine, which waits for their answers
        if self._engine is not None:
            self._engine.close()
        self._forget_inspector()
        self._engine = None  # type: ignore[assignment]

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_KEYWORDS = tuple(Loader.__init__.__kwdefaults__ or ())
