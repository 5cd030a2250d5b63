# SPDX-License-Identifier: Apache-2.0
"""Remedies for our loader as changes of it: with a few records to try one, with all to verify it.
The user's own loader and files stay as they are.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable
from typing import Any

from headrace.errors import declare
from headrace.insight.model.case import Case
from headrace.insight.probes.ours import Anatomy, names_of, without
from headrace.loader import Loader
from headrace.pipeline import Pipeline
from headrace.sources import Progress, Source

NOT_HERE = declare(
    "HR0925",
    "config",
    "remedy has no effect here",
    "The remedy was tried, but has nothing to change here: no image that an index could be made "
    "of, or data that does not fit into memory.",
)

_WORTH = 0.05  # of a record's time; steps that take less are not left out
_LEFT_OUT = 2  # steps, at most
_SHARE_OF_MEMORY = 0.5  # of memory_limit, that resident data or a cache may take
_PACKED = re.compile(r"(?:^|: |, | and | of )pack \S")  # in what a source says of itself
# Factors of the waits for the storage with a pack, whose records have a tenth more bytes
# and need no file of their own.
_READ_PACKED = {False: (1.15, 0.8), True: (1.0, 0.2)}

# A loader as the user's with another source, steps or keywords.
Make = Callable[..., Loader]


@dataclasses.dataclass(frozen=True)
class Change:
    """``apply``: a loader over a source; what it writes goes into the folder, and it tells of how
    many records it has done so."""

    name: str
    what: str  # to be typed
    apply: Callable[[Make, Source, str, Progress | None], Loader]
    workers: int | None = None  # that it has then
    read: tuple[float, float] = (1.0, 1.0)  # left of waits for the storage: at worst, at best
    copy: tuple[float, float] = (1.0, 1.0)  # left of what is copied to a device
    prepares: bool = False  # goes over all records before the first batch
    disk: float = 0.0  # bytes that it writes, of the bytes of the source
    apart: bool = False  # is made for a whole source, whatever part of it is given


def changes_of(loader: Loader, case: Case, anatomy: Anatomy | None) -> list[Change]:
    """All that may apply; what each gives is for a trial to say."""
    found = [_threads(case), _uint8(loader), *_left_out(loader, anatomy)]
    if _has_pictures(loader):
        found += [_pack(loader, case), _index(loader), _resident(loader)]
    return [change for change in found if change is not None]


def cache(loader: Loader) -> Change:
    """Records as they are stored kept in memory: where reading waits."""
    size = loader.stats()["memory_limit"] * _SHARE_OF_MEMORY
    return Change(
        "cache in memory",
        'cache="4 GiB", or as much as you have',
        lambda make, source, folder, told: make(source, cache=int(size)),
        read=(0.05, 0.0),
        prepares=True,
    )


def block_shuffle() -> Change:
    """Blocks of neighboring records: where random reads are slow, and long ones are not."""
    return Change(
        "block shuffle",
        'shuffle="blocks": neighbors are read together',
        lambda make, source, folder, told: make(source, shuffle="blocks"),
    )


def _threads(case: Case) -> Change | None:
    if case.workers >= case.cores:
        return None
    count = case.cores
    return Change(
        f"{count} workers",
        f"threads={count}",
        lambda make, source, folder, told: make(source, threads=count),
        workers=count,
    )


def _uint8(loader: Loader) -> Change | None:
    """Pixels as bytes: what makes numbers of them at the end of the list is left to the device."""
    pipeline = loader.assembly.pipeline
    numbers, number = set(), 0
    for steps in (pipeline.steps, *pipeline.by_field.values()):
        number += len(steps)
        for back, step in enumerate(reversed(steps), 1):
            if step.name not in ("ToDtype", "Normalize"):
                break
            numbers.add(number - back)
    if not numbers:
        return None
    shorter = without(pipeline, numbers)
    return Change(
        "uint8, normalized on the device",
        "leave ToDtype and Normalize out of the list, and do them on the device",
        lambda make, source, folder, told: make(source, pipeline=shorter),
        copy=(0.3, 0.25),
    )


def _left_out(loader: Loader, anatomy: Anatomy | None) -> list[Change]:
    """Without a step, for those that have a price, the dearest first."""
    if anatomy is None or anatomy.one_thread <= 0:
        return []
    names = names_of(loader.assembly.pipeline)
    dear = [
        p for p in anatomy.prices if p.seconds * anatomy.one_thread > _WORTH and p.name in names
    ]
    dear.sort(key=lambda price: -price.seconds)
    return [
        _without(price.name, without(loader.assembly.pipeline, {names.index(price.name)}))
        for price in dear[:_LEFT_OUT]
    ]


def _without(name: str, pipeline: Pipeline) -> Change:
    return Change(
        f"without {name}",
        f"leave {name} out, make it cheaper, or do it on the device",
        lambda make, source, folder, told: make(source, pipeline=pipeline),
    )


def _has_pictures(loader: Loader) -> bool:
    return any(field.encoded for field in loader.source.schema)


def _pack(loader: Loader, case: Case) -> Change | None:
    if _PACKED.search(loader.source.engine.description):
        return None

    def apply(make: Make, source: Source, folder: str, told: Progress | None) -> Loader:
        from headrace.pack import pack

        path = os.path.join(folder, "packed.hrpack")
        pack(source, path, progress=told)
        return make(path)

    what = "headrace pack SOURCE -o FILE, and open FILE"
    read = _READ_PACKED[case.small_files]
    return Change("pack", what, apply, read=read, prepares=True, disk=1.2)


def _index(loader: Loader) -> Change | None:
    if loader.stats()["index"]["entries"] or _PACKED.search(loader.source.engine.description):
        return None

    def apply(make: Make, source: Source, folder: str, told: Progress | None) -> Loader:
        from headrace.index import index

        path = os.path.join(folder, "rows.hrindex")
        if not index(source, path, progress=told)["indexed"]:
            raise NOT_HERE.error("no image of this source has rows that an index could name")
        return make(source, index=path)

    return Change("index", "headrace index SOURCE", apply, prepares=True, disk=0.02, apart=True)


def _resident(loader: Loader) -> Change | None:
    if loader.assembly.given["resident"]:
        return None
    records = len(loader.source)

    def apply(make: Make, source: Source, folder: str, told: Progress | None) -> Loader:
        made = make(source, resident=True)
        stats = made.stats()
        if stats["resident_bytes"] / len(source) * records > (
            _SHARE_OF_MEMORY * stats["memory_limit"]
        ):
            made.close()
            raise NOT_HERE.error("the decoded records do not fit into memory_limit")
        return made

    what = "resident=True: decode once, keep the outcome in memory"
    return Change("resident", what, apply, read=(0.05, 0.0), prepares=True)


def maker(loader: Loader, **kept: Any) -> Make:
    """Makes loaders like one; ``kept``: keywords of all of them."""
    from headrace.insight.probes.ours import like

    def make(source: Any = None, pipeline: Pipeline | None = None, **changes: Any) -> Loader:
        return like(loader, source, pipeline, **{**kept, **changes})

    return make
