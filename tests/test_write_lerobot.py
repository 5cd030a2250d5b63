# SPDX-License-Identifier: Apache-2.0
"""Promise: ``convert(to="lerobot")`` writes LeRobot v3 datasets: the same numbers, texts and, where
it is lossless, pixels; by LeRobot's definitions of files, times and statistics."""

from __future__ import annotations

import io
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import videos
from headrace.write.lerobot.videos import VideoFiles
from lerobot_written import (
    FPS,
    LENGTHS,
    SMALL,
    TASKS,
    TOP,
    WRIST,
    Robot,
    info_of,
    read,
    table,
    written,
)
from PIL import Image

import headrace as hr
from headrace import transforms as T

av = pytest.importorskip("av")
pytestmark = pytest.mark.skipif(bool(videos.missing_decoder()), reason="no video decoder")
pytest_plugins = ["lerobot_fixtures"]


def decoded(root: Path, camera: str, file: int = 0) -> tuple[list[float], list[bool], Any, Any]:
    """Times, key frames, frames and the stream of a file, by PyAV's libav."""
    path = root / f"videos/{camera}/chunk-000/file-{file:03d}.mp4"
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        found = list(container.decode(stream))
        pixels = np.stack([frame.to_ndarray(format="rgb24") for frame in found])
        form = (stream.codec.canonical_name, found[0].format.name)
        return (
            [float(f.pts * f.time_base) for f in found],
            [f.key_frame for f in found],
            pixels,
            form,
        )


def test_a_lossless_dataset_equals_its_source(robot: Robot, tmp_path: Path) -> None:
    batch = read(written(robot, tmp_path / "out", lossless=True, verify=True))
    for name, frames in robot.frames.items():
        got = np.stack(batch[name]).transpose(0, 2, 3, 1)
        np.testing.assert_array_equal(got, frames)
    for name in ("observation.state", "action", "next.done", "step"):
        expected = robot.columns[name]
        dtype = np.float32 if expected.dtype.kind == "f" else expected.dtype
        np.testing.assert_array_equal(batch[name], expected.astype(dtype))
    assert batch["task"] == TASKS
    assert batch["note"] == [f"n{i}" for i in range(sum(LENGTHS))]
    inside = np.concatenate([np.arange(length) for length in LENGTHS])
    np.testing.assert_array_equal(batch["frame_index"], inside)
    np.testing.assert_array_equal(batch["episode_index"], np.repeat([0, 1, 2], LENGTHS))
    np.testing.assert_array_equal(batch["timestamp"], (inside / FPS).astype(np.float32))
    np.testing.assert_array_equal(batch["index"], np.arange(sum(LENGTHS)))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="not Linux")
def test_no_thread_becomes_a_real_time_thread(
    robot: Robot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """libsvtav1 makes threads of root such threads, which would leave others hardly any time."""
    policies: set[int] = set()
    end = VideoFiles.end_episode

    def watched(self: VideoFiles) -> Any:
        threads = map(int, os.listdir("/proc/self/task"))
        policies.update(os.sched_getscheduler(thread) for thread in threads)
        return end(self)

    monkeypatch.setattr(VideoFiles, "end_episode", watched)
    hr.convert(robot.source, tmp_path / "out", "lerobot", fps=FPS)
    assert policies == {os.SCHED_OTHER}


def test_the_default_is_the_encoding_of_lerobot(robot: Robot, tmp_path: Path) -> None:
    """AV1, a key frame every two frames, 4:2:0: lossy, but close."""
    root = tmp_path / "out"
    report = hr.convert(robot.source, root, "lerobot", fps=FPS, verify=True)
    assert report["loss"] == "lossy video: libsvtav1, crf 30, yuv420p"
    times, keys, pixels, form = decoded(root, TOP)
    assert form == ("av1", "yuv420p")
    np.testing.assert_allclose(times, np.arange(sum(LENGTHS)) / FPS, atol=1e-9)
    starts = np.cumsum([0, *LENGTHS[:-1]])
    inside = np.concatenate([np.arange(length) for length in LENGTHS])
    assert all(keys[start] for start in starts)
    assert keys == (inside % 2 == 0).tolist()
    for name in robot.frames:
        pixels = decoded(root, name)[2].astype(float)
        errors = np.square(pixels - robot.frames[name]).mean(axis=(1, 2, 3))
        assert (10 * np.log10(255**2 / errors)).min() > 22
    batch = read(root)
    assert np.stack(batch[TOP]).shape == (sum(LENGTHS), 3, 64, 96)


def test_the_user_decides_codec_quality_and_key_frames(robot: Robot, tmp_path: Path) -> None:
    options = {"codec": "h264", "crf": 12, "gop": 8, "pix_fmt": "yuv444p", "preset": "veryfast"}
    root = written(robot, tmp_path / "out", **options)
    times, keys, pixels, form = decoded(root, TOP)
    assert form == ("h264", "yuv444p")
    np.testing.assert_allclose(times, np.arange(sum(LENGTHS)) / FPS, atol=1e-9)
    gaps = np.diff(np.flatnonzero(keys))
    assert gaps.max() == 8
    assert np.abs(pixels.astype(int) - robot.frames[TOP]).mean() < 4
    assert np.stack(read(root)[WRIST]).shape == (sum(LENGTHS), 3, 96, 96)


def test_images_in_the_tables_are_exact(robot: Robot, tmp_path: Path) -> None:
    root = written(robot, tmp_path / "out", images="image", verify=True)
    assert not (root / "videos").exists() and info_of(root)["video_path"] is None
    assert info_of(root)["features"][TOP]["dtype"] == "image"
    for name, frames in robot.frames.items():
        for image, expected in zip(table(root, "data")[name], frames, strict=True):
            got = Image.open(io.BytesIO(image["bytes"]))
            assert got.mode == "RGB"
            np.testing.assert_array_equal(np.asarray(got), expected)


def test_encoded_images_stay_as_they_are_if_they_are_rgb(tmp_path: Path) -> None:
    def saved(mode: str, form: str, **how: Any) -> bytes:
        out = io.BytesIO()
        Image.fromarray(videos.moving(1)[0]).convert(mode).save(out, form, **how)
        return out.getvalue()

    rotated = Image.Exif()
    rotated[0x0112] = 3
    files = [saved("RGB", "JPEG"), saved("RGB", "PNG"), saved("L", "JPEG"), saved("P", "PNG")]
    files += [saved("RGB", "JPEG", exif=rotated), saved("RGBA", "PNG")]
    source = hr.open([{"cam": data, "episode_index": 0} for data in files], kinds={"cam": "image"})
    root = tmp_path / "out"
    hr.convert(source, root, "lerobot", fps=5, task="look", images="image")
    stored = [image["bytes"] for image in table(root, "data")["cam"]]
    assert [a == b for a, b in zip(files, stored, strict=True)] == [True] * 2 + [False] * 4
    for i, data in enumerate(stored):
        got = Image.open(io.BytesIO(data))
        assert got.mode == "RGB"
        if i > 0:
            expected = np.asarray(source[i]["cam"]).transpose(1, 2, 0)
            np.testing.assert_array_equal(np.asarray(got), expected)


def png_of_16_bits(rows: np.ndarray[Any, Any]) -> bytes:
    """An RGB image; rows: (H, 3 * W), big-endian uint16. Pillow writes none."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        crc = struct.pack(">I", zlib.crc32(kind + body))
        return struct.pack(">I", len(body)) + kind + body + crc

    head = struct.pack(">IIBBBBB", rows.shape[1] // 3, rows.shape[0], 16, 2, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("RGB16", "front: uint16 becomes uint8"),
        ("RGBA", "front: transparency is dropped"),
        ("LA", "front: transparency is dropped"),
        ("L", ""),
    ],
)
def test_the_report_names_what_images_lose(mode: str, said: str, tmp_path: Path) -> None:
    out = io.BytesIO()
    if mode == "RGB16":
        out.write(png_of_16_bits(np.arange(16 * 16 * 3, dtype=">u2").reshape(16, 48)))
    else:
        Image.new(mode, (16, 16)).save(out, "PNG")
    frame = {"front": out.getvalue(), "episode_index": 0}
    source = hr.open([frame] * 2, kinds={"front": "image"})
    report = hr.convert(source, tmp_path / "out", "lerobot", fps=5, task="look", images="image")
    assert report["loss"] == said
    if said:
        report = hr.convert(source, tmp_path / "video", "lerobot", fps=5, task="look")
        assert report["loss"] == f"lossy video: libsvtav1, crf 30, yuv420p; {said}"


def test_metadata_is_as_lerobot_defines_it(robot: Robot, tmp_path: Path) -> None:
    root = written(robot, tmp_path / "out", lossless=True, robot_type="so100")
    info = info_of(root)
    assert info["codebase_version"] == "v3.0" and info["robot_type"] == "so100"
    assert (info["total_episodes"], info["total_frames"], info["total_tasks"]) == (3, 46, 2)
    assert info["splits"] == {"train": "0:3"} and info["fps"] == FPS
    assert info["features"]["action"] == {"dtype": "float64", "shape": [4], "names": None}
    video = info["features"][TOP]
    assert video["shape"] == [64, 96, 3] and video["info"]["video.codec"] == "h264"
    episodes = table(root, "meta/episodes")
    assert episodes["length"] == LENGTHS
    assert episodes["dataset_from_index"] == [0, 5, 45]
    assert episodes["dataset_to_index"] == [5, 45, 46]
    assert episodes["tasks"] == [[TASKS[0]], [TASKS[-1]], [TASKS[-1]]]
    for camera in robot.frames:
        begins = np.array([0, 5, 45]) / FPS
        np.testing.assert_allclose(episodes[f"videos/{camera}/from_timestamp"], begins)
        ends = begins + np.array(LENGTHS) / FPS
        np.testing.assert_allclose(episodes[f"videos/{camera}/to_timestamp"], ends)
    pandas = pytest.importorskip("pandas")
    tasks = pandas.read_parquet(root / "meta/tasks.parquet")
    assert tasks.index.tolist() == [TASKS[0], TASKS[-1]]
    assert tasks["task_index"].tolist() == [0, 1]


def test_statistics_are_those_of_the_data(robot: Robot, tmp_path: Path) -> None:
    root = written(robot, tmp_path / "out", lossless=True)
    stats = hr.lerobot_stats(root)
    action = robot.columns["action"]
    np.testing.assert_allclose(stats["action"]["mean"], action.mean(axis=0))
    np.testing.assert_allclose(stats["action"]["std"], action.std(axis=0))
    np.testing.assert_array_equal(stats["action"]["min"], action.min(axis=0))
    np.testing.assert_array_equal(stats["action"]["max"], action.max(axis=0))
    assert stats["action"]["count"].tolist() == [46]
    pixels = robot.frames[TOP] / 255
    assert stats[TOP]["mean"].shape == (3, 1, 1)
    np.testing.assert_allclose(stats[TOP]["mean"].ravel(), pixels.mean(axis=(0, 1, 2)))
    np.testing.assert_allclose(stats[TOP]["std"].ravel(), pixels.std(axis=(0, 1, 2)))
    parts = np.split(action, np.cumsum(LENGTHS)[:-1])
    for name, share in {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}.items():
        # Of each episode, the value below which this share is, within a bin; then their mean.
        of_parts = [np.quantile(part, share, axis=0, method="inverted_cdf") for part in parts]
        expected = np.average(of_parts, axis=0, weights=LENGTHS)
        np.testing.assert_allclose(stats["action"][name], expected, atol=np.ptp(action) / 2500)


@pytest.mark.parametrize("length", [3, 100, 250, 20_000])
def test_images_are_sampled_and_reduced_as_in_lerobot(length: int) -> None:
    from headrace.write.lerobot.stats import reduced, sample

    chosen = sample(length)
    assert chosen[0] == 0 and chosen[-1] == length - 1
    assert len(chosen) == {3: 3, 100: 100, 250: 100, 20_000: 1681}[length]
    assert reduced(np.zeros((3, 240, 299), np.uint8)).shape == (3, 240, 299)
    assert reduced(np.zeros((3, 480, 640), np.uint8)).shape == (3, 120, 160)


def test_files_are_split_by_size(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    frames = random.integers(0, 256, (120, 3, 64, 64), np.uint8)  # noise does not compress
    source = hr.records(
        cam=frames,
        blob=random.normal(size=(120, 3000)).astype(np.float32),
        episode_index=np.repeat(np.arange(12), 10),
    ).with_kinds({"cam": "image"})
    options: dict[str, Any] = {
        "data_files_size_in_mb": 1,
        "video_files_size_in_mb": 1,
        "chunks_size": 2,
    }
    root = tmp_path / "out"
    hr.convert(source, root, "lerobot", fps=10, task="x", lossless=True, verify=True, **options)
    for folder in ("data", "videos/cam"):
        files = sorted((root / folder).glob("*/*"))
        assert len(files) > 1 and max(file.stat().st_size for file in files) < 1.5 * (1 << 20)
    assert (root / "data/chunk-001/file-000.parquet").is_file()
    batch = hr.Loader(
        hr.lerobot(root), [T.VideoFramesAt()], batch_size=120, shuffle=False, ragged="list"
    )
    np.testing.assert_array_equal(np.stack(next(iter(batch))["cam"]), frames)


def test_a_lerobot_dataset_can_be_edited(robot: Robot, tmp_path: Path) -> None:
    """Episodes are chosen and numbered from 0; fps follows from the timestamps."""
    first = written(robot, tmp_path / "first", lossless=True)
    source = hr.lerobot(first).filter("episode_index != 0")
    report = hr.convert(source, tmp_path / "second", "lerobot", lossless=True, verify=True)
    assert report["episodes"] == 2
    batch = read(tmp_path / "second")
    assert info_of(tmp_path / "second")["fps"] == FPS
    assert batch["episode_index"].tolist() == [0] * 40 + [1]
    for name, frames in robot.frames.items():
        got = np.stack(batch[name]).transpose(0, 2, 3, 1)
        np.testing.assert_array_equal(got, frames[5:])


def test_datasets_can_be_joined(robot: Robot, tmp_path: Path) -> None:
    """Each counts its episodes from 0: they are told apart, or refused, but not mixed."""
    first = written(robot, tmp_path / "first", lossless=True)
    both = hr.concat(hr.lerobot(first), hr.lerobot(first))
    with pytest.raises(hr.DataError, match=r"HR0169.*record 46") as caught:
        hr.convert(both, tmp_path / "second", "lerobot", lossless=True)
    assert "with_columns" in caught.value.hint
    both = both.with_columns(episode=np.repeat(np.arange(6), LENGTHS * 2))
    options = {"episode_field": "episode", "lossless": True, "verify": True}
    hr.convert(both, tmp_path / "second", "lerobot", **options)
    rows = table(tmp_path / "second", "data")
    assert rows["episode_index"] == np.repeat(np.arange(6), LENGTHS * 2).tolist()
    assert "episode" not in rows


def test_fields_can_be_chosen_and_renamed(robot: Robot, tmp_path: Path) -> None:
    root = written(
        robot,
        tmp_path / "out",
        fields=["action", TOP],
        rename=[f"{TOP}=observation.images.front"],
        task="one for all",
        images="image",
    )
    features = set(info_of(root)["features"])
    defaults = {"timestamp", "frame_index", "episode_index", "index", "task_index"}
    assert features == {"action", "observation.images.front", *defaults}
    assert hr.lerobot(root, cameras=[])[7]["task"] == "one for all"


def test_every_second_frame_is_an_episode_too(tmp_path: Path) -> None:
    source = hr.records(x=np.arange(8), episode_index=[0] * 8, frame_index=np.arange(8))
    source = source.filter("frame_index % 2 == 0")
    hr.convert(source, tmp_path / "out", "lerobot", task="x", fps=15, verify=True)
    assert table(tmp_path / "out", "data")["frame_index"] == [0, 1, 2, 3]


@pytest.mark.parametrize("fps", [0.3333, 14.9254, 29.97, 30000 / 1001])
def test_times_of_videos_do_not_drift(tmp_path: Path, fps: float) -> None:
    source = hr.records(cam=np.repeat(SMALL, 50, 0), episode_index=np.repeat([0, 1], 100))
    source = source.with_kinds({"cam": "image"})
    hr.convert(source, tmp_path / "out", "lerobot", task="x", fps=fps, lossless=True, verify=True)
    times = decoded(tmp_path / "out", "cam")[0]
    np.testing.assert_allclose(times, np.arange(200) / fps, rtol=1e-10)


@pytest.mark.parametrize("fps", [10, 29.97, 30000 / 1001, 12.5])
def test_fps_follows_from_timestamps_of_hours(tmp_path: Path, fps: float) -> None:
    lengths = [2, 200_000]
    frames = np.concatenate([np.arange(length) for length in lengths])
    source = hr.records(episode_index=np.repeat([0, 1], lengths), timestamp=frames / fps)
    hr.convert(source, tmp_path / "out", "lerobot", task="x")
    assert info_of(tmp_path / "out")["fps"] == pytest.approx(fps, rel=1e-9)
