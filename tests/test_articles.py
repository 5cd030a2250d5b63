# SPDX-License-Identifier: Apache-2.0
"""bench/articles: each comparison runs, and what is not installed is reported as skipped."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr

ROOT = Path(__file__).parent.parent
SECTIONS = ("one-image", "small-images", "reopened", "ram-folder")


def command(*words: object) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, str(ROOT / "bench" / "articles"), *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, check=False)


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Imports a module of the command."""
    names = ("page", "sets", "sections", "findings")  # other commands have some of these, too
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    monkeypatch.syspath_prepend(str(ROOT / "bench" / "articles"))
    yield importlib.import_module
    for name in names:
        sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    photos = tmp_path_factory.mktemp("photos")
    for number, path in enumerate(sorted((ROOT / "examples" / "images").glob("*.jpg"))[:6]):
        (photos / str(number % 2)).mkdir(exist_ok=True)
        shutil.copy(path, photos / str(number % 2))
    out = tmp_path_factory.mktemp("articles")
    options = ("--out", out, "--rounds", 1, "--turn", 0, "--small", 21, "--openings", 2)
    done = command(photos, *SECTIONS, *options)
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


def test_the_page_is_written_again_from_stored_results(
    ran: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    out, _ = ran
    again = tmp_path / "again.md"
    done = command("--from", out / "articles.json", "--out", tmp_path, "--page", again)
    assert done.returncode == 0, done.stderr
    assert again.read_text() == (out / "articles.md").read_text()


def row_of(name: str, rate: float, mib: float = 1.0) -> dict[str, Any]:
    measured = {"rate": rate, "cpu_seconds": 1.0, "peak_pss_mib": mib, "start_seconds": 0.1}
    return {"name": name, "ours": name.startswith("Headrace"), **measured}


@pytest.mark.parametrize(
    ("section", "rows", "sentences"),
    [
        (
            "one-image",
            [row_of("pillow", 100), row_of("Headrace", 300), row_of("opencv", 150)],
            ["First is Headrace; its rate is 2.0 times that of opencv."],
        ),
        (
            "mnist",
            [row_of("slices", 600), row_of("queue", 300), row_of("Headrace", 200)],
            [
                "First is slices; its rate is 2.0 times that of queue and 3.0 times that of "
                "Headrace."
            ],
        ),
        (
            "audio-and-images",
            [
                *(row_of("DataLoader, augmented", 1), row_of("Headrace, augmented", 9)),
                *(row_of("DataLoader", 2), row_of("Headrace", 8)),
            ],
            [
                "Augmented: first is Headrace; its rate is 9.0 times that of DataLoader.",
                "First is Headrace; its rate is 4.0 times that of DataLoader.",
            ],
        ),
        (
            "memory",
            [row_of("DALI, batches of 32", 9, 300), row_of("Headrace, batches of 32", 8, 100)],
            ["Batches of 32: Headrace takes the least memory; DALI takes 3.0 times as much."],
        ),
    ],
)
def test_the_page_says_which_row_is_first(
    modules: Any, section: str, rows: list[dict[str, Any]], sentences: list[str]
) -> None:
    assert modules("page").firsts({"name": section, "rows": rows}) == sentences


def test_each_section_has_a_finding(modules: Any) -> None:
    assert set(modules("findings").FINDINGS) == set(modules("sections").SECTIONS)


def test_the_lmdb_environment_is_read_with_its_labels(modules: Any, tmp_path: Path) -> None:
    lmdb = pytest.importorskip("lmdb")
    file = ROOT / "examples" / "images" / "cat.jpg"
    with lmdb.open(str(tmp_path / "set.lmdb"), subdir=False) as env, env.begin(write=True) as txn:
        for number in range(3):
            txn.put(b"%08d" % number, modules("sets").datum(file.read_bytes(), number))
    source = hr.open(tmp_path / "set.lmdb")
    assert [source[number]["label"] for number in range(3)] == [0, 1, 2]
    assert np.array_equal(source[1]["image"], hr.imread(file, layout="CHW"))


def test_the_folder_in_memory_is_removed(ran: tuple[Path, dict[str, Any]]) -> None:
    assert not list(Path("/dev/shm").glob("headrace-articles-faces-21"))


def test_an_unknown_section_is_refused() -> None:
    done = command("photos", "nothing")
    assert done.returncode == 2 and "unknown section" in done.stderr and "mnist" in done.stderr


def test_photos_or_results_are_required() -> None:
    done = command()
    assert done.returncode == 2 and "PHOTOS or --from is required" in done.stderr
