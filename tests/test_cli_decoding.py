# SPDX-License-Identifier: Apache-2.0
"""Promise: commands that decode images have the Loader's options for images."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import run_command

import headrace as hr

pytest.importorskip("typer")
pytest.importorskip("rich")
Image = pytest.importorskip("PIL.Image")


def run_json(*arguments: object) -> Any:
    done = run_command(*arguments, "--json")
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def gray16(tmp_path: Path) -> Path:
    """Four 16-bit grayscale images, all values above 255."""
    folder = tmp_path / "gray/a"
    folder.mkdir(parents=True)
    for number in range(4):
        values = np.full((8, 8), 1000 + number, np.uint16)
        Image.fromarray(values).save(folder / f"{number}.png")
    return folder.parent


@pytest.fixture
def cut_off(tmp_path: Path) -> Path:
    """A JPEG whose second half is missing, and an intact one."""
    folder = tmp_path / "cut/a"
    folder.mkdir(parents=True)
    pixels = np.random.default_rng(1).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    stored = io.BytesIO()
    Image.fromarray(pixels).save(stored, "jpeg")
    (folder / "whole.jpg").write_bytes(stored.getvalue())
    (folder / "half.jpg").write_bytes(stored.getvalue()[: len(stored.getvalue()) // 2])
    return folder.parent


def test_scan_accepts_an_option_for_sixteen_bits(gray16: Path) -> None:
    assert run_json("scan", gray16)["bad"] == 4
    assert run_json("scan", gray16, "--sixteen-bit", "high_byte")["bad"] == 0


def test_scan_counts_images_that_damaged_repair_would_deliver(cut_off: Path) -> None:
    refused = run_json("scan", cut_off)
    repaired = run_json("scan", cut_off, "--damaged", "repair")
    assert (refused["bad"], repaired["bad"], repaired["repaired"]) == (1, 0, 1)


def test_scan_refuses_images_that_declare_too_many_pixels(cut_off: Path) -> None:
    (first, _) = run_json("scan", cut_off, "--max-pixels", 100)["bad_records"]
    assert first["code"] == "HR0310"


def test_bench_measures_what_the_loader_would_deliver(gray16: Path) -> None:
    by_high_byte, by_clip = (
        run_json(
            *("bench", gray16, "--preset", "decode", "--epochs", 1, "--on-error", "raise"),
            *("--batch-size", 4, "--sixteen-bit", how),
        )
        for how in ("high_byte", "clip")
    )
    assert by_high_byte["bad_records"] == by_clip["bad_records"] == 0
    assert by_high_byte["batch_hash"] != by_clip["batch_hash"]


def test_doctor_examines_the_requested_loader(gray16: Path) -> None:
    told = ("doctor", gray16, "--seconds", 0.5, "--batch-size", 2, "--skip", "remedies")
    assert run_command(*told, "--on-error", "raise").returncode == 3
    done = run_command(*told, "--on-error", "raise", "--sixteen-bit", "clip")
    assert done.returncode in (0, 1), done.stderr


def test_a_fields_kind_can_be_declared(pictures: Path, tmp_path: Path) -> None:
    scanned = run_json("scan", pictures, "--kinds", "image=mask")
    assert scanned["bad"] == 23  # color pictures are not masks
    done = run_command("scan", pictures, "--kinds", "image")
    assert done.returncode == 2
    assert "FIELD=KIND" in done.stderr
    assert "HR0181" in run_command("bench", pictures, "--kinds", "label=image").stderr


@pytest.mark.parametrize("command", ["bench", "doctor", "scan"])
def test_an_unknown_choice_is_a_usage_error(command: str, pictures: Path) -> None:
    done = run_command(command, pictures, "--damaged", "ignore")
    assert done.returncode == 2
    assert "repair" in done.stderr


@pytest.mark.parametrize("command", ["bench", "doctor", "scan"])
def test_help_has_the_choices_of_the_keyword(command: str) -> None:
    told = " ".join(run_command(command, "--help").stdout.replace("│", " ").split())
    for name in ("damaged", "sixteen-bit", "strict", "max-pixels"):
        assert f"--{name}" in told
    doc = str(hr.Loader.__doc__)
    assert "as Pillow's convert() does." in " ".join(doc.split())
    assert "as Pillow's convert() does." in told
