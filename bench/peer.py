# SPDX-License-Identifier: Apache-2.0
"""A peer as seen by compare.py: a process that prepares its data, or runs epochs on request."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from process_tree import PeakMemory, cpu_seconds

FOLDER = Path(__file__).parent / "peers"


@dataclass(frozen=True)
class PeerKind:
    """A runnable peer: a file of peers/ in an interpreter that has what it needs."""

    name: str
    script: str
    variant: str
    module: str  # must be importable there
    interpreter: str
    package: str = ""  # package whose version is shown; default: the module
    prepares: bool = False  # writes its own format, before the first epoch
    reads_files: bool = True  # reads the JPEG files, in addition to what it prepared
    differs: str = ""  # how its work differs
    ours: bool = False

    def version(self) -> str | None:
        """The package's name and version; None if the module cannot be imported."""
        code = (
            "import importlib, importlib.metadata as metadata\n"
            f"module = importlib.import_module({self.module!r})\n"
            f"try: print(metadata.version({self.package or self.module!r}))\n"
            "except metadata.PackageNotFoundError: print(module.__version__)"
        )
        command = [self.interpreter, "-c", code]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode:
            return None
        return f"{self.package or self.module} {ran.stdout.strip().splitlines()[-1]}"


@dataclass
class Measured:
    """One peer's figures on one set; rates are images per second, one per round."""

    kind: PeerKind
    version: str
    bytes_on_disk: int = 0  # total size of everything it reads
    prepare_seconds: float | None = None
    prepare_details: dict[str, Any] = field(default_factory=dict)  # as reported by its tool
    built_seconds: float = 0.0
    start_seconds: float = 0.0  # from the process's start to its first batch
    warm: list[float] = field(default_factory=list)
    cold: list[float] = field(default_factory=list)
    first_batch_ms: list[float] = field(default_factory=list)  # of later epochs
    cpu_seconds_per_1000: list[float] = field(default_factory=list)
    peak_pss_mib: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.kind.name,
            "version": self.version,
            "ours": self.kind.ours,
            "differs": self.kind.differs,
            "images_per_second": round(statistics.median(self.warm), 1) if self.warm else None,
            "images_per_second_rounds": [round(rate, 1) for rate in self.warm],
            "images_per_second_cold": round(statistics.median(self.cold), 1) if self.cold else None,
            "images_per_second_cold_rounds": [round(rate, 1) for rate in self.cold],
            "cpu_seconds_per_1000": _median(self.cpu_seconds_per_1000, 3),
            "peak_pss_mib": round(self.peak_pss_mib),
            "start_to_first_batch_seconds": round(self.start_seconds, 2),
            "first_batch_ms": _median(self.first_batch_ms, 1),
            "bytes_on_disk": self.bytes_on_disk,
            "prepare_seconds": self.prepare_seconds and round(self.prepare_seconds, 2),
            "prepare_details": self.prepare_details,
        }


def _median(values: list[float], digits: int) -> float | None:
    return round(statistics.median(values), digits) if values else None


def prepare(kind: PeerKind, job: dict[str, Any], cores: set[int]) -> dict[str, Any]:
    """Lets a peer write its own format to job["prepared"]: `prepare_seconds`, `details`."""
    with _Process(kind, job, cores, "prepare") as process:
        return process.answer()


class _Process:
    """A running script of peers/. Use as a context manager: it ends with the block."""

    def __init__(
        self, kind: PeerKind, job: dict[str, Any], cores: set[int], *arguments: str
    ) -> None:
        self.kind = kind
        with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
            json.dump({**job, "variant": kind.variant}, file)
        self._job_file = file.name
        command = [kind.interpreter, str(FOLDER / kind.script), file.name, *arguments]
        environment = dict(os.environ, OMP_NUM_THREADS="1")
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (close() does)
        self.start = time.perf_counter()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=environment,
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )

    def say(self, line: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout
        for line in self.process.stdout:  # some peers also print messages of their own
            if line.startswith("{"):
                return json.loads(line)
        self.process.wait()
        self._log.seek(0)
        tail = "\n".join(self._log.read().strip().splitlines()[-6:])
        raise RuntimeError(f"{self.kind.name} ended with {self.process.returncode}:\n{tail}")

    def close(self) -> None:
        if self.process.poll() is None and self.process.stdin:
            try:
                self.say("quit")
                self.process.stdin.close()
                self.process.wait(20)
            except (OSError, subprocess.TimeoutExpired):
                self.process.kill()
                self.process.wait()
        os.unlink(self._job_file)
        self._log.close()

    def __enter__(self) -> _Process:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Peer(_Process):
    """Starts a peer, builds its loader and runs its first epoch."""

    def __init__(self, kind: PeerKind, job: dict[str, Any], cores: set[int]) -> None:
        super().__init__(kind, job, cores)
        try:
            self.built_seconds = self.answer()["built_seconds"]
            ready = time.perf_counter() - self.start
            self.first = self.epoch()
        except BaseException:
            self.close()
            raise
        self.start_seconds = ready + self.first["first_batch_seconds"]

    def __enter__(self) -> Peer:
        return self

    def turn(self, seconds: float) -> list[dict[str, float]]:
        """Whole epochs, until they have taken this long in total."""
        epochs = [self.epoch()]
        while sum(epoch["seconds"] for epoch in epochs) < seconds:
            epochs.append(self.epoch())
        return epochs

    def epoch(self) -> dict[str, float]:
        """Runs an epoch: images, seconds, first_batch_seconds, cpu_seconds, peak_pss_mib."""
        cpu = cpu_seconds(self.process.pid)
        with PeakMemory(self.process.pid) as memory:
            self.say("epoch")
            answer = self.answer()
        answer["cpu_seconds"] = cpu_seconds(self.process.pid) - cpu
        answer["peak_pss_mib"] = memory.mib
        return answer
