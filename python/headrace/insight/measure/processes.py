# SPDX-License-Identifier: Apache-2.0
"""Memory and CPU time of this process and those that it started (workers, video decoders), from
/proc. Does not use psutil, which searches all processes of the machine for the children of one:
that takes 11 ms. Reading the kernel's lists of children takes 0.6 ms, and a watch does it every
second.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

_TICK = 1 / os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Processes:
    """Unknown values are 0: a process has ended, or the kernel lacks CONFIG_PROC_CHILDREN.

    >>> Processes().cpu_seconds() > 0
    True
    """

    def __init__(self, root: str | os.PathLike[str] = "/") -> None:
        self._proc = os.path.join(root, "proc")

    def memory(self, process: str = "self") -> int:
        """Resident bytes."""
        fields = self._read(process, "statm").split()
        return int(fields[1]) * _PAGE if len(fields) > 1 else 0

    def shared_once(self) -> int:
        """Bytes of this process and of its descendants; shared pages are counted once."""
        kib = 0
        for process in ("self", *self.descendants()):
            for line in self._read(process, "smaps_rollup").splitlines():
                if line.startswith("Pss:"):
                    kib += int(line.split()[1])
        return kib << 10

    def cpu_seconds(self) -> float:
        """CPU seconds of this process and all descendants, ended ones included."""
        return time.process_time() + self.children()[0]

    def children(self) -> tuple[float, int]:
        """CPU seconds of all descendants, including ended ones, and bytes of the live ones."""
        times = os.times()
        seconds, memory = times.children_user + times.children_system, 0
        for process in self.descendants():
            fields = (
                self._read(process, "stat").rpartition(")")[2].split()
            )  # a name may have spaces
            seconds += sum(map(int, fields[11:15])) * _TICK  # including its ended children
            memory += self.memory(process)
        return seconds, memory

    def descendants(self) -> Iterator[str]:
        """The process ids of all live descendants."""
        left, seen = self._started_by("self"), set[str]()
        while left:
            process = left.pop()
            if process not in seen:
                seen.add(process)
                left += self._started_by(process)
                yield process

    def _started_by(self, process: str) -> list[str]:
        try:
            threads = os.listdir(f"{self._proc}/{process}/task")
        except OSError:
            return []
        lists = (self._read(process, f"task/{thread}/children") for thread in threads)
        return [child for each in lists for child in each.split()]

    def _read(self, process: str, name: str) -> str:
        try:
            with open(f"{self._proc}/{process}/{name}", errors="replace") as file:
                return file.read()
        except OSError:
            return ""


class PeakMemory:
    """The peak memory of this process and its descendants while the context is open.

    >>> with PeakMemory() as peak:
    ...     held = bytearray(1 << 20)
    >>> peak.mib is None or peak.mib > 1
    True
    """

    def __init__(self, every: float = 0.25) -> None:
        self.mib: float | None = None  # None if the kernel does not report it
        self._every, self._processes = every, Processes()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="headrace-memory", daemon=True)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._look()

    def _watch(self) -> None:
        while not self._ended.wait(self._every):
            self._look()

    def _look(self) -> None:
        if held := self._processes.shared_once():
            self.mib = max(self.mib or 0.0, held / 2**20)
