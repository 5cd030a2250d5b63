# SPDX-License-Identifier: Apache-2.0
"""The folder that the parts of a job write to, each in its own process.

    DEST/part-00003-of-00256.tar         complete files
    DEST/.job/job.json                   the job's description, the same for all parts
    DEST/.job/part-00003-of-00256.json   the part's entry: records, files, their sizes and SHA-256
    DEST/unfinished/part-00003-of-00256  where the part is being made, and its lock

Everything is moved into place by a rename, the entry last. A process that is killed leaves files
only in its part's folder, where the next process for this part continues. While the folder
`unfinished` exists, no format takes DEST for a dataset; merging removes it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headrace import _core
from headrace.errors import declare
from headrace.jobs.part import Part
from headrace.whole_file import sync
from headrace.write.destination import locks
from headrace.write.durable import written_to

OTHER_JOB = declare(
    "HR0279",
    "config",
    "folder belongs to another job",
    "All parts of a job share one folder, and have the same records, options and number of parts. "
    "A changed dataset, another option or other files there would mix two datasets. Choose another "
    "folder, or remove the old one yourself.",
)
STATE, UNFINISHED, JOB = ".job", "unfinished", "job.json"
_NOTE = "entry.json"  # in the part's folder, once its files are complete

# Makes the part's files in a folder; returns its entry, with "files" only if it already knows their
# "sha256".
Make = Callable[[Path], dict[str, Any]]


def write_part(
    dest: str | os.PathLike[str],
    part: Part,
    plan: Mapping[str, Any],
    names: Sequence[str],
    make: Make,
) -> dict[str, Any]:
    """Returns a part's entry. Makes the part unless it exists and is complete ("kept" is then
    true). plan: what all parts of the job have in common. names: the names of the part's files; the
    first one appears when all are complete. Raises ConfigError HR0277 while another process makes
    the part, HR0279 if ``dest`` belongs to another job, and StorageError HR0275 if the folder
    cannot be written.
    """
    job = JobFolder(Path(os.path.abspath(dest)), {**plan, "parts": part.parts})
    with written_to(job.dest):
        return job.write(part, names, make)


def plan_of(command: str, sources: Sequence[_core.Source], **options: Any) -> dict[str, Any]:
    """What all parts of a job have in common, except their number. sources: their records follow
    each other, with the same fields.
    """
    return {
        "command": command,
        "options": options,
        "fingerprint": "+".join(f"{source.fingerprint:016x}" for source in sources),
        "records": sum(map(len, sources)),
        "fields": [field.name for field in sources[0].schema],
        "classes": sources[0].classes,
    }


class JobFolder:
    def __init__(self, dest: Path, plan: dict[str, Any]) -> None:
        self.dest = dest
        self.plan: dict[str, Any] = json.loads(json.dumps(plan))  # as read back from the file
        self.state, self.unfinished = dest / STATE, dest / UNFINISHED

    def write(self, part: Part, names: Sequence[str], make: Make) -> dict[str, Any]:
        self._check()
        work = self.unfinished / part.name
        entry = self._whole(part)
        if entry and not os.path.lexists(work):
            return {**entry, "kept": True}
        with locked(work):
            entry = self._whole(part)  # another process may have been quicker
            kept = entry is not None
            if entry is None:
                self._begin(work)
                entry = self._made(work) or self._make(work, part, names, make)
                self._put(work, part, entry)
            _clear(work)
        return {**entry, "kept": kept}

    def _check(self) -> None:
        """Raises HR0279 if the folder belongs to another job."""
        names: list[str] = []
        with contextlib.suppress(FileNotFoundError):
            names = os.listdir(
                self.dest
            )  # before the plan is read: another part may write it in between
        plan = read_json(self.state / JOB)
        if plan is None:
            if foreign := sorted({*names} - {STATE, UNFINISHED}):
                raise OTHER_JOB.error(
                    f"{self.dest / foreign[0]} was not written by a job", hint="choose a new folder"
                )
        elif plan != self.plan:
            wrong = sorted(
                name for name in {*plan, *self.plan} if plan.get(name) != self.plan.get(name)
            )[0]
            raise OTHER_JOB.error(
                f"{self.dest} belongs to a job with {wrong}={plan.get(wrong)!r}, but this job has "
                f"{self.plan.get(wrong)!r}",
                hint="choose a new folder",
            )

    def _whole(self, part: Part) -> dict[str, Any] | None:
        entry = read_entry(self.state / f"{part.name}.json")
        if entry and all(is_whole(self.dest / file["file"], file) for file in entry["files"]):
            return entry
        return None

    def _begin(self, work: Path) -> None:
        """Writes the job's description, unless another part has done so."""
        self.state.mkdir(exist_ok=True)
        own = work / JOB
        _write(own, json.dumps(self.plan, indent=1))
        try:
            os.link(own, self.state / JOB)
        except FileExistsError:
            pass
        except OSError:  # a file system without links
            if not os.path.lexists(self.state / JOB):
                own.rename(self.state / JOB)
        self._check()

    def _made(self, work: Path) -> dict[str, Any] | None:
        """The entry of files that an interrupted process has completed."""
        entry = read_entry(work / _NOTE)
        if entry is None:
            return None
        places = [(work / file["file"], self.dest / file["file"]) for file in entry["files"]]
        whole = all(
            any(is_whole(path, file) for path in both)
            for both, file in zip(places, entry["files"], strict=True)
        )
        return entry if whole else None

    def _make(self, work: Path, part: Part, names: Sequence[str], make: Make) -> dict[str, Any]:
        if not os.path.lexists(self.state / f"{part.name}.json"):
            for name in names:
                if os.path.lexists(self.dest / name):
                    raise OTHER_JOB.error(
                        f"{self.dest / name} was not written by this job", hint="move it away"
                    )
        if (work / names[0]).exists():  # a complete file whose entry is lost
            for name in (_NOTE, *names):
                (work / name).unlink(missing_ok=True)
        report = make(work)
        known = {file["file"]: file.get("sha256") for file in report.pop("files", [])}
        files = [
            {
                "file": name,
                "bytes": (work / name).stat().st_size,
                "sha256": known.get(name) or sha256(work / name),
            }
            for name in names
        ]
        entry = {
            "part": part.number,
            "parts": part.parts,
            "fingerprint": self.plan["fingerprint"],
            "headrace": _core.__version__,
            **report,
            "files": files,
        }
        _write(work / _NOTE, json.dumps(entry, indent=1))
        return entry

    def _put(self, work: Path, part: Part, entry: dict[str, Any]) -> None:
        for file in entry["files"]:
            with contextlib.suppress(FileNotFoundError):  # an interrupted process has moved it
                os.replace(work / file["file"], self.dest / file["file"])
        sync(self.dest)
        os.replace(work / _NOTE, self.state / f"{part.name}.json")
        sync(self.state)


@contextlib.contextmanager
def locked(work: Path) -> Iterator[None]:
    """Locks a folder against other processes while the context is active. Raises HR0277 if another
    process holds the lock, which is a file in the folder that is removed last.
    """
    lock = work / "lock"
    while True:
        check_own(work)
        work.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        except FileNotFoundError:  # another process has just removed the folder
            continue
        try:
            if locks(descriptor, lock):
                yield
                return
        finally:
            os.close(descriptor)


def _clear(work: Path) -> None:
    """Removes the folder, its lock last. REQUIRES: within locked()."""
    for path in list(work.iterdir()):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != "lock":
            path.unlink()
    (work / "lock").unlink()
    with contextlib.suppress(OSError):  # another process waits for the lock
        work.rmdir()


def clear_unfinished(dest: Path) -> None:
    """Removes the working folders of complete parts. Raises HR0277 while one is being written."""
    unfinished = dest / UNFINISHED
    if not os.path.lexists(unfinished):
        return
    _check_folder(unfinished)
    works = sorted(unfinished.iterdir())
    for work in works:
        check_own(work)  # before any is removed
    for work in works:
        with locked(work):
            _clear(work)
    unfinished.rmdir()


def check_own(work: Path) -> None:
    """Raises HR0279 unless this folder is a part's, since everything in it will be removed."""
    if not re.fullmatch(r"part-\d{5}-of-\d{5}", work.name):
        raise OTHER_JOB.error(f"{work} was not made by a job", hint="move it away")
    _check_folder(work.parent)
    _check_folder(work)


def _check_folder(path: Path) -> None:
    """Raises HR0279 if the path is a link or a file."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISDIR(path.lstat().st_mode):
            raise OTHER_JOB.error(f"{path} was not made by a job", hint="move it away")


def read_json(path: Path) -> dict[str, Any] | None:
    """The contents of a file written by this module; None if it is missing or not a
    JSON object."""
    try:
        value = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def read_entry(path: Path) -> dict[str, Any] | None:
    """A part's entry; None if it is missing or invalid."""
    entry = read_json(path)
    try:
        if entry is None or not all(isinstance(entry[name], int) for name in ("first", "records")):
            return None
        for file in entry["files"]:
            if os.path.basename(file["file"]) != file["file"] or not isinstance(file["bytes"], int):
                return None
            bytes.fromhex(file["sha256"])
    except (KeyError, TypeError, ValueError):
        return None
    return entry


def is_whole(path: Path, file: Mapping[str, Any]) -> bool:
    """Whether a file has the size and the SHA-256 of its entry."""
    try:
        return path.stat().st_size == int(file["bytes"]) and sha256(path) == str(file["sha256"])
    except FileNotFoundError:
        return False


def sha256(path: Path) -> str:
    import hashlib

    sum_ = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            sum_.update(chunk)
    return sum_.hexdigest()


def _write(path: Path, text: str) -> None:
    """Writes a complete file, through a temporary name that the next process for the part
    reuses."""
    own = path.with_name(path.name + ".partial")
    with own.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    own.rename(path)
