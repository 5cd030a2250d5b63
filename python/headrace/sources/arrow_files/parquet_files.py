# SPDX-License-Identifier: Apache-2.0
"""The Parquet files of one source: the footers of all of them, and a few that are open.

A folder may have more files than a process may hold open.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from headrace.sources.arrow_files.columns import pyarrow, reading

_MOST_OPEN = 8


class ParquetFiles:
    """Footers by file index; the most recently used files stay open."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = paths
        self.footers: list[Any] = []
        self.schemas: list[Any] = []
        self._open: OrderedDict[int, Any] = OrderedDict()
        for path in paths:
            with reading(path), pyarrow("pyarrow.parquet").ParquetFile(path) as file:
                self.footers.append(file.metadata)
                self.schemas.append(file.schema_arrow)

    def __len__(self) -> int:
        return len(self.paths)

    def open(self, number: int) -> Any:
        """The file, open until a few others were requested."""
        if number in self._open:
            self._open.move_to_end(number)
            return self._open[number]
        while len(self._open) >= _MOST_OPEN:
            self._open.popitem(last=False)[1].close()
        path = self.paths[number]
        with reading(path):
            file = pyarrow("pyarrow.parquet").ParquetFile(path, metadata=self.footers[number])
        self._open[number] = file
        return file
