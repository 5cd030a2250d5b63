# SPDX-License-Identifier: Apache-2.0
"""A peer as compare.py sees it: a process that runs epochs when told to."""

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
    """What can be run: a file of peers/ in an interpreter that has what it needs."""

    name: str
    script: str
    variant: str
    module: str  # must be importable there
    interpreter: str
    ours: bool = False

    def version(self) -> str | None:
        """The module's name and version; None where it does not import."""
        code = f"import {self.module} as m; print(m.__version__)"
        ran = subprocess.run([self.interpreter, "-c", code], capture_output=True, text=True)
        if ran.returncode:
            return None
        return f"{self.module} {ran.stdout.strip().splitlines()[-1]}"


@dataclass
class Measured:
    """One peer's figures; rates are images per second, one for each round."""

    name: str
    version: str
    ours: bool
    built_seconds: float = 0.0
    start_seconds: float = 0.0  # from the process's start to its first batch
    warm: list[float] = field(default_factory=list)
    cold: list[float] = field(default_factory=list)
    first_batch_ms: list[float] = field(default_factory=list)  # of later epochs
    cpu_seconds_per_1000: list[float] = field(default_factory=list)
    peak_pss_mib: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "version": self.version,
            "images_per_second": round(statistics.median(self.warm), 1) if self.warm else None,
            "images_per_second_rounds": [round(rate, 1) for rate in self.warm],
            "images_per_second_cold": round(statistics.median(self.cold), 1) if self.cold else None,
            "images_per_second_cold_rounds": [round(rate, 1) for rate in self.cold],
            "cpu_seconds_per_1000": _median(self.cpu_seconds_per_1000, 3),
            "peak_pss_mib": round(self.peak_pss_mib),
            "start_to_first_batch_seconds": round(self.start_seconds, 2),
            "first_batch_ms": _median(self.first_batch_ms, 1),
        }


def _median(values: list[float], digits: int) -> float | None:
    return round(statistics.median(values), digits) if values else None


class Peer:
    """A running peer. Use as a context manager: its process ends with the block."""

    def __init__(self, kind: PeerKind, job: dict[str, Any], cores: set[int]) -> None:
        self.kind = kind
        with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
            json.dump({**job, "variant": kind.variant}, file)
        self._job_file = file.name
        command = [kind.interpreter, str(FOLDER / kind.script), file.name]
        environment = dict(os.environ, OMP_NUM_THREADS="1")
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (close() does)
        start = time.perf_counter()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=environment,
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )
        try:
            self.built_seconds = self._answer()["built_seconds"]
            ready = time.perf_counter() - start
            self.first = self.epoch()
        except BaseException:
            self.close()
            raise
        self.start_seconds = ready + self.first["first_batch_seconds"]

    def epoch(self) -> dict[str, float]:
        """Runs an epoch: images, seconds, first_batch_seconds, cpu_seconds, peak_pss_mib."""
        cpu = cpu_seconds(self._process.pid)
        assert self._process.stdin
        with PeakMemory(self._process.pid) as memory:
            self._process.stdin.write("epoch\n")
            self._process.stdin.flush()
            answer = self._answer()
        answer["cpu_seconds"] = cpu_seconds(self._process.pid) - cpu
        answer["peak_pss_mib"] = memory.mib
        return answer

    def _answer(self) -> dict[str, float]:
        assert self._process.stdout
        for line in self._process.stdout:  # some peers also print messages of their own
            if line.startswith("{"):
                return json.loads(line)
        self._process.wait()
        self._log.seek(0)
        tail = "\n".join(self._log.read().strip().splitlines()[-6:])
        raise RuntimeError(f"{self.kind.name} ended with {self._process.returncode}:\n{tail}")

    def close(self) -> None:
        if self._process.poll() is None and self._process.stdin:
            try:
                self._process.stdin.write("quit\n")
                self._process.stdin.close()
                self._process.wait(20)
            except (OSError, subprocess.TimeoutExpired):
                self._process.kill()
                self._process.wait()
        os.unlink(self._job_file)
        self._log.close()

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
