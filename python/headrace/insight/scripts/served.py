# SPDX-License-Identifier: Apache-2.0
"""The loops of a script, measured from inside its loaders.

    loop       batches                         measures
    real       the script's own                waits and steps
    cached     kept and replayed               the step without the loader
    one        a single kept batch             the step without delivery
    on device  the same batch, in GPU memory   the step alone; only if the script uses a GPU

A step is what the script does between two batches. A loop whose steps run a backward pass is a
training loop: its epochs are extended, so that nothing interrupts the measurement. Any other loop
is unchanged until it has been measured.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from headrace.delivery.nested import take_apart
from headrace.insight.measure import copying
from headrace.insight.measure.loop import KEPT_BYTES, Timed, bytes_in, copied, settle
from headrace.insight.measure.process_sampler import ProcessSampler, Vitals, vitals
from headrace.insight.measure.rendezvous import Rendezvous
from headrace.insight.measure.tally import Tally
from headrace.loader.views import Delivered

_KEEP = 8  # batches kept for replay
_LONG_STEP = 0.5  # seconds: a step that needs no warm-up to be measured again
REAL, CACHED, ONE, ON_DEVICE = "real", "cached", "one", "on device"


@dataclasses.dataclass(frozen=True)
class Plan:
    """The approximate seconds of each measurement."""

    real: float
    cached: float
    ceiling: float


class Loop:
    """A loader at one line of a script: its measurements, in order."""

    def __init__(self, loader: Any, place: str, plan: Plan, sampler: ProcessSampler) -> None:
        self.loader, self.place = loader, place
        self._plan, self._sampler, self._born = plan, sampler, sampler.now()
        self.vitals = Vitals()  # of the real loop
        self.trains = False
        self.batches = self.taken = self.iterators = 0
        self.seconds = 0.0
        self.epoch = 0  # batches of an extended epoch; 0: none has been extended
        self.among = 0  # steps that also took a batch from another loader
        self.only: Out | None = None  # the only batch of an iterator
        self.kept: list[Any] = []
        self._kept_bytes = 0
        self._edited = False  # the step modifies its batch, so each replay uses a copy
        self._turn = 0
        self._phase = REAL
        self._tally = self._real(None)
        self._timed: dict[str, Timed] = {}
        self._warm, self._busy = 0, 0.0  # warm-up batches, and the CPU seconds at their start
        self.step_cores = 0.0  # core-seconds of the step per record

    def _real(self, rendezvous: Rendezvous | None) -> Tally:
        return Tally(self._plan.real, least=2, warm=2, rendezvous=rendezvous)

    @property
    def phase(self) -> str:
        """The current measurement; "" after the last one."""
        return self._phase

    @property
    def replays(self) -> bool:
        return self._phase in (CACHED, ONE, ON_DEVICE)

    def begins(self, seconds: float) -> None:
        """Seconds until the loop's first batch."""
        self._tally.first = seconds

    def learn(self, rendezvous: Rendezvous | None) -> None:
        """Marks it as a training loop; with ranks, on all of them."""
        self.trains = True
        if self._phase == REAL:
            first, self._tally = self._tally.first, self._real(rendezvous)
            self._tally.first = first

    def lengthen(self, batches: int) -> None:
        """Extends an epoch of this many batches, which a script may reject."""
        self.epoch = self.epoch or batches

    def keep(self, batch: Any) -> Any:
        """A copy of a batch of the warm-up, to be replayed; None for later ones."""
        warming = self._phase == REAL and self._tally.warming
        if not warming or len(self.kept) >= _KEEP or self._kept_bytes > KEPT_BYTES:
            return None
        self.kept.append(copied(batch))
        self._kept_bytes += bytes_in(batch)
        return self.kept[-1]

    def compare(self, batch: Any, copy: Any) -> None:
        """After the batch's step: whether the step modified it."""
        self._edited = self._edited or not same(batch, copy)

    def replayed(self) -> Any:
        """The next batch, from memory."""
        self._turn += 1
        batch = self.kept[self._turn % len(self.kept) if self._phase == CACHED else 0]
        return copied(batch) if self._edited else batch

    def count(
        self,
        rendezvous: Rendezvous | None,
        begin: float,
        waited: float,
        computed: float,
        stepped: float,
        records: int,
        restarted: bool,
    ) -> None:
        """Adds a batch, its wait and its step; then switches to the next measurement if this one is
        complete.
        """
        self.batches += 1
        self.seconds += waited + stepped
        if not self._phase:
            return
        warming = self._tally.warming
        self._tally.add(begin, waited, computed, stepped, records, restarted)
        if warming and not self._tally.warming:
            self._born = self._sampler.now()
        if self._tally.over:
            self._next_phase(rendezvous)

    def _next_phase(self, rendezvous: Rendezvous | None) -> None:
        order = [REAL, CACHED, ONE]
        if uses_gpu():
            order.append(ON_DEVICE)
        place = order.index(self._phase) + 1
        self._done(self._tally.timed())
        warm = 0 if self._tally.step_seconds > _LONG_STEP else 1
        alone = rendezvous is not None and not self.trains  # other ranks may do something else
        if place == len(order) or not self.kept or alone:
            self._phase = ""
            return
        self._phase = order[place]
        if self._phase == ON_DEVICE:
            self.kept[0] = copying.on_device(self.kept[0])
        seconds = self._plan.cached if self._phase == CACHED else self._plan.ceiling
        if len(order) == 4 and self._phase in (ONE, ON_DEVICE):
            seconds /= 2
        self._tally = Tally(seconds, least=1, warm=warm, rendezvous=rendezvous)
        settle()
        self._warm, self._busy = warm, time.process_time()

    def _done(self, timed: Timed) -> None:
        self._timed[self._phase] = timed
        if self._phase == REAL and timed.windows:
            self.vitals = vitals(self._sampler, self._born, dataclasses.replace(timed, first=0.0))
        if self._phase in (ONE, ON_DEVICE) and timed.batches:
            share = timed.batches / (timed.batches + self._warm)
            self.step_cores = share * (time.process_time() - self._busy) / max(1, timed.records)

    def finish(self, failure: str = "") -> dict[str, Timed]:
        """The measurements by phase, as far as completed; ``failure`` ended the last one."""
        if self._phase:
            if self._phase == ON_DEVICE:
                failure = ""  # a script may need the batch on the host; ONE was measured already
            timed = self._tally.timed(failure)
            if timed.windows or failure:
                self._done(timed)
            self._phase = ""
        return self._timed


class Served:
    """Provides a script's loop with batches, in place of the loader's iterator."""

    def __init__(self, run: Server, loop: Loop, renew: Callable[[], Iterator[Any]]) -> None:
        self._run, self._renew = run, renew
        self.loop = loop
        begin = time.perf_counter()
        self.inner: Any = renew()
        self.late = time.perf_counter() - begin  # seconds spent creating it
        self.fresh = True
        self.count = 0
        self.out: Out | None = None

    def __iter__(self) -> Served:
        return self

    def __next__(self) -> Any:
        return self._run.next_of(self)

    def __len__(self) -> int:
        return len(self.inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["inner"], name)

    def again(self) -> None:
        """The next epoch, in the same loop of the script."""
        self.inner = None  # ends its workers, like the end of a for loop
        self.inner = self._renew()
        self.fresh = True


@dataclasses.dataclass
class Out:
    """A batch held by the script: since when, and its cost."""

    begin: float
    waited: float
    computed: float
    records: int
    restarted: bool
    backwards: int  # number of backward passes before it
    taken: int  # number of batches taken by all loops
    since: float = 0.0
    batch: Any = None  # with its copy, for comparison
    copy: Any = None


class Server(Protocol):
    """What ``Served`` requires: see running.Running."""

    def next_of(self, served: Served) -> Any: ...


def same(one: Any, other: Any) -> bool:
    """Whether two batches have equal values."""

    def is_leaf(value: Any) -> bool:
        return hasattr(value, "shape")

    pairs = zip(take_apart(one, is_leaf).leaves, take_apart(other, is_leaf).leaves, strict=True)
    try:
        return all(_equal(a, b) for a, b in pairs)
    except (TypeError, ValueError, RuntimeError):
        return False


def _equal(one: Any, other: Any) -> bool:
    if one.shape != other.shape:
        return False
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(one, torch.Tensor):
        return bool(torch.equal(one, other))
    return bool(np.array_equal(one, other))


def uses_gpu() -> bool:
    """Whether the script uses a GPU, so that its batches are copied there, too."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return False
    return bool(torch.cuda.memory_allocated() > 0)


def data_of(loader: Any) -> Any:
    """What identifies a loader: its dataset, or the loader below a view."""
    if isinstance(loader, Delivered):
        return loader.loader
    dataset = getattr(loader, "dataset", None)
    return loader if dataset is None else dataset
