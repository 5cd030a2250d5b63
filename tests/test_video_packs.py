# SPDX-License-Identifier: Apache-2.0
"""A pack has an index of each video's container, and restores the file unchanged."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import videos
from pack_reader import PackReader
from PIL import Image

import headrace as hr
from headrace import transforms as T

pytest.importorskip("av", reason="av makes the videos")
if MISSING := videos.missing_decoder():
    pytest.skip(MISSING, allow_module_level=True)

STEPS = [T.RandomVideoClips(4, stride=2), T.CenterCrop((48, 64))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("videos")
    for number in range(4):
        container = "matroska" if number % 2 else "mp4"
        path = root / "ab"[number % 2] / f"{number}.{'mkv' if number % 2 else 'mp4'}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(videos.h264(30, seed=number, container=container))
    return root


@pytest.fixture(scope="module")
def pack(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("packs") / "videos.hrpack"
    report = hr.pack(folder, out)
    assert report["levels"]["indexed"]["count"] == 4 and not report["unusable_count"]
    return out


def clips(source: Any, **options: Any) -> np.ndarray[Any, Any]:
    loader = hr.Loader(source, STEPS, batch_size=1, seed=5, **options)
    return np.concatenate([batch["video"] for batch in loader])


def test_clips_of_a_pack_equal_those_of_its_files(folder: Path, pack: Path) -> None:
    expected = clips(hr.open(folder))
    for index in ("use", "auto", False):
        np.testing.assert_array_equal(clips(hr.open(pack), index=index), expected)
    np.testing.assert_array_equal(clips(hr.open(pack), cache="16 MiB"), expected)


def test_unpacked_records_and_files_equal_the_originals(
    folder: Path, pack: Path, tmp_path: Path
) -> None:
    files = sorted(folder.rglob("*.m*"))
    source = hr.open(pack)
    for number, path in enumerate(files):
        assert bytes(source[number]["video"]) == path.read_bytes()
    hr.unpack(pack, tmp_path / "out")
    for path in files:
        assert (tmp_path / "out" / path.relative_to(folder)).read_bytes() == path.read_bytes()


def test_the_stored_bytes_are_the_file_and_its_index(folder: Path, pack: Path) -> None:
    reader = PackReader(pack)
    assert reader.video_indexes
    for number, path in enumerate(sorted(folder.rglob("*.m*"))):
        stored = reader.record(number)["video"]
        size = int.from_bytes(stored[-4:], "little")
        index = stored[-4 - size : -4]
        assert stored[: -4 - size] == path.read_bytes()
        assert index[:8] == b"HRVIDEO1" and size < 60 * 30
        assert int.from_bytes(index[13:17], "little") == 64, "the width"


def test_an_index_in_a_pack_is_read_in_place_of_the_container(pack: Path, tmp_path: Path) -> None:
    reader = PackReader(pack)
    content = bytearray(pack.read_bytes())
    expected = clips(hr.open(pack))
    for number in range(4):  # the packet positions, in the files themselves
        offset = reader.places[number][0][0]
        stored = reader.record(number)["video"]
        for box in (b"moov", b"\x15\x49\xa9\x66"):  # Matroska's element Info
            at = stored.find(box)
            if at >= 0:
                content[offset + at : offset + at + 4] = b"\xec\xec\xec\xec"
    (tmp_path / "it.hrpack").write_bytes(content)
    found = hr.open(tmp_path / "it.hrpack", verify=False)
    np.testing.assert_array_equal(clips(found, index=False), expected)


def test_animations_and_unreadable_files_have_no_index(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    frames = [Image.fromarray(f) for f in random.integers(0, 256, (5, 48, 64, 3), dtype=np.uint8)]
    gif = io.BytesIO()
    frames[0].save(gif, "GIF", save_all=True, append_images=frames[1:])
    good = videos.h264(30)
    records = [{"video": gif.getvalue()}, {"video": good[: len(good) // 2]}, {"video": good}]
    source = hr.open(records, kinds={"video": "video"})
    report = hr.pack(source, tmp_path / "it.hrpack")
    assert report["unusable_count"] == 1
    packed = hr.open(tmp_path / "it.hrpack")
    assert [bytes(packed[n]["video"]) for n in range(3)] == [r["video"] for r in records]
    sizes = [int.from_bytes(PackReader(tmp_path / "it.hrpack").record(n)["video"][-4:], "little")
             for n in range(3)]  # fmt: skip
    assert sizes[:2] == [0, 0] and sizes[2] > 0


def test_a_pack_at_level_none_contains_only_the_files(folder: Path, tmp_path: Path) -> None:
    hr.pack(folder, tmp_path / "it.hrpack", level="none")
    assert not PackReader(tmp_path / "it.hrpack").video_indexes
    np.testing.assert_array_equal(clips(hr.open(tmp_path / "it.hrpack")), clips(hr.open(folder)))


def test_a_pack_of_a_pack_is_the_same(folder: Path, pack: Path, tmp_path: Path) -> None:
    hr.pack(hr.open(pack), tmp_path / "it.hrpack")
    first, second = PackReader(pack), PackReader(tmp_path / "it.hrpack")
    assert [first.record(n) for n in range(4)] == [second.record(n) for n in range(4)]
