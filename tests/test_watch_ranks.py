# SPDX-License-Identifier: Apache-2.0
"""The watch compares ranks: which one waits longest, and how the waiting is distributed."""

from __future__ import annotations

from pathlib import Path

import pytest
from forked import output_of
from headrace.insight.live.ranks import compare, words


def told(share: float, wait: float, batches: int = 10) -> dict[str, float]:
    return {"wait_share": share, "wait_seconds": wait, "step_seconds": 0.1, "batches": batches}


def test_the_rank_that_waits_longest_for_a_batch_is_the_slowest() -> None:
    heard = {rank: told(0.01 * rank, 0.001) for rank in range(10)} | {7: told(0.4, 0.08)}
    compared = compare(heard, 12)
    assert compared is not None
    assert (compared["ranks"], compared["heard"], compared["slowest"]) == (12, 10, 7)
    assert compared["wait_seconds"] == 0.08
    shares = compared["wait_share"]
    assert shares == {"p50": 0.04, "p90": 0.09, "max": 0.4, "slowest": 0.4}
    assert words(compared) == "rank 7 waits 40.0 %"


def test_the_line_names_no_rank_if_none_stands_out() -> None:
    assert words(compare({0: told(0.1, 0.02), 1: told(0.12, 0.02)}, 2)) == ""
    assert compare({0: told(0.1, 0.02, batches=0)}, 2) is None and words(None) == ""


def test_ranks_of_a_process_group_are_compared(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    text = output_of("ranks_that_are_watched.py", cwd=tmp_path)
    assert "1 True headrace: " in text and "rank 1 waits " in text and "[0, 0]" in text
