# SPDX-License-Identifier: Apache-2.0
"""Files of any storage as pyarrow reads them: by ranges, most of which are in memory before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace import _core

Range = tuple[int, int, int]  # file, offset, bytes

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
    """A file for pyarrow. What is not in ``known`` (offsets and bytes) is read when it is asked
    for, with a request of its own.
    """

    closed = False

    def __init__(
        self, files: _core.StoredFiles, number: int, known: Sequence[tuple[int, Any]] = ()
    ) -> None:
        self._files, self._number = files, number
        self._known = [(begin, np.asarray(each)) for begin, each in known]
        self._at = 0
        self.size = files.size(number)

    def read(self, count: int | None = -1) -> Any:
        left = max(self.size - self._at, 0)
        count = left if count is None or count < 0 else min(count, left)
        begin, self._at = self._at, self._at + count
        return self.read_at(begin, count)

    def read_at(self, begin: int, count: int) -> Any:
        for first, part in self._known:
            if first <= begin and begin + count <= first + len(part):
                return part[begin - first : begin - first + count]
        return np.asarray(self._files.read([(self._number, begin, count)])[0])

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
