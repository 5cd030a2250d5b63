# SPDX-License-Identifier: Apache-2.0
"""Promise: cameras of LeRobot datasets that are images in the tables are images of the records, at
the time that the record asks for, also of far datasets, and with cameras that are videos."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import videos
from lerobot_written import FPS, LENGTHS, TASKS, TOP, WRIST, Robot, written
from servers.object_server import ObjectServer
from test_remote import quick, server
from test_remote_lerobot import upload

import headrace as hr
from headrace import transforms as T

pytest.importorskip("av")
pytestmark = pytest.mark.skipif(bool(videos.missing_decoder()), reason="no video decoder")
pytest_plugins = ["lerobot_fixtures"]
__all__ = ["quick", "server"]

TOTAL = sum(LENGTHS)
DATA = "data/chunk-000/file-000.parquet"


@pytest.fixture
def root(robot: Robot, tmp_path: Path) -> Path:
    return written(robot, tmp_path / "robot", images="image")


def edit_info(root: Path, **changes: Any) -> None:
    path = root / "meta/info.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def batches(source: hr.Source, *steps: Any, **how: Any) -> Iterator[Any]:
    options: dict[str, Any] = {"batch_size": 16, "shuffle": False, "ragged": "list", **how}
    with hr.Loader(source, [*steps], **options) as loader:
        yield from loader


def check(robot: Robot, source: hr.Source, records: Any, shown: Any = None, **how: Any) -> None:
    """shown: the record whose images each record has."""
    seen = 0
    shown = records if shown is None else shown
    for batch in batches(source, **how):
        for i, index in enumerate(batch["index"].tolist()):
            where = list(records).index(index)
            for camera in (TOP, WRIST):
                expected = robot.frames[camera][shown[where]].transpose(2, 0, 1)
                np.testing.assert_array_equal(batch[camera][i], expected)
            assert batch["task"][i] == TASKS[index]
            seen += 1
    assert seen == len(records)


@pytest.mark.parametrize("shuffle", [False, True])
def test_images_are_those_of_their_records(robot: Robot, root: Path, shuffle: bool) -> None:
    source = hr.lerobot(root)
    assert [f.kind for f in source.schema if f.name in (TOP, WRIST)] == ["image", "image"]
    assert f"{TOP}_times" not in [field.name for field in source.schema]
    check(robot, source, range(TOTAL), shuffle=shuffle)


def test_episodes_and_cameras_are_chosen(robot: Robot, root: Path) -> None:
    check(robot, hr.lerobot(root, episodes=[0, 2]), [*range(5), 45])
    names = [field.name for field in hr.lerobot(root, cameras=[WRIST]).schema]
    assert WRIST in names and TOP not in names
    assert TOP not in [field.name for field in hr.lerobot(root, cameras=[]).schema]


def test_a_time_is_that_of_the_same_episode(robot: Robot, root: Path) -> None:
    delta = {TOP: [-2 / FPS], WRIST: [-2 / FPS]}
    begins = np.repeat(np.cumsum([0, *LENGTHS[:-1]]), LENGTHS)
    shown = np.maximum(np.arange(TOTAL) - 2, begins)
    source = hr.lerobot(root, delta_timestamps=delta)
    check(robot, source, range(TOTAL), shown)
    padding = np.concatenate([np.asarray(b[f"{TOP}_is_pad"]) for b in batches(source)])
    np.testing.assert_array_equal(padding.ravel(), np.arange(TOTAL) - 2 < begins)
    one = hr.lerobot(root, delta_timestamps={TOP: [1 / FPS]}, episodes=[1])
    for batch in batches(one):
        for i, index in enumerate(batch["index"].tolist()):
            later = min(index + 1, 44)
            np.testing.assert_array_equal(
                batch[TOP][i], robot.frames[TOP][later].transpose(2, 0, 1)
            )
            np.testing.assert_array_equal(
                batch[WRIST][i], robot.frames[WRIST][index].transpose(2, 0, 1)
            )


def test_several_times_are_refused(root: Path) -> None:
    with pytest.raises(hr.UnsupportedError, match="HR0163") as caught:
        hr.lerobot(root, delta_timestamps={TOP: [-1 / FPS, 0]})
    assert TOP in str(caught.value) and caught.value.hint


def test_images_and_videos_in_one_dataset(robot: Robot, root: Path, tmp_path: Path) -> None:
    """The tables of one dataset, and the videos of another one with the same records."""
    other = written(robot, tmp_path / "videos", lossless=True)
    features = json.loads((root / "meta/info.json").read_text())["features"]
    info = json.loads((other / "meta/info.json").read_text())
    shutil.copy(root / DATA, other / DATA)
    edit_info(other, features=info["features"] | {TOP: features[TOP]})
    source = hr.lerobot(other, delta_timestamps={WRIST: [-1 / FPS, 0]})
    for batch in batches(source, T.VideoFramesAt()):
        for i, index in enumerate(batch["index"].tolist()):
            np.testing.assert_array_equal(
                batch[TOP][i], robot.frames[TOP][index].transpose(2, 0, 1)
            )
            np.testing.assert_array_equal(
                batch[WRIST][i][1], robot.frames[WRIST][index].transpose(2, 0, 1)
            )


def test_far_images_share_the_requests_of_their_row_group(
    robot: Robot, root: Path, server: ObjectServer
) -> None:
    """Row groups of ten records, with more bytes than may be held."""
    rows = pq.read_table(root / DATA)
    pq.write_table(rows, root / DATA, row_group_size=10)
    upload(root, server, "/robot")
    source = hr.lerobot(f"{server.url}/robot", memory=100_000)
    assert "on demand" in repr(source)
    server.requests.clear()
    check(robot, source, range(TOTAL), threads=1)
    groups = -(-TOTAL // 10)
    assert len(server.requests) <= 3 * groups, "not one per camera and record"
    local = list(batches(hr.lerobot(root), shuffle=True, seed=4))
    far = list(batches(source, shuffle=True, seed=4))
    for batch, expected in zip(far, local, strict=True):
        for camera in (TOP, WRIST):
            for image, wanted in zip(batch[camera], expected[camera], strict=True):
                np.testing.assert_array_equal(image, wanted)


def test_columns_without_images_are_refused(root: Path) -> None:
    rows = pq.read_table(root / DATA)
    at = rows.column_names.index(TOP)
    pq.write_table(rows.set_column(at, TOP, pa.array(range(TOTAL))), root / DATA)
    with pytest.raises(hr.DataError, match="HR0164") as caught:
        hr.lerobot(root)
    assert TOP in str(caught.value)
