# SPDX-License-Identifier: Apache-2.0
"""Remedies for our loader, as changed copies of it: with a few records to try a remedy, with all
records to verify it. The user's own loader and files are unchanged.
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
    "The remedy was tried, but has nothing to change here: no images that can have an index, or "
    "data that does not fit into memory.",
)

_WORTH = 0.05  # fraction of a record's time; omitting cheaper transforms is not tried
_LEFT_OUT = 2  # maximum number of transforms to omit
_SHARE_OF_MEMORY = 0.5  # fraction of memory_limit, for resident data or a cache
_PACKED = re.compile(r"(?:^|: |, | and | of )pack \S")  # marks a pack in a source's description
# Remaining fraction of the storage waits with a pack, whose records have a tenth more bytes and no
# separate files.
_READ_PACKED = {False: (1.15, 0.8), True: (1.0, 0.2)}

# A loader like the user's with another source, transforms or keywords.
Make = Callable[..., Loader]


@dataclasses.dataclass(frozen=True)
class Change:
    """``apply``: makes a loader over a source; it writes files into the folder, and reports its
    progress in records.
    """

    name: str
    what: str  # code to type
    apply: Callable[[Make, Source, str, Progress | None], Loader]
    workers: int | None = None  # its number of threads
    read: tuple[float, float] = (1.0, 1.0)  # remaining fraction of storage waits: at worst, at best
    copy: tuple[float, float] = (1.0, 1.0)  # remaining fraction of the copies to a device
    prepares: bool = False  # reads all records before the first batch
    disk: float = 0.0  # bytes that it writes, relative to the source
    apart: bool = False  # processes the whole source, even if given only a part of it


def changes_of(loader: Loader, case: Case, anatomy: Anatomy | None) -> list[Change]:
    """All applicable remedies; a trial measures the gain of each."""
    found = [_threads(case), _uint8(loader), *_left_out(loader, anatomy)]
    if _has_pictures(loader):
        found += [_pack(loader, case), _index(loader), _resident(loader)]
    return [change for change in found if change is not None]


def cache(loader: Loader) -> Change:
    """Keeps stored records in memory: if reading is slow."""
    size = loader.stats()["memory_limit"] * _SHARE_OF_MEMORY
    return Change(
        "cache in memory",
        'cache="4 GiB", or as much as you have',
        lambda make, source, folder, told: make(source, cache=int(size)),
        read=(0.05, 0.0),
        prepares=True,
    )


def block_shuffle() -> Change:
    """Reads blocks of neighboring records: if random reads are slow and sequential ones fast."""
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
    """Delivers uint8 pixels: conversions at the end of the list are done on the device."""
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
        "remove ToDtype and Normalize from the list, and apply them on the device",
        lambda make, source, folder, told: make(source, pipeline=shorter),
        copy=(0.3, 0.25),
    )


def _left_out(loader: Loader, anatomy: Anatomy | None) -> list[Change]:
    """Omits transforms of known cost, the most expensive first."""
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
        f"remove {name}, make it cheaper, or do it on the device",
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
            raise NOT_HERE.error("no image of this source can have a row index")
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

    what = "resident=True: decode once, keep the result in memory"
    return Change("resident", what, apply, read=(0.05, 0.0), prepares=True)


def maker(loader: Loader, **kept: Any) -> Make:
    """Makes similar loaders; ``kept``: keywords of all of them."""
    from headrace.insight.probes.ours import like

    def make(source: Any = None, pipeline: Pipeline | None = None, **changes: Any) -> Loader:
        return like(loader, source, pipeline, **{**kept, **changes})

    return make
