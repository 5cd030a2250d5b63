# SPDX-License-Identifier: Apache-2.0
"""If one rank of a process group fails, all fail with its message, and no rank waits for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from forked import output_of

import headrace as hr

pytest.importorskip("torch")


@pytest.mark.parametrize("meanwhile", ["python", "collective", "late"])
def test_a_bad_record_of_one_rank_ends_all_ranks_with_its_message(
    meanwhile: str, tmp_path: Path
) -> None:
    text = output_of("ranks_that_fail.py", meanwhile, cwd=tmp_path)
    assert "[1, 1, 1]" in text or "[3, 3, 3]" in text
    assert "rank 1: DataError" in text
    for rank in (0, 2):
        assert (
            f"rank {rank}: Error HR0732: HR0732 another rank has failed: rank 1: DataError" in text
        )
    assert text.count("a shelf of the archive is missing") >= 3


def test_a_rank_that_cannot_be_interrupted_is_ended_with_the_message(tmp_path: Path) -> None:
    text = output_of("ranks_that_fail.py", "stuck", cwd=tmp_path)
    assert "[1, 1]" in text
    assert "HR0732 another rank has failed: rank 1: MemoryError: no room" in text


def test_ranks_that_do_not_fail_end_normally(tmp_path: Path) -> None:
    text = output_of("ranks_that_fail.py", "nothing", cwd=tmp_path)
    assert "[0, 0, 0]" in text and text.count("is done") == 3


def test_ranks_that_torchrun_restarts_do_not_fail_with_the_message_of_the_first_attempt(
    tmp_path: Path,
) -> None:
    text = output_of("ranks_that_fail.py", "restart", cwd=tmp_path)
    assert "[1, 1] [0, 0]" in text and text.count("is done") == 2, text


def test_a_single_process_is_unaffected() -> None:
    with hr.fail_together():
        pass
    with pytest.raises(KeyError), hr.fail_together():
        raise KeyError("mine")
    with pytest.raises(hr.ConfigError, match="grace"):
        hr.fail_together(grace=-1)
