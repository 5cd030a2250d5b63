# SPDX-License-Identifier: Apache-2.0
"""bench/articles: each comparison runs, and what is not installed is reported as skipped."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
SECTIONS = ("one-image", "small-images", "reopened", "ram-folder")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    photos = tmp_path_factory.mktemp("photos")
    for number, path in enumerate(sorted((ROOT / "examples" / "images").glob("*.jpg"))[:6]):
        (photos / str(number % 2)).mkdir(exist_ok=True)
        shutil.copy(path, photos / str(number % 2))
    out = tmp_path_factory.mktemp("articles")
    options = ("--out", out, "--rounds", 1, "--turn", 0, "--small", 21, "--openings", 2)
    command = [sys.executable, str(ROOT / "bench" / "articles"), photos, *SECTIONS, *options]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out, json.loads((out / "articles.json").read_text())


def test_every_row_is_measured_or_reported_as_skipped(ran: tuple[Path, dict[str, Any]]) -> None:
    _, report = ran
    assert [section["name"] for section in report["sections"]] == list(SECTIONS)
    for section in report["sections"]:
        ours = [row for row in section["rows"] if row["ours"]]
        assert ours and all(row["rate"] > 0 and row["peak_pss_mib"] > 1 for row in ours)
        assert "DALI" in section["left_out"] or section["name"] in ("one-image", "ram-folder")


def test_the_page_has_a_table_for_each_section(ran: tuple[Path, dict[str, Any]]) -> None:
    out, report = ran
    page = (out / "articles.md").read_text()
    for section in report["sections"]:
        assert f"## {section['title']}" in page
        for row in section["rows"]:
            assert row["name"] in page
        for name in section["left_out"]:
            assert f"Left out: {name} (" in page


def test_the_folder_in_memory_is_removed(ran: tuple[Path, dict[str, Any]]) -> None:
    assert not list(Path("/dev/shm").glob("headrace-articles-faces-21"))


def test_an_unknown_section_is_refused() -> None:
    command = [sys.executable, str(ROOT / "bench" / "articles"), "photos", "nothing"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "unknown section" in done.stderr and "mnist" in done.stderr
