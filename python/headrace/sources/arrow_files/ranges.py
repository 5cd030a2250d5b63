# SPDX-License-Identifier: Apache-2.0
"""Files of any storage for pyarrow, which reads them by ranges; most ranges have been
prefetched.
"""

from __future__ import annotations

import bisect
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace import _core

Range = tuple[int, int, int]  # file, offset, bytes

_WINDOW, _WIDE_WINDOW = 4 << 10, 8 << 20  # bytes
_MOST_WINDOWS = 1024
NEAR = 64 << 10  # bytes between two ranges that are read with them, as one request


def merged(ranges: Sequence[Range]) -> list[Range]:
    """Sorted, and with near neighbors as one."""
    out: list[Range] = []
    for file, begin, count in sorted(ranges):
        if out and out[-1][0] == file and begin <= out[-1][1] + out[-1][2] + NEAR:
            end = max(begin + count, out[-1][1] + out[-1][2])
            out[-1] = (file, out[-1][1], end - out[-1][1])
        else:
            out.append((file, begin, count))
    return out


class RangesFile:
    """A file for pyarrow. Bytes that are not in ``known`` (offsets and bytes) are read on demand,
    with a separate request."""

    closed = False

    def __init__(
        self, files: _core.StoredFiles, number: int, known: Sequence[tuple[int, Any]] = ()
    ) -> None:
        self._files, self.number = files, number
        self._known = [(begin, np.asarray(each)) for begin, each in known]
        self._at = 0
        self.size = files.size(number)

    def read(self, count: int | None = -1) -> Any:
        left = max(self.size - self._at, 0)
        count = left if count is None or count < 0 else min(count, left)
        begin, self._at = self._at, self._at + count
        return self.read_at(begin, count) if count else b""

    def read_at(self, begin: int, count: int) -> Any:
        for first, part in self._known:
            if first <= begin and begin + count <= first + len(part):
                return part[begin - first : begin - first + count]
        return np.asarray(self._files.read([(self.number, begin, count)])[0])

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self.size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def close(self) -> None:
        pass

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def flush(self) -> None:
        pass


class HeadersFile(RangesFile):
    """A file whose headers are read with some bytes after them, which are kept for the next reads:
    4 KiB, or 8 MiB if small parts follow each other.
    """

    def __init__(self, files: _core.StoredFiles, number: int) -> None:
        super().__init__(files, number)
        self._windows: OrderedDict[int, Any] = OrderedDict()
        self._begins: list[int] = []  # sorted

    def read_at(self, begin: int, count: int) -> Any:
        at = bisect.bisect_right(self._begins, begin) - 1
        if at >= 0:
            first = self._begins[at]
            window = self._windows[first]
            if begin + count <= first + len(window):
                return window[begin - first : begin - first + count]
            follows = begin <= first + len(window) + _WINDOW
        else:
            follows = False
        wide = _WIDE_WINDOW if follows else _WINDOW
        window = super().read_at(begin, min(max(count, wide), max(self.size - begin, 0)))
        if begin not in self._windows:
            bisect.insort(self._begins, begin)
        self._windows[begin] = window
        kept = sum(len(each) for each in self._windows.values()) if follows else 0
        while len(self._windows) > _MOST_WINDOWS or kept > 4 * _WIDE_WINDOW:
            oldest, gone = self._windows.popitem(last=False)
            self._begins.remove(oldest)
            kept -= len(gone)
        return window[:count]
