# SPDX-License-Identifier: Apache-2.0
"""Several ranks: the slowest one is found, and no rank waits for one that has exited."""

from __future__ import annotations

import dataclasses
import itertools
import json
import multiprocessing
import os
import random
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from forked import free_port
from headrace.insight.examination.ranks import why
from headrace.insight.measure.loop import Window
from headrace.insight.measure.pace import Pace
from headrace.insight.measure.rendezvous import Gone, Place, Rendezvous, place_from
from headrace.insight.model.verdict import RankTimes, judge_ranks
from timing import with_longer_limits

# The verdict, on a virtual clock.


def run_together(data: list[float], step: float, seed: int, queue: int = 2) -> list[RankTimes]:
    """Ranks that end each step together: seconds that each one's batch takes to make, and a step.

    Batches are made ahead, ``queue`` of them. Three windows of 100 steps, one record a batch.
    """
    draw = random.Random(seed)
    count = len(data)
    ready: list[list[float]] = [[] for _ in range(count)]
    taken: list[list[float]] = [[] for _ in range(count)]
    now = 0.0
    edges, waits = [0.0], [[0.0] * 3 for _ in range(count)]
    for number in range(330):
        ends = []
        for rank in range(count):
            room = taken[rank][number - queue] if number >= queue else 0.0
            begin = max(ready[rank][-1] if ready[rank] else 0.0, room)
            ready[rank].append(begin + data[rank] * draw.uniform(0.9, 1.1))
            taken[rank].append(max(now, ready[rank][-1]))
            if number >= 30:
                waits[rank][(number - 30) // 100] += taken[rank][-1] - now
            ends.append(taken[rank][-1] + step * draw.uniform(0.95, 1.05))
        now = max(ends)  # the gradients of all ranks have arrived
        if number in (29, 129, 229, 329):
            edges.append(now)
    spans = [after - before for before, after in itertools.pairwise(edges[1:])]
    return [
        RankTimes(
            rank,
            tuple(
                Window(100 / span, wait / span)
                for span, wait in zip(spans, waits[rank], strict=True)
            ),
            data[rank],
        )
        for rank in range(count)
    ]


@pytest.mark.parametrize("seed", range(60))
def test_the_slow_rank_is_found(seed: int) -> None:
    draw = random.Random(f"slow {seed}")
    count, step = draw.randint(2, 8), 10 ** draw.uniform(-3, 0)
    data = [step * draw.uniform(0.1, 1.5) for _ in range(count)]
    slow, lead = draw.randrange(count), draw.choice([1.3, 2.0, 5.0])
    pace = max(step, *(data[rank] for rank in range(count) if rank != slow))
    data[slow] = lead * pace
    verdict = judge_ranks(run_together(data, step, seed))
    assert verdict is not None and verdict.word == "rank"
    assert verdict.cause == f"the data of rank {slow}"
    assert abs(verdict.margin - (lead - 1)) < 0.35 * lead


@pytest.mark.parametrize("seed", range(60))
def test_no_rank_is_blamed_if_all_are_equally_fast(seed: int) -> None:
    draw = random.Random(f"alike {seed}")
    count, step = draw.randint(2, 8), 10 ** draw.uniform(-3, 0)
    data = [step * draw.choice([0.1, 0.8, 1.0, 1.5, 4.0])] * count
    assert judge_ranks(run_together(data, step, seed)) is None


def test_windows_that_disagree_blame_no_rank() -> None:
    steady = RankTimes(0, (Window(100, 0.2), Window(100, 0.2), Window(100, 0.2)), 0.002)
    torn = RankTimes(1, (Window(100, 0.9), Window(100, 0.1), Window(100, 0.8)), 0.009)
    assert judge_ranks([steady, torn]) is None
    assert judge_ranks([steady, dataclasses.replace(torn, windows=torn.windows[:1])]) is None


def row(rank: int, **values: Any) -> dict[str, Any]:
    return {"rank": rank, "cores": 4, "data_seconds": 0.01, "stages": {"decode": 0.01}, **values}


def test_the_reason_for_a_slow_rank_is_given() -> None:
    rows = [row(0), row(1), row(2)]
    assert why(row(3, cores=1), rows) == "it may use 1 cores, the others 4"
    slow = row(3, data_seconds=0.05, stages={"decode": 0.01, "reading": 0.04})
    assert why(slow, [*rows, slow]).endswith(
        "50.0 ms for a batch, the others' 10.0 ms, mostly because of reading"
    )
    assert "as fast as the others'" in why(row(3), rows)


# The rendezvous.


def place(rank: int, count: int, run: str) -> Place:
    return Place(rank, count, rank, count, run)


def test_the_rendezvous_uses_the_launchers_address() -> None:
    torchrun = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}
    found = place_from(torchrun)
    assert found is not None and (found.rank, found.local_rank, found.local_count) == (5, 1, 4)
    assert not found.one_machine
    assert place_from({"RANK": "0", "WORLD_SIZE": "2"}) is not None
    for environment in ({}, {"RANK": "0", "WORLD_SIZE": "1"}, {"RANK": "x", "WORLD_SIZE": "2"}):
        assert place_from(environment) is None


def take_part(rank: int, count: int, run: str, turns: int, said: Any) -> None:
    rendezvous = Rendezvous(place(rank, count, run), 300)
    rendezvous.arrive()
    values = []
    for turn in range(turns):
        values.append(rendezvous.exchange([rank, turn]))
    try:
        rendezvous.exchange("one more")
        values.append("nobody is gone")
    except Gone as gone:
        values.append(str(gone))
    last, missing = rendezvous.gather(rank, 300)
    said.put((rank, values, last, [str(gone) for gone in missing]))
    rendezvous.leave("has ended")
    rendezvous.clear()


def take_part_and_die(rank: int, count: int, run: str, turns: int) -> None:
    rendezvous = Rendezvous(place(rank, count, run), 300)
    rendezvous.arrive()
    for turn in range(turns):
        rendezvous.exchange([rank, turn])
    os._exit(9)


@pytest.fixture
def run_name(tmp_path: Path) -> str:
    return str(tmp_path)


def test_ranks_exchange_values_and_notice_a_death(run_name: str) -> None:
    start = multiprocessing.get_context("spawn")
    said = start.Queue()
    ranks = [start.Process(target=take_part, args=(r, 3, run_name, 20, said)) for r in (0, 1)]
    ranks.append(start.Process(target=take_part_and_die, args=(2, 3, run_name, 20)))
    for process in ranks:
        process.start()
    told = sorted(said.get(timeout=300) for _ in range(2))
    for process in ranks:
        process.join(300)
    for _, values, last, missing in told:
        assert values[:20] == [[[r, turn] for r in range(3)] for turn in range(20)]
        assert values[20] == "rank 2 has died"
        assert last == [0, 1] and missing == ["rank 2 has died"]


def test_a_rank_that_never_arrives_is_reported(run_name: str) -> None:
    rendezvous = Rendezvous(place(0, 2, run_name), 0.2)
    with pytest.raises(Gone, match=r"rank 1 did not arrive within 0\.2 seconds"):
        rendezvous.arrive()


def test_leftovers_of_an_earlier_run_are_ignored(run_name: str) -> None:
    start = multiprocessing.get_context("spawn")
    said = start.Queue()
    dead = [start.Process(target=take_part_and_die, args=(r, 2, run_name, 1)) for r in (0, 1)]
    for process in dead:
        process.start()
    for process in dead:
        process.join(300)
    ranks = [start.Process(target=take_part, args=(r, 2, run_name, 3, said)) for r in (0, 1)]
    for process in ranks:
        process.start()
    told = [said.get(timeout=300) for _ in range(2)]
    for process in ranks:
        process.join(300)
    assert all(values[3] == "nobody is gone" and not missing for _, values, _, missing in told)


class Clocks:
    """A rendezvous whose other rank is twice as slow as this one."""

    missing = None

    def exchange(self, value: float) -> list[float]:
        return [value, 2 * value]


def test_the_pace_is_that_of_the_slowest_rank() -> None:
    pace = Pace(1.0, Clocks())  # type: ignore[arg-type]
    steps = 0
    while not pace.over(0.01 * steps, steps):
        steps += 1
    assert 50 <= steps < 60


def test_long_steps_need_fewer_repeats_to_measure_the_pace() -> None:
    pace = Pace(1.0, least=10)
    assert not pace.over(3.0, 1) and pace.over(7.0, 2)
    assert not Pace(1.0).over(5.0, 0)


# Real ranks.

SCRIPT = """
import sys, time
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset, DistributedSampler

torch.set_num_threads(1)

class Rows(Dataset):
    def __init__(self, seconds):
        self.seconds = seconds
    def __len__(self):
        return 4000
    def __getitem__(self, index):
        time.sleep(self.seconds)
        return torch.randn(8), index % 3

dist.init_process_group("gloo")
data = Rows(0.02 if dist.get_rank() == int(sys.argv[1]) else 0.0)
loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data))
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
"""
LOOP = """
for epoch in range(10 ** 6):
    loader.sampler.set_epoch(epoch)
    for step, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        BREAKS
"""


def torchrun(folder: Path, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "train.py").write_text(text)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2"]
    launcher += ["--master_port", str(free_port())]
    return subprocess.run(
        [*launcher, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env={**os.environ, "TORCHELASTIC_RUN_ID": str(folder)},
    )


def examined(
    folder: Path, seconds: float, breaks: str = "pass"
) -> subprocess.CompletedProcess[str]:
    skip = [word for name in ("cold", "storage", "remedies", "copy") for word in ("--skip", name)]
    return torchrun(
        folder,
        SCRIPT + LOOP.replace("BREAKS", breaks),
        *("-m", "headrace", "doctor", "--json", "--script", "train.py"),
        *("--seconds", str(seconds), *skip, "--patience", str(6 * seconds), "--", "1"),
    )


def test_a_slow_rank_under_torchrun_is_found(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("typer")

    def check(seconds: float) -> None:
        done = examined(tmp_path, seconds)
        report = json.loads(done.stdout)  # one: rank 0's
        assert [rank["rank"] for rank in report["ranks"]] == [0, 1], done.stderr
        first, second = report["ranks"]
        assert second["wait_seconds"] > first["wait_seconds"]
        assert first["data_seconds"] < second["data_seconds"]
        assert report["verdict"] == "rank" and report["cause"] == "the data of rank 1", report
        assert any("Rank 1 is the slowest" in note for note in report["notes"])

    with_longer_limits(check, (2, 8, 20))


@pytest.mark.parametrize(
    ("breaks", "said"),
    [
        ("if step == 30 and dist.get_rank() == 1: raise OSError('no disk')", "no disk"),
        ("if step == 30 and dist.get_rank() == 1: sys.stderr.flush(), __import__('os')._exit(0)",
         "ank 1 has died"),
    ],
)  # fmt: skip
def test_a_rank_that_has_exited_is_reported(tmp_path: Path, breaks: str, said: str) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("typer")

    def check(seconds: float) -> None:
        done = examined(tmp_path, seconds, breaks)
        report = json.loads(done.stdout)
        text = json.dumps([report["notes"], report["ranks"]])
        assert said in text, (report["notes"], done.stderr)

    with_longer_limits(check, (2, 8, 20))


def test_hr_doctor_compares_ranks(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    call = textwrap.dedent(
        """
        import json, sys
        import headrace as hr
        def step(batch):
            x, y = batch
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        skip = ["cold", "storage", "remedies", "copy"]
        for turn in range(2):
            given = dict(model=model, optimizer=optimizer, seconds=float(sys.argv[2]), skip=skip)
            report = hr.doctor(loader, step, **given)
        if dist.get_rank() == 0:
            print(json.dumps(report.json()))
        dist.destroy_process_group()
        """
    )

    def check(seconds: float) -> None:
        done = torchrun(tmp_path, SCRIPT + call, "train.py", "0", str(seconds))
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        assert report["verdict"] == "rank" and report["cause"] == "the data of rank 0", report

    with_longer_limits(check, (2, 8, 20))
