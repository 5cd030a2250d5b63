# SPDX-License-Identifier: Apache-2.0
"""Conversion of any source to a container: same records, same order, pictures unchanged.

>>> import headrace as hr, numpy as np, tempfile, os
>>> src = hr.records(x=np.arange(6, dtype=np.float32).reshape(3, 2), label=[2, 0, 1])
>>> out = os.path.join(tempfile.mkdtemp(), "x.tfrecord")
>>> hr.convert(src, out, to="tfrecord", verify=True)["records"]
3
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from headrace import _core, containers
from headrace.errors import declare, did_you_mean
from headrace.sources import Progress, Source
from headrace.sources import open as open_source

_VERSION = 1
_JOURNAL_BYTES = 64 << 20  # what an interruption may cost, a shard
_FORMATS = (*containers.MODULES, "pack")

_WRONG_OPTION = declare(
    "HR0414",
    "config",
    "option of converting",
    "convert() writes folder, tar (WebDataset), tfrecord, recordio, lmdb, hdf5 or pack. Not every "
    "container can hold every field: a folder, RecordIO and LMDB have a picture and a label.",
)
_EXISTS = declare(
    "HR0415",
    "config",
    "something stands at the destination",
    "convert() never writes over anything unless overwrite=True (--force) is given. What an "
    "interrupted conversion left in DEST.partial is used when source and options are the same.",
)
_DIFFERS = declare(
    "HR0416",
    "data",
    "the converted dataset differs from its source",
    "Reading everything back found a record that is not what the source has. The disk may be bad, "
    "or the source changed meanwhile. The destination was left in place for inspection.",
)


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
) -> dict[str, Any]:
    """Write a source as another container. Returns the numbers that ``--json`` prints.

    to: "folder", "tar", "tfrecord", "recordio", "lmdb", "hdf5" or "pack".
    shards: more than one makes ``dest`` a folder of so many files, written side by side.
    verify: read everything back and compare it with the source, record by record.
    progress: called with (records done, records); twice as many where they are verified.

    Files are written in ``dest + ".partial"`` and renamed when they are whole, with the SHA-256 of
    each. After an interruption the same call goes on where it stopped.
    ConfigError HR0414, HR0415; DataError HR0416 and what reading a record gives.
    """
    if to not in _FORMATS:
        raise _WRONG_OPTION.error(f"no container {to!r}", hint=did_you_mean(to, _FORMATS))
    if shards < 1:
        raise _WRONG_OPTION.error(f"shards must be positive (got {shards})")
    src = open_source(source)
    target = Path(os.path.abspath(os.fspath(dest)))
    if os.path.lexists(target) and not overwrite:
        raise _EXISTS.error(f"there is something at {target}", hint="overwrite=True (--force)")
    begin = time.perf_counter()
    tell = _Told(progress, len(src) * (2 if verify else 1))
    if to == "pack":
        report = _pack(src, target, shards, threads, overwrite, tell)
    else:
        job = _Job(src, target, to, min(shards, max(1, len(src))), threads or _core.allowed_cores())
        report = job.run(tell)
    if verify:
        _verify(src, target, to, tell)
    report["classes"] = src.classes
    return {**report, "verified": verify, "seconds": round(time.perf_counter() - begin, 3)}


class _Told:
    """Adds up what threads have done; the caller's function is called on the calling thread."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.done = progress, total, 0
        self.lock = threading.Lock()

    def add(self, records: int) -> None:
        with self.lock:
            self.done += records

    def show(self) -> None:
        if self.progress:
            self.progress(self.done, self.total)


def _pack(
    src: Source, target: Path, shards: int, threads: int | None, overwrite: bool, tell: _Told
) -> dict[str, Any]:
    from headrace.pack import pack

    def progress(done: int, _: int) -> None:
        tell.done = done
        tell.show()

    summary = pack(
        src, target, shards=shards, threads=threads, overwrite=overwrite, progress=progress
    )
    return {
        "records": summary["records"],
        "bytes": summary["bytes"],
        "files": [{"file": str(target), "records": summary["records"]}],
        "resumed_records": summary["resumed_records"],
    }


class _Job:
    """One conversion: a plan, and for each shard a journal of what is safe on disk."""

    def __init__(self, src: Source, target: Path, to: str, shards: int, threads: int) -> None:
        self.src, self.target, self.to, self.shards = src, target, to, shards
        self.threads = min(threads, shards)
        self.container = containers.container(to)
        self.work = target.with_name(target.name + ".partial")
        self.stopping = threading.Event()
        self.resumed = 0

    def plan(self) -> dict[str, Any]:
        return {
            "version": _VERSION,
            "to": self.to,
            "shards": self.shards,
            "fingerprint": self.src.fingerprint,
            "fields": [field.name for field in self.src.schema],
        }

    def run(self, tell: _Told) -> dict[str, Any]:
        try:
            self.container.check(self.src.schema)
        except (TypeError, ImportError) as error:
            raise _WRONG_OPTION.error(f"[{self.to}] {error}") from error
        self._begin()
        with ThreadPoolExecutor(self.threads, "headrace-convert") as pool:
            futures = [pool.submit(self._write_shard, i, tell) for i in range(self.shards)]
            try:
                left = set(futures)
                while left:
                    done, left = wait(left, timeout=0.1, return_when=FIRST_COMPLETED)
                    tell.show()
                    for future in done:
                        future.result()
            except BaseException:
                self.stopping.set()
                for future in futures:
                    future.cancel()
                raise
        return self._finish([future.result() for future in futures])

    def _begin(self) -> None:
        """Keeps what an interrupted run of the same plan left, and nothing else."""
        note = self.work / "plan.json"
        with contextlib.suppress(OSError, ValueError):
            if json.loads(note.read_text()) == self.plan():
                return
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        _write_whole(note, json.dumps(self.plan()))

    def _file(self, shard: int) -> Path:
        if not self.container.SUFFIX:
            return self.work / "data"  # all shards of a folder are in one
        return self.work / f"data-{shard:05}-of-{self.shards:05}{self.container.SUFFIX}"

    def _write_shard(self, shard: int, tell: _Told) -> dict[str, Any]:
        size = len(self.src)
        begin, end = size * shard // self.shards, size * (shard + 1) // self.shards
        note = self.work / f"journal-{shard:05}.json"
        state: dict[str, Any] = {}
        with contextlib.suppress(OSError, ValueError):
            state = json.loads(note.read_text())
        if state.get("finished"):
            tell.add(end - begin)
            self.resumed += end - begin
            return state
        if not self.container.RESUMES:
            state = {}
        file = self._file(shard)
        done = begin + state.get("records", 0)
        self.resumed += done - begin
        tell.add(done - begin)
        writer = self.container.writer(
            str(file), self.src.schema, self.src.classes, state.get("writer")
        )
        since = 0
        for number in range(done, end):
            if self.stopping.is_set():
                break
            values = self.src.engine.read(number)
            writer.add(number, self._key(number), values)
            since += sum(len(v) for v in values.values() if isinstance(v, bytes)) + 256
            tell.add(1)
            if since >= _JOURNAL_BYTES:
                self._journal(note, writer, number + 1 - begin)
                since = 0
        else:
            writer.close()
            state = {"finished": True, "records": end - begin}
            if self.container.SUFFIX:
                state |= {"bytes": file.stat().st_size, "sha256": _sha256(file)}
            _write_whole(note, json.dumps(state))
            return state
        if self.container.RESUMES:
            self._journal(note, writer, number - begin)
        return {}

    def _journal(self, note: Path, writer: Any, records: int) -> None:
        state = {"records": records, "writer": writer.journal()}
        _write_whole(note, json.dumps(state))

    def _key(self, number: int) -> str:
        """A name without folders and dots, which mean something in a tar; unique by the number."""
        name = os.path.basename(self.src.key(number)).split(".")[0]
        return f"{number:09}-{name}" if name and name != str(number) else f"{number:09}"

    def _finish(self, shards: list[dict[str, Any]]) -> dict[str, Any]:
        several = self.shards > 1 and bool(self.container.SUFFIX)
        moved = [
            path
            for path in sorted(self.work.iterdir())
            if path.name.startswith("data") and not path.name.endswith("-lock")
        ]
        if os.path.lexists(self.target):
            if self.target.is_dir() and not self.target.is_symlink():
                shutil.rmtree(self.target)
            else:
                self.target.unlink()
        files = [
            {"file": self._file(i).name if several else self.target.name, **shard}
            for i, shard in enumerate(shards)
        ]
        if several:
            sums = "".join(f"{entry['sha256']}  {entry['file']}\n" for entry in files)
            (self.work / "SHA256SUMS").write_text(sums)
            for path in self.work.iterdir():
                if path.suffix == ".json":
                    path.unlink()
            self.work.rename(self.target)
        else:
            for path in moved:  # the file last: when it is there, all is
                if path != self._file(0):
                    path.rename(self.target.with_suffix(path.suffix))
            self._file(0).rename(self.target)
            shutil.rmtree(self.work)
        return {
            "records": len(self.src),
            "bytes": sum(shard.get("bytes", 0) for shard in shards) or _bytes_below(self.target),
            "files": [
                {k: v for k, v in entry.items() if k not in ("finished", "writer")}
                for entry in files
            ],
            "resumed_records": self.resumed,
        }


def _write_whole(path: Path, text: str) -> None:
    """Replaces a file so that it is there whole or not at all."""
    temporary = path.with_suffix(".new")
    with temporary.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)


def _sha256(path: Path) -> str:
    sum_ = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            sum_.update(chunk)
    return sum_.hexdigest()


def _bytes_below(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _verify(src: Source, target: Path, to: str, tell: _Told) -> None:
    given: dict[str, Any] = {}
    name = "pack"
    if to != "pack":
        container = containers.container(to)
        name, given = container.FORMAT, container.fields(src.schema)
    if to == "folder" and src.classes:
        given = {"classes": src.classes}
    written = open_source(target, format=name, **given)
    if len(written) != len(src):
        raise _DIFFERS.error(f"{target} has {len(written)} records, the source {len(src)}")
    for number, place in enumerate(_places(src, written, to)):
        expected, got = src.engine.read(number), written.engine.read(place)
        for field, value in expected.items():
            same = _same_pixels if to == "pack" and isinstance(value, bytes) else _same
            if field not in got or not same(value, got[field]):
                raise _DIFFERS.error(f"{target}: field {field!r} of record {number} differs")
        tell.add(1)
        if number % 64 == 0:
            tell.show()
    tell.show()


def _places(src: Source, written: Source, to: str) -> Iterator[int]:
    """Where each record of the source is: a folder has them class by class."""
    if to != "folder":
        yield from range(len(written))
        return
    numbers = {os.path.basename(written.key(i))[:9]: i for i in range(len(written))}
    for number in range(len(src)):
        yield numbers[f"{number:09}"]


def _same_pixels(expected: bytes, got: bytes) -> bool:
    """Of pictures that a pack has in another form; broken ones are as they were."""
    import numpy as np

    if expected == got:
        return True
    left, right = (np.asarray(_core.decode(value, True)) for value in (expected, got))
    return bool(np.array_equal(left, right))


def _same(expected: Any, got: Any) -> bool:
    import numpy as np

    if isinstance(expected, (bytes, str, int)):
        return bool(expected == got) or (isinstance(got, float) and float(expected) == got)
    if isinstance(got, bytes):  # an array that was written as a picture
        got = _core.decode(got, True)
    left, right = np.asarray(expected), np.asarray(got)
    return left.size == right.size and bool(np.array_equal(left.ravel(), right.ravel()))
