# SPDX-License-Identifier: Apache-2.0
"""CPU time and memory of a process and its descendants, and the page cache, from /proc and libc."""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
from collections.abc import Iterable


def process_tree(root: int) -> list[int]:
    """The process and all its descendants that are alive."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        if fields := stat_fields(int(name)):
            children.setdefault(int(fields[1]), []).append(int(name))
    found = [root]
    for process in found:
        found += children.get(process, [])
    return found


def stat_fields(process: int) -> list[str] | None:
    """/proc/PID/stat from the state on; None when the process is gone."""
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()
    except OSError:
        return None


def cpu_seconds(root: int) -> float:
    """User and system time of the tree, with that of its children that have ended."""
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
    """Asks the kernel to forget the files' clean pages; needs no privilege."""
    for path in files:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)  # only clean pages are dropped
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def cached_share(files: Iterable[str]) -> float:
    """The share of the files' pages that the page cache holds, by mincore."""
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
