# SPDX-License-Identifier: Apache-2.0
"""The demo runs, says what it measured, and leaves a page that needs nothing else."""

from __future__ import annotations

import html.parser
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("PIL")

ROOT = Path(__file__).parent.parent
DEMO = [sys.executable, "-m", "headrace.demo", "--pictures", str(ROOT / "examples" / "pictures")]
QUICK = ["--photos", "100", "--seconds", "0.2", "--batch-size", "16", "--threads", "2"]


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*DEMO, "--build", str(folder), *QUICK, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


class Outside(html.parser.HTMLParser):
    """Collects what a page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("src", "href") and value and not value.startswith("data:"):
                self.links.append(value)


def test_demo_makes_photos_measures_and_reports(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    assert "feeding alone" in done.stdout and "with training" in done.stdout
    assert len(list((tmp_path / "photos").rglob("*.jpg"))) == 100
    report = tmp_path / "report.html"
    assert str(report) in done.stdout
    page = report.read_text()
    outside = Outside()
    outside.feed(page)
    assert outside.links == []
    assert "<svg" in page and "data:image/png;base64," in page
    assert "url(" not in page and "@import" not in page and "<script" not in page


def test_demo_makes_its_photos_only_once(tmp_path: Path) -> None:
    assert run(tmp_path).returncode == 0
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "photos").rglob("*.jpg")}
    assert run(tmp_path).returncode == 0
    assert before == {
        path: path.stat().st_mtime_ns for path in (tmp_path / "photos").rglob("*.jpg")
    }


def test_the_photos_are_a_function_of_the_seed(tmp_path: Path) -> None:
    from headrace.demo.photos import make_photos

    def contents(name: str, seed: int) -> dict[str, bytes]:
        folder = tmp_path / name
        folder.mkdir()
        assert make_photos(ROOT / "examples" / "pictures", folder, 60, seed=seed, workers=1)
        return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*.jpg")}

    first = contents("first", 0)
    assert first == contents("again", 0)
    assert first != contents("other", 1)


def test_demo_takes_a_folder_of_ones_own(tmp_path: Path) -> None:
    from headrace.demo.photos import make_photos

    own = tmp_path / "own"
    own.mkdir()
    make_photos(ROOT / "examples" / "pictures", own, 60)
    done = run(tmp_path / "build", str(own))
    assert done.returncode == 0, done.stderr
    assert "60 records" in done.stdout
    assert not (tmp_path / "build" / "photos").exists()


def test_demo_compares_with_a_dataloader_where_torch_is(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    assert "DataLoader" in done.stdout and "x" in done.stdout.splitlines()[-4]


def test_demo_without_pictures_says_so_and_exits_with_4(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "headrace.demo", "--pictures", str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 4
    assert "name a folder of photos" in done.stdout


def test_demo_with_a_path_that_is_not_there_exits_with_3(tmp_path: Path) -> None:
    done = run(tmp_path, str(tmp_path / "nowhere"))
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
