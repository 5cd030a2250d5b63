# SPDX-License-Identifier: Apache-2.0
"""Promise: ``convert(to="lerobot")`` refuses records and options whose dataset would be wrong,
before anything is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import videos
from lerobot_written import SMALL, TOP, Robot, written

import headrace as hr

pytest.importorskip("av")
pytestmark = pytest.mark.skipif(bool(videos.missing_decoder()), reason="no video decoder")
pytest_plugins = ["lerobot_fixtures"]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"fsp": 30}, "did you mean 'fps'"),
        ({"fps": None}, "fps"),
        ({"fps": -1}, "fps"),
        ({"fps": "thirty"}, "fps"),
        ({"codec": "no_such"}, "no_such"),
        ({"pix_fmt": "yuv9"}, "yuv9"),
        ({"lossless": True, "codec": "h264"}, "lossless"),
        ({"lossless": "maybe"}, "lossless"),
        ({"images": "png"}, "images"),
        ({"episode_field": "episode"}, "episode"),
        ({"task_field": "job"}, "job"),
        ({"task_field": "step"}, "step"),
        ({"fields": ["acton"]}, "acton"),
        ({"rename": ["action"]}, "rename"),
        ({"rename": ["action=timestamp"]}, "timestamp"),
        ({"rename": ["action=step"]}, "step"),
        ({"shards": 2}, "shards"),
        ({"part": "0/2"}, "parts"),
        ({"gop": 0}, "gop"),
        ({"crf": 1000}, "crf"),
        ({"gop": float("inf")}, "gop"),
        ({"codec": "mpeg4"}, "no crf"),
        ({"codec": "prores_ks", "pix_fmt": "yuv422p10le"}, "prores_ks"),
        ({"preset": "fast", "codec": "libvpx-vp9"}, "no preset"),
        ({"fps": 1e-4}, "0.01"),
        ({"fps": 1e6}, "1000"),
        ({"task": "a\udc80"}, "UTF-8"),  # as command lines give bytes that are not UTF-8
        ({"robot_type": "a\udc80"}, "UTF-8"),
        ({"rename": [f"{TOP}=.."]}, "dots"),
        ({"rename": [f"{TOP}=../top"]}, "dots"),
        ({"rename": [f"{TOP}=a\nb"]}, "dots"),
        ({"rename": [f"{TOP}={'a' * 250}"]}, "200 characters"),
        ({"rename": ["action=key"]}, "key"),
        ({"rename": ["action=a", "action=b"]}, "once"),
        ({"rename": ["action=a"], "fields": ["step"]}, "are written"),
    ],
    ids=str,
)
def test_wrong_options_are_refused(
    robot: Robot, tmp_path: Path, options: dict[str, Any], word: str
) -> None:
    with pytest.raises(hr.ConfigError) as caught:
        written(robot, tmp_path / "out", **options)
    assert caught.value.code == "HR0414", caught.value
    assert word in f"{caught.value} {caught.value.hint}"
    assert not list(tmp_path.iterdir())


def test_other_containers_have_no_options(robot: Robot, tmp_path: Path) -> None:
    with pytest.raises(hr.ConfigError, match=r"HR0414[^\n]*'fps'"):
        hr.convert(robot.source, tmp_path / "out", "tar", fps=30)


@pytest.mark.parametrize(
    ("fields", "options", "word"),
    [
        ({"episode_index": [0, 1, 0, 0]}, {}, "record 2"),
        ({"timestamp": np.array([0, 0.1, 0.25, 0.3])}, {}, "record 2"),
        ({"timestamp": np.array([0, 0.1, 0.2, 0.3])}, {"fps": 30}, "record 1"),
        ({"x": np.array([1, 2, np.nan, 4])}, {}, "record 2"),
        ({"x": np.array([1, 2, 3, -1e200])}, {}, "record 3"),  # its square is infinite
        ({"x": np.array([1, 2**63, 3, 4], np.uint64)}, {}, "record 1"),
        ({"episode_index": [np.nan] * 4}, {}, "record 0"),
        ({"frame_index": [3, 2, 1, 0]}, {}, "record 1"),
        ({"frame_index": [0, 1, 2, 4]}, {}, "record 3"),
        ({"frame_index": [0, 1, 0, 1]}, {}, "record 2"),  # two sources' episodes 0
    ],
    ids=str,
)
def test_records_that_are_no_frames_are_refused(
    tmp_path: Path, fields: dict[str, Any], options: dict[str, Any], word: str
) -> None:
    source = hr.records(**{"cam": SMALL, "episode_index": [0] * 4, **fields})
    source = source.with_kinds({"cam": "image"})
    with pytest.raises(hr.DataError, match=f"HR0169.*{word}"):
        hr.convert(source, tmp_path / "out", "lerobot", **{"task": "x", "fps": 10, **options})
    assert not list(tmp_path.iterdir())


def test_images_of_other_sizes_are_refused(tmp_path: Path) -> None:
    records = [
        {"cam": np.zeros((3, 64, 64 + 2 * (i == 2)), np.uint8), "episode_index": 0}
        for i in range(4)
    ]
    source = hr.open(records, kinds={"cam": "image"})
    with pytest.raises(hr.DataError, match=r"HR0169.*record 2.*64 x 66"):
        hr.convert(source, tmp_path / "out", "lerobot", fps=10, task="x")
    assert not (tmp_path / "out").exists()


def test_fields_that_cannot_be_features_are_named(tmp_path: Path) -> None:
    source = hr.open([{"deep": b"123", "episode_index": 0}], kinds={"deep": "bytes"})
    with pytest.raises(hr.ConfigError, match=r"HR0414.*'deep'"):
        hr.convert(source, tmp_path / "out", "lerobot", fps=10, task="x")


def test_a_missing_package_is_named(
    robot: Robot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(hr.UnsupportedError, match="HR0297") as caught:
        written(robot, tmp_path / "out")
    assert caught.value.hint == "pip install av"
    written(robot, tmp_path / "out", images="image")  # needs no encoder
