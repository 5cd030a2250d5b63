# SPDX-License-Identifier: Apache-2.0
"""The commands on folders of audio files, without an option that declares their kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import audio_files
import pytest
from headrace.insight.probes import ours
from processes import run_command

import headrace as hr

FRAMES = [8000, 16000, 12000, 20000, 16000, 9000]


def run_json(*arguments: object, status: int = 0) -> Any:
    done = run_command(*arguments, "--json")
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def speech(tmp_path: Path) -> Path:
    """Two classes of three audio clips; the last one has another rate."""
    root = tmp_path / "speech"
    for number, frames in enumerate(FRAMES):
        place = root / ("no" if number < 3 else "yes")
        place.mkdir(parents=True, exist_ok=True)
        rate = 8000 if number == 5 else audio_files.RATE
        data = audio_files.wav_of(audio_files.int16_waves(frames, seed=number), rate)
        (place / f"{number}.wav").write_bytes(data)
    return root


def test_info_shows_rates_and_lengths(speech: Path) -> None:
    facts = run_json("info", speech)["audio"][0]
    seconds = [frames / (8000 if n == 5 else 16000) for n, frames in enumerate(FRAMES)]
    assert facts["sample_rates"] == {"16000": 5, "8000": 1} and facts["channels"] == {"1": 6}
    assert facts["seconds"] == {
        "min": min(seconds),
        "mean": round(sum(seconds) / 6, 3),
        "max": max(seconds),
    }
    assert facts["hours"] == round(sum(seconds) / 3600, 4)
    text = run_command("info", speech).stdout
    assert "16,000 (5), 8,000 (1) Hz" in text and "0.50 to 1.25 seconds" in text


def test_scan_counts_rates_and_finds_bad_files_at_any_rate(speech: Path) -> None:
    assert run_json("scan", speech)["bad"] == 0
    whole = (speech / "yes" / "5.wav").read_bytes()
    (speech / "yes" / "5.wav").write_bytes(whole[:-100])
    (speech / "no" / "1.wav").write_bytes(b"no sound")
    done = run_json("scan", speech, status=1)
    assert [(entry["record"], entry["code"]) for entry in done["bad_records"]] == [
        (1, "HR0354"),
        (5, "HR0351"),
    ]
    assert done["bad_records"][1]["key"].endswith("5.wav")
    assert done["audio"][0]["sample_rates"] == {"16000": 4} and done["audio"][0]["bad"] == 2


@pytest.mark.parametrize("preset", [(), ("--preset", "decode"), ("--preset", "raw")])
def test_bench_accepts_audio(speech: Path, preset: tuple[str, ...]) -> None:
    if preset[-1:] == ("decode",):
        (speech / "yes" / "5.wav").unlink()  # its batches have one rate
    done = run_json("bench", speech, *preset, "--epochs", 1, "--batch-size", 2)
    assert done["images_per_second"] > 0 and done["bad_records"] == 0


def test_bench_says_that_features_are_float32(speech: Path) -> None:
    done = run_command("bench", speech, "--dtype", "uint8")
    assert done.returncode == 2 and "log-mel gives float32" in done.stderr


def test_doctor_names_the_extraction_of_features(speech: Path) -> None:
    loader = hr.Loader(hr.open(speech), hr.presets.log_mel(1.0), batch_size=3)
    with loader:
        names = [stage.name for stage in ours.examine(loader, None, 3).stages]
    assert "decode" in names and any(name.startswith("extracting features") for name in names)


def test_doctor_examines_an_audio_folder(speech: Path) -> None:
    done = run_command("doctor", speech, "--seconds", 2, "--batch-size", 2, "--json")
    assert done.returncode in (0, 1), done.stderr


def test_a_class_without_audio_is_reported(speech: Path) -> None:
    (speech / "maybe").mkdir()
    with pytest.raises(hr.ConfigError, match=r"HR0407.*no audio clip in 'maybe'"):
        hr.open(speech)


def test_a_pack_says_that_audio_is_stored_unchanged(speech: Path, tmp_path: Path) -> None:
    done = run_json("pack", speech, "-o", tmp_path / "speech.hrpack")
    reasons = [each["reason"] for each in done["stored_unchanged"]]
    assert reasons == ["audio clips (wav)"]
