# SPDX-License-Identifier: Apache-2.0
"""Packs: a dataset as one file that decodes several times faster, and back.

>>> import headrace as hr, numpy as np, tempfile, os
>>> src = hr.records(x=np.arange(6, dtype=np.float32).reshape(3, 2), label=[2, 0, 1])
>>> out = os.path.join(tempfile.mkdtemp(), "x.hrpack")
>>> hr.pack(src, out)["records"]
3
>>> hr.open(out).column("label").tolist()
[2, 0, 1]
"""

from __future__ import annotations

import os
import pathlib
import time
from collections.abc import Sequence
from typing import Any

from headrace import _core
from headrace.errors import declare, did_you_mean
from headrace.sources import Progress, Source
from headrace.sources import open as open_source

LEVELS = ("fast", "dense", "none")
MOST_SHARDS = 99_999
SUFFIX = ".hrpack"

_WRONG_OPTION = declare(
    "HR0458",
    "config",
    "invalid packing option",
    "pack() takes level='fast' (bit planes: fastest to decode, about an eighth larger than the "
    "JPEG files), 'dense' (about their size, slower to decode) or 'none' (every image unchanged), "
    "and from 1 to 99,999 shards.",
)

Path = str | os.PathLike[str]


def pack(
    sources: Any,
    out: Path,
    level: str = "fast",
    shards: int = 1,
    *,
    threads: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    part: Any = None,
) -> dict[str, Any]:
    """Writes a dataset, or several concatenated, as a pack; ``headrace.open(out)`` opens it.

    sources: a path, a Source, or a list of them with the same fields.
    level: how JPEG images are stored, losslessly: 'fast', 'dense', or 'none' (unchanged).
    shards: more than one makes ``out`` a folder of that many files, which opens as one source.
    overwrite: replace a pack at ``out``.
    progress: called with (records done, records).
    part: (3, 256) or "3/256" writes the fourth of 256 shards into the folder ``out``, or keeps it
    if it exists and is complete; ``headrace.jobs.merge(out)`` completes the job.

    It is written to ``out + ".partial"`` and renamed when it is complete. After an interruption,
    the same call resumes where it stopped. Returns the numbers that ``headrace pack --json``
    prints.
    """
    if level not in LEVELS:
        raise _WRONG_OPTION.error(f"unknown level {level!r}", hint=did_you_mean(level, LEVELS))
    if not 1 <= shards <= MOST_SHARDS:
        raise _WRONG_OPTION.error(f"shards must be 1 to {MOST_SHARDS:,} (got {shards})")
    engines = [open_source(source).engine for source in _listed(sources)]
    if part is not None and engines:
        if shards != 1 or overwrite:
            raise _WRONG_OPTION.error(
                f"part={part!r} with {'overwrite=' if overwrite else 'shards='}",
                hint="a part is one shard, and a complete part is kept",
            )
        return _pack_part(engines, out, level, threads or 0, progress, part)
    summary = _core.pack(
        engines, os.fspath(out), level, shards, None, threads or 0, overwrite, progress
    )
    return {**summary, "files_outside": sum(engine.files_outside() for engine in engines)}


def _pack_part(
    engines: list[_core.Source],
    out: Path,
    level: str,
    threads: int,
    progress: Progress | None,
    given: Any,
) -> dict[str, Any]:
    """Writes one shard, with the same bytes as ``shards=`` would."""
    from headrace.jobs.folder import plan_of, write_part
    from headrace.jobs.part import part_from

    begin = time.perf_counter()
    plan = plan_of("pack", engines, level=level)
    part = part_from(given)
    records = part.of(plan["records"], longer_first=True)

    name = f"shard-{part.number:05}{SUFFIX}"

    def make(folder: pathlib.Path) -> dict[str, Any]:
        done = progress and (lambda so_far, _: progress(so_far - records.start, len(records)))
        summary = _core.pack(
            engines, str(folder / name), level, part.parts, part.number, threads, False, done
        )
        kept = ("records", "pages", "unusable", "unusable_count")
        return {"first": records.start, **{each: summary[each] for each in kept}}

    entry = write_part(out, part, plan, [name], make)
    return {**entry, "seconds": round(time.perf_counter() - begin, 3)}


def unpack(
    path: Path,
    folder: Path,
    *,
    overwrite: bool = False,
    recover: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Restores the files of a pack, byte for byte, below a folder.

    Other values are written next to them: numbers and text in ``labels.jsonl``, one line per
    record, arrays in ``FIELD.npy``. A folder of images is restored exactly and needs neither.

    overwrite: replace files whose contents differ. recover: restore the complete part of a
    truncated pack. Returns the numbers that ``headrace unpack --json`` prints.
    """
    return _core.unpack(
        os.fspath(path), os.fspath(folder), overwrite, recover, threads or 0, progress
    )


def _listed(sources: Any) -> Sequence[Any]:
    """The sources one by one. A list of anything else is a single source: its items are records."""
    several = isinstance(sources, (list, tuple)) and all(
        isinstance(item, (str, os.PathLike, Source)) for item in sources
    )
    return sources if several else [sources]
