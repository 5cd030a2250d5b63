# SPDX-License-Identifier: Apache-2.0
"""Row indexes: where the rows of each JPEG image start, so that decoding can start at a crop; and
indexes next to the data, which hold the position of each record of remote containers for all
machines. A loader automatically uses the index of its dataset if there is one; pixels are the same
with and without an index.

>>> import headrace as hr, os, tempfile
>>> out = os.path.join(tempfile.mkdtemp(), "x.rows")
>>> hr.index(hr.records(image=["missing.jpg"]), out)["bad"]
1
"""

from __future__ import annotations

import os
import pathlib
import time
from typing import Any

from headrace import _core, arguments
from headrace.errors import declare
from headrace.sources import Progress
from headrace.sources import open as open_source
from headrace.whole_file import write_whole

Path = str | os.PathLike[str]

_NOTHING_TO_STORE = declare(
    "HR0230",
    "config",
    "nothing to store next to the data",
    "An index next to the data contains the positions of records in remote containers: tar, "
    "TFRecord, RecordIO and MDS in a bucket or on a web server. Other datasets do not need one: "
    "local containers are scanned quickly, packs contain their index, and folders of files are "
    "listed.",
)


def index(
    source: Any,
    out: Path | None = None,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    part: Any = None,
    next_to_data: bool | Path = False,
) -> dict[str, Any]:
    """Creates the row index of a dataset: one file, about 1.2 % of the images' size.

    out: the file; default: in ``HEADRACE_CACHE``, where loaders of this dataset look for it. Pass
    any other file to the loader: ``Loader(index=out)``. threads: default: the cores available to
    this process. progress: called with (records done, records).
    part: (3, 256) or "3/256" indexes the fourth of 256 equal parts, into the folder ``out``, or
    keeps it if it exists and is complete; ``headrace.jobs.merge(out)`` joins all parts into one
    file.
    next_to_data: True stores record offsets of remote containers (tar, TFRecord, RecordIO, MDS)
    instead of rows, in the folder ``.headrace`` next to the data, where every machine that opens it
    finds them. A path: in this local folder, to be uploaded there (for read-only storages).

    The index of a subset covers the whole source. For a combination (concat, mix, join), each
    source has its own index in the cache; with ``out``, all are in one file. Returns the numbers
    that ``headrace index --json`` prints. Raises ConfigError if records have no encoded images,
    StorageError if the file cannot be written; bad records are counted and skipped.
    """
    begin = time.perf_counter()
    if next_to_data is not False:
        if out is not None or part is not None:
            raise arguments.BAD_VALUE.error("next_to_data= excludes out= and part=")
        local = None if next_to_data is True else next_to_data
        files = _store_next_to_data(open_source(source).engine, local)
        return {"files": files, "seconds": round(time.perf_counter() - begin, 3)}
    number = 0 if threads is None else arguments.integer("threads", threads, 1)
    path = "" if out is None else os.fspath(out)
    engine = open_source(source).engine
    if part is not None:
        built = _index_part(engine, path, number, progress, part)
    else:
        built = _core.build_row_index(engine, path, number, progress)
        del built["first"]
    return {**built, "seconds": round(time.perf_counter() - begin, 3)}


def _store_next_to_data(engine: _core.Source, local: Path | None) -> list[dict[str, Any]]:
    """The path of each index, its size, and whether it is new."""
    indexes = _core.indexes_next_to_data(engine)
    if not indexes:
        raise _NOTHING_TO_STORE.error(
            "the source has no remote container",
            hint="folders of files and packs need no index; remote paths begin with s3://, gs://, "
            "az://",
        )
    out = []
    for path, content in indexes:
        if local is None:
            is_new = _core.store(path, content)
        else:
            file = pathlib.Path(local) / pathlib.PurePosixPath(path).name
            is_new = not file.exists()
            file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(file, content)
        out.append({"path": path, "bytes": len(content), "is_new": is_new})
    return out


def _index_part(
    engine: _core.Source, out: str, threads: int, progress: Progress | None, given: Any
) -> dict[str, Any]:
    from headrace.jobs.folder import plan_of, write_part
    from headrace.jobs.part import part_from

    if not out:
        raise arguments.BAD_VALUE.error("part= needs a folder", hint="out=DEST (-o DEST)")
    part = part_from(given)
    engine = _core.indexed_source(engine)  # for a subset, the index of the whole source
    part.of(len(engine))
    name = part.name + ".rows"

    def make(folder: pathlib.Path) -> dict[str, Any]:
        built = _core.build_row_index(
            engine, str(folder / name), threads, progress, part.number, part.parts
        )
        return {each: value for each, value in built.items() if each not in ("file", "bytes")}

    return write_part(out, part, plan_of("index", [engine]), [name], make)
