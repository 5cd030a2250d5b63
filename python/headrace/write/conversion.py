# SPDX-License-Identifier: Apache-2.0
"""Converts a source to a container: shards in parallel, continued after an interruption."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from headrace import _core, write
from headrace.jobs.folder import sha256
from headrace.sources import Progress, Source
from headrace.whole_file import sync, write_whole
from headrace.write.destination import Destination, write_sums
from headrace.write.durable import written_to

_VERSION = 1
_JOURNAL_BYTES = 64 << 20  # bytes whose writing an interruption may undo, per shard


class Told:
    """Sums the progress of threads; the caller's function is called on the calling thread."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.done = progress, total, 0
        self.lock = threading.Lock()

    def add(self, records: int) -> None:
        with self.lock:
            self.done += records

    def have_done(self, records: int) -> None:
        self.done = records
        self.show()

    def show(self) -> None:
        if self.progress:
            self.progress(self.done, self.total)


class Unusable:
    """Collects records without a valid image, which are written unchanged and reported."""

    LISTED = 100

    def __init__(self, src: Source, listed: list[dict[str, Any]], count: int) -> None:
        self.src, self.listed, self.count = src, list(listed), count
        self.pictures = {field.name: str(field.kind) for field in src.schema if field.encoded}

    def look_at(self, number: int, values: dict[str, Any]) -> None:
        for name, kind in self.pictures.items():
            reason = _core.media_error(values[name], kind)
            if not reason:
                continue
            self.count += 1
            if len(self.listed) < self.LISTED:
                entry = {"record": number, "key": self.src.key(number), "field": name}
                self.listed.append({**entry, "reason": reason})

    def found(self) -> dict[str, Any]:
        return {"unusable": self.listed, "unusable_count": self.count}


class Conversion:
    """The state of a conversion: a plan, and for each shard a journal of what is durable on
    disk."""

    def __init__(
        self,
        src: Source,
        target: str,
        to: str,
        shards: int,
        overwrite: bool,
        records: range | None = None,
    ) -> None:
        self.src, self.target, self.to, self.shards = src, Path(target), to, shards
        self.records = range(len(src)) if records is None else records
        self.container = write.container(to)
        self.several = shards > 1 and bool(self.container.suffix)
        beside = () if self.several else self.container.beside
        self.destination = Destination(self.target, overwrite, beside)
        self.work = self.destination.work
        self.stopping = threading.Event()
        self.resumed = 0

    def plan(self) -> dict[str, Any]:
        return {
            "version": _VERSION,
            "to": self.to,
            "shards": self.shards,
            "fingerprint": self.src.fingerprint,
            "fields": [field.name for field in self.src.schema],
            "first": self.records.start,
            "records": len(self.records),
        }

    def run(self, threads: int, tell: Told) -> dict[str, Any]:
        self.destination.check(self.src, of_files=not self.container.suffix)
        with written_to(self.work, self.container.resumes), self.destination.working_folder():
            self.destination.check(self.src, of_files=not self.container.suffix)
            self._begin()
            return self._finish(self._write_shards(threads, tell))

    def _write_shards(self, threads: int, tell: Told) -> list[dict[str, Any]]:
        with ThreadPoolExecutor(min(threads, self.shards), "headrace-convert") as pool:
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
        return [future.result() for future in futures]

    def _begin(self) -> None:
        """Keeps the files of an interrupted run of the same plan, and removes all others."""
        note = self.work / "plan.json"
        with contextlib.suppress(OSError, ValueError):
            if json.loads(note.read_text()) == self.plan():
                return
        self.destination.clear_work()
        write_whole(note, json.dumps(self.plan()))

    def _file(self, shard: int) -> Path:
        if not self.container.suffix:
            return self.work / "data"  # all shards of a folder container are in one folder
        return self.work / f"data-{shard:05}-of-{self.shards:05}{self.container.suffix}"

    def _write_shard(self, shard: int, tell: Told) -> dict[str, Any]:
        size, first = len(self.records), self.records.start
        begin, end = (first + size * at // self.shards for at in (shard, shard + 1))
        note = self.work / f"journal-{shard:05}.json"
        state: dict[str, Any] = {}
        with contextlib.suppress(OSError, ValueError):
            state = json.loads(note.read_text())
        file = self._file(shard)
        if state.get("finished") and self._is_whole(file, state):
            self._there_already(end - begin, tell)
            return state
        if state.get("finished") or not self.container.resumes:
            state = {}
        assert self.container.open is not None
        writer = self.container.open(str(file), self.src.schema, self.src.classes, state)
        try:
            done = begin + writer.records
            self._there_already(done - begin, tell)
            known = state if writer.records == state.get("records", 0) else {}
            unusable = Unusable(self.src, known.get("unusable", []), known.get("unusable_count", 0))
            since = 0
            for number in range(done, end):
                if self.stopping.is_set():
                    return {}
                values = self.src.engine.read(number)
                writer.add(number, self._key(number), values)
                unusable.look_at(number, values)
                since += sum(len(v) for v in values.values() if isinstance(v, bytes)) + 256
                tell.add(1)
                # At the same records, however often it was interrupted: in files with transactions,
                # these affect the bytes.
                if since >= _JOURNAL_BYTES:
                    self._journal(note, writer, number + 1 - begin, unusable)
                    since = 0
            writer.close()
        finally:
            writer.abandon()
        state = {"finished": True, "records": end - begin, **unusable.found()}
        if self.container.suffix:
            state |= {"bytes": file.stat().st_size, "sha256": sha256(file)}
        write_whole(note, json.dumps(state))
        return state

    def _there_already(self, records: int, tell: Told) -> None:
        tell.add(records)
        self.resumed += records

    def _is_whole(self, file: Path, state: dict[str, Any]) -> bool:
        if not self.container.suffix:
            return file.is_dir()
        return file.is_file() and file.stat().st_size == state.get("bytes")

    def _journal(self, note: Path, writer: write.Writer, records: int, unusable: Unusable) -> None:
        state = {**writer.journal(), "records": records, **unusable.found()}
        write_whole(note, json.dumps(state))

    def _key(self, number: int) -> str:
        """A name without folders and dots, which have a meaning in a tar; unique by its number."""
        name = os.path.basename(self.src.key(number)).split(".")[0]
        return f"{number:09}-{name}" if name and name != str(number) else f"{number:09}"

    def _finish(self, shards: list[dict[str, Any]]) -> dict[str, Any]:
        files = [
            {"file": self._file(i).name if self.several else self.target.name, **shard}
            for i, shard in enumerate(shards)
        ]
        if self.several:
            write_sums(self.work, files)
        self.destination.check(
            self.src, of_files=not self.container.suffix
        )  # the hashes may take hours
        if self.several:
            self.destination.clear_notes()
            sync(self.work)
        self.destination.take_place(self.work if self.several else self._file(0))
        return {
            "records": len(self.records),
            "bytes": sum(shard.get("bytes", 0) for shard in shards) or _bytes_below(self.target),
            "files": [
                {k: v for k, v in entry.items() if k in ("file", "records", "bytes", "sha256")}
                for entry in files
            ],
            "resumed_records": self.resumed,
            "unusable": [entry for shard in shards for entry in shard["unusable"]],
            "unusable_count": sum(shard["unusable_count"] for shard in shards),
        }


def _bytes_below(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
