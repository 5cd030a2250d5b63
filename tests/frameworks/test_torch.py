# SPDX-License-Identifier: Apache-2.0
"""torch's tensors; several ranks under torchrun; a clear error inside a DataLoader's worker."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Numbers

import headrace as hr

torch = pytest.importorskip("torch")
import elastic_log  # noqa: E402
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


def check_training(folder: Path, worlds: list[int]) -> None:
    """Counting committed steps, each record was delivered once per epoch, and training is the same
    as in one process.
    """
    runs = elastic_log.runs_in(folder)
    found = iter([run.world for run in runs])
    assert all(world in found for world in worlds), runs  # in this order, with others in between
    steps = elastic_log.committed(runs)
    epochs = len(steps) // elastic_log.BATCHES
    assert epochs >= 2 and len(steps) == epochs * elastic_log.BATCHES
    elastic_log.check(steps, epochs)
    source = elastic_log.range_of_numbers()
    whole = hr.Loader(source, global_batch_size=elastic_log.GLOBAL, shuffle=True, seed=3)
    weight = 0.0
    for step, batch in zip(steps, (b for _ in range(epochs) for b in whole), strict=True):
        weight -= 1e-4 * float(np.mean(2 * (weight * batch.x - 1) * batch.x))
        assert [each[3] for each in step] == pytest.approx([weight] * len(step), rel=1e-4)


def test_a_killed_job_resumes_with_another_number_of_ranks(tmp_path: Path) -> None:
    def run(world: int, *die: str) -> int:
        command = [*TORCHRUN[:-1], str(world), str(HERE / "rank_elastic.py"), str(tmp_path), *die]
        return subprocess.run([sys.executable, *command], timeout=300).returncode

    assert run(2, "9") != 0  # the ninth step, of the second epoch, is not in the checkpoint
    (tmp_path / "end").touch()
    assert run(3) == 0
    check_training(tmp_path, [2, 3])
    assert len(elastic_log.runs_in(tmp_path)[0].steps) == 9


@pytest.mark.skipif(
    "LONG_TESTS" not in os.environ,
    reason="torchrun's nodes need an idle machine and minutes: ./dev test --frameworks",
)
def test_nodes_of_an_elastic_job_join_and_are_killed(tmp_path: Path) -> None:
    """Agents of one torchrun job: two, then two more; one is killed, and three continue."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable, "-m", "torch.distributed.run", "--nnodes=2:4", "--nproc-per-node=1",
        "--max-restarts=50", "--monitor-interval=0.2", "--rdzv-backend=c10d", "--rdzv-id=job",
        f"--rdzv-endpoint=127.0.0.1:{port}", "--local-addr=127.0.0.1",
        "--rdzv-conf=last_call_timeout=2,keep_alive_interval=1,keep_alive_max_attempt=5",
        str(HERE / "rank_elastic.py"), str(tmp_path),
    ]  # fmt: skip
    agents: list[subprocess.Popen[bytes]] = []
    told = (tmp_path / "stderr").open("wb")

    def start(count: int) -> None:
        for _ in range(count):
            agents.append(subprocess.Popen(command, stderr=told, cwd=tmp_path))

    def await_steps(world: int) -> None:
        end = time.monotonic() + 600
        while not any(run.world == world and len(run.steps) > 4 for run in latest()):
            assert time.monotonic() < end, elastic_log.runs_in(tmp_path)
            assert all(agent.poll() is None for agent in agents)
            time.sleep(0.2)

    def latest() -> list[elastic_log.Run]:
        return elastic_log.runs_in(tmp_path)[-1:]

    try:
        start(2)
        await_steps(2)
        start(2)
        await_steps(4)
        last = agents.pop()
        for process in [last.pid, *descendants(last.pid)]:
            os.kill(process, signal.SIGKILL)
        last.wait()
        await_steps(3)
        (tmp_path / "end").touch()
        assert [agent.wait(600) for agent in agents] == [0, 0, 0]
    finally:
        for agent in agents:
            for process in [*descendants(agent.pid), agent.pid]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            agent.wait()
        told.close()
    check_training(tmp_path, [2, 4, 3])


def descendants(pid: int) -> list[int]:
    """The processes it has started, and their children."""
    with contextlib.suppress(FileNotFoundError):
        children = list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
        return children + [each for child in children for each in descendants(child)]
    return []


def test_ranks_of_a_mesh_get_the_batches_of_their_data_parallel_group(tmp_path: Path) -> None:
    """Ranks of one tensor-parallel group get the same records; all groups together get each record
    once."""
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
    for number, numbers in enumerate(wanted):  # shard="auto" divides over all four ranks
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


def test_a_batch_on_a_device_is_passed_to_the_current_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Queried each time; DLPack calls the default stream, whose handle is 0, 1."""
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


def test_a_view_has_a_dataloaders_methods_but_is_not_one() -> None:
    view = hr.Loader(Numbers(8), batch_size=2).torch()
    assert not isinstance(view, torch.utils.data.DataLoader | torch.utils.data.IterableDataset)
    for name in ("state_dict", "load_state_dict", "set_epoch", "batch_size", "__len__"):
        assert hasattr(type(view), name), "frameworks look on the class"


class Wrapped(torch.utils.data.IterableDataset):  # type: ignore[misc, name-defined]
    """Wrappers that users may put around a loader."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def __iter__(self) -> Any:
        return iter(self.loader)


class Made(torch.utils.data.IterableDataset):  # type: ignore[misc, name-defined]
    """The same, with a loader created in the worker."""

    def __iter__(self) -> Any:
        return iter(hr.Loader(Numbers(8), batch_size=2).torch())


def wrapped() -> Any:
    return Wrapped(hr.Loader(Numbers(8), batch_size=2).torch())


@pytest.mark.parametrize(("method", "make"), [("fork", wrapped), ("spawn", Made)])
def test_the_error_in_a_dataloader_worker_says_what_to_do(method: str, make: Any) -> None:
    loader = torch.utils.data.DataLoader(
        make(), batch_size=None, num_workers=1, multiprocessing_context=method
    )
    with pytest.raises(hr.ConfigError, match=r"HR0800.*worker 0 of 1") as caught:
        next(iter(loader))
    assert "without a DataLoader around it" in str(caught.value)


def test_a_dataloader_without_workers_may_wrap_it() -> None:
    loader = torch.utils.data.DataLoader(wrapped(), batch_size=None, num_workers=0)
    assert [batch.x[0, 0].item() for batch in loader] == [0, 2, 4, 6]
