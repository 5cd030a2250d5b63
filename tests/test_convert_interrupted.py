# SPDX-License-Identifier: Apache-2.0
"""Promise: a conversion that is killed or finds the disk full can be resumed, with the same
result."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace import write

OPTIONAL = {"lmdb": "lmdb", "hdf5": "h5py"}
EVERY = [to for to in write.names() if to != "lerobot"]  # which has episodes of frames

# Few bytes between journals, and slow, so that a kill can hit any point.
SLOW = """
import os, sys, time
import headrace as hr
from headrace.write import conversion
conversion._JOURNAL_BYTES = 4000
add = conversion.Told.add
def slow_add(self, records):
    time.sleep(0.002); add(self, records)
conversion.Told.add = slow_add
print("begun", flush=True)
hr.convert(sys.argv[1], sys.argv[2], sys.argv[3], shards=int(sys.argv[4]))
print("done", flush=True)
"""


def need(to: str) -> None:
    if to in OPTIONAL:
        pytest.importorskip(OPTIONAL[to])


def bytes_of(path: Path) -> dict[str, bytes]:
    if path.is_file():
        return {"": path.read_bytes()}
    return {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()}


@pytest.mark.parametrize(("to", "shards"), [("lmdb", 1), ("folder", 1), ("tar", 2)])
def test_killed_repeatedly_it_ends_with_the_same_bytes(
    pictures: Path, tmp_path: Path, to: str, shards: int
) -> None:
    need(to)
    whole, out = tmp_path / "whole", tmp_path / "out"
    command = [sys.executable, "-c", SLOW, str(pictures)]
    subprocess.run([*command, str(whole), to, str(shards)], check=True, stdout=subprocess.DEVNULL)
    chance = random.Random(5)
    for _ in range(6):
        with subprocess.Popen(
            [*command, str(out), to, str(shards)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout and process.stdout.readline() == "begun\n"
            try:
                process.wait(chance.uniform(0.0, 0.06))
            except subprocess.TimeoutExpired:
                process.kill()
        if out.exists():  # killed after that, it may have left the folder of its journal
            break
    else:
        subprocess.run([*command, str(out), to, str(shards)], check=True, stdout=subprocess.DEVNULL)
        assert not out.with_name("out.partial").exists()
    assert bytes_of(out) == bytes_of(whole)


def test_a_journal_only_lists_data_that_is_on_disk(
    pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power failure loses unsynced data: a journal must not promise it."""
    from headrace.write import conversion
    from headrace.write.containers import folder

    synced: list[int] = []
    sync = folder.sync_all_below

    def counted(path: str) -> None:
        sync(path)
        synced.append(sum(1 for file in Path(path).rglob("*") if file.is_file()))

    promised: list[int] = []
    journal = conversion.Conversion._journal

    def told(self: Any, note: Path, writer: Any, records: int, *rest: Any) -> None:
        journal(self, note, writer, records, *rest)
        promised.append(records)
        assert synced[-1] == records

    monkeypatch.setattr(folder, "sync_all_below", counted)
    monkeypatch.setattr(conversion.Conversion, "_journal", told)
    monkeypatch.setattr(conversion, "_JOURNAL_BYTES", 5000)
    hr.convert(pictures, tmp_path / "out", "folder")
    assert len(promised) > 2 and synced[-1] == len(hr.open(pictures))


# A limit on file size fails like a full disk, and needs no separate disk.
LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
from headrace.cli.app import application
sys.argv[1:] = sys.argv[2:]
application()()
"""


@pytest.mark.parametrize("to", EVERY)
def test_a_full_disk_is_an_environment_error_and_the_same_command_resumes(
    tmp_path: Path, to: str
) -> None:
    need(to)
    rng = np.random.default_rng(1)
    pictures = [rng.integers(0, 256, (3, 64, 64), np.uint8) for _ in range(64)]
    np.save(tmp_path / "image.npy", np.stack(pictures))
    out = tmp_path / "out"
    arguments = ["convert", str(tmp_path / "image.npy"), "-o", str(out), "--to", to]
    for limit in (5_000, 300_000):
        limited = [sys.executable, "-c", LIMITED, str(limit), *arguments]
        ended = subprocess.run(limited, capture_output=True, text=True)
        if to == "folder" and limit > 20_000:  # no file of it is this large
            assert ended.returncode in (0, 2)
            continue
        assert ended.returncode == 4, ended.stderr
        assert "HR0275" in ended.stderr or "HR0447" in ended.stderr
        assert "free disk space" in ended.stderr, "whatever the library calls it"
        assert "Traceback" not in ended.stderr and "Exception" not in ended.stderr
        assert not out.exists()
    if not out.exists():
        hr.convert(tmp_path / "image.npy", out, to, verify=True)
    hr.convert(tmp_path / "image.npy", tmp_path / "whole", to)
    assert bytes_of(out) == bytes_of(tmp_path / "whole")


@pytest.mark.parametrize("command", [["formats"], ["explain", "HR0275"], ["operators", "--json"]])
def test_unwritable_output_is_an_error_without_a_traceback(command: list[str]) -> None:
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "headrace", *command], stdout=full, stderr=-1, text=True
        )
    assert ended.returncode == 4
    assert "No space left" in ended.stderr and "Traceback" not in ended.stderr
