# SPDX-License-Identifier: Apache-2.0
"""Datasets of LeRobot v3: exact frames by time, windows that end with their episode."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("av", reason="av makes the videos, and says what is in them")
pytest.importorskip("pyarrow", reason="pyarrow writes the tables")

import lerobot_folders as folders
import videos
from lerobot_folders import (
    LENGTHS,
    OFFSETS,
    TASKS,
    TOP,
    WRIST,
    Folder,
    check,
    loader,
    opened,
)

import headrace as hr
from headrace import transforms as T

if MISSING := videos.missing_decoder():
    pytest.skip(MISSING, allow_module_level=True)


pytest_plugins = ["lerobot_fixtures"]


@pytest.mark.parametrize(
    ("fps", "codec"),
    [
        (30, {}),
        (50, {"g": 40, "bf": 3}),
        (30, {"codec": "libsvtav1", "preset": 12}),
        (50, {"codec": "libaom-av1", "cpu-used": 8, "g": 30}),
    ],
    ids=str,
)
def test_every_frame_is_the_one_at_its_time(
    tmp_path: Path, fps: int, codec: dict[str, Any]
) -> None:
    import av

    if codec.get("codec", "libx264") not in av.codecs_available:
        pytest.skip(f"av has no {codec['codec']}")
    folder = folders.make_folder(tmp_path, fps, **codec)
    seen, source = [], opened(folder)
    for batch in loader(source, threads=2):
        check(folder, batch)
        seen += batch["index"].tolist()
    assert seen == list(range(sum(LENGTHS)))
    assert len({source.key(i) for i in seen}) == len(seen)  # though records share files


def test_names_dtypes_and_shapes_equal_those_of_lerobot(folder: Folder) -> None:
    batch = next(iter(loader(opened(folder))))
    forms = {
        name: (batch[name].dtype.name, batch[name].shape[1:])
        for name in batch._fields
        if name not in ("task", "key", "id", "valid")
    }
    assert forms == {
        TOP: ("uint8", (4, 3, 48, 64)),
        f"{TOP}_is_pad": ("bool", (4,)),
        WRIST: ("uint8", (4, 3, 48, 64)),
        f"{WRIST}_is_pad": ("bool", (4,)),
        "observation.state": ("float32", (4, 6)),
        "observation.state_is_pad": ("bool", (4,)),
        "action": ("float32", (4, 4)),
        "action_is_pad": ("bool", (4,)),
        "next.done": ("bool", ()),
        "timestamp": ("float32", ()),
        **{name: ("int64", ()) for name in ("frame_index", "episode_index", "index", "task_index")},
    }


def test_without_delta_timestamps_a_camera_is_an_image(folder: Folder) -> None:
    source = hr.lerobot(folder.root)
    for batch in loader(source, T.ToDtype("float32", scale=True)):
        assert batch[TOP].shape[1:] == (3, 48, 64)
        for row, record in enumerate(batch["index"].tolist()):
            image = folder.window(TOP, record, [0])[0][0]
            np.testing.assert_allclose(batch[TOP][row], image / np.float32(255), rtol=1e-6)
            np.testing.assert_array_equal(batch["action"][row], folder.columns["action"][record])


def test_a_single_shifted_time_is_an_image_with_a_padding_flag(
    folder: Folder,
) -> None:
    source = hr.lerobot(folder.root, delta_timestamps={TOP: [-2 / 30]}, cameras=[TOP])
    for batch in loader(source):
        for row, record in enumerate(batch["index"].tolist()):
            frames, pad = folder.window(TOP, record, [-2])
            np.testing.assert_array_equal(batch[TOP][row], frames[0])
            assert batch[f"{TOP}_is_pad"][row].tolist() == pad


def test_selected_episodes_keep_their_numbers_and_boundaries(folder: Folder) -> None:
    source = opened(folder, episodes=[2, 0])
    assert len(source) == LENGTHS[0] + LENGTHS[2]
    seen = []
    for batch in loader(source):
        check(folder, batch)
        seen += batch["index"].tolist()
    assert seen == [*range(LENGTHS[0]), *range(sum(LENGTHS[:2]), sum(LENGTHS))]


@pytest.mark.parametrize("shuffle", [True, "blocks"])
def test_orders_ranks_and_resume_give_the_same_records(folder: Folder, shuffle: Any) -> None:
    source = opened(folder)
    seen = []
    for rank in range(2):
        part = loader(source, shuffle=shuffle, shard=(rank, 2), batch_size=4, seed=5)
        batches = iter(part)
        check(folder, next(batches))
        state = part.state_dict()
        rest = [batch["index"].tolist() for batch in batches]
        again = loader(source, shuffle=shuffle, shard=(rank, 2), batch_size=4, seed=5)
        again.load_state_dict(state)
        assert [batch["index"].tolist() for batch in again] == rest
        for batch in loader(source, shuffle=shuffle, shard=(rank, 2), batch_size=4, seed=5):
            check(folder, batch)
            seen += batch["index"].tolist()
    assert sorted(seen) == list(range(sum(LENGTHS)))


def test_transforms_apply_to_all_cameras_or_one(folder: Folder) -> None:
    plain = next(iter(loader(opened(folder))))
    flipped = next(iter(loader(opened(folder), T.RandomHorizontalFlip(1.0, fields=[TOP]))))
    np.testing.assert_array_equal(flipped[TOP], plain[TOP][..., ::-1])
    np.testing.assert_array_equal(flipped[WRIST], plain[WRIST])
    both = next(iter(loader(opened(folder), T.RandomHorizontalFlip(0.5), batch_size=40)))
    plain = next(iter(loader(opened(folder), batch_size=40)))
    is_flipped = {
        camera: (both[camera] == plain[camera][..., ::-1]).all(axis=(1, 2, 3, 4)).tolist()
        for camera in (TOP, WRIST)
    }
    assert is_flipped[TOP] == is_flipped[WRIST]
    assert set(is_flipped[TOP]) == {False, True}


def test_a_cameras_batch_is_the_same_without_the_others(folder: Folder) -> None:
    deltas = {TOP: [n / 30 for n in OFFSETS]}
    alone = loader(opened(folder, cameras=[TOP], delta_timestamps=deltas))
    for one, other in zip(loader(opened(folder)), alone, strict=True):
        np.testing.assert_array_equal(one[TOP], other[TOP])
        assert WRIST not in other._fields


def test_a_pickled_source_opens_again(folder: Folder) -> None:
    source = opened(folder, episodes=[1])
    again = pickle.loads(pickle.dumps(source))
    assert again.fingerprint == source.fingerprint
    check(folder, next(iter(loader(again))))


def test_a_copy_elsewhere_has_the_same_fingerprint(folder: Folder, copy: Path) -> None:
    assert hr.lerobot(copy).fingerprint == hr.lerobot(folder.root).fingerprint


def test_windows_are_part_of_the_fingerprint(folder: Folder) -> None:
    prints = {
        hr.lerobot(folder.root, delta_timestamps=deltas).fingerprint
        for deltas in (None, {"action": [0]}, {"action": [1 / 30]}, {TOP: [0, 1 / 30]})
    }
    assert len(prints) == 4


def test_videos_that_records_share_are_neither_learned_nor_indexed(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path))
    source = opened(folder)
    video = folder.root / f"videos/{TOP}/chunk-000/file-000.mp4"
    own = hr.records(video=[video])
    others = (
        source.with_kinds({"task_index": "label"}),
        hr.concat(source, opened(folder, episodes=[1])),
    )
    for each in (source, *others):
        with pytest.raises(hr.ConfigError) as error:
            hr.index(each)
        assert error.value.code == "HR0462"
        with loader(each, index="auto") as batches:
            check(folder, next(iter(batches)))
    assert not list(tmp_path.rglob("*"))
    assert hr.index(own)["images"] == 1


def test_columns_need_no_video(folder: Folder) -> None:
    source = opened(folder)
    assert source.column("episode_index").tolist() == folder.columns["episode_index"].tolist()
    assert source.column("task")[30] == TASKS[1]
    assert len(source.filter("episode_index == 1")) == LENGTHS[1]
    assert source.column("action").shape == (sum(LENGTHS), 4, 4)


def test_statistics_come_from_the_file(folder: Folder) -> None:
    stats = hr.lerobot_stats(folder.root)
    np.testing.assert_allclose(stats["action"]["mean"], folder.columns["action"].mean(axis=0), 1e-6)
    assert stats["action"]["count"].tolist() == [sum(LENGTHS)]


def test_the_field_of_times_is_checked_when_the_loader_is_made(folder: Folder) -> None:
    source = hr.lerobot(folder.root)
    with pytest.raises(hr.ConfigError) as error:
        hr.Loader(source, [T.VideoFramesAt(times="task")], batch_size=1)
    assert error.value.code == "HR0373"
    with pytest.raises(hr.ConfigError) as error:
        hr.Loader(source, [T.VideoFramesAt(times="when")], batch_size=1)
    assert error.value.code == "HR0111"


def test_times_in_any_order_and_repeated_ones_give_their_frames(tmp_path: Path) -> None:
    data = videos.h264(40)
    (tmp_path / "a.mp4").write_bytes(data)
    frames, times = videos.decoded(data)
    wanted = [30, 2, 2, 39, 0]
    source = hr.records(
        video=[tmp_path / "a.mp4"], seconds=times[wanted][None], kinds={"seconds": "tensor"}
    )
    step = T.VideoFramesAt(times="seconds", layout="CTHW")
    batch = next(iter(hr.Loader(source, [step, T.CenterCrop((48, 64))], batch_size=1)))
    np.testing.assert_array_equal(batch["video"][0].transpose(1, 0, 2, 3), frames[wanted])
    assert "seconds" not in batch._fields
