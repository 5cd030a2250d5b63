# SPDX-License-Identifier: Apache-2.0
"""torchtitan's dataloader protocol: built by its Config, saved by DCP, on any number of ranks."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forked import notes_of, output_of

import headrace as hr

pytest.importorskip("torch")
pytest.importorskip("torchtitan")
from headrace.trainers import torchtitan
from torchtitan.components.dataloader import BaseDataLoader


def built(make: Any = None, **options: Any) -> Any:
    def rows(rank: int, world_size: int, **known: Any) -> hr.Loader:
        tokens = np.arange(40).reshape(10, 4)
        return hr.Loader(hr.records(tokens=tokens), batch_size=2, shard=(rank, world_size))

    config = torchtitan.DataLoader.Config(make=make or rows)
    return dataclasses.replace(config, **options).build(
        dp_world_size=1, dp_rank=0, tokenizer=None, seq_len=3, local_batch_size=2
    )


def test_training_continues_over_epochs_and_validation_ends() -> None:
    loader = built()
    assert isinstance(loader, BaseDataLoader)
    batches = iter(loader)
    assert [len(next(batches)[1]) for _ in range(12)] == [2] * 12
    assert len(list(built(infinite=False))) == 5, "as its Validator says it"
    assert len(list(built(repeat=False))) == 5, "and a later one"
    loader.load_state_dict({})  # torchtitan's word for none
    loader.close()


def test_ranks_and_forms_that_do_not_fit_are_refused() -> None:
    def other_rank(rank: int, world_size: int, **known: Any) -> hr.Loader:
        return hr.Loader(hr.records(tokens=np.zeros((8, 4), int)), batch_size=2, shard=(1, 2))

    def floats(rank: int, world_size: int, **known: Any) -> hr.Loader:
        return hr.Loader(hr.records(x=np.zeros((8, 4))), batch_size=2, shard=(rank, world_size))

    with pytest.raises(hr.ConfigError, match=r"HR0850.*rank 1 of 2, torchtitan's data-parallel"):
        built(other_rank)
    with pytest.raises(hr.ConfigError, match=r"HR0850.*float64"):
        next(iter(built(floats)))


def test_two_ranks_resume_after_a_kill_and_so_does_one_rank(tmp_path: Path) -> None:
    output_of("trainers/ranks_torchtitan.py", tmp_path, cwd=tmp_path)
    both = [notes_of(tmp_path, "whole", rank) for rank in range(2)]
    for rank in range(2):
        assert len(both[rank]) == 8, "more than an epoch of 5"
        assert notes_of(tmp_path, "killed", rank) == both[rank][:5]
        assert notes_of(tmp_path, "resumed", rank) == both[rank][3:]
    together = [a + b for a, b in zip(*both, strict=True)]
    assert notes_of(tmp_path, "alone", 0) == together[3:]
