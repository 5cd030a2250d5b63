# SPDX-License-Identifier: Apache-2.0
"""CPU time and memory of a process and its descendants, and the page cache, from /proc and libc."""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
from collections.abc import Iterable, Iterator


def process_tree(root: int) -> list[int]:
    """The process and all its live descendants."""
    children: dict[int, list[int]] = {}
    for process, _, fields in processes():
        children.setdefault(int(fields[1]), []).append(process)
    found = [root]
    for process in found:
        found += children.get(process, [])
    return found


def processes() -> Iterator[tuple[int, str, list[str]]]:
    """Number, name and ``stat_fields`` of each process."""
    for process in map(int, filter(str.isdigit, os.listdir("/proc"))):
        if found := _stat(process):
            yield process, *found


def stat_fields(process: int) -> list[str] | None:
    """The fields of /proc/PID/stat, beginning with the state; None if the process has ended."""
    found = _stat(process)
    return found and found[1]


def _stat(process: int) -> tuple[str, list[str]] | None:
    try:
        with open(f"/proc/{process}/stat") as file:
            name, fields = file.read().split("(", 1)[1].rsplit(")", 1)
    except OSError:
        return None
    return name, fields.split()


def cpu_seconds(root: int) -> float:
    """User and system time of the tree, including ended children."""
    ticks = 0
    for process in process_tree(root):
        if fields := stat_fields(process):
            ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def pss_mib(root: int) -> float:
    """Proportional set size of the tree: shared pages are counted once."""
    kib = 0
    for process in process_tree(root):
        try:
            with open(f"/proc/{process}/smaps_rollup") as file:
                kib += sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
        except OSError:
            continue
    return kib / 1024


class PeakMemory:
    """Samples a tree's PSS in the background between `with` and its end."""

    def __init__(self, root: int, interval_seconds: float = 0.5) -> None:
        self.mib = 0.0
        self._root, self._interval = root, interval_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()
        self.mib = max(self.mib, pss_mib(self._root))

    def _watch(self) -> None:
        while not self._stop.wait(self._interval):
            self.mib = max(self.mib, pss_mib(self._root))


def drop_cache(files: Iterable[str]) -> None:
    """Asks the kernel to drop the files' clean pages; needs no privilege."""
    for path in files:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)  # only clean pages are dropped
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def cached_share(files: Iterable[str]) -> float:
    """The fraction of the files' pages in the page cache, from mincore."""
    libc = ctypes.CDLL(None, use_errno=True)
    held = total = 0
    for path in files:
        size = os.path.getsize(path)
        if not size:
            continue
        with open(path, "rb") as file, mmap.mmap(file.fileno(), size, mmap.MAP_PRIVATE) as view:
            pages = -(-size // mmap.PAGESIZE)
            present = (ctypes.c_ubyte * pages)()
            anchor = ctypes.c_char.from_buffer(view)
            address = ctypes.c_void_p(ctypes.addressof(anchor))
            if libc.mincore(address, ctypes.c_size_t(size), present) == 0:
                held += sum(byte & 1 for byte in present)
                total += pages
            del anchor  # a mapping with a borrowed pointer cannot be closed
    return held / total if total else 0.0
