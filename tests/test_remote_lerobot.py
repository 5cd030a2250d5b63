# SPDX-License-Identifier: Apache-2.0
"""Promise: tables of LeRobot datasets in buckets and on web servers are read like local ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import videos
from lerobot_folders import ACTIONS, LENGTHS, Folder
from servers.object_server import ObjectServer
from test_remote import bucket, quick, server

import headrace as hr

pytest.importorskip("av")
pytest_plugins = ["lerobot_fixtures"]
__all__ = ["bucket", "quick", "server"]
pytestmark = pytest.mark.skipif(bool(videos.missing_decoder()), reason="no video decoder")


def upload(root: Path, to: ObjectServer, below: str, without: str = "no file") -> None:
    for path in root.rglob("*"):
        name = path.relative_to(root).as_posix()
        if path.is_file() and without not in name:
            to.objects[f"{below}/{name}"] = path.read_bytes()


@pytest.mark.parametrize("place", ["http", "s3"])
def test_tables_and_windows_equal_those_of_the_folder(
    folder: Folder, place: str, request: pytest.FixtureRequest
) -> None:
    to = request.getfixturevalue("server" if place == "http" else "bucket")
    upload(folder.root, to, "/robot" if place == "http" else "/photos/robot", without="videos/")
    url = f"{to.url}/robot" if place == "http" else "s3://photos/robot"
    windows = {"action": [n / folder.fps for n in ACTIONS]}
    near, far = (hr.lerobot(x, cameras=[], delta_timestamps=windows) for x in (folder.root, url))
    assert len(far) == sum(LENGTHS)
    for one, other in zip(near, far, strict=True):
        for name in set(one) - {"key"}:
            np.testing.assert_array_equal(one[name], other[name])


@pytest.mark.parametrize("missing", ["meta/info.json", "meta/tasks.parquet"])
def test_a_missing_file_is_named(folder: Folder, server: ObjectServer, missing: str) -> None:
    upload(folder.root, server, "/robot", without=missing)
    with pytest.raises(hr.Error, match=missing):
        hr.lerobot(f"{server.url}/robot", cameras=[])


def test_only_files_that_must_exist_are_requested(folder: Folder, server: ObjectServer) -> None:
    """Some servers answer 403 for files that do not exist."""
    upload(folder.root, server, "/robot", without="videos/")
    hr.lerobot(f"{server.url}/robot", cameras=[])
    assert {request.path for request in server.requests} <= set(server.objects)
