# SPDX-License-Identifier: Apache-2.0
"""The most memory that this process had with those that it has begun, shared pages once."""

from __future__ import annotations

import threading

from headrace.insight.measure.children import children, read_proc

_EVERY = 0.25  # seconds


class PeakMemory:
    """Looks at the proportional set size now and then, while the context is open and at its end.

    >>> with PeakMemory() as peak:
    ...     held = bytearray(1 << 20)
    >>> peak.mib is None or peak.mib > 1
    True
    """

    def __init__(self) -> None:
        self.mib: float | None = None  # None where the kernel does not say
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
        while not self._ended.wait(_EVERY):
            self._look()

    def _look(self) -> None:
        kib = 0
        for process in ["self", *children()]:
            for line in read_proc(f"/proc/{process}/smaps_rollup").splitlines():
                if line.startswith("Pss:"):
                    kib += int(line.split()[1])
        if kib:
            self.mib = max(self.mib or 0.0, kib / 1024)
