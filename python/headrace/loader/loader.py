# SPDX-License-Identifier: Apache-2.0
"""The class ``headrace.Loader``: what users call, each method a few lines over the parts."""

from __future__ import annotations

import functools
import json
import os
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from headrace import inspection, options
from headrace.charts.grid import Grid
from headrace.loader import resume_state
from headrace.loader.assembly import Assembly
from headrace.loader.batch_makers import BatchMaker, EngineBatches, maker_for
from headrace.loader.form import Form
from headrace.loader.iteration import Iteration, exiting, live, refuse_dataloader_worker
from headrace.loader.loaded_state import LoadedState
from headrace.loader.numpy_arrays import hand_over
from headrace.loader.outputs import Outputs
from headrace.loader.turn import Turn
from headrace.sources import Source

_NUMPY = Form(hand_over)
_PATIENCE = 1.0  # seconds that close() waits for a consumer that is asked to leave


class _Unused(NamedTuple):
    """The present iterator, while nobody has asked it for a batch."""

    number: int  # of the turn
    form: Form


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

    _kept: Mapping[str, Any] = {}  # options of the engine's that are no keywords

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
        given = {name: given[name] for name in _KEYWORDS}
        self._assembly = Assembly(source, transforms, given, self._kept)
        self._turn = Turn()
        self._loaded = LoadedState()
        self._maker: BatchMaker = EngineBatches(self._assembly)
        self._unused: _Unused | None = None
        self._wall_seconds = 0.0  # of iteration, the consumer's own work included
        self._last_seen = 0.0
        live.add(self)
        weakref.finalize(self, self._assembly.workers.close)

    @property
    def assembly(self) -> Assembly:
        """What it is made of; internal, see headrace.loader.assembly."""
        return self._assembly

    def present_state(self) -> dict[str, int]:
        """What was received, as the engine counts it; ``state_dict`` without its version."""
        engine = self._assembly.engine()
        return self._loaded.state or self._maker.received() or engine.state()

    @property
    def is_resumed(self) -> bool:
        """Whether the next iteration begins where a loaded state stands."""
        return self._loaded.state is not None

    def place(self) -> None:
        """Puts the engine's loader where the iteration will begin. ConfigError HR0711 where a
        loaded state has no place in the world that came up since."""
        self._loaded.place(self._assembly)

    # Iteration.

    def __len__(self) -> int:
        """Batches of a full epoch, equal on all ranks."""
        return self._assembly.engine().batches_per_epoch()

    def __iter__(self) -> Iterator[Any]:
        return self.iterate_as(_NUMPY)

    def iterate_as(self, form: Form) -> Iterator[Any]:
        """``iter`` of a view: batches in its form."""
        refuse_dataloader_worker()
        self._assembly.engine()
        return self._turn.take_over(lambda: self._begin(form))

    def _begin(self, form: Form) -> Iterator[Any]:
        self._end_run()
        self._assembly.workers.start()
        self._loaded.begin(self._assembly.engine())
        self._assembly.is_settled = True
        self._run(form)
        self._unused = _Unused(self._turn.number, form)
        self._last_seen = time.perf_counter()
        return Iteration(self._next, self._turn, form)

    def _end_run(self) -> None:
        """The engine's loader is ours again, no batch of it on its way. In a turn of ours."""
        self._assembly.engine()
        self._unused = None
        self._maker.end()

    def _run(self, form: Form) -> None:
        """Batches are made from where the engine's loader stands."""
        if not self._maker.suits(form):
            before, self._maker = self._maker, EngineBatches(self._assembly)
            before.close()
            self._maker = maker_for(form, self._assembly, before)
        self._maker.begin(self._assembly.engine())

    def _next(self, iteration: Iteration) -> Any:
        if not iteration.has_ended():
            self._unused = None
            batch = self._take(iteration)
        if iteration.has_ended():
            raise iteration.ended()
        self._loaded.forget()
        now = time.perf_counter()
        self._wall_seconds += now - self._last_seen
        self._last_seen = now
        return batch

    def _take(self, iteration: Iteration) -> Any:
        """A batch in its form; None at the end of the epoch. What fails on the way was not
        received: the next call gives it again."""
        maker, ended = self._maker, iteration.has_ended
        parts = maker.next(ended)
        if parts is None:
            return None
        try:
            return iteration.form.batch_of(self._fields, parts)
        except BaseException:
            if not ended():
                maker.take_back()
            raise

    @functools.cached_property
    def _fields(self) -> tuple[str, ...]:
        return self._assembly.field_names()

    # State.

    @property
    def epoch(self) -> int:
        """The present epoch; it advances on exhaustion."""
        return self.present_state()["epoch"]

    def set_epoch(self, epoch: int) -> None:
        """The next iteration is this epoch's: from its start, or from where a loaded state stands
        in it, if no batch was received since. So is an iterator that has given no batch yet."""
        number = options.integer("epoch", epoch, maximum=resume_state.MOST)
        state = self.present_state()
        if state["epoch"] == number and (state["batch"] == 0 or self._loaded.state is not None):
            return
        unused = self._unused
        self._turn.take_over(lambda: self._set_epoch(number, unused))

    def _set_epoch(self, number: int, unused: _Unused | None) -> None:
        self._end_run()
        self._loaded.forget()
        self._assembly.engine().set_epoch(number)
        if unused is not None:
            self._run(unused.form)
            self._turn.number, self._unused = unused.number, unused  # which goes on

    def state_dict(self) -> dict[str, int]:
        """What was received so far: a few numbers, valid on other numbers of threads and ranks."""
        return {"headrace": resume_state.VERSION, **self.present_state()}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """The next iteration begins after the last batch that ``state`` has counted.

        ``set_epoch`` with the epoch of the state leaves it there. ConfigError HR0162 for what is no
        state, HR0711 for one of other records, another order or another global batch; where this
        process joins its ranks only later, the last is found out when the iteration begins.
        """
        self._assembly.engine()
        self._turn.take_over(lambda: self._load_state(state))

    def _load_state(self, state: Mapping[str, int]) -> None:
        self._end_run()
        assembly = self._assembly
        loaded = resume_state.state_from(state, assembly.engine().state())
        self._loaded.load(loaded, assembly)
        assembly.given["seed"] = loaded["seed"]  # for whatever is made of this loader from now on
        assembly.forget_inspector()

    # Looking at it; nothing here counts as received.

    def batch(self, epoch: int, index: int) -> Any:
        """Batch ``index`` of an epoch, as the iteration gives it, with ``.id`` and ``.key``."""
        return self.batch_as(epoch, index, _NUMPY)

    def batch_as(self, epoch: int, index: int, form: Form) -> Any:
        """``batch`` of a view: in its form."""
        self._assembly.workers.start()
        inspector = self._assembly.inspector()
        _, _, values = inspector.batch(
            options.integer("epoch", epoch), options.integer("index", index)
        )
        names = (output["name"] for output in inspector.outputs())
        return form.inspected(self._fields, dict(zip(names, values, strict=True)))

    def peek(self) -> Any:
        """The batch that comes next, without taking it."""
        return self.peek_as(_NUMPY)

    def peek_as(self, form: Form) -> Any:
        """``peek`` of a view: in its form."""
        self.place()
        state = self.present_state()
        last = len(self) - 1
        if state["batch"] > last:
            return self.batch_as(state["epoch"] + 1, 0, form)
        return self.batch_as(state["epoch"], state["batch"], form)

    def show(self, n: int = 16) -> Grid:
        """The next ``n`` pictures as a grid: notebooks show it, ``.save(path)`` writes a PNG."""
        return inspection.show(self, options.integer("n", n, 1))

    def trace(self, index: int = 0) -> inspection.Trace:
        """The record at a position of the present epoch, after each step of the pipeline."""
        return inspection.trace(self, options.integer("index", index))

    def plan(self) -> inspection.Text:
        """The steps and outputs, as the engine runs them."""
        return inspection.Text(self._assembly.engine().plan_text())

    def stats(self) -> inspection.Stats:
        """Counters since the loader was made; ``stages`` in seconds summed over threads."""
        counted = self._assembly.engine().stats()
        workers = self._assembly.workers.counters()
        return inspection.Stats(
            counted,
            wall_seconds=self._wall_seconds,
            python_workers=workers,
            devices=self._maker.stats(),
        )

    def bottleneck(self) -> str:
        """One sentence: who waits for whom, and for what."""
        return inspection.bottleneck(self.stats())

    @property
    def quarantine(self) -> list[dict[str, Any]]:
        """Bad records so far: epoch, position, record, key, code, what, file, action."""
        return [json.loads(line) for line in self._assembly.engine().quarantine()]

    @property
    def source(self) -> Source:
        """Where the records come from."""
        return self._assembly.source

    @property
    def batch_size(self) -> int:
        """Records a full batch of this rank has."""
        return self._assembly.batch_sizes()[0]

    def __repr__(self) -> str:
        return inspection.describe(self)

    # The end.

    def close(self) -> None:
        """Ends the iteration and frees the engine's memory; batches that are kept stay valid."""
        self._turn.take_over(self._close, patience=0 if exiting() else _PATIENCE)

    def _close(self) -> None:
        self._maker.close()
        self._maker = EngineBatches(self._assembly)
        self._assembly.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


Loader.__module__ = "headrace.loader"
_KEYWORDS = tuple(Loader.__init__.__kwdefaults__ or ())
