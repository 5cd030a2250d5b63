# SPDX-License-Identifier: Apache-2.0
"""A clip of a long file reads only its packets, and a file's tables are read once."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import videos

import headrace as hr
from headrace import transforms as T

pytest.importorskip("av", reason="av makes the videos")
if MISSING := videos.missing_decoder():
    pytest.skip(MISSING, allow_module_level=True)

MIB = 1 << 20
HOLE = 512 * MIB  # zeros, which take no disk space
STEPS = [T.RandomVideoClips(4, stride=2), T.CenterCrop((48, 64))]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def with_hole(path: Path, data: bytes, before_moov: bool) -> None:
    """The MP4 with an unused box: at the end, or before its tables."""
    boxes, at = [], 0
    while at < len(data):
        size = struct.unpack(">I", data[at : at + 4])[0]
        boxes.append(data[at : at + size])
        at += size
    kinds = [box[4:8] for box in boxes]
    assert kinds.index(b"mdat") < kinds.index(b"moov")
    place = kinds.index(b"moov") if before_moov else len(boxes)
    with path.open("wb") as file:
        file.write(b"".join(boxes[:place]))
        file.write(struct.pack(">I4s", HOLE, b"free"))
        file.seek(HOLE - 8, os.SEEK_CUR)
        file.write(b"".join(boxes[place:]))
        file.truncate()
        if not before_moov:
            file.truncate(len(data) + HOLE)


def matroska_with_hole(path: Path, data: bytes) -> None:
    """The same for Matroska: a Void element at the end of a segment of unknown size."""
    path.write_bytes(data + b"\xec\x01" + (HOLE - 9).to_bytes(7, "big"))
    os.truncate(path, len(data) + HOLE)


def bytes_read() -> int:
    """Bytes read by this process so far, from files and pipes."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"])


def clips(path: Path, **options: Any) -> np.ndarray[Any, Any]:
    loader = hr.Loader(hr.open(path), STEPS, batch_size=1, seed=5, **options)
    return np.concatenate([batch["video"] for batch in loader])


@pytest.mark.parametrize("kind", ["moov in the middle", "moov at the end", "matroska"])
def test_a_clip_of_a_large_file_only_reads_its_packets(tmp_path: Path, kind: str) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    small.mkdir()
    large.mkdir()
    if kind == "matroska":
        data = live(videos.h264(40, container="matroska"))
        (small / "it.mkv").write_bytes(data)
        matroska_with_hole(large / "it.mkv", data)
    else:
        data = videos.h264(40)
        (small / "it.mp4").write_bytes(data)
        with_hole(large / "it.mp4", data, before_moov=kind == "moov at the end")
    expected = clips(small)
    before = bytes_read()
    found = clips(large, memory_limit="128 MiB", index="auto")
    assert bytes_read() - before < 4 * MIB
    np.testing.assert_array_equal(found, expected)
    # The next time from the cache.
    loader = hr.Loader(hr.open(large), STEPS, batch_size=1, seed=5)
    np.testing.assert_array_equal(next(iter(loader))["video"], expected)
    assert loader.stats().index["used"] == 1


def live(data: bytes) -> bytes:
    """The Matroska file, its segment of unknown size."""
    at = data.index(b"\x18\x53\x80\x67") + 4
    assert data[at] == 0x01, "eight bytes of size"
    return data[:at] + b"\x01" + b"\xff" * 7 + data[at + 8 :]


def test_the_index_is_cached_once_and_used_by_all_later_loaders(
    tmp_path: Path, cache: Path
) -> None:
    folder = tmp_path / "videos"
    folder.mkdir()
    for number in range(6):
        suffix = "mkv" if number % 2 else "mp4"
        container = "matroska" if number % 2 else "mp4"
        data = videos.h264(30, seed=number, container=container)
        (folder / f"{number}.{suffix}").write_bytes(data)
    without = clips(folder, index=False)
    assert not list(cache.glob("rows-*"))
    first = hr.Loader(hr.open(folder), STEPS, batch_size=1, seed=5, index="auto")
    batches = [batch["video"] for batch in first]
    assert first.stats().index["added"] == 6
    np.testing.assert_array_equal(np.concatenate(batches), without)
    del first, batches
    later = hr.Loader(hr.open(folder), STEPS, batch_size=1, seed=5)
    np.testing.assert_array_equal(np.concatenate([b["video"] for b in later]), without)
    stats = later.stats().index
    assert (stats["used"], stats["stale"], stats["added"]) == (6, 0, 0)


def test_an_index_of_the_whole_dataset_is_built_ahead(tmp_path: Path) -> None:
    folder = tmp_path / "videos"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.mp4").write_bytes(videos.h264(30, seed=number))
    with_hole(folder / "3.mp4", videos.h264(30, seed=3), before_moov=True)
    built = hr.index(folder)
    assert (built["records"], built["indexed"], built["bad"]) == (4, 4, 0)
    loader = hr.Loader(hr.open(folder), STEPS, batch_size=4, seed=5)
    next(iter(loader))
    assert loader.stats().index["used"] == 4


@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
def test_a_replaced_video_is_not_read_with_the_old_index(tmp_path: Path, large: bool) -> None:
    folder = tmp_path / "videos"
    folder.mkdir()

    def write(seed: int) -> None:
        data = videos.h264(30 + seed, seed=seed)
        if large:
            with_hole(folder / "it.mp4", data, before_moov=True)
        else:
            (folder / "it.mp4").write_bytes(data)

    write(1)
    source = hr.open(folder)  # so the fingerprint is unchanged
    hr.index(source)
    write(2)
    loader = hr.Loader(source, STEPS, batch_size=1, seed=5)
    found = next(iter(loader))["video"]
    assert loader.stats().index["stale"] == 1
    expected = hr.Loader(source, STEPS, batch_size=1, seed=5, index=False)
    np.testing.assert_array_equal(found, next(iter(expected))["video"])


def test_a_damaged_cached_index_changes_no_frame(tmp_path: Path, cache: Path) -> None:
    folder = tmp_path / "videos"
    folder.mkdir()
    (folder / "it.mp4").write_bytes(videos.h264(30))
    expected = clips(folder, index="auto")
    (kept,) = cache.glob("rows-*")
    content = bytearray(kept.read_bytes())
    for at in range(80, len(content), 7):
        content[at] ^= 0x55
    kept.write_bytes(content)
    np.testing.assert_array_equal(clips(folder), expected)


def test_a_large_file_that_is_truncated_is_an_error_of_its_record(tmp_path: Path) -> None:
    folder = tmp_path / "videos"
    folder.mkdir()
    with_hole(folder / "it.mp4", videos.h264(30), before_moov=True)
    hr.index(folder)
    source = hr.open(folder)
    with (folder / "it.mp4").open("r+b") as file:
        file.truncate(64 * MIB)
    with pytest.raises(hr.DataError, match=r"(?s)HR0362.*it\.mp4"):
        next(iter(hr.Loader(source, STEPS, batch_size=1)))


def test_large_files_in_memory_and_caches_are_complete(tmp_path: Path) -> None:
    folder = tmp_path / "videos"
    folder.mkdir()
    data = videos.h264(40)
    path = folder / "it.mp4"
    path.write_bytes(data + struct.pack(">I4s", 9 * MIB, b"free") + bytes(9 * MIB - 8))
    expected = clips(folder)
    np.testing.assert_array_equal(clips(folder, cache="64 MiB"), expected)
    source = hr.records(video=[str(path)], kinds={"video": "video"})
    loader = hr.Loader(source, STEPS, batch_size=1, seed=5)
    np.testing.assert_array_equal(next(iter(loader))["video"], expected)
    assert len(hr.open(folder)[0]["video"]) == path.stat().st_size
