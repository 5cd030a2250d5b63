# SPDX-License-Identifier: Apache-2.0
"""bench/: the comparison runs, reports every requested competitor, and fills in the documents."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
BENCH = ROOT / "bench"
OURS = (
    "Headrace, packed",
    "Headrace, packed dense",
    "Headrace, indexed",
    "Headrace, plain files",
)


def run(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCH / script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six of the demo's images, in one folder; one of them is 4:2:0 and so also a set of its
    own."""
    made = tmp_path_factory.mktemp("pictures")
    for path in sorted((ROOT / "examples" / "images").glob("*.jpg"))[:6]:
        shutil.copy(path, made)
    return made


@pytest.fixture(scope="module")
def compared(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A whole comparison, of our own formats only, as short as possible."""
    out = tmp_path_factory.mktemp("run")
    options = (
        "--peers",
        "headrace",
        "--threads",
        1,
        "--rounds",
        1,
        "--turn",
        0,
        "--cold",
        1,
    )
    done = run("compare.py", folder, *options, "--repeat", 1, "--batch-size", 4, "--out", out)
    assert done.returncode == 0, done.stderr
    return out, json.loads((out / "imagenet-train.json").read_text())


def test_all_our_formats_are_measured(compared: tuple[Path, dict[str, Any]]) -> None:
    for pictures in compared[1]["sets"]:
        assert pictures["failed"] == {}
        assert {peer["name"] for peer in pictures["peers"]} == set(OURS)
        for peer in pictures["peers"]:
            assert peer["images_per_second"] > 0 and peer["images_per_second_cold"] > 0
            assert peer["cpu_seconds_per_1000"] >= 0 and peer["peak_pss_mib"] > 0
            assert peer["start_to_first_batch_seconds"] > 0
            assert (peer["prepare_seconds"] is None) == (peer["name"] == "Headrace, plain files")


def test_our_formats_all_give_the_same_batches(compared: tuple[Path, dict[str, Any]]) -> None:
    for pictures in compared[1]["sets"]:
        assert set(pictures["batch_hashes"]) == set(OURS)
        assert len(set(pictures["batch_hashes"].values())) == 1


def test_plain_files_are_counted_by_their_size(
    compared: tuple[Path, dict[str, Any]], folder: Path
) -> None:
    whole = compared[1]["sets"][0]
    size = sum(path.stat().st_size for path in folder.iterdir())
    assert whole["bytes"] == size
    plain = next(peer for peer in whole["peers"] if peer["name"] == "Headrace, plain files")
    assert plain["bytes_on_disk"] == size


def test_a_competitor_that_is_not_installed_is_reported_as_skipped(
    folder: Path, tmp_path: Path
) -> None:
    options = ("--peers", "spdl", "--python-spdl", sys.executable, "--threads", 1)
    done = run("compare.py", folder, *options, "--out", tmp_path)
    assert done.returncode == 4
    assert f"SPDL is skipped: {sys.executable} has no spdl.io" in done.stderr


def test_charts_and_tables_are_written(compared: tuple[Path, dict[str, Any]]) -> None:
    out, report = compared
    for pictures in report["sets"]:
        ElementTree.parse(out / f"imagenet-train-{pictures['name']}.svg")
    text = (out / "imagenet-train.md").read_text()
    for name in OURS:
        assert f"| **{name}** |" in text


def test_figures_only_replace_text_in_their_slots(
    compared: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    out, report = compared
    name = report["sets"][0]["name"]
    document = tmp_path / "page.md"
    document.write_text(
        f"before\n<!-- figures: loaders {name} -->\nstale text\n<!-- /figures -->\nbetween\n"
        "<!-- figures: one-core -->\nkept\n<!-- /figures -->\nafter\n"
    )
    done = run("figures.py", out, document, "--images", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "left unchanged" in done.stderr  # this run had no micro benchmarks
    text = document.read_text()
    assert text.startswith(f"before\n<!-- figures: loaders {name} -->\n| loader | images/s |")
    assert "stale text" not in text and "\nkept\n" in text and text.endswith("after\n")
    assert text.count("<!-- /figures -->") == 2
    ElementTree.parse(tmp_path / "throughput.svg")


def test_every_slot_in_the_documents_has_an_existing_name() -> None:
    sys.path.insert(0, str(BENCH))
    try:
        import figures
    finally:
        sys.path.remove(str(BENCH))
    slots = 0
    for document in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        text = document.read_text()
        for _, name, pictures, _ in figures.SLOT.findall(text):
            assert name in (figures.WITH_A_SET if pictures else figures.WITHOUT), (document, name)
            slots += 1
        assert text.count("<!-- figures:") == len(figures.SLOT.findall(text)), document
    assert slots > 0


@pytest.mark.parametrize(
    ("sampling", "subsampling"), [("4:4:4", 0), ("4:2:2", 1), ("4:2:0", 2), ("gray", None)]
)
@pytest.mark.parametrize("progressive", [False, True])
def test_an_image_set_reports_its_subsampling_and_coding(
    tmp_path: Path, sampling: str, subsampling: int | None, progressive: bool
) -> None:
    image_module = pytest.importorskip("PIL.Image")
    sys.path.insert(0, str(BENCH))
    try:
        import picture_sets
    finally:
        sys.path.remove(str(BENCH))
    path = tmp_path / "a.jpg"
    options = {} if subsampling is None else {"subsampling": subsampling}
    picture = image_module.new("L" if subsampling is None else "RGB", (20, 10))
    picture.save(path, progressive=progressive, **options)
    coding = "progressive" if progressive else "baseline"
    assert picture_sets.kind_of(path) == (sampling, coding)


def test_the_drawings_are_up_to_date_with_their_script(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "tools" / "draw_jpeg.py"), str(tmp_path)]
    subprocess.run(command, check=True)
    drawn = sorted(path.name for path in tmp_path.iterdir())
    assert drawn == sorted(path.name for path in (ROOT / "docs" / "images").glob("jpeg-*.svg"))
    page = (ROOT / "docs" / "internals" / "jpeg.md").read_text()
    for name in drawn:
        ElementTree.parse(tmp_path / name)
        assert f"(../images/{name})" in page
        assert (tmp_path / name).read_text() == (ROOT / "docs" / "images" / name).read_text()


def test_formats_measures_containers_against_plain_reads(tmp_path: Path) -> None:
    pytest.importorskip("lmdb")
    pytest.importorskip("h5py")
    if not (shutil.which("g++") or shutil.which("c++")):
        pytest.skip("no C++ compiler for the probe")
    small = ("--records", 200, "--record-bytes", 1000, "--rounds", 1, "--threads", 1)
    done = run("formats.py", "--parts", "raw,open", *small, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "formats.json").read_text())
    for name in ("tar", "tfrecord", "recordio", "lmdb"):
        for order in ("file", "random"):
            assert report["raw"][name][order]["share"] > 0
        assert report["open"][name]["records"] == 200


def test_the_full_shuffle_mixes_like_a_random_one() -> None:
    small = ("--classes", 50, "--per-class", 100, "--block", 20, "--batch-size", 50, "--epochs", 1)
    done = run("shuffle_quality.py", *small, "--windows", "4,1000", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    classes = {name: values["classes in a batch, mean"] for name, values in found.items()}
    expected = 50 * (1 - (1 - 1 / 50) ** 50)  # of 50 draws
    assert classes["full shuffle"] == pytest.approx(expected, rel=0.03)
    assert classes["blocks, window 1000"] == pytest.approx(expected, rel=0.03)
    assert classes["in the file's order"] < classes["blocks, window 4"] < expected
