# SPDX-License-Identifier: Apache-2.0
"""Videos are decoded in processes that belong to their loader alone."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import videos
from headrace.loader.iteration import live
from timing import wait_until

import headrace as hr
from headrace import _core
from headrace import transforms as T

pytest.importorskip("av", reason="av makes the videos")
if MISSING := videos.missing_decoder():
    pytest.skip(MISSING, allow_module_level=True)

LOOP = """
import sys
import headrace as hr
from headrace import _core
from headrace import transforms as T
steps = [T.RandomVideoClips(4), T.CenterCrop((48, 64))]
loader = hr.Loader(hr.open(sys.argv[1]), steps, batch_size=2, threads=2)
while True:
    for batch in loader:
        print("batch", flush=True)
"""


@pytest.fixture(autouse=True)
def alone() -> None:
    """The threads are not shared with loaders of other tests; each thread has a process of its
    own."""
    for loader in list(live):
        loader.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(8):
        (tmp_path / f"{number}.mp4").write_bytes(videos.h264(30, seed=number))
    return tmp_path


def clips(folder: Path, **options: Any) -> hr.Loader:
    return hr.Loader(
        hr.open(folder),
        [T.RandomVideoClips(4), T.CenterCrop((48, 64))],
        batch_size=2,
        shuffle=False,
        threads=2,
        **options,
    )


def decoding(parent: int | None = None) -> set[int]:
    """The child processes of a process that decode videos."""
    return {number for number, by in all_decoding() if by == (parent or os.getpid())}


def all_decoding() -> Iterator[tuple[int, int]]:
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().split()
        except OSError:
            continue
        if entry.name.isdigit() and fields[1] == "(headrace-av)" and fields[2] != "Z":
            yield int(entry.name), int(fields[3])


def wait_until_gone(processes: set[int]) -> None:
    wait_until(lambda: not processes & {number for number, _ in all_decoding()}, "still there")


def test_processes_end_with_their_loader(folder: Path) -> None:
    before = set(os.listdir("/dev/shm"))
    loader = clips(folder)
    assert not decoding()
    for _ in loader:
        assert 1 <= len(decoding()) <= 2
    loader.close()
    assert not decoding()
    assert not [name for name in set(os.listdir("/dev/shm")) - before if "headrace" in name]


def test_records_of_a_mosaic_are_decoded_by_the_existing_process(folder: Path) -> None:
    paths = sorted(map(str, folder.iterdir()))
    boxes = np.tile(np.float32([4, 4, 40, 40]), (len(paths), 1, 1))
    source = hr.records(video=paths, boxes=boxes, kinds={"boxes": "boxes:xyxy"})
    steps = [T.CenterVideoClip(2), T.Mosaic((32, 32))]
    loader = hr.Loader(source, steps, batch_size=2, ragged="list", threads=1)
    processes = set()
    for _ in loader:
        processes |= decoding()
    assert len(processes) == 1


def test_alternating_loaders_share_the_processes_of_their_threads(folder: Path) -> None:
    paths = sorted(map(str, folder.iterdir())) * 8
    steps = [T.CenterVideoClip(2), T.CenterCrop((48, 64))]
    one, other = (
        hr.Loader(hr.records(video=paths), steps, batch_size=1, threads=1) for _ in range(2)
    )
    processes = set()
    for _ in zip(one, other, strict=True):
        processes |= decoding()
    assert len(processes) == 1


def test_a_killed_process_loses_only_some_records(folder: Path) -> None:
    expected = [np.asarray(batch["video"]) for batch in clips(folder)]
    lost = 0
    loader = clips(folder, on_error="substitute", error_budget=1000)
    for number, batch in enumerate(loader):
        for process in decoding():
            os.kill(process, signal.SIGKILL)
        lost += not np.array_equal(batch["video"], expected[number])
    assert lost < len(expected)
    actual = [np.asarray(batch["video"]) for batch in clips(folder)]
    np.testing.assert_array_equal(actual, expected)


def test_a_forked_process_releases_the_decoding_processes(folder: Path) -> None:
    data = (folder / "0.mp4").read_bytes()
    frames = np.asarray(_core.decode_video(data, [0, 7]))
    expected = [np.asarray(batch["video"]) for batch in clips(folder)]
    batches = iter(clips(folder))
    next(batches)  # its processes run
    ours = decoding()
    sockets = descriptors("socket:")
    child = os.fork()
    if child == 0:
        good = False
        try:
            good = len(descriptors("socket:")) <= len(sockets) - len(ours)
            again = np.asarray(_core.decode_video(data, [0, 7]))  # by one of its own
            good = good and np.array_equal(again, frames)
        finally:
            os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert decoding() >= ours  # another may have started meanwhile
    rest = [np.asarray(batch["video"]) for batch in batches]
    np.testing.assert_array_equal(rest, expected[1:])


def descriptors(kind: str) -> list[str]:
    links = []
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the descriptor of this listing
            links.append(str(entry.readlink()))
    return [link for link in links if link.startswith(kind)]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_python(folder: Path, how: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", LOOP, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdout
    for _ in range(3):
        assert process.stdout.readline() == b"batch\n"
    started = decoding(process.pid)
    assert started
    os.killpg(process.pid, how)  # like Ctrl-C, to the whole group
    process.communicate(timeout=300)
    wait_until_gone(started)
