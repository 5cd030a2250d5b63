# SPDX-License-Identifier: Apache-2.0
"""Promise: ``cache=`` and ``disk_cache=`` only change where data is read from, never a batch, and
stay within their limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from headrace.drawing.png import png_from_pixels
from processes import run_code

import headrace as hr
from headrace import transforms as T

MIB = 1 << 20


RECORD_BYTES = 100 * 100 * 3


@pytest.fixture
def files(tmp_path: Path) -> hr.Source:
    """200 images of noise, which is incompressible."""
    rng = np.random.default_rng(1)
    for i in range(200):
        pixels = rng.integers(0, 256, (3, 100, 100), np.uint8)
        (tmp_path / f"{i:03}.png").write_bytes(png_from_pixels(pixels))
    return hr.open(tmp_path)


def small(source: hr.Source, **given: Any) -> hr.Loader:
    return hr.Loader(source, [T.Resize((8, 8))], **{"memory_limit": "256 MiB", **given})


def epoch_of(loader: hr.Loader) -> list[Any]:
    return [batch for batch in loader]


def test_batches_are_the_same_with_and_without_a_cache(pictures: Path) -> None:
    def loader(**given: Any) -> hr.Loader:
        steps = [T.RandomResizedCrop(32), T.RandomHorizontalFlip()]
        return hr.Loader(pictures, steps, batch_size=3, shuffle=True, seed=4, **given)

    for _epoch in range(3):
        plain = loader()
        cached = loader(cache="1 MiB")
        for expected, got in zip(plain, cached, strict=True):
            assert np.array_equal(expected.image, got.image)
            assert np.array_equal(expected.label, got.label)


def test_a_cache_of_half_the_dataset_reads_half_of_it_in_later_epochs(files: hr.Source) -> None:
    loader = small(files, batch_size=20, shuffle=True, cache=200 * RECORD_BYTES // 2)
    for _ in loader:
        pass
    first = loader.stats()["cache"]
    assert 0.45 * 200 < first["records"] <= 0.5 * 200
    assert first["bytes"] <= first["limit"]
    left_out = 200 - first["records"]
    # On a busy machine part of the next epoch has been read already, and is counted with this one.
    assert 0 <= first["misses"] - 200 <= left_out
    for epoch in range(1, 4):
        for _ in loader:
            pass
        now = loader.stats()["cache"]
        assert now["records"] == first["records"]
        assert 0 <= now["hits"] - epoch * first["records"] <= first["records"]
        assert 0 <= now["misses"] - (200 + epoch * left_out) <= left_out


def test_loaders_of_one_source_share_the_cache(files: hr.Source) -> None:
    one = small(files, batch_size=50, cache="16 MiB")
    epoch_of(one)
    two = small(files, batch_size=10, shuffle=True, cache="16 MiB")
    epoch_of(two)
    assert two.stats()["cache"]["misses"] == 200
    # On a busy machine both have already read part of their next epochs.
    assert 200 <= two.stats()["cache"]["hits"] <= 600


def test_a_cache_stays_within_the_memory_limit(files: hr.Source) -> None:
    with pytest.raises(hr.ConfigError, match="leaves no memory of"):
        small(files, batch_size=20, cache="1 GiB", memory_limit="512 MiB")
    loader = small(files, batch_size=20, cache="2 MiB", memory_limit="128 MiB")
    epoch_of(loader)
    stats = loader.stats()
    assert stats["memory_peak"] <= 128 * MIB
    assert stats["memory_used"] >= stats["cache"]["bytes"] > MIB


def test_rewritten_files_are_read_again(tmp_path: Path) -> None:
    def write(value: int, names: range = range(40)) -> None:
        for name in names:
            pixels = np.full((3, 8, 8), value, np.uint8)
            (tmp_path / f"{name:02}.png").write_bytes(png_from_pixels(pixels))

    def seen(loader: hr.Loader) -> list[int]:
        return [int(value) for batch in loader for value in batch.image[:, 0, 0, 0]]

    write(1)
    loader = small(hr.open(tmp_path), batch_size=4, cache="1 MiB")
    assert seen(loader) == [1] * 40
    write(2, range(20, 40))
    with pytest.warns(match=r"20\.png has changed since it was read") as warned:
        assert seen(loader) == [1] * 20 + [2] * 20
    before = loader.stats()["cache"]["misses"]
    assert seen(loader) == [1] * 20 + [2] * 20
    assert loader.stats()["cache"]["misses"] == before
    write(3)
    beside = small(hr.open(tmp_path), batch_size=4, cache="1 MiB")
    assert seen(beside) == [3] * 40 == seen(loader)
    assert len(warned) == 1


# In a separate process: a disk cache then serves that process from then on.
DISK_CACHE = """
import gc, io, json, os, sys, tarfile
os.environ["HEADRACE_CACHE"] = sys.argv[1]
import numpy as np
from headrace import _core
from headrace.drawing.png import png_from_pixels
from headrace.cli.app import application
import headrace as hr
from headrace import transforms as T

rng = np.random.default_rng(1)
out = io.BytesIO()
with tarfile.open(fileobj=out, mode="w") as tar:
    for i in range(120):
        data = png_from_pixels(rng.integers(0, 256, (3, 40, 40), np.uint8))
        member = tarfile.TarInfo(f"{i:04}.png")
        member.size = len(data)
        tar.addfile(member, io.BytesIO(data))
far = _core.MemoryVolume("far", latency_ms=1)
far.write("train/a.tar", out.getvalue())


def small(source, **given):
    return hr.Loader(source, [T.Resize((8, 8))], batch_size=10, memory_limit="256 MiB", **given)


def answer(action):
    sys.stdout = io.StringIO()
    try:
        application()(["cache", action, "--json"])
    except SystemExit as ended:
        assert ended.code == 0
    told, sys.stdout = sys.stdout.getvalue(), sys.__stdout__
    return json.loads(told)


source = hr.open(f"{far.root}/train/a.tar")
expected = list(small(source))
before = far.requests
loader = small(source, disk_cache="64 MiB")
for _epoch in range(2):
    for one, other in zip(expected, loader, strict=True):
        np.testing.assert_array_equal(one.image, other.image)
assert far.requests == before + 1  # one block
again = small(source)  # the process reads through it
assert len(list(again)) == 12
assert far.requests == before + 1
stats = again.stats()["disk_cache"]
assert stats["hits"] > 0 and stats["limit"] == 64 << 20 and stats["failed"] == 0
try:
    small(source, disk_cache="1 MiB")
    raise AssertionError("two limits")
except hr.ConfigError as error:
    assert error.code == "HR0298", error

told = answer("info")
assert told["blocks"] == 1 and told["folders"][0]["folder"] == f"{far.root}/train"
assert answer("clear")["deleted_bytes"] == told["bytes"]
assert answer("info")["blocks"] == 0
loader.close()
del loader
gc.collect()
asked = far.requests
assert len(list(small(source))) == 12
assert far.requests > asked, "the last loader that asked for it has gone"
assert len(list(small(hr.open(source.path), shuffle="blocks"))) == 12
"""


def test_a_disk_cache_serves_later_epochs_and_loaders_with_the_same_batches(tmp_path: Path) -> None:
    pytest.importorskip("typer")
    done = run_code(DISK_CACHE, tmp_path / "cache")
    assert done.returncode == 0, done.stderr
