# SPDX-License-Identifier: Apache-2.0
"""The class ``headrace.Loader``: the public API, each method a few lines over the parts."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace import inspection
from headrace.arguments import integer, switch
from headrace.batch import with_attributes
from headrace.drawing.grid import Grid
from headrace.finalizers import on_drop
from headrace.global_draws import LoopTurn
from headrace.loader import description, options, resume_state, table
from headrace.loader.agreement import Agreement
from headrace.loader.assembly import Assembly
from headrace.loader.deliveries import Delivery, EngineBatches, delivery_for
from headrace.loader.form import Form
from headrace.loader.iteration import Iteration, exiting, live, refuse_dataloader_worker
from headrace.loader.lending import lent_rows
from headrace.loader.loaded_state import LoadedState
from headrace.loader.logged import LoaderLog
from headrace.loader.numpy_arrays import hand_over
from headrace.loader.outputs import Outputs
from headrace.loader.shard import Shard, resolve_shard
from headrace.loader.turn import Turn
from headrace.log import is_heard
from headrace.per_record import Layout
from headrace.sources import Source
from headrace.sources import open as open_source

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from headrace.loader.keywords import LoaderKeywords
    from headrace.loader.stream_ends import StreamEnds

_NUMPY = Form(hand_over)
_PATIENCE = 1.0  # seconds that close() waits for a consumer that is asked to leave


class _Unused(NamedTuple):
    """The current iterator, if its first batch has not been requested yet."""

    number: int  # of the iteration's turn
    form: Form


class Loader(Outputs):
    """Batches of a source, in exact order, epoch after epoch.

    ``for batch in loader`` runs one epoch; each loop is the next one. A batch is a namedtuple of
    fields; arrays are NumPy's, share the engine's memory, may be written to and may be kept.
    ``loader.torch()`` is the loader with torch's tensors; see also tensorflow, jax, paddle, mxnet.

    Args:
        source: What ``headrace.open`` takes.
        transforms: A list of headrace.transforms and callables, or a dictionary that gives each
            field its own list (None drops the field).
        {keywords}

    docs/reference/loader-options.md has the cost of each, and an example. Raises ConfigError for
    invalid arguments, before any thread starts.
    """

    _kept: Mapping[str, Any] = {}  # engine options that are not keywords
    original: Any = None  # the DataLoader given to from_dataloader

    def __init__(
        self, source: Any, transforms: Any = (), *more: Any, **given: Unpack[LoaderKeywords]
    ) -> None:
        keywords = options.completed(given)
        options.refuse_positional(more)
        source = open_source(source)
        if source.upright and "exif_orientation" not in given:
            keywords["exif_orientation"] = True
        self._assembly = Assembly(source, transforms, keywords, self._kept)
        self._lent = lent_rows(self._assembly)
        self._turn = Turn()
        self._loop = LoopTurn(self)
        self._loaded = LoadedState()
        self._agreement = Agreement(self._assembly)
        self._log = LoaderLog()
        self._delivery = self._delivered()
        self._unused: _Unused | None = None
        self._latest: _Unused | None = None  # the most recent iterator
        self._wall_seconds = 0.0  # seconds of iteration, including the consumer's work
        self._last_seen = 0.0
        live.add(self)
        if self._assembly.workers.count:
            on_drop(self, self._assembly.workers.close)
        if self._lent is not None:
            on_drop(self, self._lent.close)

    @property
    def assembly(self) -> Assembly:
        """The parts of the loader; internal, see headrace.loader.assembly."""
        return self._assembly

    def present_state(self) -> dict[str, int]:
        """The received batches as counted by the engine; ``state_dict`` without its version."""
        engine = self._assembly.engine()
        return self._loaded.state or self._delivery.received() or engine.state()

    @property
    def remote_text(self) -> str:
        """One sentence on whether remote workers are worth using; empty if there are none."""
        return "" if self._lent is None else self._lent.says()

    @property
    def is_resumed(self) -> bool:
        """Whether the next iteration begins at the position of a loaded state."""
        return self._loaded.state is not None

    def place(self) -> None:
        """Moves the engine's loader to where the iteration will begin. Raises ConfigError HR0711 if
        a loaded state does not fit the world that has been initialized since.
        """
        self._loaded.place(self._assembly)

    # Iteration.

    def __len__(self) -> int:
        """Batches of a full epoch, equal on all ranks. Raises TypeError for a stream without
        length=.
        """
        if self._assembly.stream is not None:
            len(self._assembly.stream)
        return self._assembly.engine().batches_per_epoch()

    def __iter__(self) -> Iterator[Any]:
        return self.iterate_as(_NUMPY)

    def iterate_as(self, form: Form) -> Iterator[Any]:
        """``iter`` for a view: batches in its form."""
        refuse_dataloader_worker()
        self._assembly.engine()
        return self._turn.take_over(lambda: self._begin(form))

    def _begin(self, form: Form) -> Iterator[Any]:
        self._end_run()
        self._assembly.workers.start()
        self._assembly.capture_surroundings()
        self._loaded.begin(self._assembly.engine())
        self._assembly.is_settled = True
        self._run(form)
        if self._lent is not None:
            self._lent.begin()
        self._unused = self._latest = _Unused(self._turn.number, form)
        self._last_seen = time.perf_counter()
        self._log.begins(self._assembly)
        self._loop.begin()
        return Iteration(self._next, self._turn, form)

    def _delivered(self, delivery: Delivery | None = None) -> Delivery:
        """The delivery, by default that of the engine; for a stream, wrapped to find its end."""
        delivery = delivery or EngineBatches(self._assembly)
        if self._assembly.stream is None:
            return delivery
        from headrace.loader.stream_batches import StreamBatches

        return StreamBatches(delivery, self._assembly, self._stream_ends)

    @functools.cached_property
    def _stream_ends(self) -> StreamEnds:
        from headrace.loader.stream_ends import StreamEnds

        return StreamEnds(self._assembly, self._agreement)

    def _end_run(self) -> None:
        """Takes the engine's loader back, with no batch in flight. REQUIRES: the caller's turn."""
        self._assembly.engine()
        self._unused = None
        with self._loop.stopped():
            self._delivery.end()

    def _run(self, form: Form) -> None:
        """Starts making batches at the position of the engine's loader."""
        if not self._delivery.suits(form):
            before, self._delivery = self._delivery, EngineBatches(self._assembly)
            before.close()
            self._delivery = self._delivered(delivery_for(form, self._assembly, before))
        self._delivery.begin(self._assembly.engine())

    def _next(self, iteration: Iteration) -> Any:
        self._agreement.check(self._assembly, self.present_state, iteration.has_ended)
        if not iteration.has_ended():
            self._unused = None
            self._loop.come_in()
            batch, failed = None, True
            try:
                batch = self._take(iteration)
                failed = False
            finally:
                self._loop.go_out(batch is not None)
                self._write_log(iteration, batch is None, failed)
        if iteration.has_ended():
            raise iteration.ended()
        self._loaded.forget()
        now = time.perf_counter()
        self._wall_seconds += now - self._last_seen
        self._last_seen = now
        return batch

    def _write_log(self, iteration: Iteration, no_batch: bool, failed: bool) -> None:
        if iteration.has_ended() or not is_heard():
            return
        state = self._delivery.received() or self._assembly.engine().state()
        self._log.goes_on(state, self._assembly, failed)
        if no_batch and not failed:
            self._log.ends(state["epoch"] - 1, self._assembly)

    def _take(self, iteration: Iteration) -> Any:
        """A batch in its form; None at the end of the epoch. A batch whose delivery fails was not
        received: the next call returns it again.
        """
        delivery, ended = self._delivery, iteration.has_ended
        parts = delivery.next(ended)
        if parts is None:
            return None
        try:
            batch = iteration.form.batch_of(self._layout, parts)
            if self._assembly.given["uneven"] and hasattr(batch, "_layout"):
                batch = with_attributes(batch, weight=self.weight)
            return batch
        except BaseException:
            if not ended():
                delivery.take_back()
            raise

    @functools.cached_property
    def _layout(self) -> Layout:
        return self._assembly.layout()

    # State.

    @property
    def epoch(self) -> int:
        """The current epoch; it advances when an iteration is exhausted."""
        return self.present_state()["epoch"]

    def set_epoch(self, epoch: int) -> None:
        """Makes the next iteration run this epoch: from its start, or from the position of a state
        loaded in it if no batch has been received since. This also applies to an iterator that has
        not returned a batch yet.
        """
        number = integer("epoch", epoch, maximum=resume_state.MOST)
        state = self.present_state()
        if state["epoch"] == number and (state["batch"] == 0 or self._loaded.state is not None):
            return
        unused = self._unused
        self._turn.take_over(lambda: self._set_epoch(number, unused))

    def _set_epoch(self, number: int, unused: _Unused | None) -> None:
        self._end_run()
        self._loaded.forget()
        self._agreement.moved()
        self._assembly.engine().set_epoch(number)
        if unused is not None:
            self._run(unused.form)
            self._turn.number, self._unused = unused.number, unused  # which continues

    def seek(self, step: int) -> None:
        """Moves to the batch of a step, counted from the start of epoch 0: batch
        ``step % len(loader)`` of epoch ``step // len(loader)``.

        For trainers that count committed steps: a step that was not committed is repeated. A
        running iterator continues from there; if it is already there, nothing happens.
        """
        number = integer("step", step, maximum=resume_state.MOST)
        epoch, batch = divmod(number, len(self))
        state = self.present_state()
        if (state["epoch"], state["batch"]) == (epoch, batch):
            return
        bad = state["bad_records"] if state["epoch"] == epoch else 0
        place = {**state, "epoch": epoch, "batch": batch, "bad_records": bad}
        self._move(lambda: self._loaded.load(place, self._assembly))

    def set_shard(self, rank: int, world_size: int) -> None:
        """Makes this process rank ``rank`` of ``world_size``, beginning with the next batch.

        All ranks must call it after the same batch. Only batches read ahead are dropped (and data
        kept by ``resident=``, which is decoded again); a running iterator continues. ``stats()`` is
        reset. Raises ConfigError HR0720 if the ranks do not divide the global batch and uneven=True
        is not given, HR0711 with batch_size=, whose global batch depends on the number of ranks.
        """
        shard = resolve_shard((rank, world_size))
        self._move(lambda: self._set_shard(shard))

    def _set_shard(self, shard: Shard) -> None:
        self._assembly.set_shard(shard, self.present_state())
        before = self._delivery
        self._delivery = self._delivered()
        before.close()

    def _move(self, work: Callable[[], None]) -> None:
        """Runs ``work`` between two batches; a running iterator continues afterwards."""
        self._assembly.engine()
        unused, latest = self._unused, self._latest
        goes_on = latest is not None and latest.number == self._turn.number

        def moved() -> None:
            self._end_run()
            self._agreement.moved()
            try:
                work()
            finally:  # unchanged on an error
                if goes_on and latest is not None:
                    self._run(latest.form)
                    self._turn.number, self._unused = latest.number, unused

        self._turn.take_over(moved)

    @property
    def weight(self) -> float:
        """The factor for this rank's mean loss in the last batch received: its number of records
        relative to an equal slice of the global batch. 1 if all ranks have the same number.
        """
        engine = self._assembly.engine()
        received = (self._delivery.received() or engine.state())["batch"]
        return float(engine.weight(max(received - 1, 0)))

    def state_dict(self) -> dict[str, Any]:
        """The position after the batches received so far: a few numbers, valid on any number of
        threads and ranks. For a stream it includes the iterable's state, if it has one, under
        "stream".
        """
        state = {"headrace": resume_state.VERSION, **self.present_state()}
        if self._assembly.stream is None:
            return state
        from headrace.loader.stream_batches import resume_state as of_stream

        return {**state, "stream": of_stream(self._assembly, state)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Makes the next iteration begin after the last batch that ``state`` counts.

        ``set_epoch`` with the epoch of the state keeps this position. Raises ConfigError HR0162 for
        an invalid state, HR0711 for different records, order or global batch; if the process group
        is initialized later, the last is detected when the iteration begins.
        """
        self._assembly.engine()
        self._turn.take_over(lambda: self._load_state(state))

    def _load_state(self, state: Mapping[str, Any]) -> None:
        self._end_run()
        self._agreement.moved()
        assembly = self._assembly
        loaded = resume_state.state_from(state, assembly.engine().state())
        of_stream = resume_state.stream_part(state, loaded["epoch"])
        with assembly.streams_of(loaded):
            self._loaded.load(loaded, assembly)
        self._log.loaded(loaded)
        if assembly.stream is not None:
            assembly.stream.reader.load(of_stream)
        assembly.given["seed"] = loaded["seed"]  # for engine loaders made from now on
        assembly.forget_inspector()

    def description(self) -> dict[str, Any]:
        """Everything that determines the batches, as plain data for JSON: the source as the call
        that made it, the transforms, keywords, seed, version, and fingerprints of records and plan.

        It does not include threads, memory or the rank. Raises ConfigError HR0173 for Python
        transforms, HR0171 for sources that hold objects or more than 1 MB of arrays.

        >>> import headrace, numpy as np
        >>> loader = headrace.Loader(headrace.records(x=np.arange(9)), batch_size=3, shuffle=True)
        >>> copy = headrace.Loader.from_description(loader.description(), threads=1)
        >>> [batch.x.tolist() for batch in copy] == [batch.x.tolist() for batch in loader]
        True
        """
        return description.describe(self._assembly)

    @classmethod
    def from_description(cls, described: Mapping[str, Any], **more: Unpack[LoaderKeywords]) -> Self:
        """Creates the described loader, with additional keywords.

        Raises ConfigError HR0174 if records or plan differ from the description, HR0578 if a
        plug-in that it names is not loaded: call ``load_plugin`` first.
        """
        source, transforms, keywords = description.parts_of(described)
        loader = cls(source, transforms, **{**keywords, **more})
        description.check_plan(described, loader.assembly.engine())
        return loader

    def __reduce__(self) -> Any:
        raise description.NOT_PICKLABLE.error(
            "pickle the source and the transforms, and create a loader in the other process",
            hint="loader.description() is plain data, hr.Loader.from_description() is its inverse",
        )

    # Inspection; nothing here counts as received.

    def batch(self, epoch: int, index: int) -> Any:
        """Batch ``index`` of an epoch, as the iteration delivers it, with ``.id`` and ``.key``."""
        return self.batch_as(epoch, index, _NUMPY)

    def batch_as(self, epoch: int, index: int, form: Form) -> Any:
        """``batch`` for a view: in its form."""
        self._assembly.workers.start()
        inspector = self._assembly.inspector()
        place = integer("epoch", epoch), integer("index", index)
        _, _, values = inspector.batch(*place)
        names = (output["name"] for output in inspector.outputs())
        batch = form.inspected(self._layout, dict(zip(names, values, strict=True)), place)
        if self._assembly.given["uneven"]:
            batch.__dict__["weight"] = inspector.weight(index)
        return batch

    def peek(self) -> Any:
        """The next batch, without consuming it."""
        return self.peek_as(_NUMPY)

    def peek_as(self, form: Form) -> Any:
        """``peek`` for a view: in its form."""
        self.place()
        state = self.present_state()
        last = len(self) - 1
        if state["batch"] > last:
            return self.batch_as(state["epoch"] + 1, 0, form)
        return self.batch_as(state["epoch"], state["batch"], form)

    def show(self, n: int = 16, draw: bool = True, columns: int | None = None) -> Grid:
        """The next ``n`` images as a grid: notebooks show it, ``.save(path)`` writes a PNG.

        Without images, video clips as strips of frames, or audio clips as a waveform above a
        spectrogram: notebooks play them, and ``.save("clips.html")`` writes a page that does.
        A Normalize is reversed for display. draw: draw annotations over each image: boxes whose
        format is known, with the names of their labels, masks, keypoints. columns: columns of the
        grid; default: as many as rows.
        """
        wide = None if columns is None else integer("columns", columns, 1)
        return inspection.show(self, integer("n", n, 1), switch("draw", draw), wide)

    def trace(self, index: int = 0) -> inspection.Trace:
        """The record at a position of the current epoch, after each transform of the pipeline."""
        return inspection.trace(self, integer("index", index))

    def plan(self) -> inspection.Text:
        """The transforms and outputs as the engine executes them."""
        return inspection.Text(self._assembly.engine().plan_text())

    def stats(self) -> inspection.Stats:
        """Counters since the loader was made; ``stages`` in seconds summed over threads."""
        counted = self._assembly.counted()
        workers, stream = self._assembly.workers.counters(), self._assembly.stream
        return inspection.Stats(
            counted,
            wall_seconds=self._wall_seconds,
            python_workers=workers,
            finish=self._assembly.engine().resolved("finish"),
            decode=self._assembly.engine().resolved("decode"),
            decode_note=self._assembly.engine().resolved("decode_note"),
            resident=self._assembly.engine().resolved("resident"),
            devices=self._delivery.stats(),
            remote=self._lent.counters() if self._lent is not None else {},
            **({} if stream is None else {"stream": dict(stream.reader.counted)}),
        )

    def bottleneck(self) -> str:
        """One sentence: whether the loop or the loader waits, and for what."""
        packs = any(field.kind == "image" for field in self.source.schema)
        return inspection.bottleneck(self.stats(), packs)

    @property
    def quarantine(self) -> list[dict[str, Any]]:
        """Bad records so far: epoch, position, record, key, code, what, file, action."""
        return [json.loads(line) for line in self._assembly.bad_records()]

    @property
    def source(self) -> Source:
        """Where the records come from."""
        return self._assembly.source

    @property
    def batch_size(self) -> int:
        """Records in a full batch of this rank."""
        return self._assembly.batch_sizes()[0]

    def __repr__(self) -> str:
        return inspection.describe(self)

    # The end.

    def close(self) -> None:
        """Ends the iteration and frees the engine's memory; batches that you keep stay valid."""
        self._turn.take_over(self._close, patience=0 if exiting() else _PATIENCE)

    def _close(self) -> None:
        if self._lent is not None:
            self._lent.close()
        with self._loop.stopped():
            self._delivery.close()
            self._delivery = self._delivered()
            self._assembly.close(for_good=exiting())

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


Loader.__module__ = "headrace.loader"
Loader.__doc__ = str(Loader.__doc__).format(
    keywords=table.arguments_text(options.KEYWORDS.values()).lstrip()
)
Loader.__init__.__signature__ = table.signature(  # type: ignore[attr-defined]
    options.KEYWORDS.values()
)
