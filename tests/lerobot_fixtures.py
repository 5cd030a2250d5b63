# SPDX-License-Identifier: Apache-2.0
"""A LeRobot dataset, made once, and copies of it; and recordings to be written as one."""

from __future__ import annotations

import shutil
from pathlib import Path

import lerobot_folders
import lerobot_written
import pytest


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> lerobot_folders.Folder:
    return lerobot_folders.make_folder(tmp_path_factory.mktemp("lerobot"))


@pytest.fixture
def copy(folder: lerobot_folders.Folder, tmp_path: Path) -> Path:
    """To be damaged."""
    return Path(shutil.copytree(folder.root, tmp_path / "copy"))


@pytest.fixture(scope="module")
def robot() -> lerobot_written.Robot:
    return lerobot_written.recorded()
