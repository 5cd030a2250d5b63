# SPDX-License-Identifier: Apache-2.0
"""Promise: a filesystem object of another library (``filesystem=``) gives the records that a local
folder gives, or an error that names the file."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import run_code

import headrace as hr
from headrace import transforms as T

fsspec = pytest.importorskip("fsspec")


class Wrapped:
    """A filesystem of fsspec, whose reads can be made to fail."""

    def __init__(self, fs: Any) -> None:
        self.fs = fs
        self.reads = 0
        self.fault: Any = None
        self.most_at_once = self._now = 0
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.fs, name)

    def cat_file(self, path: str, start: int | None = None, end: int | None = None) -> Any:
        with self._lock:
            self.reads += 1
            number = self.reads
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        try:
            if self.fault is not None:
                answer = self.fault(number, path)
                if answer is not None:
                    return answer
            return self.fs.cat_file(path, start=start, end=end)
        finally:
            with self._lock:
                self._now -= 1


@pytest.fixture
def fs() -> Iterator[Any]:
    memory = fsspec.filesystem("memory")
    yield Wrapped(memory)
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]


def images_of(source: Any, **given: Any) -> np.ndarray[Any, Any]:
    loader = hr.Loader(source, [T.Resize((8, 8))], batch_size=4, memory_limit="256 MiB", **given)
    return np.concatenate([batch.image for batch in loader])


def test_records_equal_those_of_the_local_folder(fs: Any, pictures: Path) -> None:
    local = hr.open(pictures)
    for path in sorted(pictures.rglob("*")):
        if path.is_file():
            fs.pipe(f"/train/{path.relative_to(pictures)}", path.read_bytes())
    far = hr.open("/train", filesystem=fs)
    assert (len(far), far.classes) == (len(local), local.classes)
    assert far.key(0).startswith("filesystem://memory")
    for given in ({}, {"shuffle": True, "seed": 3}):
        np.testing.assert_array_equal(images_of(far, **given), images_of(local, **given))
    one = hr.open(str(pictures), filesystem=fsspec.filesystem("file"))
    np.testing.assert_array_equal(images_of(one), images_of(local))
    np.testing.assert_array_equal(one[0]["image"], local[0]["image"])


def test_a_failure_names_the_file_and_exception_and_may_be_temporary(
    fs: Any, pictures: Path
) -> None:
    content = next(path for path in sorted(pictures.rglob("*")) if path.is_file()).read_bytes()
    fs.pipe("/a/0.jpg", content)
    source = hr.open("/a", filesystem=fs)

    def broken(number: int, path: str) -> None:
        raise ValueError("no such key ☃")

    fs.fault = broken
    with pytest.raises(hr.StorageError, match=r"HR0287(?s:.*)ValueError: no such key") as raised:
        source[0]
    assert "/a/0.jpg" in str(raised.value)

    def shaky(number: int, path: str) -> None:
        if number % 2:
            raise ConnectionError("reset")

    fs.fault, fs.reads = shaky, 0
    assert source[0]["image"].ndim == 3 and fs.reads == 2
    fs.fault = None
    with pytest.raises(hr.ConfigError, match="HR0198"):
        hr.open("/a", filesystem=object())
    with pytest.raises(hr.ConfigError, match="filesystem"):
        hr.open([("a", 0)], filesystem=fs)


def test_many_reads_run_concurrently(fs: Any, pictures: Path) -> None:
    content = next(path for path in sorted(pictures.rglob("*")) if path.is_file()).read_bytes()
    for i in range(40):
        fs.pipe(f"/many/{i % 2}/{i}.jpg", content)
    source = hr.open("/many", filesystem=fs)
    arrived: list[int] = []
    met = threading.Event()

    def meets(number: int, path: str) -> None:
        arrived.append(number)
        if len(arrived) >= 4:
            met.set()
        met.wait(300)  # until four are waiting here at the same time

    fs.fault = meets
    assert len(images_of(source, threads=1)) == 40
    assert fs.most_at_once >= 4 and met.is_set()


SCRIPT = """
import sys, threading
import fsspec
from headrace.drawing.png import png_from_pixels
import numpy as np
import headrace as hr
memory = fsspec.filesystem("memory")
for i in range(64):
    memory.pipe(f"/a/{i}.png", png_from_pixels(np.zeros((3, 8, 8), np.uint8)))
begun = threading.Event()
class Slow(type(memory)):
    cachable = False
    def cat_file(self, path, start=None, end=None):
        begun.set()
        threading.Event().wait(0.05)
        return super().cat_file(path, start=start, end=end)
steps = [hr.transforms.Resize((8, 8))]
loader = hr.Loader(hr.open("/a", filesystem=Slow()), steps, batch_size=4, threads=2)
begun.clear()
threading.Thread(target=lambda: [None for _ in loader], daemon=True).start()
begun.wait()
"""


def test_python_may_exit_while_reads_are_in_flight() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, "")


FORKED = """
import os, signal, threading
import fsspec
from headrace.drawing.png import png_from_pixels
import numpy as np
import headrace as hr
memory = fsspec.filesystem("memory")
for i in range(80):
    memory.pipe(f"/a/{i:02}.png", png_from_pixels(np.full((3, 8, 8), i, np.uint8)))
parent, stalls, stalled = os.getpid(), threading.Event(), threading.Semaphore(0)
class Stalling(type(memory)):
    cachable = False
    def cat_file(self, path, start=None, end=None):
        if stalls.is_set() and os.getpid() == parent:
            stalled.release()
            threading.Event().wait()
        return super().cat_file(path, start=start, end=end)
source = hr.open("/a", filesystem=Stalling())
loader = hr.Loader(source, [hr.transforms.Resize((8, 8))], batch_size=40, threads=2)
stalls.set()
threading.Thread(target=lambda: [None for _ in loader], daemon=True).start()
for _ in range(32):
    stalled.acquire()  # as many calls as there are at most
child = os.fork()
if child == 0:
    signal.alarm(100)
    os._exit(0 if source[7]["image"].tobytes() == b"\\7" * 192 else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
os._exit(0)
"""


def test_a_forked_process_reads_while_all_calls_of_its_parent_stall() -> None:
    done = run_code(FORKED)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
