# SPDX-License-Identifier: Apache-2.0
"""Copies the batches of any loader to a device while the consumer works.

for images, labels in headrace.prefetch(dataloader, "cuda"):
    ...

One thread takes batches from the source and stages them in pinned memory; the copies run on a
separate stream, ``depth`` batches ahead. A consumer's stream waits for the copy of its batch, and
the memory of a batch is written again only when the work that used it is done: both by events, so
the host never waits. See docs/guide/prefetch.md.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from headrace import _core, arguments
from headrace.delivery.copied_batch import Opened, open_batch
from headrace.delivery.side_stream import Streams, TorchStreams
from headrace.errors import Error, declare, warn
from headrace.loader.iteration import exiting, live, refuse_dataloader_worker
from headrace.loader.own_device import open_device
from headrace.loader.turn import Turn
from headrace.profiled import SOURCE, TRANSFORM, WAIT, region

_NOT_RESUMABLE = declare(
    "HR0887",
    "config",
    "prefetcher not resumable",
    "The source is some batches ahead of its consumer, so its own state_dict() would skip batches "
    "that were not received. With resumable=True, its state is saved after every batch, and "
    "state_dict() returns the state that belongs to the last batch received.",
)
_OVER = declare(
    "HR0888",
    "config",
    "iteration has ended",
    "A prefetcher has one iteration at a time: a new iter() or close() ends the previous one.",
)
_NEEDS_TORCH = declare(
    "HR0889",
    "config",
    "device transform without torch",
    "transform= runs on a separate stream alongside the consumer's, which needs torch's streams. "
    "Import torch first, or transform the batch in the loop.",
)

_PATIENCE = 1.0  # seconds that close() waits for a consumer to leave


def prefetch(
    source: Iterable[Any],
    device: Any = "cuda",
    depth: int = 2,
    transform: Callable[[Any], Any] | None = None,
    *,
    resumable: bool = False,
    pinned_limit: int | str | None = None,
    patience: float = 60.0,
) -> Any:
    """Copies the batches of ``source`` to ``device`` ahead of the loop.

    source: any iterable of batches: a torch DataLoader, a generator, a list. A batch is a tensor or
        array, or lists, tuples, named tuples, dictionaries and dataclasses of them, nested; other
        values are passed through. Shapes may change. It is iterated on a separate thread, in order.
    device: "cuda" (torch's current device), "cuda:1", a torch.device. "cpu": batches are made ahead
        and not copied.
    depth: batches that are ready or being copied; the device holds at most depth + 1 batches.
    transform: batch -> batch, run one batch ahead on a side stream: normalize, cast, channels_last.
    resumable: take the source's ``state_dict()`` after every batch, so that this object's own
        counts what was received.
    pinned_limit: bytes, or "256 MiB", of pinned memory for staging; default: ``depth`` times the
    largest batch. Data that does not fit is copied without staging.
    patience: seconds after which a warning says what the prefetcher is waiting for; 0: never.

    Torch tensors are delivered as torch tensors; NumPy arrays as torch tensors if torch is
    imported, otherwise as ``headrace.Array``, which exports DLPack. Exceptions of the source are
    raised at the batch that caused them. The result can be iterated repeatedly; ``len``,
    ``stats()`` and ``close()`` work; other attributes are forwarded to the source. A Headrace
    loader is delivered as with ``.torch(device)``.
    """
    from headrace.loader import Loader
    from headrace.loader.views import Delivered

    if isinstance(source, (Loader, Delivered)) and transform is None:
        return source.torch(device, depth=depth)
    return Prefetch(
        source,
        device,
        depth,
        transform,
        resumable=resumable,
        pinned_limit=pinned_limit,
        patience=patience,
    )


class Prefetch:
    """The result of ``prefetch``, which documents the arguments and their defaults."""

    def __init__(
        self,
        source: Iterable[Any],
        device: Any,
        depth: int,
        transform: Callable[[Any], Any] | None,
        *,
        resumable: bool,
        pinned_limit: int | str | None,
        patience: float,
    ) -> None:
        self.source = source
        self.device = device_of(device)
        self._depth = arguments.integer("depth", depth, 1)
        self._transform = transform
        self._resumable = arguments.switch("resumable", resumable)
        self._received: Mapping[str, Any] | None = None
        self._turn = Turn()
        self._prefetcher = _core.Prefetcher(
            self.device,
            self._depth,
            arguments.seconds("patience", patience),
            0 if pinned_limit is None else arguments.size_in_bytes("pinned_limit", pinned_limit),
            warn,
        )
        self._streams = self._side_streams()
        live.add(self)

    def _side_streams(self) -> Streams | None:
        """Torch's streams, if a transform runs on a CUDA device; otherwise None."""
        if self._transform is None or not self.device.name.startswith("cuda"):
            return None
        if "torch" not in sys.modules:
            raise _NEEDS_TORCH.error(f"transform= on {self.device.name}", hint="import torch first")
        return TorchStreams(self.device.name)

    def __len__(self) -> int:
        """Number of batches of the source."""
        return len(self.source)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        refuse_dataloader_worker()
        return self._turn.take_over(self._begin)

    def _begin(self) -> Iterator[Any]:
        self._prefetcher.stop()
        # The thread refers to the source's iterator, not to this object, so that it can be dropped.
        source, device, state = iter(self.source), self.device.name, self._state_of_source()
        work = self._transform if self.device.is_host else None
        opened = None if self.device.is_host else lambda batch: open_batch(batch, device)
        self._prefetcher.start(_puller(source, opened, work, state))
        return Run(self, self._turn)

    def _state_of_source(self) -> Callable[[], Any] | None:
        if not self._resumable:
            return None
        return self.source.state_dict  # type: ignore[attr-defined, no-any-return]

    def _end(self) -> None:
        """Ends the iteration. REQUIRES: inside ``_turn``."""
        self._turn.number += 1
        self._prefetcher.stop()

    def _fetch(self, ended: Callable[[], bool]) -> Any:
        """The next batch on the device. Raises StopIteration after the last one, or the source's
        error.
        """
        taken = self._prefetcher.next(ended)
        if taken is None:
            raise StopIteration
        arrays, sent = taken
        if isinstance(sent, _Raised):
            raise sent.error
        batch = sent.batch if self.device.is_host else sent.batch.closed(arrays)
        if sent.state is not None:
            self._received = sent.state
        return batch

    def state_dict(self) -> Mapping[str, Any]:
        """The source's state after the last batch received."""
        if not self._resumable:
            raise _NOT_RESUMABLE.error("state_dict()", hint="prefetch(source, resumable=True)")
        return self._received if self._received is not None else self.source.state_dict()  # type: ignore[attr-defined]

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next iteration continues the source from that state."""
        self._turn.take_over(lambda: self._load_state(state))

    def _load_state(self, state: Mapping[str, Any]) -> None:
        self._prefetcher.stop()
        self._received = None
        self.source.load_state_dict(state)  # type: ignore[attr-defined]

    def stats(self) -> dict[str, Any]:
        """Batches and bytes; seconds spent waiting, in the source and in staging; memory."""
        return self._prefetcher.stats()

    def close(self) -> None:
        """Ends the iteration and frees the device's memory; batches that are kept stay valid."""
        self._turn.take_over(self._prefetcher.close, patience=0 if exiting() else _PATIENCE)

    def __enter__(self) -> Prefetch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "source":
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self.source, name)

    def __repr__(self) -> str:
        return f"prefetch({self.source!r}, {self.device.name!r}, depth={self._depth})"


class Run:
    """One iteration of a prefetcher; the next one closes it, and dropping it stops reading."""

    def __init__(self, owner: Prefetch, turn: Turn) -> None:
        self._owner: Prefetch | None = owner
        self._turn = turn
        self._number = turn.number
        self._ahead: deque[_Made] = deque()

    def __iter__(self) -> Run:
        return self

    def has_ended(self) -> bool:
        """Whether a later call of the prefetcher ended it."""
        return self._turn.number != self._number

    def __next__(self) -> Any:
        own = threading.get_ident()
        if self._turn.holder is not None:
            raise self._ended() if self.has_ended() else self._turn.taken()
        self._turn.holder = own
        try:
            with region(WAIT):
                return self._next_of(self._owner)
        finally:
            self._turn.holder = None

    def _next_of(self, owner: Prefetch | None) -> Any:
        if owner is None:
            raise StopIteration
        try:
            batch = None if self.has_ended() else self._next(owner)
        except BaseException:
            if not self.has_ended():
                self._owner = None
                owner._end()
                raise
        if self.has_ended():
            raise self._ended()
        return batch

    def _ended(self) -> Error:
        return _OVER.error("this iterator was closed", hint="a later iter() or close() ended it")

    def _next(self, owner: Prefetch) -> Any:
        if owner._streams is not None:
            return self._next_transformed(owner, owner._streams)
        batch = owner._fetch(self.has_ended)
        if owner._transform is not None and not owner.device.is_host:
            with region(TRANSFORM):
                batch = owner._transform(batch)
        return batch

    def _next_transformed(self, owner: Prefetch, streams: Streams) -> Any:
        """A batch that was transformed one call ahead.

        What the transform allocates belongs to the side stream, and is used on the consumer's. The
        consumer frees it on the host while its work may still run; the side stream, which gets that
        memory again, therefore first waits for everything that the consumer has queued so far: up
        to the previous training step. The transform then runs during the next one.
        """
        streams.side_waits_for_current()
        made = self._ahead.popleft() if self._ahead else self._transformed(owner, streams)
        if made.error is not None:
            raise made.error
        if owner._prefetcher.ready() > 0:
            self._ahead.append(self._transformed(owner, streams))
        streams.current_waits_for(made.ready)
        return made.batch

    def _transformed(self, owner: Prefetch, streams: Streams) -> _Made:
        assert owner._transform is not None
        try:
            with streams.on_side():
                batch = owner._fetch(self.has_ended)
                with region(TRANSFORM):
                    batch = owner._transform(batch)
                return _Made(batch, streams.record(), None)
        except BaseException as error:  # raised when this batch is due
            return _Made(None, None, error)

    def __del__(self) -> None:
        owner = self._owner
        if owner is not None and not self.has_ended():
            owner._end()


def device_of(device: Any) -> _core.Device:
    """The engine's device for a name or a torch.device."""
    if isinstance(device, _core.Device):
        return device
    name = str(device)
    if name == "cuda" and "torch" in sys.modules and _core.cuda_devices()[0] > 0:
        from headrace.frameworks.torch import devices_for

        found = devices_for(device)
        return found if isinstance(found, _core.Device) else open_device(name)
    return open_device(name)


class _Made(NamedTuple):
    batch: Any  # transformed
    ready: Any  # recorded after the transform
    error: BaseException | None


class _Sent(NamedTuple):  # passed by the thread with a batch's arrays
    batch: Any  # the batch itself, or an Opened
    state: Any


class _Raised(NamedTuple):
    error: BaseException


def _puller(
    source: Iterator[Any],
    opened: Callable[[Any], tuple[list[Any], list[bool], Opened]] | None,
    work: Callable[[Any], Any] | None,
    state: Callable[[], Any] | None,
) -> Callable[[], Any]:
    """The prefetcher's function for each batch; errors are passed on as values."""

    def pull() -> Any:
        try:
            with region(SOURCE):
                batch = next(source)
            after = None if state is None else state()
            if opened is None:
                if work is not None:
                    with region(TRANSFORM):
                        batch = work(batch)
                return [], [], _Sent(batch, after)
            arrays, pinned, rest = opened(batch)
            return arrays, pinned, _Sent(rest, after)
        except StopIteration:
            return None
        except BaseException as error:
            return [], [], _Raised(error)

    return pull
