# SPDX-License-Identifier: Apache-2.0
"""The files that a loader reads, if they are known, and their read speed."""

from __future__ import annotations

import glob
import os
import random
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

DEPTHS = (1, 2, 4, 8)
_SAMPLE = 512  # number of extents to read
_SMALL = 64 << 10  # bytes; opening smaller records may cost more than reading them
_BLOCK = 1 << 20
_PLAIN_DISK = 100e6  # bytes per second, a sequential rate of any disk


class Extent(NamedTuple):
    """A byte range of about one record."""

    path: str
    offset: int
    size: int


class Reads(NamedTuple):
    """Results of reading. Rates: records per second by depth; seconds: per record at depth 1."""

    random_rates: dict[int, float]
    sequential_bytes: float  # bytes per second
    record_bytes: float
    seconds: float
    cpu_share: float  # fraction of the time that a core was busy; 1 if the data is in memory
    cold: bool
    small_files: bool

    @property
    def depth(self) -> float:
        """The number of parallel reads that is fastest."""
        return max(1.0, max(self.random_rates.values()) * self.seconds)


def named_by(source: Any, given: Any = None) -> list[str]:
    """Files of one of our sources or of a torch dataset; none if they are unknown."""
    found: list[str] = []
    root = os.fspath(given) if isinstance(given, (str, os.PathLike)) else ""
    if root and os.path.isfile(root):
        return [root]
    if root and not os.path.isdir(root):
        return sorted(path for path in glob.glob(root) if os.path.isfile(path))
    if hasattr(source, "key") and hasattr(source, "engine"):
        keys = (source.key(i) for i in _spread(len(source)))
        found = [key if os.path.isfile(key) else os.path.join(root, key) for key in keys]
        if not all(map(os.path.isfile, found[:4])) and root:
            found = [os.path.join(root, name) for name in sorted(os.listdir(root))]
    else:
        for name in ("samples", "imgs", "files", "paths"):
            values = getattr(source, name, None)
            if isinstance(values, (list, tuple)) and values:
                picked = [values[i] for i in _spread(len(values))]
                found = [v[0] if isinstance(v, (tuple, list)) else v for v in picked]
                break
    paths = [os.fspath(p) for p in found if isinstance(p, (str, os.PathLike))]
    return [path for path in paths if os.path.isfile(path)]


def extents_of(paths: list[str], records: int) -> list[Extent]:
    """Ranges to read: whole files, or ranges of a record's size in files that hold many."""
    if not paths:
        return []
    sizes = [os.path.getsize(path) for path in paths]
    if has_own_files(paths, records):
        return [Extent(path, 0, size) for path, size in zip(paths, sizes, strict=True) if size]
    piece = max(1, sum(sizes) // max(1, records))
    draw = random.Random(0)
    extents = []
    for _ in range(min(records, _SAMPLE)):
        (at,) = draw.choices(range(len(paths)), sizes)
        extents.append(Extent(paths[at], draw.randrange(max(1, sizes[at] - piece)), piece))
    return extents


def forget(paths: list[str]) -> bool:
    """Asks the system to drop the files from its cache; needs no privilege. Returns false if the
    system cannot.
    """
    if not hasattr(os, "posix_fadvise"):
        return False
    try:
        for path in set(paths):
            handle = os.open(path, os.O_RDONLY)
            try:
                os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(handle)
    except OSError:
        return False
    return True


def measure(extents: list[Extent], seconds: float, cold: bool) -> Reads | None:
    """Random reads at increasing depth, then sequential reads. None if there are no files."""
    if not extents or (cold and not forget([extent.path for extent in extents])):
        return None
    share = seconds / (len(DEPTHS) + 1)
    rates: dict[int, float] = {}
    one = cpu = 0.0
    for depth in DEPTHS:
        if cold:
            forget([extent.path for extent in extents])
        rates[depth], used = _random_reads(extents, depth, share, cold)
        if depth == 1:
            one, cpu = 1 / rates[1], used
    sequential = _sequential(extents, share, cold)
    size = statistics.fmean(extent.size for extent in extents)
    whole = all(e.offset == 0 and e.size == os.path.getsize(e.path) for e in extents[:8])
    small = whole and opening_dominates(size, max(rates.values()), sequential)
    return Reads(rates, sequential, size, one, cpu, cold, small)


def has_own_files(paths: list[str], records: int) -> bool:
    """Whether each record is a file, judging by the number of files."""
    return bool(paths) and len(paths) >= min(records, _SAMPLE)


def opening_dominates(size: float, rate: float, sequential: float) -> bool:
    """Whether opening files of ``size`` bytes, read at ``rate`` per second, takes longer than
    reading them. From a single file, the bytes could be read much faster. Small files do not show
    how fast the disk is, so at least a rate that any disk reaches is assumed.
    """
    return size < _SMALL and size * rate < max(sequential, _PLAIN_DISK) / 4


def _random_reads(
    extents: list[Extent], depth: int, seconds: float, once: bool
) -> tuple[float, float]:
    """Records per second, and the fraction of wall time that a core was busy."""
    order = random.Random(depth).sample(extents, len(extents))
    stop = time.perf_counter() + seconds
    busy: list[float] = []

    def reader(number: int) -> int:
        begin, done = time.thread_time(), 0
        while True:  # a second read would come from memory, so cold files are read once
            for extent in order[number::depth]:
                _read(extent)
                done += 1
                if time.perf_counter() >= stop:
                    busy.append(time.thread_time() - begin)
                    return done
            if once or not order[number::depth]:
                busy.append(time.thread_time() - begin)
                return done

    start = time.perf_counter()
    with ThreadPoolExecutor(depth) as pool:
        count = sum(pool.map(reader, range(depth)))
    wall = time.perf_counter() - start
    return max(count, 1) / wall, min(1.0, sum(busy) / wall / depth)


def _read(extent: Extent) -> int:
    handle = os.open(extent.path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        return len(os.pread(handle, extent.size, extent.offset))
    finally:
        os.close(handle)


def _sequential(extents: list[Extent], seconds: float, cold: bool) -> float:
    """Bytes per second of the largest files, read from start to end."""
    paths = sorted({e.path for e in extents}, key=os.path.getsize, reverse=True)
    if cold:
        forget(paths)
    start, count = time.perf_counter(), 0
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        try:
            while chunk := os.read(handle, _BLOCK):
                count += len(chunk)
                if time.perf_counter() - start > seconds:
                    return count / (time.perf_counter() - start)
        finally:
            os.close(handle)
    return count / max(1e-9, time.perf_counter() - start)


def _spread(count: int) -> range:
    """About a hundred evenly spaced numbers of records."""
    return range(0, count, max(1, count // _SAMPLE))
