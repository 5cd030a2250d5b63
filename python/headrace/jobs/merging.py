# SPDX-License-Identifier: Apache-2.0
"""Completes a job: checks that all parts exist, and writes one manifest of them."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from headrace import _core
from headrace.errors import declare
from headrace.jobs.folder import (
    JOB,
    OTHER_JOB,
    STATE,
    clear_unfinished,
    is_whole,
    read_entry,
    read_json,
)
from headrace.jobs.part import Part
from headrace.whole_file import replaced, write_whole
from headrace.write.destination import write_sums
from headrace.write.durable import written_to

MANIFEST = "manifest.json"
_MISSING = declare(
    "HR0280",
    "data",
    "missing job parts",
    "A job is merged when every part is complete: parts that were never written, or whose files "
    "differ in size from their entries (with --verify, in content), must be recreated. "
    "`headrace merge DEST --missing` prints their numbers in the form of Slurm's --array.",
)


def merged(dest: str | os.PathLike[str], verify: bool) -> dict[str, Any]:
    folder = Path(os.path.abspath(dest))
    plan = _plan(folder)
    entries, absent = _entries(folder, plan, verify)
    if absent:
        raise _MISSING.error(
            f"{len(absent):,} of {plan['parts']:,} parts are missing in {folder}: "
            f"{in_ranges(absent)}",
            hint="recreate them",
        )
    files = [
        {name: entry[name] for name in ("part", "first", "records")} | file
        for entry in entries
        for file in entry["files"]
    ]
    manifest = {
        **plan,
        "bytes": sum(file["bytes"] for file in files),
        "headrace": sorted({entry["headrace"] for entry in entries}),
        **_summed(entries),
        "files": files,
    }
    with written_to(folder):
        write_sums(folder, files)
        if plan["command"] == "scan":
            _join(folder / "bad.jsonl", [folder / file["file"] for file in files])
        if plan["command"] == "index":
            parts = [str(folder / file["file"]) for file in files]
            _core.join_row_indexes(parts, str(folder / "index.rows"))
        write_whole(folder / MANIFEST, json.dumps(manifest, indent=1))
        clear_unfinished(folder)
    return manifest


def missing_parts(dest: str | os.PathLike[str]) -> list[int]:
    folder = Path(os.path.abspath(dest))
    return _entries(folder, _plan(folder), verify=False)[1]


def in_ranges(numbers: Iterable[int]) -> str:
    """Formats numbers like Slurm's --array.

    >>> in_ranges([3, 17, 18, 19])
    '3,17-19'
    """
    runs = []
    for _, run in itertools.groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        first, *more = (number for _, number in run)
        runs.append(f"{first}-{more[-1]}" if more else f"{first}")
    return ",".join(runs)


def _plan(folder: Path) -> dict[str, Any]:
    plan = read_json(folder / STATE / JOB)
    if plan is None:
        raise OTHER_JOB.error(f"{folder} is not a job's folder", hint="--part 0/8 starts a job")
    return plan


def _entries(
    folder: Path, plan: Mapping[str, Any], verify: bool
) -> tuple[list[dict[str, Any]], list[int]]:
    """The parts' entries in order, and the numbers of incomplete parts."""
    entries, absent = [], []
    for number in range(plan["parts"]):
        name = Part(number, plan["parts"]).name
        entry = read_entry(folder / STATE / f"{name}.json")
        if entry is None:
            absent.append(number)
            continue
        for what, expected in (
            ("part", number),
            ("parts", plan["parts"]),
            ("fingerprint", plan["fingerprint"]),
        ):
            if entry.get(what) != expected:
                raise OTHER_JOB.error(
                    f"{name} in {folder} has {what}={entry.get(what)!r}, but the job has "
                    f"{expected!r}",
                    hint="remove its file and entry, and recreate the part",
                )
        if all(_is_there(folder / file["file"], file, verify) for file in entry["files"]):
            entries.append(entry)
        else:
            absent.append(number)
    if not absent:
        _check_records(folder, plan, entries)
    return entries, absent


def _check_records(
    folder: Path, plan: Mapping[str, Any], entries: Iterable[Mapping[str, Any]]
) -> None:
    """Checks that every record is in exactly one part."""
    begin = 0
    for entry in entries:
        if entry["first"] != begin:
            raise OTHER_JOB.error(
                f"part {entry['part']} in {folder} begins at record {entry['first']:,}, not at "
                f"{begin:,}"
            )
        begin += entry["records"]
    if begin != plan["records"]:
        raise OTHER_JOB.error(
            f"{folder} has {begin:,} records, but the job has {plan['records']:,}"
        )


def _join(path: Path, parts: Iterable[Path]) -> None:
    """Joins the lines of all parts in one file."""
    with replaced(str(path)) as temporary, open(temporary, "wb") as whole:
        for part in parts:
            with part.open("rb") as lines:
                shutil.copyfileobj(lines, whole)
        whole.flush()
        os.fsync(whole.fileno())


def _is_there(path: Path, file: Mapping[str, Any], verify: bool) -> bool:
    if verify:
        return is_whole(path, file)
    try:
        return path.stat().st_size == int(file["bytes"])
    except FileNotFoundError:
        return False


def _summed(entries: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The sums over all parts, and their lists with record numbers of the whole dataset."""
    out: dict[str, Any] = {}
    for entry in entries:
        for name, value in entry.items():
            if name in ("part", "parts", "first", "records", "files"):
                continue
            if isinstance(value, list):
                out[name] = out.get(name, []) + value
            elif isinstance(value, int):
                out[name] = out.get(name, 0) + value
    for name, value in out.items():
        if isinstance(value, list):
            out[name] = sorted(value, key=lambda each: each["record"])
    return out
