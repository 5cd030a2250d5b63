# SPDX-License-Identifier: Apache-2.0
"""What hr.lerobot refuses: damaged files, false metadata, invalid path templates and arguments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("av", reason="av makes the videos, and says what is in them")
pytest.importorskip("pyarrow", reason="pyarrow writes the tables")

import pyarrow as pa
import pyarrow.parquet as pq
import videos
from lerobot_folders import (
    EPISODES,
    FILES,
    LENGTHS,
    TASKS,
    TOP,
    WRIST,
    Folder,
    edit_info,
    edit_table,
    loader,
    refused,
    write_table,
)

import headrace as hr
from headrace import transforms as T

if MISSING := videos.missing_decoder():
    pytest.skip(MISSING, allow_module_level=True)


pytest_plugins = ["lerobot_fixtures"]


@pytest.mark.parametrize("version", ["v2.1", "v2.0", "v4.0", None, 3])
def test_other_versions_are_refused(copy: Path, version: Any) -> None:
    edit_info(copy, codebase_version=version)
    refused("HR0163", "codebase_version", copy)


@pytest.mark.parametrize(
    "template",
    ["../{video_key}.mp4", "/etc/passwd", "videos/../../{video_key}", "https://x.org/{file_index}"],
)
def test_paths_that_lead_outside_are_refused(copy: Path, template: str) -> None:
    edit_info(copy, video_path=template)
    refused("HR0276", "", copy)
    edit_info(copy, video_path="videos/{video_key}/x.mp4", data_path=template)
    refused("HR0276" if "video_key" not in template else "HR0164", "", copy)


@pytest.mark.parametrize("template", ["{video_key.__class__}", "{0}", "{video_key!r}", "{x}", "{"])
def test_templates_are_not_format_strings(copy: Path, template: str) -> None:
    edit_info(copy, video_path=template)
    refused("HR0164", "path", copy)


@pytest.mark.parametrize(
    "path",
    [
        "meta/info.json",
        "meta/tasks.parquet",
        "meta/episodes/chunk-000/file-000.parquet",
        "data/chunk-000/file-001.parquet",
        f"videos/{TOP}/chunk-000/file-001.mp4",
    ],
)
def test_a_missing_file_is_named(copy: Path, path: str) -> None:
    (copy / path).unlink()
    refused("HR0164", Path(path).parts[0], copy)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"codebase_version": "v3.0"}', "[" * 100_000])
def test_a_damaged_info_file_is_an_error(copy: Path, text: str) -> None:
    (copy / "meta/info.json").write_text(text)
    refused("HR0164", "info.json", copy)


@pytest.mark.parametrize(
    "change",
    [
        {"fps": 0},
        {"fps": "30"},
        pytest.param({"fps": 10**400}, id="more than a float"),
        {"fps": float("inf")},
        {"fps": float("nan")},
        {"total_frames": -1},
        {"total_episodes": 4},
        {"features": {}},
        {"features": {"action": 3}},
        {"data_path": None},
    ],
    ids=str,
)
def test_wrong_values_in_the_info_file_are_errors(copy: Path, change: dict[str, Any]) -> None:
    edit_info(copy, **change)
    refused("HR0164", "", copy)


@pytest.mark.parametrize(
    ("name", "feature"),
    [
        ("timestamp", {"dtype": "float32", "shape": [74]}),
        ("frame_index", {"dtype": "int64", "shape": []}),
        ("index", {"dtype": "int64", "shape": [1, 1]}),
        ("task_index", {"dtype": "string", "shape": [1]}),
        ("episode_index", {"dtype": "video", "shape": [1]}),
        ("subtask_index", {"dtype": "int64", "shape": [2]}),
    ],
)
def test_record_number_features_with_another_shape_are_refused(
    copy: Path, name: str, feature: Any
) -> None:
    features = json.loads((copy / "meta/info.json").read_text())["features"]
    edit_info(copy, features={**features, name: feature})
    refused("HR0164", name, copy)


@pytest.mark.parametrize(
    ("name", "template"),
    [
        ("video_path", "videos/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"),
        ("video_path", "videos/{video_key}/chunk-{chunk_index:03d}/file-000.mp4"),
        ("video_path", "videos/{video_key}/chunk-000/../chunk-000/file-000.mp4"),
        ("data_path", "data/chunk-{chunk_index:03d}/file-000.parquet"),
    ],
)
@pytest.mark.parametrize("how", [{}, {"cameras": [TOP], "episodes": [0]}], ids=str)
def test_path_templates_that_give_two_episodes_one_file_are_refused(
    copy: Path, name: str, template: str, how: dict[str, Any]
) -> None:
    edit_info(copy, **{name: template})
    refused("HR0276" if ".." in template else "HR0164", "path", copy, **how)


def test_a_wrong_frame_rate_names_the_record(copy: Path) -> None:
    edit_info(copy, fps=25)
    refused("HR0166", "record 1", copy, cameras=[])


def test_wrong_timestamps_name_the_record(copy: Path) -> None:
    def lie(columns: dict[str, list[Any]]) -> None:
        columns["timestamp"][7] += 0.01

    edit_table(copy / "data/chunk-000/file-000.parquet", lie)
    refused("HR0166", "record 7", copy)
    refused("HR0166", "", copy, tolerance_s=0.009)
    with pytest.raises(hr.DataError) as error:
        hr.lerobot(copy)
    assert "hr.lerobot(..., tolerance_s=0.011)" in error.value.hint
    assert "VideoFramesAt(tolerance_s=0.011)" in error.value.hint
    assert len(hr.lerobot(copy, tolerance_s=0.011)) == sum(LENGTHS)


def test_timestamps_within_the_tolerance_take_the_frame_of_their_index(
    copy: Path, folder: Folder
) -> None:
    """Their videos are exact, and VideoFramesAt keeps its own tolerance."""

    def lie(columns: dict[str, list[Any]]) -> None:
        columns["timestamp"] = [each + 0.016 for each in columns["timestamp"]]

    edit_table(copy / "data/chunk-000/file-000.parquet", lie)
    source = hr.lerobot(copy, tolerance_s=0.0165)
    for batch in loader(source):
        for row, record in enumerate(batch["index"].tolist()):
            frames, _ = folder.window(TOP, record, [0])
            np.testing.assert_array_equal(batch[TOP][row], frames[0])


def test_a_hint_never_suggests_half_a_frame(copy: Path) -> None:
    def lie(columns: dict[str, list[Any]]) -> None:
        columns["timestamp"][7] += 0.016

    edit_table(copy / "data/chunk-000/file-000.parquet", lie)
    with pytest.raises(hr.DataError) as error:
        hr.lerobot(copy)
    assert "tolerance_s=" not in error.value.hint
    assert "episodes=" in error.value.hint
    assert len(hr.lerobot(copy, episodes=[1, 2])) == sum(LENGTHS[1:])


@pytest.mark.parametrize("tolerance", [0.5 / 30, 0.02, 1e6, float("inf")])
def test_a_tolerance_of_half_a_frame_is_refused(folder: Folder, tolerance: float) -> None:
    refused("HR0165", "tolerance_s", folder.root, tolerance_s=tolerance)


def test_a_frame_beyond_the_tolerance_is_a_bad_record(copy: Path) -> None:
    """Its video has another frame rate than the tables."""
    path = copy / f"videos/{WRIST}/chunk-000/file-000.mp4"
    path.write_bytes(videos.encoded(videos.moving(LENGTHS[0]), fps=29, g=2))
    source = hr.lerobot(copy)
    with pytest.raises(hr.DataError) as error:
        list(loader(source))
    assert error.value.code == "HR0550"
    assert error.value.where.record == 1
    assert WRIST in str(error.value)
    steps = [T.VideoFramesAt(tolerance_s=0.05), T.CenterCrop((48, 64))]
    assert len(list(hr.Loader(source, steps, batch_size=1))) == sum(LENGTHS)


def test_a_truncated_video_is_a_bad_record(copy: Path, folder: Folder) -> None:
    path = copy / f"videos/{WRIST}/chunk-000/file-001.mp4"
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(hr.DataError) as error:
        list(loader(hr.lerobot(copy)))
    assert error.value.where.record == LENGTHS[0]
    assert str(path) in error.value.note  # the key is that of the first camera's file
    left = loader(hr.lerobot(copy), on_error="skip", batch_size=1)
    assert len(list(left)) == LENGTHS[0]


def test_a_shorter_video_does_not_shorten_the_episode(copy: Path) -> None:
    path = copy / f"videos/{TOP}/chunk-000/file-001.mp4"
    path.write_bytes(videos.encoded(videos.moving(20), fps=30, g=2))
    with pytest.raises(hr.DataError) as error:
        list(loader(hr.lerobot(copy)))
    assert error.value.code == "HR0550"
    assert error.value.where.record == sum(LENGTHS[:2]) + 20


@pytest.mark.parametrize(
    ("column", "row", "value"),
    [
        ("dataset_from_index", 1, 24),
        ("dataset_to_index", 2, 75),
        ("episode_index", 1, 0),
        (f"videos/{TOP}/from_timestamp", 1, 0.5),
        (f"videos/{TOP}/to_timestamp", 0, 0.7),
        (f"videos/{WRIST}/file_index", 0, 1),
    ],
)
def test_episodes_that_overlap_are_refused(copy: Path, column: str, row: int, value: Any) -> None:
    def lie(columns: dict[str, list[Any]]) -> None:
        columns[column][row] = value

    edit_table(copy / EPISODES, lie)
    refused("HR0167", "episode", copy)


@pytest.mark.parametrize("chosen", [None, [2]])
def test_declared_frames_that_do_not_exist_take_no_memory(
    copy: Path, chosen: list[int] | None
) -> None:
    frames = 1 << 39  # arrays of so many numbers do not fit into any machine

    def lie(columns: dict[str, list[Any]]) -> None:
        columns["dataset_to_index"][2] = frames

    edit_table(copy / EPISODES, lie)
    edit_info(copy, total_frames=frames)
    words = "rows for the episodes, but meta/episodes has 549,755,"
    refused("HR0167", words, copy, episodes=chosen, cameras=[])


def test_declared_episodes_that_do_not_exist_are_refused(copy: Path) -> None:
    edit_info(copy, total_episodes=(1 << 40) - 1)
    refused("HR0164", "has 3 episodes, but meta/info.json has 1,099,511,627,775", copy)


def test_sizes_that_are_not_needed_are_not_believed(copy: Path) -> None:
    edit_info(copy, chunks_size=1 << 62, total_videos=-1, total_chunks=1 << 62, total_tasks=1 << 62)
    assert len(hr.lerobot(copy)) == sum(LENGTHS)


@pytest.mark.parametrize("camera", [TOP, WRIST])
def test_an_overlap_with_an_unselected_episode_is_detected(copy: Path, camera: str) -> None:
    """Episode 1 begins within one of its file, of which only the other is chosen."""
    other = FILES[camera].index(FILES[camera][1]) if camera == TOP else 2

    def lie(columns: dict[str, list[Any]]) -> None:
        begin = columns[f"videos/{camera}/from_timestamp"]
        end = columns[f"videos/{camera}/to_timestamp"]
        begin[1], end[1] = begin[other] + 0.1, begin[other] + 0.1 + LENGTHS[1] / 30

    edit_table(copy / EPISODES, lie)
    for chosen in ([1], [other]):
        refused("HR0167", "episode 1", copy, episodes=chosen, cameras=[camera])
    rest = [n for n in range(3) if n not in (1, other)]
    assert len(hr.lerobot(copy, episodes=rest, cameras=[camera])) == LENGTHS[rest[0]]


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf"), None])
def test_invalid_times_are_refused(copy: Path, value: Any) -> None:
    def lie(columns: dict[str, list[Any]]) -> None:
        columns[f"videos/{TOP}/from_timestamp"][1] = value

    edit_table(copy / EPISODES, lie)
    refused("HR0164", "from_timestamp", copy)


@pytest.mark.parametrize("name", ["index", "episode_index", "frame_index"])
def test_rows_that_are_not_those_of_their_episode_are_refused(copy: Path, name: str) -> None:
    def lie(columns: dict[str, list[Any]]) -> None:
        columns[name][3], columns[name][20] = columns[name][20], columns[name][3] + 1

    edit_table(copy / "data/chunk-000/file-000.parquet", lie)
    refused("HR0167", name, copy)


def test_columns_of_another_form_are_refused(copy: Path) -> None:
    for number in range(2):  # lists of any length in place of those of a fixed size
        path = copy / f"data/chunk-000/file-{number:03d}.parquet"
        table = pq.ParquetFile(path).read()
        lists = table["action"].to_pylist()
        if number == 0:
            lists[3] = lists[3][:2]
        action = pa.array(lists, pa.list_(pa.float32()))
        pq.write_table(table.drop(["action"]).append_column("action", action), path)
    refused("HR0164", "action", copy)


def test_missing_tasks_are_refused(copy: Path) -> None:
    write_table(copy / "meta/tasks.parquet", {"task_index": [0], "task": TASKS[:1]})
    refused("HR0164", "task_index", copy)


def test_cameras_whose_images_are_not_in_the_tables_are_refused(copy: Path) -> None:
    features = json.loads((copy / "meta/info.json").read_text())["features"]
    features[TOP]["dtype"] = "image"
    edit_info(copy, features=features)
    refused("HR0164", TOP, copy)


@pytest.mark.parametrize(
    "how",
    [
        {"delta_timestamps": {"acton": [0]}},
        {"delta_timestamps": {"action": []}},
        {"delta_timestamps": {"action": [0.04]}},
        {"delta_timestamps": {"action": [float("nan")]}},
        {"delta_timestamps": {"action": [1e300]}},
        {"delta_timestamps": {"task": [0]}},
        {"delta_timestamps": [0.1]},
        {"delta_timestamps": {WRIST: [0]}, "cameras": [TOP]},
        {"cameras": ["top"]},
        {"cameras": [TOP, TOP]},
        {"features": ["acton"]},
        {"features": [TOP]},
        {"features": ["action", "action"]},
        {"features": ["action"], "delta_timestamps": {"observation.state": [0]}},
        {"delta_timestamps": 5},
        {"episodes": []},
        {"episodes": [3]},
        {"episodes": [0, 0]},
    ],
    ids=str,
)
def test_arguments_that_match_no_feature_are_refused(folder: Folder, how: dict[str, Any]) -> None:
    refused("HR0165", "", folder.root, **how)


def test_the_memory_limit_applies_to_each_table(copy: Path) -> None:
    refused("HR0499", "meta/episodes", copy, memory=100)
    refused("HR0499", "data/chunk", copy, memory=2000)
    table = pq.ParquetFile(copy / "meta/tasks.parquet").read()
    wide = pa.array(["x" * (2 << 20) + str(i) for i in range(len(table))])
    pq.write_table(table.set_column(1, "task", wide), copy / "meta/tasks.parquet")
    refused("HR0499", "meta/tasks", copy, memory="1 MiB")
