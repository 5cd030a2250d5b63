# SPDX-License-Identifier: Apache-2.0
"""Unpacked copies of packed shards stay while they are used, and make room when they are not."""

from __future__ import annotations

import gc
import gzip
import io
import subprocess
import sys
import tarfile
import warnings
from pathlib import Path

import pytest

import headrace as hr

SHARD = 1_000_000  # bytes, unpacked, and a little more


def packed_shard(path: Path, letter: str) -> Path:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        for i in range(10):
            member = tarfile.TarInfo(f"{i}.bin")
            member.size = SHARD // 10
            tar.addfile(member, io.BytesIO(letter.encode() * member.size))
    path.write_bytes(gzip.compress(plain.getvalue()))
    return path


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HEADRACE_CACHE_LIMIT", "2500 kB")
    return tmp_path / "cache"


def copies(cache: Path) -> set[Path]:
    return {path for path in cache.glob("unpacked-????????????????") if path.is_file()}


def test_whoever_opens_hears_which_room_was_made(cache: Path, tmp_path: Path) -> None:
    for letter in "ab":
        hr.open(packed_shard(tmp_path / f"{letter}.tar.gz", letter))
    gc.collect()
    with pytest.warns(hr.Warning, match=r"1 unpacked copy of .* \(10\d+ bytes\) deleted from"):
        src = hr.open(packed_shard(tmp_path / "c.tar.gz", "c"))
    assert len(copies(cache)) == 2
    assert src[9]["bin"] == b"c" * (SHARD // 10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # none where nothing was deleted
        hr.open(tmp_path / "c.tar.gz")


def test_an_open_source_keeps_its_records_whatever_others_open(cache: Path, tmp_path: Path) -> None:
    held = [hr.open(packed_shard(tmp_path / f"{letter}.tar.gz", letter)) for letter in "ab"]
    third = packed_shard(tmp_path / "c.tar.gz", "c")
    code = "import sys, headrace as hr; hr.open(sys.argv[1])"
    for _ in range(2):  # by another process, and again
        other = subprocess.run(
            [sys.executable, "-c", code, str(third)], capture_output=True, text=True, check=False
        )
        assert other.returncode == 1 and "HR0210" in other.stderr
        assert "HEADRACE_CACHE_LIMIT" in other.stderr
    for src, letter in zip(held, "ab", strict=True):
        assert [src[i]["bin"] for i in range(10)] == [letter.encode() * (SHARD // 10)] * 10
    del held, src
    gc.collect()
    done = subprocess.run([sys.executable, "-c", code, str(third)], check=False)
    assert done.returncode == 0 and len(copies(cache)) == 2


def test_shards_of_one_source_do_not_make_room_for_each_other(cache: Path, tmp_path: Path) -> None:
    for letter in "ab":
        packed_shard(tmp_path / f"set-{letter}.tar.gz", letter)
    assert len(hr.open(tmp_path, format="webdataset")) == 20
    gc.collect()
    before = {path: path.stat().st_ino for path in copies(cache)}
    packed_shard(tmp_path / "set-0.tar.gz", "0")  # sorts first: the others are looked for later
    with pytest.raises(hr.Error, match="HR0210"):
        hr.open(tmp_path, format="webdataset")
    assert {path: path.stat().st_ino for path in copies(cache)} == before


def test_a_limit_that_is_no_size_is_named(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_CACHE_LIMIT", "plenty")
    with pytest.raises(hr.Error, match='HR0279 HEADRACE_CACHE_LIMIT is no size: "plenty"'):
        hr.open(packed_shard(tmp_path / "a.tar.gz", "a"))
