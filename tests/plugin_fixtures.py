# SPDX-License-Identifier: Apache-2.0
"""The plug-ins of examples/plugin, compiled and loaded once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from built_plugins import EXAMPLES, compiled

import headrace as hr


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plugins")
    compiled(EXAMPLES / "vignette.c", folder / "libvignette.so")
    compiled(EXAMPLES / "transpose.cc", folder / "libtranspose.so")
    return folder


@pytest.fixture(scope="session")
def vignette(libraries: Path) -> Any:
    return hr.load_plugin(libraries / "libvignette.so")


@pytest.fixture(scope="session")
def transpose(libraries: Path) -> Any:
    return hr.load_plugin(libraries / "libtranspose.so")
