# SPDX-License-Identifier: Apache-2.0
"""torch's tensors; several ranks under torchrun; no life inside a DataLoader's worker."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Numbers

import headrace as hr

torch = pytest.importorskip("torch")
from contract import ROOT, NamedBatches  # noqa: E402
from headrace.frameworks import torch as ours  # noqa: E402
from headrace.frameworks.torch import make_hand_over  # noqa: E402
from ranks import HERE, TORCHRUN, check_all  # noqa: E402


class TestTorch(NamedBatches):
    name = "torch"
    title = "PyTorch"
    has_strides = True

    def convert(self, array: hr.Array) -> Any:
        return make_hand_over()(array)

    def pointer(self, tensor: Any) -> int:
        return int(tensor.data_ptr())

    def bfloat16(self, tensor: Any) -> np.ndarray[Any, Any]:
        assert tensor.dtype == torch.bfloat16
        return np.asarray(tensor.float())


def test_two_ranks_under_torchrun_read_each_record_once_and_resume(tmp_path: Path) -> None:
    check_all([*TORCHRUN, str(HERE / "rank_torchrun.py")], tmp_path)


def test_a_job_that_is_killed_goes_on_with_another_number_of_ranks(tmp_path: Path) -> None:
    """By committed steps each record comes once an epoch, and training is that of one process."""

    def steps_of(world: int, *die: str) -> tuple[int, list[list[list[Any]]]]:
        command = [*TORCHRUN[:-1], str(world), str(HERE / "rank_elastic.py"), str(tmp_path), *die]
        done = subprocess.run([sys.executable, *command], capture_output=True, timeout=300)
        logs = [(tmp_path / f"{world}-{r}.jsonl").read_text() for r in range(world)]
        ranks = [[json.loads(line) for line in log.splitlines()] for log in logs]
        return done.returncode, [list(step) for step in zip(*ranks, strict=True)]

    code, begun = steps_of(2, "5")
    assert code != 0 and len(begun) == 5  # the fifth step is not in the checkpoint
    code, rest = steps_of(3)
    assert code == 0
    committed = begun[:4] + rest
    assert [step[0][:2] for step in committed] == [[e, b] for e in range(2) for b in range(6)]
    for epoch in range(2):
        ids = [i for step in committed for each in step if each[0] == epoch for i in each[2]]
        assert sorted(ids) == list(range(44))
    whole = hr.Loader(
        hr.records(x=np.arange(44, dtype=np.float32)), global_batch_size=8, shuffle=True, seed=3
    )
    weight = 0.0
    for step, batch in zip(committed, (b for _ in range(2) for b in whole), strict=True):
        weight -= 1e-4 * float(np.mean(2 * (weight * batch.x - 1) * batch.x))
        assert [each[3] for each in step] == pytest.approx([weight] * len(step), rel=1e-4)


def test_ranks_of_a_mesh_get_the_batches_of_their_data_parallel_group(tmp_path: Path) -> None:
    """Those of one tensor-parallel group get the same; the groups together each record once."""
    command = [*TORCHRUN[:-1], "4", str(HERE / "rank_mesh.py"), str(tmp_path)]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    ranks = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(4)]
    assert [(each["dp"], each["tp"]) for each in ranks] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    whole = hr.Loader(
        hr.records(number=np.arange(25)), global_batch_size=5, shuffle=True, seed=3, shard=False
    )
    wanted = [batch.number.tolist() for batch in whole]
    for each in ranks:
        first, end = (0, 2) if each["dp"] == 0 else (2, 5)
        slices = [[numbers[first:end], (end - first) * 2 / 5] for numbers in wanted]
        assert each["mesh"] == each["group"] == slices
        assert "2 dimensions" in each["refused"] and 'mesh["dp"]' in each["refused"]
        assert each["flat"] == each["alone"]
    for number, numbers in enumerate(wanted):  # all four ranks are what shard="auto" sees
        parts = [each["alone"][number][0] for each in ranks]
        assert [id for part in parts for id in part] == numbers


def test_ranks_with_several_devices_each_read_each_record_once_and_resume(tmp_path: Path) -> None:
    check_all([*TORCHRUN, str(HERE / "rank_devices.py")], tmp_path)


@pytest.mark.parametrize("name", ["frameworks/train_torch.py", "devices/one_process_each.py"])
def test_the_example_runs_under_torchrun(name: str) -> None:
    example = ROOT / "examples" / name
    command = [sys.executable, *TORCHRUN, str(example)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("epoch 2: loss") == 2


def test_a_batch_on_a_device_is_taken_by_the_stream_that_is_current(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Asked each time; DLPack calls the default stream, whose handle is 0, 1."""
    current, taken = [0], []

    class OnDevice:
        is_on_host = False

        def __dlpack__(self, *, stream: int) -> Any:
            taken.append(stream)
            return np.arange(3).__dlpack__()

    monkeypatch.setattr(ours, "_resolved", lambda *_: torch.device("cuda", 1))
    monkeypatch.setattr(ours, "_streams", lambda _: lambda index: current[0] * index)
    hand_over = make_hand_over("cuda:1")
    for current[0] in (0, 77, 0, 12):
        assert hand_over(OnDevice()).tolist() == [0, 1, 2]
    assert taken == [1, 77, 1, 12]


def test_it_is_no_dataloader() -> None:
    view = hr.Loader(Numbers(8), batch_size=2).torch()
    assert not isinstance(view, torch.utils.data.DataLoader | torch.utils.data.IterableDataset)
    for name in ("state_dict", "load_state_dict", "set_epoch", "batch_size", "__len__"):
        assert hasattr(type(view), name), "frameworks look on the class"


class Wrapped(torch.utils.data.IterableDataset):  # type: ignore[misc, name-defined]
    """What somebody may put around a loader."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def __iter__(self) -> Any:
        return iter(self.loader)


class Made(torch.utils.data.IterableDataset):  # type: ignore[misc, name-defined]
    """The same, with a loader that is made in the worker."""

    def __iter__(self) -> Any:
        return iter(hr.Loader(Numbers(8), batch_size=2).torch())


def wrapped() -> Any:
    return Wrapped(hr.Loader(Numbers(8), batch_size=2).torch())


@pytest.mark.parametrize(("method", "make"), [("fork", wrapped), ("spawn", Made)])
def test_in_a_worker_of_a_dataloader_it_says_what_to_do(method: str, make: Any) -> None:
    loader = torch.utils.data.DataLoader(
        make(), batch_size=None, num_workers=1, multiprocessing_context=method
    )
    with pytest.raises(hr.ConfigError, match=r"HR0800.*worker 0 of 1") as caught:
        next(iter(loader))
    assert "without a DataLoader around it" in str(caught.value)


def test_a_dataloader_without_workers_may_stand_around_it() -> None:
    loader = torch.utils.data.DataLoader(wrapped(), batch_size=None, num_workers=0)
    assert [batch.x[0, 0].item() for batch in loader] == [0, 2, 4, 6]
