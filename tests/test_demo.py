# SPDX-License-Identifier: Apache-2.0
"""The demo runs, prints its measurements, and writes a self-contained page."""

from __future__ import annotations

import html.parser
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PIL")

ROOT = Path(__file__).parent.parent
DEMO = [
    sys.executable,
    "-m",
    "headrace.insight.demo",
    "--images",
    str(ROOT / "examples" / "images"),
]
QUICK = ["--photos", "100", "--seconds", "0.2", "--batch-size", "16", "--threads", "2"]


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*DEMO, "--build", str(folder), *QUICK, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


class Outside(html.parser.HTMLParser):
    """Collects the URLs that a page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("src", "href") and value and not value.startswith("data:"):
                self.links.append(value)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """One complete run: the location of its files, and its output."""
    folder = tmp_path_factory.mktemp("demo")
    done = run(folder)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_demo_makes_photos_and_measures(demo: tuple[Path, str]) -> None:
    folder, text = demo
    assert len(list((folder / "photos").rglob("*.jpg"))) == 100
    assert "feeding alone" in text and "with training" in text
    assert "\x1b" not in text and "\r" not in text


def test_demo_writes_a_self_contained_page(demo: tuple[Path, str]) -> None:
    folder, text = demo
    assert str(folder / "report.html") in text
    page = (folder / "report.html").read_text()
    outside = Outside()
    outside.feed(page)
    assert outside.links == []
    assert "<svg" in page and "data:image/png;base64," in page
    assert "url(" not in page and "@import" not in page and "<script" not in page


def test_the_page_explains_the_stages_and_draws_all_bars_to_one_scale(
    demo: tuple[Path, str],
) -> None:
    page = (demo[0] / "report.html").read_text()
    for stage in ("reading", "decoding", "resizing", "writing"):
        assert f"<dt>{stage}</dt><dd>" in page
    figure = page[page.index('id="figure-1"') :]
    wide = figure[: figure.index("</svg>")]
    bars = re.findall(r'<rect class="(?:step|mute)"[^>]* width="([\d.]+)"', wide)
    told = re.findall(r'<td class="n">([\d,]+)</td>', figure[: figure.index("</figure>")])
    rates = [float(text.replace(",", "")) for text in told]
    in_bars = [*rates[::2], *rates[1::2]]  # one row per side: feeding alone, with training
    assert len(bars) == len(rates)
    for length, rate in zip(bars, in_bars, strict=True):
        assert float(length) == pytest.approx(424 / 1.02 * rate / max(rates), abs=1.5)


def test_demo_compares_with_a_dataloader_if_torch_is_installed(demo: tuple[Path, str]) -> None:
    pytest.importorskip("torch")
    folder, text = demo
    table = text[text.index("images per second") :]
    assert re.search(r"^  Headrace +[\d,]+ +[\d,]+ +\d+%$", table, re.MULTILINE)
    assert re.search(r"^  DataLoader.* [\d,]+ +[\d,]+ +\d+%$", table, re.MULTILINE)
    assert re.search(r"^ +\d+\.\dx +\d+\.\dx$", table, re.MULTILINE)
    assert "DataLoader" in (folder / "report.html").read_text()


def test_demo_makes_its_photos_only_once(demo: tuple[Path, str]) -> None:
    folder, _ = demo
    photos = folder / "photos"
    before = {path: path.stat().st_mtime_ns for path in photos.rglob("*.jpg")}
    assert run(folder, "--no-dataloader").returncode == 0
    assert before == {path: path.stat().st_mtime_ns for path in photos.rglob("*.jpg")}


def test_demo_accepts_the_users_folder(demo: tuple[Path, str], tmp_path: Path) -> None:
    done = run(tmp_path, "--no-dataloader", str(demo[0] / "photos"))
    assert done.returncode == 0, done.stderr
    assert "100 records, 2 classes" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_demo_trains_in_numpy_without_torch(demo: tuple[Path, str], tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['torch'] = None")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [*DEMO, "--build", str(tmp_path), *QUICK, str(demo[0] / "photos")]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.returncode == 0, done.stderr
    assert "PyTorch is not installed" in done.stdout
    assert "in NumPy" in done.stdout


def test_the_net_in_numpy_learns() -> None:
    from headrace.insight.demo.training import NumpyTrainer

    rng = np.random.default_rng(0)
    labels = np.arange(64) % 4
    images = rng.standard_normal((64, 3, 224, 224), np.float32)
    images += labels.reshape(-1, 1, 1, 1).astype(np.float32)
    trainer = NumpyTrainer(4)
    losses = [trainer.step(images, labels) for _ in range(30)]
    assert losses[0] == pytest.approx(np.log(4), rel=0.5)
    assert losses[-1] < 0.7 * losses[0]


def test_the_photos_are_a_function_of_the_seed(tmp_path: Path) -> None:
    from headrace.insight.demo.photos import make_photos

    def contents(name: str, seed: int) -> dict[str, bytes]:
        folder = tmp_path / name
        folder.mkdir()
        assert make_photos(ROOT / "examples" / "images", folder, 60, seed=seed, workers=1)
        return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*.jpg")}

    first = contents("first", 0)
    assert first == contents("again", 0)
    assert first != contents("other", 1)


def test_demo_without_images_says_so_and_exits_with_4(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "headrace.insight.demo", "--images", str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 4
    assert "give a folder of photos" in done.stdout


def test_demo_with_a_missing_path_exits_with_3(tmp_path: Path) -> None:
    done = run(tmp_path, str(tmp_path / "nowhere"))
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
