# SPDX-License-Identifier: Apache-2.0
"""One conversion of a source to a container: shards side by side, and on after an interruption."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from headrace import containers
from headrace.sources import Progress, Source

_VERSION = 1
_JOURNAL_BYTES = 64 << 20  # what an interruption may cost, a shard


class Told:
    """Adds up what threads have done; the caller's function is called on the calling thread."""

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


class Conversion:
    """A plan, and for each shard a journal of what is safe on disk."""

    def __init__(self, src: Source, target: str, to: str, shards: int) -> None:
        self.src, self.target, self.to, self.shards = src, Path(target), to, shards
        self.container = containers.container(to)
        self.work = self.target.with_name(self.target.name + ".partial")
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

    def run(self, threads: int, tell: Told) -> dict[str, Any]:
        self._begin()
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

    def _write_shard(self, shard: int, tell: Told) -> dict[str, Any]:
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

    def _journal(self, note: Path, writer: containers.Writer, records: int) -> None:
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
