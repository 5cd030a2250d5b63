# SPDX-License-Identifier: Apache-2.0
"""Accelerate on two processes: prepare() does not change the loader, and checkpoints hold its
position."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("accelerate")
from contract import ROOT
from ranks import HERE, TORCHRUN, check_all

ALONE = ["-m", "accelerate.commands.launch", "--cpu", "--num_processes", "1"]


def test_two_ranks_read_each_record_once_and_a_checkpoint_resumes(tmp_path: Path) -> None:
    check_all([*TORCHRUN, str(HERE / "rank_accelerate.py")], tmp_path)


@pytest.mark.parametrize("launch", [ALONE, TORCHRUN], ids=["alone", "torchrun"])
def test_the_example_runs(tmp_path: Path, launch: list[str]) -> None:
    example = ROOT / "examples" / "frameworks" / "train_accelerate.py"
    command = [sys.executable, *launch, str(example)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("epoch 4: loss") == 1
    assert not list(tmp_path.iterdir()), "an example leaves nothing behind"
