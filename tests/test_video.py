# SPDX-License-Identifier: Apache-2.0
"""Clips have the frames of a sequential decode, for every request, in any order."""

from __future__ import annotations

import hashlib
import io
import struct
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import videos
from PIL import Image

import headrace as hr
from headrace import _core
from headrace import transforms as T

pytest.importorskip("av", reason="av makes the videos, and says what is in them")
if MISSING := videos.missing_decoder():
    pytest.skip(MISSING, allow_module_level=True)

WHOLE = T.CenterCrop((48, 64))  # all of a frame of videos.h264(), which declares the size
LENGTHS = [30, 41, 22, 55, 35, 60, 28, 33]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """hop/0.mp4, run/1.mp4, hop/2.mp4, ...: of several lengths, one size."""
    root = tmp_path_factory.mktemp("videos")
    for number, count in enumerate(LENGTHS):
        path = root / ("run" if number % 2 else "hop") / f"{number}.mp4"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(videos.h264(count, seed=number))
    return root


@pytest.fixture(scope="module")
def frames(folder: Path) -> list[Any]:
    """All frames, by record."""
    paths = sorted(folder.rglob("*.mp4"))
    return [videos.decoded(path.read_bytes())[0] for path in paths]


def one(tmp_path: Path, data: bytes, suffix: str = "mp4") -> hr.Source:
    (tmp_path / f"it.{suffix}").write_bytes(data)
    return hr.open(tmp_path)


def clip_of(source: hr.Source, *steps: Any, seed: int = 0, **options: Any) -> Any:
    """Frames of a source with one video."""
    loader = hr.Loader(source, [*steps], batch_size=1, seed=seed, ragged="list", **options)
    return next(iter(loader))["video"][0]


def batch_hash(loader: hr.Loader) -> str:
    out = hashlib.sha256()
    for batch in loader:
        out.update(np.ascontiguousarray(batch["video"]).tobytes())
        out.update(np.ascontiguousarray(batch["label"]).tobytes())
    return out.hexdigest()


# Frames


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"bf": 0},
        {"bf": 3, "b-pyramid": "normal", "g": 100},
        {"x264-params": "open-gop=1:bframes=3:keyint=10"},
        {"height": 46, "width": 62},
        {"count": 1},
        {"pixels": "yuv422p"},
        {"codec": "mpeg4", "bf": 2},
        {"codec": "libx265", "x265-params": "log-level=none:keyint=12"},
        {"codec": "libvpx-vp9", "g": 10, "bf": 0},
        {"times": [n * n for n in range(30)]},
    ],
    ids=str,
)
def test_frames_in_any_order_equal_those_of_a_sequential_decode(how: dict[str, Any]) -> None:
    data = videos.h264(**how)
    frames, times = videos.decoded(data)
    header = _core.video_header(data)
    assert header["frames"] == len(frames)
    assert (header["height"], header["width"]) == frames.shape[2:]
    np.testing.assert_allclose(header["times"], times, atol=1e-9)
    np.testing.assert_array_equal(_core.decode_video(data, range(len(frames))), frames)
    wanted = np.random.default_rng(3).integers(0, len(frames), 6)
    np.testing.assert_array_equal(_core.decode_video(data, wanted.tolist()), frames[wanted])


@pytest.mark.parametrize(("suffix", "container"), [("mov", "mov"), ("mp4", "mp4")])
def test_containers_hold_the_same_frames(tmp_path: Path, suffix: str, container: str) -> None:
    data = videos.h264(container=container)
    frames, _ = videos.decoded(data)
    clip = clip_of(one(tmp_path, data, suffix), T.CenterVideoClip(6))
    np.testing.assert_array_equal(clip, frames[12:18])


def turned(data: bytes, quarter_turns: int) -> bytes:
    """The same file, marked as rotated clockwise (ISO 14496-12, 8.3.2)."""
    one = 1 << 16
    cos, sin = [(one, 0), (0, one), (-one, 0), (0, -one)][quarter_turns]
    matrix = struct.pack(">9i", cos, sin, 0, -sin, cos, 0, 0, 0, 1 << 30)
    at = data.index(b"tkhd") + 4 + 40
    return data[:at] + matrix + data[at + len(matrix) :]


@pytest.mark.parametrize("quarter_turns", [0, 1, 2, 3])
def test_videos_of_a_rotated_camera_are_upright(tmp_path: Path, quarter_turns: int) -> None:
    data = videos.h264(6)
    frames, _ = videos.decoded(data)
    clip = clip_of(one(tmp_path, turned(data, quarter_turns)), T.CenterVideoClip(6))
    np.testing.assert_array_equal(clip, np.rot90(frames, -quarter_turns, (2, 3)))


def test_a_timescale_of_0_is_treated_as_1_or_an_error() -> None:
    data = videos.h264(6)
    where = {name: data.index(name) + 16 for name in (b"mvhd", b"mdhd")}
    without = {name: data[:at] + bytes(4) + data[at + 4 :] for name, at in where.items()}
    frames, times = videos.decoded(without[b"mvhd"])
    np.testing.assert_array_equal(_core.decode_video(without[b"mvhd"], range(6)), frames)
    np.testing.assert_allclose(_core.video_header(without[b"mvhd"])["times"], times, atol=1e-9)
    with pytest.raises(hr.DataError, match=r"HR0361.*a timescale of 0"):
        _core.video_header(without[b"mdhd"])


# Clips


def test_a_folder_of_videos_has_classes_and_clips(folder: Path, frames: list[Any]) -> None:
    source = hr.open(folder)
    assert source.classes == ["hop", "run"]
    assert [(field.name, field.kind) for field in source.schema] == [
        ("video", "video"),
        ("label", "label"),
    ]
    loader = hr.Loader(
        source,
        [T.RandomVideoClips(5, stride=3, times=True), WHOLE],
        batch_size=4,
        shuffle=False,
        seed=3,
    )
    begins, row = set(), 0
    for batch in loader:
        assert batch["video"].shape == (4, 5, 3, 48, 64)
        assert batch["video"].dtype == np.uint8
        assert batch["video_times"].shape == (4, 5)
        for clip, times in zip(batch["video"], batch["video_times"], strict=True):
            chosen = np.round(times * 25).astype(int)
            begins.add(chosen[0])
            np.testing.assert_array_equal(chosen, chosen[0] + 3 * np.arange(5))
            np.testing.assert_array_equal(clip, frames[row][chosen])
            row += 1
    assert row == len(LENGTHS)
    assert len(begins) > 3


def test_several_clips_are_stacked_on_a_new_axis(tmp_path: Path) -> None:
    data = videos.h264(50)
    frames, _ = videos.decoded(data)
    source = one(tmp_path, data)
    clips = clip_of(source, T.UniformVideoClips(4, num_clips=3, stride=2))
    # torchcodec's clips_at_regular_indices: torch.linspace(0, 50 - 7, 3, dtype=int64)
    expected = [[begin + 2 * i for i in range(4)] for begin in (0, 21, 43)]
    np.testing.assert_array_equal(clips, frames[np.array(expected)])
    assert clip_of(source, T.RandomVideoClips(4, num_clips=2)).shape == (2, 4, 3, 48, 64)


def test_every_start_position_is_equally_probable(tmp_path: Path) -> None:
    source = one(tmp_path, videos.h264(12, height=16, width=16))
    begins = []
    for epoch in range(200):
        loader = hr.Loader(source, [T.RandomVideoClips(8, times=True)], batch_size=1, ragged="list")
        loader.set_epoch(epoch)
        begins.append(round(next(iter(loader))["video_times"][0, 0] * 25))
    counts = np.bincount(begins, minlength=5)
    assert len(counts) == 5
    assert counts.min() > 20


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("repeat_last", [0, 2, 4, 4, 4, 4]), ("wrap", [0, 2, 4, 0, 2, 4])],
)
def test_a_short_video_is_extended_by_the_policy(
    tmp_path: Path, policy: str, expected: list[int]
) -> None:
    data = videos.h264(5)
    frames, _ = videos.decoded(data)
    source = one(tmp_path, data)
    for step in (T.RandomVideoClips, T.CenterVideoClip):
        clip = clip_of(source, step(6, stride=2, policy=policy))
        np.testing.assert_array_equal(clip, frames[expected])
    with pytest.raises(hr.DataError, match=r"HR0547(.|\n)*it.mp4"):
        clip_of(source, T.CenterVideoClip(6, stride=2, policy="error"))


def test_fps_takes_the_frame_shown_at_each_time(tmp_path: Path) -> None:
    shown = [0, 40, 300, 340, 380, 420, 900, 940, 980, 1000]  # ms
    data = videos.h264(10, times=shown)
    frames, times = videos.decoded(data)
    np.testing.assert_allclose(times, np.array(shown) / 1000)
    end = _core.video_header(data)["end_seconds"]
    clip = clip_of(one(tmp_path, data), T.CenterVideoClip(10, fps=10))
    begin = max(end - 1, 0) / 2
    expected = [int(np.searchsorted(times, begin + i / 10 + 1e-6, "right")) - 1 for i in range(10)]
    np.testing.assert_array_equal(clip, frames[expected])


def test_a_clip_surrounds_the_time_of_its_record(tmp_path: Path) -> None:
    data = videos.h264(50)
    frames, _ = videos.decoded(data)
    (tmp_path / "it.mp4").write_bytes(data)
    path = str(tmp_path / "it.mp4")
    source = hr.records(video=[path] * 3, second=np.array([1.0, 0.0, 1.9]))
    loader = hr.Loader(
        source, [T.VideoClipAt(5, time="second"), WHOLE], batch_size=3, shuffle=False
    )
    batch = next(iter(loader))
    for clip, begin in zip(batch["video"], (23, 0, 45), strict=True):
        np.testing.assert_array_equal(clip, frames[begin : begin + 5])
    late = hr.records(video=[path], second=np.array([3.5]))
    with pytest.raises(hr.DataError, match="HR0548"):
        next(iter(hr.Loader(late, [T.VideoClipAt(5, time="second"), WHOLE], batch_size=1)))


def test_axes_have_the_requested_order(tmp_path: Path) -> None:
    data = videos.h264(10)
    frames, _ = videos.decoded(data)
    source = one(tmp_path, data)
    step = T.CenterVideoClip(10, layout="CTHW")
    np.testing.assert_array_equal(clip_of(source, step), frames.transpose(1, 0, 2, 3))
    for layout, first in (("TCHW", frames), ("CTHW", frames.transpose(1, 0, 2, 3))):
        clip = clip_of(source, T.CenterVideoClip(10, layout=layout), memory_format="channels_last")
        np.testing.assert_array_equal(clip, first)
        assert clip.strides[-1] == 3
    with_clips = clip_of(source, T.UniformVideoClips(4, num_clips=2, layout="CTHW"))
    np.testing.assert_array_equal(with_clips[1], frames[6:].transpose(1, 0, 2, 3))


# Operations on frames


def test_a_clip_is_cropped_flipped_and_normalized_as_a_whole(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    v2 = pytest.importorskip("torchvision.transforms.v2")
    data = videos.h264(20, height=60, width=80)
    frames, _ = videos.decoded(data)
    mean, std = [0.4, 0.5, 0.6], [0.2, 0.3, 0.25]
    steps = [
        T.CenterVideoClip(8, stride=2),
        T.RandomResizedCrop(32),
        T.RandomHorizontalFlip(),
        T.ToDtype("float32", scale=True),
        T.Normalize(mean, std),
    ]
    source = one(tmp_path, data)
    y, x = np.mgrid[:60, :80].astype(np.uint8)
    Image.fromarray(np.stack([x, y, y], -1)).save(tmp_path / "places.png")
    places = hr.records(image=[str(tmp_path / "places.png")])
    flipped = set()
    for seed in range(6):
        clip = clip_of(source, *steps, seed=seed)
        assert clip.shape == (8, 3, 32, 32)
        assert clip.dtype == np.float32
        pixels = clip_of(source, *steps[:3], seed=seed)
        expected = v2.Normalize(mean, std)(
            v2.ToDtype(torch.float32, scale=True)(torch.from_numpy(pixels.copy()))
        )
        np.testing.assert_array_equal(clip, expected.numpy())
        # The same draws on a picture of coordinates reveal the window.
        nearest = [T.RandomResizedCrop(32, interpolation="nearest"), T.RandomHorizontalFlip()]
        shown = next(iter(hr.Loader(places, nearest, batch_size=1, seed=seed)))["image"][0]
        across, down = shown[0, 0].astype(int), shown[1, :, 0].astype(int)
        mirrored = bool(across[0] > across[-1])
        flipped.add(mirrored)
        candidates = [
            (*rows, *columns)
            for rows in spans(down, 60)
            for columns in spans(across[::-1] if mirrored else across, 80)
        ]
        assert any(
            np.array_equal(pixels, resized_window(frames[2:18:2], *window, mirrored))
            for window in candidates
        )
        theirs = v2.functional.resized_crop(
            torch.from_numpy(frames[2:18:2].copy()),
            candidates[0][0],
            candidates[0][2],
            candidates[0][1],
            candidates[0][3],
            [32, 32],
        )
        theirs = (theirs.flip(-1) if mirrored else theirs).numpy().astype(int)
        assert abs(theirs - pixels).max() <= 2 or len(candidates) > 1
    assert flipped == {True, False}


def spans(places: Any, extent: int) -> list[tuple[int, int]]:
    """Begin and length of the range that a nearest resize to this many pixels shows as this."""
    steps = np.arange(len(places)) + 0.5
    return [
        (begin, length)
        for length in range(1, extent + 1)
        for begin in range(extent - length + 1)
        if np.array_equal(np.floor(steps * length / len(places)).astype(int) + begin, places)
    ]


def resized_window(
    frames: Any, top: int, height: int, left: int, width: int, mirrored: bool
) -> Any:
    """With Pillow, frame by frame."""
    out = []
    for frame in frames[:, :, top : top + height, left : left + width].transpose(0, 2, 3, 1):
        picture = Image.fromarray(np.ascontiguousarray(frame))
        small = np.asarray(picture.resize((32, 32), Image.Resampling.BILINEAR))
        out.append((small[:, ::-1] if mirrored else small).transpose(2, 0, 1))
    return np.stack(out)


def test_colors_are_drawn_once_for_all_frames(tmp_path: Path) -> None:
    still = np.repeat(videos.moving(1), 12, axis=0)
    source = one(tmp_path, videos.encoded(still, qp=0))
    steps = [T.ColorJitter(0.5, 0.5, 0.5, 0.2), T.RandomGrayscale(0.5), T.RandomSolarize(128, 0.5)]
    seen = set()
    for seed in range(5):
        clip = clip_of(source, T.RandomVideoClips(6), *steps, seed=seed)
        for frame in clip[1:]:
            np.testing.assert_array_equal(frame, clip[0])
        seen.add(clip[0].tobytes())
    assert len(seen) == 5


def test_boxes_follow_the_clip(tmp_path: Path) -> None:
    path = tmp_path / "it.mp4"
    path.write_bytes(videos.h264(10, height=40, width=60))
    boxes = np.array([[[10, 5, 30, 25]]], np.float32)
    source = hr.records(video=[str(path)], boxes=boxes, kinds={"boxes": "boxes:xyxy"})
    steps = [T.CenterVideoClip(4), T.RandomHorizontalFlip(1.0), T.Resize((20, 30))]
    batch = next(iter(hr.Loader(source, steps, batch_size=1)))
    np.testing.assert_allclose(batch["boxes"][0], [[15, 2.5, 25, 12.5]])
    with pytest.raises(hr.ConfigError, match=r"HR0180|HR0113"):
        hr.Loader(source, [T.RandomHorizontalFlip(), T.CenterVideoClip(4)], batch_size=1)


def test_clips_and_videos_can_be_forked(tmp_path: Path) -> None:
    data = videos.h264(30)
    frames, _ = videos.decoded(data)
    source = one(tmp_path, data)
    steps = [
        T.CenterVideoClip(4),
        WHOLE,
        T.Fork("video", large=[], small=[T.Resize((24, 32))]),
    ]
    batch = next(iter(hr.Loader(source, steps, batch_size=1)))
    np.testing.assert_array_equal(batch["large"][0], frames[13:17])
    assert batch["small"].shape == (1, 4, 3, 24, 32)
    steps = [
        T.Fork(
            "video",
            slow=[T.UniformVideoClips(2, 1, stride=8), WHOLE],
            fast=[T.CenterVideoClip(8), WHOLE],
        )
    ]
    batch = next(iter(hr.Loader(source, steps, batch_size=1)))
    np.testing.assert_array_equal(batch["slow"][0, 0], frames[[0, 8]])
    np.testing.assert_array_equal(batch["fast"][0], frames[11:19])


# Sources


class Rows:
    """A user's dataset."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"video": self.paths[index].read_bytes(), "label": index}


def test_videos_are_read_from_tar_parquet_lists_and_python(
    folder: Path, frames: list[Any], tmp_path: Path
) -> None:
    paths = sorted(folder.rglob("*.mp4"))[:3]
    with tarfile.open(tmp_path / "videos.tar", "w") as tar:
        for number, path in enumerate(paths):
            for suffix, data in (("mp4", path.read_bytes()), ("cls", b"%d" % number)):
                member = tarfile.TarInfo(f"{number:03}.{suffix}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    (tmp_path / "list.txt").write_text("".join(f"{p} 1\n" for p in paths))
    sources = {
        "tar": hr.open(tmp_path / "videos.tar"),
        "list": hr.open(tmp_path / "list.txt"),
        "records": hr.records(video=[str(path) for path in paths], label=[0, 1, 2]),
        "python": hr.open(Rows(paths), kinds={"video": "video"}),
    }
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    table = pyarrow.table({"video": [path.read_bytes() for path in paths], "label": [0, 1, 2]})
    parquet.write_table(table, tmp_path / "videos.parquet")
    sources["parquet"] = hr.open(tmp_path / "videos.parquet")
    for name, source in sources.items():
        loader = hr.Loader(source, [T.CenterVideoClip(4), WHOLE], batch_size=3, shuffle=False)
        batch = next(iter(loader))
        for row in range(3):
            middle = (len(frames[row]) - 4) // 2
            np.testing.assert_array_equal(
                batch["video"][row], frames[row][middle : middle + 4], err_msg=name
            )


def test_a_column_of_videos_with_audio_is_a_video_column(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    data = videos.with_sound(videos.h264(10))
    assert _core.media_error(data, "audio") == ""
    parquet.write_table(pyarrow.table({"film": [data]}), tmp_path / "films.parquet")
    assert [field.kind for field in hr.open(tmp_path / "films.parquet").schema] == ["video"]
    kinds = {"film": "audio"}
    assert hr.open(tmp_path / "films.parquet", kinds=kinds).schema[0].kind == "audio"


def test_packs_and_converted_sets_hold_the_same_videos(folder: Path, tmp_path: Path) -> None:
    steps = [T.CenterVideoClip(4), WHOLE]
    expected = batch_hash(hr.Loader(hr.open(folder), steps, batch_size=4, shuffle=False))
    hr.pack(folder, tmp_path / "videos.hrp")
    hr.convert(folder, tmp_path / "videos.tar", "tar")
    hr.convert(folder, tmp_path / "copy", "folder")
    for path in ("videos.hrp", "videos.tar", "copy"):
        source = hr.open(tmp_path / path)
        assert {f.name: f.kind for f in source.schema}["video"] == "video"
        assert batch_hash(hr.Loader(source, steps, batch_size=4, shuffle=False)) == expected, path


# Order, errors


def test_batches_do_not_depend_on_threads_memory_or_processes(folder: Path) -> None:
    steps = [
        T.RandomVideoClips(4, num_clips=2, fps=12.0),
        T.RandomResizedCrop(24),
        T.ColorJitter(0.3),
        T.RandomHorizontalFlip(),
    ]
    hashes = {
        batch_hash(hr.Loader(hr.open(folder), steps, batch_size=4, seed=5, **options))
        for options in (
            {"threads": 1},
            {"threads": 3},
            {"threads": 2, "memory_limit": "96 MiB"},
            {"threads": 2, "isolate": False},
        )
    }
    assert len(hashes) == 1


def test_ranks_and_resume_deliver_the_same_clips(folder: Path) -> None:
    steps = [T.RandomVideoClips(4), T.RandomCrop(16)]

    def loader(**options: Any) -> hr.Loader:
        return hr.Loader(hr.open(folder), steps, seed=2, **options)

    whole = [np.asarray(batch["video"]) for batch in loader(batch_size=4)]
    for rank in range(2):
        mine = loader(global_batch_size=4, shard=(rank, 2))
        for batch, all_of_it in zip(mine, whole, strict=True):
            np.testing.assert_array_equal(batch["video"], all_of_it[2 * rank : 2 * rank + 2])
    first = loader(batch_size=4)
    next(iter(first))
    second = loader(batch_size=4)
    second.load_state_dict(first.state_dict())
    np.testing.assert_array_equal(next(iter(second))["video"], whole[1])


def test_damage_is_one_bad_record(folder: Path, tmp_path: Path) -> None:
    paths = sorted(folder.rglob("*.mp4"))[:4]
    for number, path in enumerate(paths):
        data = path.read_bytes()
        (tmp_path / f"{number}.mp4").write_bytes(data[: len(data) // 3] if number == 2 else data)
    source = hr.open(tmp_path)
    steps = [T.CenterVideoClip(4), WHOLE]
    with pytest.raises(hr.DataError, match=r"2\.mp4"):
        list(hr.Loader(source, steps, batch_size=4, shuffle=False))
    skipping = hr.Loader(source, steps, batch_size=4, shuffle=False, on_error="skip")
    assert [len(batch["video"]) for batch in skipping] == [3]
    replacing = hr.Loader(source, steps, batch_size=4, shuffle=False, on_error="substitute")
    assert [len(batch["video"]) for batch in replacing] == [4]


def test_misuse_is_reported_before_anything_runs(folder: Path) -> None:
    source = hr.open(folder)
    with pytest.raises(hr.ConfigError, match=r"HR0372(.|\n)*RandomVideoClips"):
        hr.Loader(source, batch_size=2)
    with pytest.raises(hr.ConfigError, match=r"HR0373(.|\n)*RandomApply"):
        hr.Loader(source, [T.RandomApply([T.CenterVideoClip(4)])], batch_size=2)
    with pytest.raises(hr.ConfigError, match="a clip already"):
        hr.Loader(source, [T.CenterVideoClip(4), T.CenterVideoClip(2, fields=["video"])])
    with pytest.raises(hr.ConfigError, match=r"HR0373(.|\n)*RandomVideoClips"):
        hr.Loader(source, [lambda video: video, T.CenterVideoClip(4)], batch_size=2)
    with pytest.raises(hr.ConfigError, match="not by both"):
        hr.Loader(source, [T.CenterVideoClip(4, fps=5, stride=2)])
    files = hr.open(folder, kinds={"video": "bytes"})
    assert next(iter(hr.Loader(files, batch_size=1, shuffle=False)))["video"][0][4:8] == b"ftyp"


def test_clips_of_several_sizes_come_as_lists(tmp_path: Path) -> None:
    for number, size in enumerate([(48, 64), (32, 48)]):
        (tmp_path / f"{number}.mp4").write_bytes(videos.h264(6, *size))
    source = hr.open(tmp_path)
    with pytest.raises(hr.ConfigError, match="HR0114"):
        hr.Loader(source, [T.CenterVideoClip(4)], batch_size=2)
    loader = hr.Loader(source, [T.CenterVideoClip(4)], batch_size=2, ragged="list", shuffle=False)
    batch = next(iter(loader))
    assert [clip.shape for clip in batch["video"]] == [(4, 3, 48, 64), (4, 3, 32, 48)]
    first, _ = videos.decoded((tmp_path / "1.mp4").read_bytes())
    np.testing.assert_array_equal(batch["video"][1], first[1:5])


def test_show_and_trace_work_for_a_loader_of_clips(folder: Path) -> None:
    loader = hr.Loader(hr.open(folder), [T.RandomVideoClips(16), T.Resize((24, 32))], batch_size=2)
    assert "uint8 (16, 3, 24, 32)" in str(loader.plan())
    assert loader.show(3).pixels.ndim == 3
    stages = loader.trace(0)
    assert stages[1].values["video"].shape[:2] == (16, 3)
