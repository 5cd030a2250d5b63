# SPDX-License-Identifier: Apache-2.0
"""Peers in alternating rounds: disturbances of the machine affect all of them equally.

``Contest`` is of peers on one set of pictures, warm and cold; ``started`` and ``in_turn`` are for
any jobs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from peer import Measured, Peer, PeerKind, prepare
from picture_sets import PictureSet
from process_tree import cached_share, drop_cache

PACK = "photos.pack"  # named as in peers/headrace_loader.py


class Contest:
    """Peers on one set of pictures, pinned to the same cores. One that fails is skipped."""

    def __init__(
        self,
        kinds: dict[PeerKind, str],
        pictures: PictureSet,
        job: dict[str, Any],
        cores: set[int],
        scratch: Path,
    ) -> None:
        self._cores = cores
        self._files = [path for path, _ in pictures.files]
        self._jobs: dict[PeerKind, dict[str, Any]] = {}
        self.measured: dict[PeerKind, Measured] = {}
        self.failed: dict[str, str] = {}
        for kind, version in kinds.items():
            folder = scratch / f"{Path(kind.script).stem}-{kind.variant or 'plain'}"
            folder.mkdir(parents=True)
            self._jobs[kind] = {**job, "prepared": str(folder.resolve())}
            measured = Measured(kind, version)
            if kind.prepares:
                say(f"  preparing {kind.name}")
                try:
                    answer = prepare(kind, self._jobs[kind], cores)
                except RuntimeError as error:
                    self._leave_out(kind, error)
                    continue
                measured.prepare_seconds = answer["prepare_seconds"]
                measured.prepare_details = answer["details"]
            measured.bytes_on_disk = sum(map(content_bytes, self._prepared(kind)))
            measured.bytes_on_disk += pictures.bytes if kind.reads_files else 0
            self.measured[kind] = measured

    def _leave_out(self, kind: PeerKind, error: Exception) -> None:
        say(f"  {kind.name} is skipped: {error}")
        self.failed[kind.name] = str(error)
        self.measured.pop(kind, None)

    def _prepared(self, kind: PeerKind) -> list[Path]:
        """The files that it wrote."""
        return [p for p in Path(self._jobs[kind]["prepared"]).rglob("*") if p.is_file()]

    def warm(self, rounds: int, turn_seconds: float) -> None:
        """Starts all peers and runs one epoch each; then they alternate."""
        with ExitStack() as stack:
            peers = []
            for kind, measured in list(self.measured.items()):
                say(f"  starting {kind.name} ({measured.version})")
                try:
                    peer = started(stack, measured, self._jobs[kind], self._cores)
                except RuntimeError as error:
                    self._leave_out(kind, error)
                    continue
                peers.append((measured, peer))
            for number in range(rounds):
                for measured, peer in in_turn(peers, number):
                    note(measured, peer.turn(turn_seconds))
                rates = "  ".join(f"{m.kind.name} {m.warm[-1]:,.0f}" for m in self.values())
                say(f"  round {number + 1}: {rates}")

    def cold(self, rounds: int) -> None:
        """All pictures once per epoch, dropping the files from the page cache before each."""
        with ExitStack() as stack:
            peers = []
            for kind in self.measured:
                once = {**self._jobs[kind], "repeat": 1, "cold": True}
                peers.append(stack.enter_context(Peer(kind, once, self._cores)))
            for number in range(rounds):
                left = 0.0
                for peer in peers:
                    files = [str(path) for path in self._prepared(peer.kind)]
                    files += self._files if peer.kind.reads_files else []
                    drop_cache(files)
                    left = max(left, cached_share(files))
                    epoch = peer.epoch()
                    self.measured[peer.kind].cold.append(epoch["images"] / epoch["seconds"])
                say(f"  cold round {number + 1}: at most {100 * left:.0f} % were still cached")

    def hashes(self) -> dict[str, str]:
        """Compares the first epoch's batches of our formats: they must be equal."""
        found = {}
        for kind in self.measured:
            if not kind.ours:
                continue
            prepared = Path(self._jobs[kind]["prepared"])
            source = self._jobs[kind]["photos"] if kind.reads_files else str(prepared / PACK)
            program = "from headrace.cli import main; main()"
            command = [sys.executable, "-c", program, "bench", source, "--epochs", "1", "--json"]
            environment = dict(os.environ, HEADRACE_CACHE=str(prepared))
            ran = subprocess.run(command, env=environment, capture_output=True, check=True)
            found[kind.name] = json.loads(ran.stdout)["batch_hash"]
        return found

    def values(self) -> list[Measured]:
        return list(self.measured.values())


def started(stack: ExitStack, measured: Measured, job: dict[str, Any], cores: set[int]) -> Peer:
    """A peer that runs as long as the stack is open. Raises RuntimeError if it fails."""
    peer = stack.enter_context(Peer(measured.kind, job, cores))
    measured.built_seconds, measured.start_seconds = peer.built_seconds, peer.start_seconds
    return peer


def in_turn(peers: list[tuple[Measured, Peer]], number: int) -> list[tuple[Measured, Peer]]:
    """The peers in the order of this round: each round starts with a different one, so that none
    always follows the same one.
    """
    first = number % max(1, len(peers))
    return peers[first:] + peers[:first]


def content_bytes(path: Path) -> int:
    """A file's size without blocks of zeros."""
    with path.open("rb") as file:
        return sum(len(block) for block in iter(lambda: file.read(4096), b"") if any(block))


def note(measured: Measured, epochs: list[dict[str, float]]) -> None:
    """Adds a round."""

    def total(key: str) -> float:
        return sum(epoch[key] for epoch in epochs)

    measured.warm.append(total("images") / total("seconds"))
    measured.cpu_seconds_per_1000.append(1000 * total("cpu_seconds") / total("images"))
    measured.first_batch_ms += [1000 * epoch["first_batch_seconds"] for epoch in epochs]
    peak = max(epoch["peak_pss_mib"] for epoch in epochs)
    measured.peak_pss_mib = max(measured.peak_pss_mib, peak)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
