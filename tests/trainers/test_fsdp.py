# SPDX-License-Identifier: Apache-2.0
"""FSDP2: the data-parallel dimension of a mesh as shard=, and the loader's state in a DCP
checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forked import joined, notes_of, output_of

import headrace as hr

pytest.importorskip("torch")
from headrace.trainers.dcp import LoaderState
from torch.distributed import checkpoint

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled")


def test_two_by_two_ranks_resume_after_a_kill_and_so_do_three_ranks(
    tmp_path: Path,
) -> None:
    output_of("trainers/ranks_fsdp.py", tmp_path, cwd=tmp_path)
    whole, killed, resumed = (
        [notes_of(tmp_path, name, rank) for rank in range(4)]
        for name in ("whole", "killed", "resumed")
    )
    assert whole[0] == whole[1] and whole[2] == whole[3], "tensor-parallel ranks share batches"
    for rank in range(4):
        assert len(whole[rank]) == 9, "8 batches, of an epoch of 5 and the next one; weights"
        assert killed[rank] == whole[rank][:6]
        assert resumed[rank] == whole[rank][3:], "weights are bit-equal, too"
    together = [a + b for a, b in zip(whole[0][:8], whole[2][:8], strict=True)]
    assert sorted(joined(together[:5])) == list(range(30))
    others = [notes_of(tmp_path, "others", rank) for rank in range(3)]
    assert [joined(batch) for batch in zip(*(o[:5] for o in others), strict=True)] == together[3:]
    for ours, theirs in zip(others[0][5], whole[0][8], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


class Lines:
    """Like a streaming dataset: its state has other entries once it has begun."""

    def __init__(self) -> None:
        self.begin = self.at = 0

    def state_dict(self) -> dict[str, Any]:
        return {"at": self.at} if self.at else {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.begin = state.get("at", 0)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for number in range(self.begin + 1, 101):
            self.at = number
            yield {"n": number}


def lines_of(rank: int, world_size: int) -> Iterator[dict[str, Any]]:
    yield from ({"n": n} for n in range(rank, 40, world_size))


def test_a_streams_state_is_restored_from_a_checkpoint(tmp_path: Path) -> None:
    def new() -> hr.Loader:
        return hr.Loader(hr.stream(Lines(), shuffle_buffer=5), batch_size=8)

    loader = new()
    batches = iter(loader)
    for _ in range(6):
        next(batches)
    checkpoint.save({"loader": LoaderState(loader.torch())}, checkpoint_id=str(tmp_path / "a"))
    resumed = new()
    checkpoint.load({"loader": LoaderState(resumed)}, checkpoint_id=str(tmp_path / "a"))
    rest = [batch.n.tolist() for batch in batches]
    assert [batch.n.tolist() for batch in resumed] == rest and len(rest) == 7


@pytest.mark.filterwarnings("ignore:.*read.* again")
def test_ranks_with_separate_streams_have_separate_checkpoint_entries(tmp_path: Path) -> None:
    def new(rank: int, ranks: int = 2) -> hr.Loader:
        stream = hr.stream(lines_of, length=40)
        return hr.Loader(stream, global_batch_size=8, last_batch="drop", shard=(rank, ranks))

    loaders = [new(rank) for rank in range(2)]
    rests = []
    saved: dict[str, Any] = {}
    for loader in loaders:
        batches = iter(loader)
        next(batches)
        saved |= LoaderState(loader).state_dict()
        rests.append([batch.n.tolist() for batch in batches])
    assert sorted(saved) == ["rank_0_of_2", "rank_1_of_2"]
    for rank, rest in enumerate(rests):
        resumed = new(rank)
        LoaderState(resumed).load_state_dict(saved)
        assert [batch.n.tolist() for batch in resumed] == rest
    with pytest.raises(KeyError, match="rank_0_of_1"):
        LoaderState(new(0, 1)).load_state_dict(saved)
