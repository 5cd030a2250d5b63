# SPDX-License-Identifier: Apache-2.0
"""Promise: the recipes of docs/tools/jobs.md make a dataset, when run by a scheduler."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import headrace as hr

PAGE = (Path(__file__).parent.parent / "docs" / "tools" / "jobs.md").read_text()
PARTS = 4


def script_of(heading: str, root: Path) -> str:
    """The first block below a heading, with fewer parts and paths below `root`."""
    pytest.importorskip("typer")
    pytest.importorskip("rich")
    (block,) = re.findall(rf"^## {heading}\n.*?^```\w+\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return block.replace("/shared/", f"{root}/").replace("256", str(PARTS))


def run(script: str, root: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    tools = root / "bin"
    tools.mkdir(exist_ok=True)
    (tools / "headrace").write_text(f'#!/bin/sh\nexec {sys.executable} -m headrace "$@"\n')
    (tools / "headrace").chmod(0o755)
    found = f"{tools}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-euc", script],
        env={**os.environ, **variables, "PATH": found},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    pixels = np.arange(9 * 3 * 8 * 8, dtype=np.uint8).reshape(9, 3, 8, 8)
    labels = [0, 0, 1, 1, 0, 1, 1, 0, 1]
    hr.convert(hr.records(image=pixels, label=labels), tmp_path / "train", "folder")
    return tmp_path


def check_merged(root: Path) -> None:
    assert hr.jobs.merge(root / "shards", verify=True)["records"] == 9
    hr.convert(root / "train", root / "once", "tar", shards=PARTS)
    made = [path.read_bytes() for path in sorted((root / "shards").glob("*.tar"))]
    assert made == [path.read_bytes() for path in sorted((root / "once").glob("*.tar"))]
    assert len(made) == PARTS


def test_a_slurm_array_makes_the_parts_and_lists_those_to_rerun(root: Path) -> None:
    script = script_of("Slurm", root)
    assert re.search(
        rf"^#SBATCH --array=0-{PARTS - 1}%", script.replace("255", str(PARTS - 1)), re.M
    )
    for task in ("0", "3"):
        done = run(script, root, SLURM_ARRAY_TASK_ID=task, SLURM_CPUS_PER_TASK="1")
        assert done.returncode == 0, done.stderr
    (again,) = re.findall(r"`sbatch --array=\$\((.*?)\) convert\.sbatch`", PAGE)
    left = run(again.replace("/shared/", f"{root}/"), root)
    assert left.stdout.strip() == "1-2"
    for task in ("1", "2", "2"):  # a scheduler may repeat any of them
        done = run(script, root, SLURM_ARRAY_TASK_ID=task, SLURM_CPUS_PER_TASK="1")
        assert done.returncode == 0, done.stderr
    check_merged(root)


def test_an_indexed_job_of_kubernetes_makes_the_parts(root: Path) -> None:
    manifest = script_of("Kubernetes", root)
    (command,) = re.findall(r"args: \[(.*?)\]", manifest, re.DOTALL)
    (shell,) = re.findall(r"command: \[(.*?)\]", manifest)
    assert shell == "sh, -c" and f"completions: {PARTS}" in manifest
    script = "sh -c " + "'" + " ".join(command.split()) + "'"
    for index in range(PARTS):
        done = run(script, root, JOB_COMPLETION_INDEX=str(index))
        assert done.returncode == 0, done.stderr
    check_merged(root)
