# SPDX-License-Identifier: Apache-2.0
"""A second loader that has a remedy applied: with all records, or as many as time allows.

The loader's files are limited to the available space, and are in a temporary folder that is removed
with the loader.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from headrace import _core
from headrace.errors import Error
from headrace.insight.examination.conclusion import case_of
from headrace.insight.examination.findings import Findings
from headrace.insight.probes import torch_dataloader
from headrace.insight.remedies import changes
from headrace.insight.remedies.changes import Change, maker
from headrace.insight.remedies.trials import stored_in
from headrace.loader import Loader
from headrace.loader.views import Delivered
from headrace.sources import Source, subset

Tell = Callable[[str, int], object]

_YOURS = "this changes your data or your code: make the change yourself and run the doctor again"
_LONGEST = 120.0  # seconds of preparation; records beyond that are not used
_FEW = 16  # records used to estimate how long it takes
_FREE = 0.9  # fraction of a folder's free bytes that may be used
_OWN = ("resident", "cache", "shard", "sampler")  # keywords that examinations otherwise change


class CannotBe(Exception):
    """Why a remedy cannot be applied here."""


@dataclasses.dataclass(frozen=True)
class Applied:
    """The loop's loader, one with the remedy, the number of records used, and of all records."""

    before: Any
    after: Any
    records: int = 0
    whole: int = 0
    disk_bytes: int = 0


@contextlib.contextmanager
def applied(found: Findings, name: str, tell: Tell) -> Iterator[Applied]:
    """Yields both loaders; everything made for them is closed and removed afterwards. Raises
    CannotBe.
    """
    with contextlib.ExitStack() as stack:
        try:
            made = _made(found, name, tell, stack)
        except (Error, OSError, ValueError, TypeError, AttributeError, ImportError) as error:
            raise CannotBe((str(error) or repr(error)).splitlines()[0]) from error
        yield made


def _made(found: Findings, name: str, tell: Tell, stack: contextlib.ExitStack) -> Applied:
    if name == "prefetch" or name.startswith("pinned copies"):
        return Applied(found.loader, _prefetched(found, name))
    if found.ours is not None:
        return _of_ours(found, found.ours, name, tell, stack)
    if found.dataloader is not None:
        return Applied(found.loader, _of_dataloader(found.dataloader, name, stack))
    raise CannotBe(_YOURS)


def _prefetched(found: Findings, name: str) -> Any:
    if found.once:
        raise CannotBe("the loader can be iterated only once")
    if found.ours is not None:
        return found.ours.torch("cuda")
    from headrace.delivery.prefetch import prefetch

    device = "cuda" if name.startswith("pinned") or _core.cuda_devices()[0] else "cpu"
    return prefetch(found.loader, device)


def _of_dataloader(loader: Any, name: str, stack: contextlib.ExitStack) -> Any:
    count, _, word = name.partition(" ")
    if word == "workers":
        return torch_dataloader.rebuilt(
            loader, num_workers=int(count), persistent_workers=int(count) > 0
        )
    if count == "without":
        return torch_dataloader.without_transform(loader, word)
    if name == "Headrace instead":
        from headrace.migrate import from_dataloader

        made = from_dataloader(loader, verbose=False, check=False)
        stack.callback(made.close)
        return made.torch()
    raise CannotBe(_YOURS)


def _of_ours(
    found: Findings, loader: Loader, name: str, tell: Tell, stack: contextlib.ExitStack
) -> Applied:
    change = _change(found, loader, name)
    own = {keyword: loader.assembly.given[keyword] for keyword in _OWN}
    make, view = maker(loader, **own), _view_of(found.loader)
    whole = len(loader.source)
    count = _affordable(maker(loader), loader.source, change) if change.prepares else whole
    if own["sampler"] is not None and count < whole:
        raise CannotBe("preparing it takes too long, and the sampler uses all records")
    source = loader.source if count == whole else _spread(loader.source, count)
    copied = change.apart and count < whole  # even for a part, it would process the whole source
    needed = int((change.disk + copied) * _stored_bytes(source))
    _make_sure_of_room(needed)
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    if copied:
        source = stored_in(source, folder)

    def told(done: int, total: int) -> None:
        tell(f"applying {name}: {done:,} of {total:,} records", 0)

    before = stack.enter_context(make(source))
    after = stack.enter_context(change.apply(make, source, folder, told))
    return Applied(view(before), view(after), count, whole, needed)


def _change(found: Findings, loader: Loader, name: str) -> Change:
    case = case_of(found)
    if case is None:
        raise CannotBe("too little is known about the loop")
    offered = changes.changes_of(loader, case, found.anatomy)
    offered += [changes.cache(loader), changes.block_shuffle()]
    for change in offered:
        if change.name == name:
            return change
    raise CannotBe(_YOURS)


def _view_of(loader: Any) -> Callable[[Loader], Any]:
    """The view through which the loop iterates the loader: a framework's, or the loader itself."""
    if not isinstance(loader, Delivered):
        return lambda made: made

    def seen(made: Loader) -> Any:
        view = copy.copy(loader)
        view.loader = made
        return view

    return seen


def _affordable(make: changes.Make, source: Source, change: Change) -> int:
    """Records for which the remedy can be prepared in the available time."""
    begin, few = time.perf_counter(), min(_FEW, len(source))
    with tempfile.TemporaryDirectory() as folder:
        part = _spread(source, few)
        if change.apart:
            part = stored_in(part, folder)
        with change.apply(make, part, folder, None) as made:
            next(iter(made))
    each = (time.perf_counter() - begin) / few
    return min(len(source), max(few, int(_LONGEST / each)))


def _spread(source: Source, count: int) -> Source:
    """Records sampled from the whole source."""
    whole = len(source)
    return subset(source, [number * whole // count for number in range(count)])


def _stored_bytes(source: Source) -> float:
    """Estimates the bytes of all records from some of them."""
    few = range(0, len(source), max(1, len(source) // 64))
    sizes = [_size(source.engine.read(number)) for number in few]
    return sum(sizes) / max(1, len(sizes)) * len(source)


def _size(record: dict[str, Any]) -> int:
    return sum(len(value) for value in record.values() if isinstance(value, bytes))


def _make_sure_of_room(needed: int) -> None:
    place = tempfile.gettempdir()
    free = shutil.disk_usage(place).free
    if needed > _FREE * free:
        raise CannotBe(
            f"it takes {needed / 1e9:,.1f} GB in {place}, which has {free / 1e9:,.1f} GB free; set "
            "TMPDIR to another folder"
        )
