# SPDX-License-Identifier: Apache-2.0
"""`headrace --help` and that of every command: complete, narrow, and with examples that run."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from processes import run_command

import headrace as hr

pytest.importorskip("rich")
testing = pytest.importorskip("typer.testing")

from headrace.cli.app import application  # noqa: E402  (needs typer)

PICTURES = Path(__file__).parent.parent / "examples" / "images"

SCRIPT = """
import headrace as hr

loader = hr.Loader("train/", hr.presets.imagenet_train(32), batch_size=2)
for epoch in range(1000):
    for images, labels in loader:
        pass
"""
STEP = """
def step(batch):
    pass
"""


def told(*arguments: str) -> str:
    """A command's output at 80 columns."""
    done = testing.CliRunner().invoke(
        application(), arguments, prog_name="headrace", env={"COLUMNS": "80", "TERM": "dumb"}
    )
    assert done.exit_code == 0, done.output
    return str(done.output)


LISTED = told("--help")
COMMANDS = re.findall(r"^  (\w+)  ", LISTED.partition("Commands:")[2], re.MULTILINE)


def examples(command: str) -> list[str]:
    listed = told(command, "--help").partition("Examples:\n")[2]
    return [line.strip() for line in listed.splitlines() if line.strip()]


def test_every_command_is_listed_with_a_complete_sentence() -> None:
    assert {"bench", "doctor", "scan", "pack", "convert", "operators"} <= set(COMMANDS)
    assert "..." not in LISTED.partition("Commands:")[2]
    assert max(map(len, LISTED.splitlines())) <= 80


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_fits_80_columns_and_has_examples(command: str) -> None:
    text = told(command, "--help")
    assert max(map(len, text.splitlines())) <= 80
    assert "--json" in text
    assert examples(command)
    assert all(line.startswith(f"headrace {command}") for line in examples(command))


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files in the examples: train/, a pack of it, an image, a training script, a step."""
    root = tmp_path_factory.mktemp("help")
    for number, picture in enumerate(sorted(PICTURES.glob("*.jpg"))):
        target = root / "train" / ("cat", "dog")[number % 2]
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, target)
    shutil.copy(picture, root / "photo.jpg")
    (root / "train.py").write_text(SCRIPT)
    (root / "step.py").write_text(STEP)
    hr.pack(root / "train", root / "train.hrpack")
    hr.convert(root / "train", root / "tars", "tar", part=(0, 2))
    return root


@pytest.mark.parametrize("example", [e for name in COMMANDS for e in examples(name)])
def test_every_example_in_the_help_runs(example: str, workplace: Path, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    shutil.copytree(workplace, folder)
    arguments = shlex.split(example)[1:]
    if arguments[0] == "pack":
        (folder / "train.hrpack").unlink()
    if arguments[:3:2] == ["merge", "--verify"]:
        hr.convert(folder / "train", folder / "tars", "tar", part=(1, 2))
    if arguments[0] == "doctor":  # which takes 40 seconds by default
        arguments[1:1] = ["--seconds", "1"]
    done = run_command(*arguments, folder=folder)
    answers = (0, 1) if arguments[0] in ("doctor", "scan", "merge") else (0,)
    assert done.returncode in answers and done.stdout, done.stderr
    assert "Traceback" not in done.stderr
