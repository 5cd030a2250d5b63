# SPDX-License-Identifier: Apache-2.0
"""Conversion of any source to a container: same records, same order, images unchanged.

>>> import headrace as hr, numpy as np, tempfile, os
>>> src = hr.records(x=np.arange(6, dtype=np.float32).reshape(3, 2), label=[2, 0, 1])
>>> out = os.path.join(tempfile.mkdtemp(), "x.tfrecord")
>>> hr.convert(src, out, to="tfrecord", verify=True)["records"]
3
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace import _core
from headrace.errors import did_you_mean
from headrace.sources import Progress, Source
from headrace.sources import open as open_source

if TYPE_CHECKING:
    from headrace.write import WriterRecord

_ARGUMENTS = ("shards", "threads", "verify", "overwrite", "progress", "part")


def convert(
    source: Any,
    dest: str | os.PathLike[str],
    to: str,
    *,
    shards: int = 1,
    threads: int | None = None,
    verify: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    part: Any = None,
    **options: Any,
) -> dict[str, Any]:
    """Converts a source to another container. Returns the numbers that ``--json`` prints.

    to: a container's name, such as "tar" or "tfrecord"; `headrace convert --help` lists all.
    shards: more than one makes ``dest`` a folder of that many files, written in parallel.
    verify: read everything back and compare it with the source, record by record.
    overwrite: replace a file, or a folder that was written entirely by conversions; never the
    source's own files.
    progress: called with (records done, records); both count twice with verify.
    part: (3, 256) or "3/256" writes the fourth of 256 equal parts into the folder ``dest``, or
    keeps it if it exists and is complete; ``headrace.jobs.merge(dest)`` completes the job.
    options: those of the container; "lerobot" has some (``fps=30``), which its guide lists.

    Files are written in ``dest + ".partial"`` and renamed when they are complete, with the SHA-256
    of each. After an interruption, the same call resumes where it stopped ("hdf5" and "lerobot"
    start over). A file that is not an image is written unchanged, counted in ``unusable_count`` and
    listed in ``unusable``; ``headrace scan`` finds damage inside images. ``loss`` is what the
    container loses (pixels in videos), or empty. Raises ConfigError HR0277, HR0279, HR0414, HR0415
    (for a pack HR0446); UnsupportedError HR0297 if a package is missing; StorageError HR0275 if the
    disk is full; DataError HR0169, HR0416, and errors from reading records.
    """
    from headrace import write
    from headrace.write.options import WRONG_OPTION, completed

    if to not in write.names():
        raise WRONG_OPTION.error(f"unknown container {to!r}", hint=did_you_mean(to, write.names()))
    record = write.container(to)
    chosen = completed(record.options, options, to, others=_ARGUMENTS)
    if record.own_files and shards != 1:
        raise WRONG_OPTION.error(
            f"[{to}] shards={shards}: its files have a fixed size",
            hint=", ".join(each.name for each in record.options if "size_in" in each.name),
        )
    if shards < 1:
        raise WRONG_OPTION.error(f"shards must be positive (got {shards})")
    if _core.scheme_of(os.fspath(dest)):  # otherwise it would become a folder "s3:" here
        raise WRONG_OPTION.error(
            f"{os.fspath(dest)!r} is a URL, not a local path",
            hint="write to a local folder, and copy the result",
        )
    src = open_source(source)
    if part is not None:
        if shards != 1 or overwrite:
            raise WRONG_OPTION.error(
                f"part={part!r} with {'overwrite=' if overwrite else 'shards='}",
                hint="a part is one file, and a complete part is kept",
            )
        return _convert_part(src, dest, to, part, threads, verify, progress)
    target = os.path.abspath(os.fspath(dest))
    begin = time.perf_counter()
    report = _converted(
        src, target, to, shards, threads, verify, overwrite, progress, options=chosen
    )
    report["loss"] = record.loss(src, chosen)
    report["classes"] = src.classes
    report["files_outside"] = src.engine.files_outside()
    return {**report, "verified": verify, "seconds": round(time.perf_counter() - begin, 3)}


def _converted(
    src: Source,
    target: str,
    to: str,
    shards: int,
    threads: int | None,
    verify: bool,
    overwrite: bool,
    progress: Progress | None,
    records: range | None = None,
    options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    # Imported here, so that importing Headrace does not load threads, hashes and paths.
    from headrace.write.conversion import Conversion, Told
    from headrace.write.verification import verify_all

    if records is None:
        records = range(len(src))
    tell = Told(progress, len(records) * (2 if verify else 1))
    container = _container(src, to)
    if container.whole:
        done = tell.have_done
        report = container.whole(src, target, shards, threads, overwrite, done, options or {})
    else:
        several = min(shards, max(1, len(records)))
        conversion = Conversion(src, target, to, several, overwrite, records)
        report = conversion.run(threads or _core.allowed_cores(), tell)
    if verify:
        verify_all(src, target, to, tell, records, options or {})
    return report


def _container(src: Source, to: str) -> WriterRecord:
    """Raises HR0414 or HR0297 if it cannot hold the source's records."""
    from headrace import write
    from headrace.write.options import WRONG_OPTION

    container = write.container(to)
    try:
        container.check(src.schema)
    except TypeError as error:
        raise WRONG_OPTION.error(f"[{to}] {error}") from error
    except ImportError as error:
        raise write.NO_PACKAGE.error(f"[{to}] {error}", hint=f"pip install {error.name}") from error
    return container


def _convert_part(
    src: Source,
    dest: str | os.PathLike[str],
    to: str,
    given: Any,
    threads: int | None,
    verify: bool,
    progress: Progress | None,
) -> dict[str, Any]:
    from headrace.jobs.folder import plan_of, write_part
    from headrace.jobs.part import part_from
    from headrace.write.options import WRONG_OPTION

    begin = time.perf_counter()
    container = _container(src, to)
    if not container.suffix:
        hint = "headrace pack --part" if to == "pack" else "write tar, tfrecord or a pack"
        raise WRONG_OPTION.error(f"[{to}] has no parts", hint=hint)
    part = part_from(given)
    records = part.of(len(src))

    name = part.name + container.suffix
    names = [name, *(str(Path(name).with_suffix(suffix)) for suffix in container.beside)]

    def make(folder: Path) -> dict[str, Any]:
        target = str(folder / name)
        report = _converted(src, target, to, 1, threads, verify, False, progress, records)
        kept = {name: report[name] for name in ("records", "unusable", "unusable_count", "files")}
        return {"first": records.start, **kept}

    entry = write_part(dest, part, plan_of("convert", [src.engine], to=to), names, make)
    return {**entry, "verified": verify, "seconds": round(time.perf_counter() - begin, 3)}
