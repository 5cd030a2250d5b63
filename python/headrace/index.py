# SPDX-License-Identifier: Apache-2.0
"""Row indexes: where the rows of each JPEG picture begin, so that decoding can start at a crop.

A loader uses the index of its dataset by itself where there is one; pixels do not depend on it.

>>> import headrace as hr, os, tempfile
>>> out = os.path.join(tempfile.mkdtemp(), "x.rows")
>>> hr.index(hr.records(image=["missing.jpg"]), out)["bad"]
1
"""

from __future__ import annotations

import os
import time
from typing import Any

from headrace import _core, arguments
from headrace.sources import Progress
from headrace.sources import open as open_source

Path = str | os.PathLike[str]


def index(
    source: Any,
    out: Path | None = None,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Make the row index of a dataset: one file, about 1.2 % of the pictures' size.

    out: the file; default, in ``HEADRACE_CACHE``, where loaders of this dataset look for it. A
    loader is told of another: ``Loader(index=out)``. threads: default, the allowed cores.
    progress: called with (records done, records).

    The index of a subset is that of the source that it is a part of. Of a combination (concat, mix,
    join) each source has its own in the cache; with ``out`` they are one file. Returns the numbers
    that ``headrace index --json`` prints. Raises ConfigError where records have no encoded
    pictures, StorageError where the file cannot be written; bad records are counted and left out.
    """
    begin = time.perf_counter()
    number = 0 if threads is None else arguments.integer("threads", threads, 1)
    path = "" if out is None else os.fspath(out)
    built = _core.build_row_index(open_source(source).engine, path, number, progress)
    return {**built, "seconds": round(time.perf_counter() - begin, 3)}
