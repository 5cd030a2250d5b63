# SPDX-License-Identifier: Apache-2.0
"""torchvision's reference scripts resume exactly in mid-epoch after a kill, with one entry more in
their checkpoints."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from forked import notes_of, output_of

pytest.importorskip("torch")
pytest.importorskip("torchvision.transforms.v2")
pytest.importorskip("pycocotools")
sys.path.insert(0, str(Path(__file__).parent.parent / "migration"))
import made_data


def test_the_scripts_resume_after_a_kill(tmp_path: Path) -> None:
    data, results = tmp_path / "data", tmp_path / "results"
    results.mkdir()
    made_data.image_folder(data / "classification", size=(90, 90))
    made_data.coco(data / "detection")
    made_data.voc(data / "segmentation")
    output_of("trainers/ranks_torchvision.py", results, data, cwd=tmp_path)
    for script, count in (("classify", 2), ("detect", 1), ("segment", 1)):
        for rank in range(count):
            whole, killed, resumed = (
                notes_of(results, f"{script}_{name}", rank)
                for name in ("whole", "killed", "resumed")
            )
            assert len(whole) > 2 * 4 + 1, "two epochs of at least five batches, and the weights"
            assert killed == whole[:4], script
            assert resumed == whole[2:], f"{script}: the batches after the checkpoint, the weights"
