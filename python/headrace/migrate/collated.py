# SPDX-License-Identifier: Apache-2.0
"""Runs a user's collate_fn on the records of each finished batch.

Its random draws are a function of seed, epoch and batch, so that a resumed run has the same
batches.
"""

from __future__ import annotations

import contextlib
import copy
import random
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from headrace.arguments import BAD_VALUE
from headrace.loader.assembly import Assembly
from headrace.loader.form import Form
from headrace.migrate.generators import generators_in
from headrace.migrate.look import child
from headrace.migrate.modules import name_of
from headrace.migrate.rows import WrittenTo
from headrace.migrate.samples import Fields, Samples
from headrace.migrate.seeding import seeded
from headrace.migrate.snapshot import Snapshot
from headrace.per_record import Layout

Function = Callable[[list[Any]], Any]

_BY_IDENTITY: Any = object.__eq__
_LIMIT = 60.0  # seconds
_TIMES = 3  # number of timed calls: the first ones load what they need


class Collated:
    """The function, and how its samples are made from a batch. copies: its samples are separate
    tensors, which it may modify in place. after: what is done to its batch on the device.
    """

    draws = True  # or it may

    def __init__(
        self,
        function: Function,
        samples: Samples,
        copies: bool = False,
        after: Callable[[Any], Any] | None = None,
    ) -> None:
        self.function = function
        self.__name__ = name_of(function)
        self.samples = samples
        self.copies = copies
        self.state = ""  # a sentence about what its calls change
        self._after = after
        self._generators = generators_in(function)

    def __call__(
        self,
        layout: Layout,
        values: Mapping[str, Any],
        place: tuple[int, ...],
        device: Any = None,
    ) -> Any:
        """The function's result for a batch. place: seed, epoch, the batch's number, its first
        record."""
        fields = Fields(layout, values, self.copies)
        with _one_thread(), seeded(random.Random(repr(place)).getrandbits(63), self._generators):
            with fields.lent:  # ends before other code gets the batch
                batch = self.called(self.samples(fields), device)
            return self.finished(batch, device)

    def called(self, samples: list[Any], device: Any) -> Any:
        """The function's batch, moved to ``device`` later if that is set."""
        return self.function(samples)

    def finished(self, batch: Any, device: Any) -> Any:
        """Converts a batch of called() to the form that is delivered."""
        if device is not None:
            batch = moved(batch, device)
        return batch if self._after is None else self._after(batch)

    def tried(self, layout: Layout, values: Mapping[str, Any]) -> float:
        """Measures its CPU seconds per record. Sets ``copies`` if it modifies its samples, or if
        its result for rows of a batch differs from that for separate tensors; also sets ``state``.
        It is called in a forked child, so that the user's objects, counters and generators are
        unchanged; if that fails, as it does with GPU memory, on a copy.
        """
        if child.can_fork():
            ended = child.run(lambda say: self._tried(layout, values), _LIMIT)
            if ended.value is not None:
                self.copies, self.state, seconds = ended.value
                return float(seconds)
        function = self.function
        try:
            self.function = copy.deepcopy(function)
            self.copies, self.state, seconds = self._tried(layout, values)
        finally:
            self.function = function
        return seconds

    def _tried(self, layout: Layout, values: Mapping[str, Any]) -> tuple[bool, str, float]:
        held = Snapshot({name_of(self.function): lambda: self.function})
        count = len(self.samples(Fields(layout, values)))
        asked = self.copies
        self.copies = True
        expected = self(layout, values, (0,))
        self.copies = asked
        if not asked:
            kept = {name: _clone(value) for name, value in values.items()}
            try:
                alike = equal(self(layout, values, (0,)), expected)
            except WrittenTo:
                alike = False
            self.copies = not (alike and equal(dict(values), kept))
            values = kept
        taken = []
        for _ in range(_TIMES):
            begin = time.thread_time()
            self(layout, values, (0,))
            taken.append(time.thread_time() - begin)
        return self.copies, held.change(), min(taken) / count


class CollatedForm(Form):
    """Batches as the function returns them: torch tensors on the host, or moved to a device."""

    def __init__(self, form: Form, collated: Any, assembly: Assembly, device: Any) -> None:
        super().__init__(form.convert)
        self.casts = form.casts
        self._collated = collated
        self._assembly = assembly
        self._device = device
        if isinstance(device, (list, tuple)):
            raise BAD_VALUE.error(
                f"batches of {name_of(collated)}() cannot be divided over devices "
                f"(got {len(device)})",
                hint='.torch("cuda") in a process of each device, or collate="default"',
            )

    def batch_of(self, layout: Layout, parts: list[list[Any]]) -> Any:
        fields = self.converted(layout, parts[0])
        if not self._collated.draws:
            return self._collated(layout, fields, (), self._device)
        state = self._assembly.engine().state()  # the position counts this batch already
        return self._made(layout, fields, state["epoch"], state["batch"] - 1)

    def inspected(
        self, layout: Layout, values: Mapping[str, Any], place: tuple[int, int] = (0, 0)
    ) -> Any:
        fields = {name: self.value(name, values[name]) for name in layout.fields}
        return self._made(layout, fields, *place)

    def _made(self, layout: Layout, values: Mapping[str, Any], epoch: int, number: int) -> Any:
        engine = self._assembly.engine()
        first = engine.indices(epoch, number)[0]  # differs between ranks
        place = (engine.state()["seed"], epoch, number, first)
        return self._collated(layout, values, place, self._device)


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Limits torch's threads, as in a DataLoader's worker: on small tensors, and concurrently with
    the engine's own, they would busy-wait for each other."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def moved(value: Any, device: Any) -> Any:
    """A nested batch with its tensors on a device."""
    if isinstance(value, (str, bytes)):
        return value
    if hasattr(value, "detach"):
        return value.to(device, non_blocking=True)
    if hasattr(value, "to"):  # a batch class of the user or of transformers
        return value.to(device)
    if isinstance(value, Mapping):
        return {key: moved(each, device) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        inner = [moved(each, device) for each in value]
        return getattr(type(value), "_make", type(value))(inner)
    return value


def _clone(value: Any) -> Any:
    if isinstance(value, list):
        return [_clone(each) for each in value]
    return value.clone() if hasattr(value, "clone") else value


def equal(one: Any, other: Any) -> bool:
    """Whether two nested values are the same: tensors and rows of a batch value by value."""
    if hasattr(one, "detach") or hasattr(one, "dtype"):
        alike = getattr(other, "shape", None) == one.shape and other.dtype == one.dtype
        return alike and bool(((one == other) | ((one != one) & (other != other))).all())
    if type(one) is not type(other):
        return False
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(equal, one, other))
    if type(one).__eq__ is _BY_IDENTITY and hasattr(one, "__dict__"):
        return equal(vars(one), vars(other))
    return bool(one == other)
