# SPDX-License-Identifier: Apache-2.0
"""Exchanges values between the ranks of one machine, through small files in a shared temporary
folder.

No rank waits forever: if a rank's process has ended, has announced that it leaves, or is late, the
others are notified and continue without it.

torch's TCPStore is not used, because it does not detect that a rank has died, so the others would
wait until its timeout, and because examined scripts may run without torch.
"""

from __future__ import annotations

import contextlib
import dataclasses
import getpass
import hashlib
import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headrace.errors import declare

SEVERAL_MACHINES = declare(
    "HR0906",
    "config",
    "ranks on several machines",
    "The ranks agree on their last step through files, which works on one machine only. Start the "
    "script with --nnodes 1 to examine it.",
)
_POLL = 0.0005  # seconds


@dataclasses.dataclass(frozen=True)
class Place:
    """This process's rank and the number of ranks, on this machine and in total."""

    rank: int
    count: int
    local_rank: int
    local_count: int
    run: str  # of the launcher, the same for all its ranks

    @property
    def one_machine(self) -> bool:
        return self.local_count == self.count


def place_from(environment: Mapping[str, str] = os.environ) -> Place | None:
    """From RANK and WORLD_SIZE, set by torchrun and other launchers; None for a single rank."""
    try:
        rank, count = int(environment["RANK"]), int(environment["WORLD_SIZE"])
        local_rank = int(environment.get("LOCAL_RANK", rank))
        local_count = int(environment.get("LOCAL_WORLD_SIZE", count))
    except (KeyError, ValueError):
        return None
    if count < 2 or not 0 <= rank < count:
        return None
    names = ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT")
    run = "-".join(environment.get(name, "") for name in names)
    return Place(rank, count, local_rank, local_count, run)


class Gone(Exception):
    """A missing rank: which, and why."""

    def __init__(self, rank: int, why: str) -> None:
        super().__init__(f"rank {rank} {why}")


class Rendezvous:
    """One examination on all ranks of a machine: they exchange values, each name once."""

    def __init__(self, place: Place, patience: float, number: int = 0) -> None:
        self.place, self.patience = place, patience
        name = f"{getpass.getuser()}-{place.run}-{place.local_count}-{number}"
        digest = hashlib.sha256(name.encode()).hexdigest()[:16]
        self._root = Path(tempfile.gettempdir()) / f"headrace-doctor-{os.getuid()}-{digest}"
        self._folder = self._root
        self._ids: dict[int, str] = {}
        self._turn = 0
        self.missing: Gone | None = None  # the first missing rank

    def arrive(self) -> None:
        """Waits until all ranks are here. Raises Gone if one is missing."""
        self._root.mkdir(mode=0o700, exist_ok=True)
        seen = self._root.lstat()
        if seen.st_uid != os.getuid() or not stat.S_ISDIR(seen.st_mode):
            raise self._miss(self.place.local_rank, f"cannot use {self._root}")
        own = f"{os.getpid()} {_begin_of(os.getpid())}"
        self._write(self._root / f"here.{self.place.local_rank}", own)
        stop = time.monotonic() + self.patience
        for rank in range(self.place.local_count):
            while not self._is_here(rank):
                if time.monotonic() > stop:
                    raise self._miss(rank, f"did not arrive within {self.patience:g} seconds")
                time.sleep(10 * _POLL)
        # Files of an earlier run under the same name are in another folder.
        together = " ".join(self._ids[rank] for rank in sorted(self._ids))
        self._folder = self._root / hashlib.sha256(together.encode()).hexdigest()[:16]
        self._folder.mkdir(mode=0o700, exist_ok=True)

    def exchange(self, value: Any) -> list[Any]:
        """The values of all ranks, in order; each rank calls it equally often. Raises Gone if one
        is missing, in this and all later calls.
        """
        if self.missing is not None:
            raise self.missing
        self._turn += 1
        self._write(self._file(self.place.local_rank), value)
        stop = time.monotonic() + self.patience
        values = [self._wait_for(rank, stop) for rank in range(self.place.local_count)]
        # All ranks have read the values of the previous exchange, since they are in this one.
        with contextlib.suppress(OSError):
            (self._folder / f"{self._turn - 1}.{self.place.local_rank}").unlink(missing_ok=True)
        return values

    def gather(self, value: Any, patience: float) -> tuple[list[Any], list[Gone]]:
        """The last values of all ranks, including those that have left; and which ranks are
        missing. Each rank calls it once, even after a failed exchange. ``patience`` in seconds.
        """
        self._write(self._folder / f"last.{self.place.local_rank}", value)
        values, missing = [], []
        stop = time.monotonic() + patience
        for rank in range(self.place.local_count):
            path = self._folder / f"last.{rank}"
            while not path.exists() and self._lives(rank) and time.monotonic() < stop:
                time.sleep(10 * _POLL)
            if path.exists():
                values.append(json.loads(path.read_text()))
            else:
                late = f"has not ended within {patience:g} seconds"
                missing.append(Gone(rank, late if self._lives(rank) else "has died"))
        return values, missing

    def leave(self, why: str) -> None:
        """Announces that this rank exchanges no more values, so that no rank waits for it."""
        with contextlib.suppress(OSError):
            self._write(self._folder / f"gone.{self.place.local_rank}", why)

    def clear(self) -> None:
        """Removes the folder once every rank has left or ended. Does nothing on the other ranks."""
        if self.place.local_rank:
            return
        others = [rank for rank in range(self.place.local_count) if rank != self.place.local_rank]
        stop = time.monotonic() + 5
        while time.monotonic() < stop and any(self._may_read(rank) for rank in others):
            time.sleep(10 * _POLL)
        shutil.rmtree(self._root, ignore_errors=True)

    def _may_read(self, rank: int) -> bool:
        return not (self._folder / f"gone.{rank}").exists() and self._lives(rank)

    def _file(self, rank: int) -> Path:
        return self._folder / f"{self._turn}.{rank}"

    def _wait_for(self, rank: int, stop: float) -> Any:
        path, next_look = self._file(rank), time.monotonic() + 0.2
        while True:
            with contextlib.suppress(OSError):
                return json.loads(path.read_text())
            if time.monotonic() > next_look:
                self._look_for(rank, path, stop)
                next_look = time.monotonic() + 0.2
            time.sleep(_POLL)

    def _look_for(self, rank: int, path: Path, stop: float) -> None:
        """Raises Gone if the rank cannot answer any more; unless its last values have just
        arrived."""
        why = ""
        if (self._folder / f"gone.{rank}").exists():
            why = str(json.loads((self._folder / f"gone.{rank}").read_text()))
        elif not self._lives(rank):
            why = "has died"
        elif time.monotonic() > stop:
            why = f"did not arrive within {self.patience:g} seconds"
        if why and not path.exists():
            raise self._miss(rank, why)

    def _miss(self, rank: int, why: str) -> Gone:
        self.missing = Gone(rank, why)
        return self.missing

    def _is_here(self, rank: int) -> bool:
        """Whether it is gone: files left by a process that no longer exists do not count."""
        with contextlib.suppress(OSError, ValueError):
            text = json.loads((self._root / f"here.{rank}").read_text())
            pid, _, begin = str(text).partition(" ")
            if begin == _begin_of(int(pid)):
                self._ids[rank] = str(text)
                return True
        return False

    def _lives(self, rank: int) -> bool:
        pid, _, begin = self._ids[rank].partition(" ")
        return begin == _begin_of(int(pid))

    def _write(self, path: Path, value: Any) -> None:
        part = path.with_name(f"part.{self.place.local_rank}")
        part.write_text(json.dumps(value))
        part.replace(path)


def _begin_of(pid: int) -> str:
    """A process's start time by the system's clock, which distinguishes reused ids; "" if it has
    ended."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if words[0] in "ZX" else words[19]
