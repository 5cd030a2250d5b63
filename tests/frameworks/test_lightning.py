# SPDX-License-Identifier: Apache-2.0
"""Lightning on two processes: nothing is sharded twice, and its checkpoints hold the position."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("lightning")
from contract import ROOT
from ranks import HERE, check_all


def test_two_ranks_read_each_record_once_and_a_checkpoint_resumes(tmp_path: Path) -> None:
    check_all([str(HERE / "rank_lightning.py")], tmp_path)


@pytest.mark.parametrize("devices", [1, 2])
def test_the_example_runs(tmp_path: Path, devices: int) -> None:
    example = ROOT / "examples" / "frameworks" / "train_lightning.py"
    command = [sys.executable, str(example), str(devices)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "epoch 4: loss" in done.stdout
    assert not list(tmp_path.iterdir()), "an example leaves nothing behind"
