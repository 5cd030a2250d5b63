# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed: its data-parallel group as shard=, and the loader's state in its checkpoints."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from forked import joined, notes_of, output_of

pytest.importorskip("torch")
pytest.importorskip("deepspeed")


def test_ranks_resume_after_a_kill_and_pipeline_stages_share_batches(tmp_path: Path) -> None:
    output_of("trainers/ranks_deepspeed.py", tmp_path, cwd=tmp_path)
    whole, killed, resumed = (
        [notes_of(tmp_path, name, rank) for rank in range(2)]
        for name in ("whole", "killed", "resumed")
    )
    for rank in range(2):
        assert len(whole[rank]) == 9, "8 batches, of an epoch of 5 and the next one; weights"
        assert killed[rank] == whole[rank][:6]
        assert resumed[rank] == whole[rank][3:], "weights are bit-equal, too"
    together = [a + b for a, b in zip(whole[0][:8], whole[1][:8], strict=True)]
    assert sorted(joined(together[:5])) == list(range(30))
    others = [notes_of(tmp_path, "others", rank) for rank in range(3)]
    assert [joined(batch) for batch in zip(*(o[:5] for o in others), strict=True)] == together[3:]
    for ours, theirs in zip(others[0][5], whole[0][8], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
    stages = [notes_of(tmp_path, "stages", rank) for rank in range(4)]
    assert stages[0] == stages[2] == whole[0][:8], "the first and the last stage"
    assert stages[1] == stages[3] == whole[1][:8]
