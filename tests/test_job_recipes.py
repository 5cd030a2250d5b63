# SPDX-License-Identifier: Apache-2.0
"""Promise: the recipes of docs/tools/jobs.md make a dataset, when run by a scheduler."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from servers.object_server import ObjectServer
from test_remote import bucket, quick
from test_requests_of_opening import forget, listings

import headrace as hr

__all__ = ["bucket", "quick"]

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


def test_parts_of_a_list_in_a_bucket_list_no_folder(
    bucket: ObjectServer, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the page's script; parts of the folder itself list it each time."""
    bucket.page = 3
    for file in (root / "train").rglob("*.png"):
        bucket.objects[f"/photos/train/{file.relative_to(root / 'train')}"] = file.read_bytes()
    (block,) = re.findall(r"^Folders in buckets .*?^```\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(root)
    exec(block, {"hr": hr, "csv": csv})
    bucket.objects["/photos/train.csv"] = (root / "train.csv").read_bytes()

    def listings_of_parts(source: str, dest: Path) -> list[int]:
        counts = []
        for part in range(PARTS):
            forget()
            bucket.requests.clear()
            hr.convert(source, dest, "tar", part=(part, PARTS))
            counts.append(len(listings(bucket)))
        return counts

    assert listings_of_parts("s3://photos/train.csv", root / "shards") == [0] * PARTS
    check_merged(root)
    assert min(listings_of_parts("s3://photos/train", root / "of folder")) >= 3
