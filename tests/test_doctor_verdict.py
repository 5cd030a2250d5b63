# SPDX-License-Identifier: Apache-2.0
"""The doctor's model on a virtual clock: planted causes are found, and predicted ranges hold."""

from __future__ import annotations

import dataclasses
import math
import random

import pytest
from headrace.insight.measure.loop import Window
from headrace.insight.model import prediction as remedies
from headrace.insight.model.case import Case, Stage
from headrace.insight.model.verdict import judge
from simulated_loader import Run, simulate

CAUSES = (
    "storage",
    "small-files",
    "decode",
    "operator",
    "python",
    "workers",
    "collate",
    "memory",
    "copy",
    "consumer",
    "fed",
)
CASES = 10  # for each cause
LEAST = 1.12  # a margin of over 10 %


def planted(cause: str, seed: int) -> Case:
    """A loop with one cause, which is at least 12 % slower than the next limit."""
    draw = random.Random(f"{cause} {seed}")
    lead = draw.choice([LEAST, 1.3, 2.0, 5.0])
    cores = draw.choice([1, 2, 4, 8])
    unit = 10 ** draw.uniform(-4, -1.5)  # seconds between records at the limit
    free = unit / lead  # the maximum time of all other limits per record

    def spend(seconds: float) -> float:
        return seconds * draw.uniform(0.3, 1.0)

    # On the cores: decode, one operator, collate. Each must not be reported as another.
    parts = {"decode": spend(1), "operator": spend(1), "collate": spend(0.5)}
    busy = free * cores * draw.uniform(0.3, 0.8)
    if cause in parts:
        others = sum(parts.values()) - parts[cause]
        biggest = max(value for name, value in parts.items() if name != cause)
        parts[cause] = max(parts[cause], biggest * LEAST, others)
        busy = unit * cores
    scale = busy / sum(parts.values())
    depth = draw.choice([1, 2, 4])
    reads = unit if cause in ("storage", "small-files", "fed") else spend(free)
    python = unit if cause == "python" else spend(free / 2) if draw.random() < 0.5 else 0.0
    if cause != "python":
        python = min(python, (free * cores - busy) * 0.5) if cause not in parts else 0.0
    elif (busy + python) / cores > free:
        cut = max(0.02, (free * cores - python) / busy) if free * cores > python else 0.02
        scale *= cut
    stages = [
        Stage("reading", "storage", reads * depth, ("disk",)),
        Stage("decode", "decode", parts["decode"] * scale),
        Stage("Rotation", "operator", parts["operator"] * scale),
        Stage("collate", "collate", parts["collate"] * scale),
    ]
    if python > 0:
        stages.append(Stage("speckle", "python", python, ("gil",)))
    total = sum(stage.seconds for stage in stages)
    workers = int(total / free) + 2 + depth + cores
    step, copy, places = spend(free), 0.0, math.inf
    if cause == "workers":
        workers = draw.choice([1, 2, 3])
        shrink = unit * workers / total
        stages = [dataclasses.replace(s, seconds=s.seconds * shrink) for s in stages]
        heaviest = max(sum(s.seconds for s in stages if r in s.resources) for r in ("disk", "gil"))
        cpu = sum(s.seconds for s in stages if "cores" in s.resources)
        cores, depth = max(cores, int(cpu / free) + 1), int(heaviest / free) + 1
    elif cause == "memory":
        places = draw.choice([1, 2, 3])
        held = ("memory", "cores")
        cpu = sum(s.seconds for s in stages if s.resources == ("cores",))
        stages = [
            dataclasses.replace(s, seconds=s.seconds * unit * places / cpu, resources=held)
            if s.resources == ("cores",)
            else s
            for s in stages
        ]
        cores = max(cores, int(unit * places / free) + 1)
        workers = int(sum(stage.seconds for stage in stages) / free) + 2 + depth + cores
    elif cause == "copy":
        copy, step = unit * 0.6, unit * 0.4
    elif cause == "consumer":
        step = unit * 2 * lead
    elif cause == "fed":
        step = unit * draw.uniform(1.2, 1.6)
    return Case(
        tuple(stages),
        workers,
        cores,
        step,
        copy,
        float(depth),
        gils=max(1, depth if cause == "workers" else 1),
        small_files=cause == "small-files",
        memory_places=places,
    )


def windows(case: Case) -> list[Run]:
    return [simulate(case, seed=seed) for seed in range(3)]


def verdict_of(case: Case) -> str:
    return judge(case, [Window(run.rate, run.stall) for run in windows(case)]).word


@pytest.mark.parametrize("cause", CAUSES)
def test_the_planted_cause_is_found_every_time(cause: str) -> None:
    found = [verdict_of(planted(cause, seed)) for seed in range(CASES)]
    assert found == [cause] * CASES


def offered(case: Case) -> list[remedies.Remedy]:
    """A remedy of each kind that makes sense for the case."""
    found = [
        remedies.more_workers(case, case.workers * 2, "threads"),
        remedies.cheaper(case, "pack", "pack", {"decode": (0.6, 0.3), "storage": (0.5, 0.1)}),
        remedies.cheaper(case, "index", "index", {"decode": (0.8, 0.6)}),
        remedies.cheaper(case, "cache", "cache", {"storage": (0.05, 0.0)}),
        remedies.resized_once(case, "resize", pixels=(0.5, 0.2)),
        remedies.cheaper(case, "uint8", "uint8", {"Rotation": (0.0, 0.0)}, copy=(0.3, 0.25)),
        remedies.without(case, "Rotation", "leave out", spread=0.1),
        remedies.cheaper(case, "half the work", "cheaper", {"speckle": (0.5, 0.5)}),
        remedies.cheaper(case, "resident", "resident", {"storage": (0, 0), "decode": (0, 0)}),
    ]
    fast = 3 / (case.step_seconds + case.copy_seconds)
    return [*found, remedies.replaced(case, "Headrace", "replace", (fast, fast * 1.1))]


def between(remedy: remedies.Remedy, share: float) -> Case:
    """The actual gain of a remedy: between its predicted minimum and maximum."""

    def mixed(name: str) -> float:
        worst, best = getattr(remedy.worst, name), getattr(remedy.best, name)
        return float(worst + (best - worst) * share)

    stages = tuple(
        dataclasses.replace(low, seconds=low.seconds + (high.seconds - low.seconds) * share)
        for low, high in zip(remedy.worst.stages, remedy.best.stages, strict=True)
    )
    return dataclasses.replace(remedy.best, stages=stages, copy_seconds=mixed("copy_seconds"))


@pytest.mark.parametrize("cause", CAUSES)
def test_a_remedys_gain_is_in_the_predicted_range(cause: str) -> None:
    missed = []
    for seed in range(CASES):
        case = planted(cause, seed)
        before = simulate(case).rate
        for number, remedy in enumerate(offered(case)):
            prediction = remedies.predict(case, remedy, before)
            share = random.Random(seed * 100 + number).random()
            after = simulate(between(remedy, share)).rate
            if not prediction.low <= after <= prediction.high:
                missed.append((seed, remedy.name, prediction.low, after, prediction.high))
    assert missed == []


@pytest.mark.parametrize("cause", CAUSES)
def test_ranges_are_narrow_for_exactly_known_remedies(cause: str) -> None:
    widths = []
    for seed in range(CASES):
        case = planted(cause, seed)
        remedy = remedies.more_workers(case, case.workers * 2, "threads")
        prediction = remedies.predict(case, remedy, simulate(case).rate)
        widths.append(prediction.high / prediction.low)
    assert sorted(widths)[CASES // 2] < 1.5


def test_the_named_cause_is_the_one_on_the_virtual_clock() -> None:
    """Without the planted cause the simulated loop runs faster; without any other cause it does
    not."""
    for seed in range(CASES):
        case = planted("decode", seed)
        before = simulate(case).rate

        def rate_without(kind: str, case: Case = case) -> float:
            kept = tuple(s for s in case.stages if s.kind != kind)
            return simulate(dataclasses.replace(case, stages=kept)).rate

        assert rate_without("decode") > before * 1.08
        assert rate_without("storage") < before * 1.15


def test_no_verdict_if_windows_disagree_by_more_than_the_margin() -> None:
    stages = (Stage("decode", "decode", 0.010), Stage("read", "storage", 0.008, ("disk",)))
    case = Case(stages, workers=4, cores=1, step_seconds=0.001)
    steady = [Window(100, 0.9), Window(102, 0.9), Window(99, 0.9)]
    torn = [Window(100, 0.9), Window(140, 0.8), Window(90, 0.9)]
    assert judge(case, steady).word == "decode"
    verdict = judge(case, torn)
    assert (verdict.word, verdict.likely) == ("unsure", "decode")
    assert verdict.noise == pytest.approx(0.5) and verdict.margin == pytest.approx(0.25)


def test_no_verdict_if_only_some_windows_starve() -> None:
    case = Case((Stage("decode", "decode", 0.01),), workers=1, cores=1, step_seconds=0.02)
    assert judge(case, [Window(50, 0.0), Window(50, 0.01), Window(30, 0.4)]).word == "unsure"


def test_the_consumer_is_the_limit_if_the_input_is_fast() -> None:
    case = Case((Stage("decode", "decode", 0.001),), workers=1, cores=1, step_seconds=0.02)
    verdict = judge(case, [Window(50, 0.001)] * 3)
    assert verdict.word == "consumer" and verdict.margin == pytest.approx(19)


def test_one_stage_of_each_resource_gives_the_textbook_rates() -> None:
    from headrace.insight.model.case import sustained

    stages = (
        Stage("read", "storage", 0.004, ("disk",)),
        Stage("decode", "decode", 0.010),
        Stage("speckle", "python", 0.002, ("gil",)),
    )
    case = Case(stages, workers=8, cores=4, disk_depth=2, step_seconds=0.001, copy_seconds=0.0005)
    rates = {
        name: pytest.approx(rate)
        for name, rate in {
            "cores": 400,
            "disk": 500,
            "gil": 500,
            "workers": 500,
            "device": 1000,
            "copy": 2000,
        }.items()
    }
    assert sustained(case) == rates


def test_occasional_waiting_does_not_blame_a_fast_input() -> None:
    case = Case((Stage("decode", "decode", 0.001),), workers=1, cores=1, step_seconds=0.01)
    assert judge(case, [Window(90, 0.10)] * 3).word == "consumer"
    assert judge(case, [Window(60, 0.40)] * 3).word == "unsure"


def test_one_window_gives_no_verdict() -> None:
    case = Case((Stage("decode", "decode", 0.01),), workers=1, cores=1, step_seconds=0.001)
    assert judge(case, [Window(90, 0.9)]).word == "unsure"


@pytest.mark.parametrize("cause", CAUSES)
def test_no_cause_is_named_while_other_programs_run(cause: str) -> None:
    """They take half of the cores, so the measured loop is not the planted one."""
    for seed in range(4):
        case = planted(cause, seed)
        less = dataclasses.replace(case, cores=max(1, case.cores // 2))
        seen = [Window(run.rate, run.stall) for run in windows(less)]
        verdict = judge(case, seen, contention=0.4)
        assert verdict.word == "unsure"
        assert verdict.reason.startswith("other programs took 40% of the core time")
        assert judge(case, seen, contention=0.1) == judge(case, seen)


def test_too_few_batches_of_a_prefetching_loader_give_no_verdict() -> None:
    case = planted("storage", 1)
    steady = [Window(90, 0.9)] * 3
    verdict = judge(case, steady, batches=3)
    assert (verdict.word, verdict.likely) == ("unsure", "storage")
    assert verdict.reason.startswith("only 3 batches were received")
    assert judge(case, steady, batches=6).word == "storage"
    alone = dataclasses.replace(case, overlapped=False)
    assert judge(alone, steady, batches=3) == judge(alone, steady)
