# SPDX-License-Identifier: Apache-2.0
"""Where a step spends its time: named regions, regions from torch, and no leftover hooks."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from headrace.insight.measure.regions import HostClock, Recorder, recording
from virtual_clock import VirtualClock

import headrace as hr

QUICK = ["host", "cold", "storage", "decode", "copy", "remedies"]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> VirtualClock:
    return VirtualClock(monkeypatch)


def examined(step: Any, **options: Any) -> Any:
    batches = [np.ones((4, 3), np.float32)] * 8
    return hr.doctor(batches, step, **{"seconds": 1, "skip": QUICK, **options})


def by_path(report: Any) -> dict[str, Any]:
    return {"/".join(region.path): region for region in report.regions}


def test_regions_report_their_share_and_self_time(clock: VirtualClock) -> None:
    def step(batch: Any) -> None:
        clock.sleep(0.001)
        for _ in range(2):
            with hr.region("encoders"):
                clock.sleep(0.001)
                with hr.region("fusion"):
                    clock.sleep(0.003)
        with hr.region("fusion"):
            clock.sleep(0.001)

    report = examined(step)
    found = by_path(report)
    assert list(found) == ["step", "step/encoders", "step/encoders/fusion", "step/fusion"]
    seconds = {path: (region.seconds, region.own_seconds) for path, region in found.items()}
    expected = {
        "step": (0.010, 0.001),
        "step/encoders": (0.008, 0.002),
        "step/encoders/fusion": (0.006, 0.006),
        "step/fusion": (0.001, 0.001),
    }
    for path, numbers in expected.items():
        assert seconds[path] == pytest.approx(numbers, abs=5e-5), path
    assert found["step/encoders"].share == pytest.approx(0.8, abs=0.01)
    assert found["step/encoders"].calls == 2 and found["step/fusion"].calls == 1
    value = report.json()["regions"][1]
    assert value["path"] == ["step", "encoders"] and value["seconds"] == pytest.approx(0.008, 0.01)


def test_the_report_shows_them_as_a_table(clock: VirtualClock) -> None:
    def step(batch: Any) -> None:
        with hr.region("fusion"):
            clock.sleep(0.003)
        clock.sleep(0.001)
        with hr.region("nearly nothing"):
            pass

    text = str(examined(step))
    lines = text[text.index("Where the step's time goes") :].splitlines()
    assert re.fullmatch(r" +step +4\.0\d ms  100%  outside these 1\.0\d ms", lines[1])
    assert re.fullmatch(r" +fusion +3\.00 ms +75%", lines[2])
    assert lines[3] == "" and "nearly nothing" not in text


def test_without_regions_there_is_no_table(clock: VirtualClock) -> None:
    report = examined(lambda batch: clock.sleep(0.001))
    assert report.regions == [] and "Where the step's time goes" not in str(report)


def test_regions_outside_of_an_examination_do_nothing() -> None:
    with hr.region("fusion"), hr.region("fusion"):
        pass
    with pytest.raises(KeyError), hr.region("fusion"):
        raise KeyError


@pytest.mark.parametrize("name", ["", None, 3])
def test_a_region_needs_a_name(name: Any) -> None:
    with pytest.raises(hr.ConfigError, match="got") as caught:
        hr.region(name)
    assert caught.value.code == "HR0931"


def test_an_error_leaves_no_region_open() -> None:
    recorder = Recorder(HostClock())
    with recording(recorder):
        for _ in range(2):
            recorder.begin("step")
            with pytest.raises(KeyError), hr.region("outer"):
                recorder.begin("hook that is never ended")
                raise KeyError
            recorder.end("step")
    paths = [region.path for region in recorder.regions()]
    assert paths == [
        ("step",),
        ("step", "outer"),
        ("step", "outer", "hook that is never ended"),
    ]


def test_regions_of_other_threads_are_left_out() -> None:
    recorder = Recorder(HostClock())

    def elsewhere() -> None:
        with hr.region("elsewhere"):
            pass

    with recording(recorder), hr.region("here"):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert [region.name for region in recorder.regions()] == ["here"]


def test_a_step_that_fails_in_the_experiment_is_reported(clock: VirtualClock) -> None:
    calls: Iterator[int] = iter(range(10**6))

    def step(batch: Any) -> None:
        with hr.region("fusion"):
            clock.sleep(0.01)
        if failing and next(calls) == 2:
            raise ValueError("loss is NaN")

    failing = False

    def tell(name: str, number: int) -> None:
        nonlocal failing
        failing = name == "regions"

    report = examined(step, progress=tell)
    assert any("regions of the step ended early: ValueError: loss" in n for n in report.notes)
    assert by_path(report)["step/fusion"].seconds == pytest.approx(0.01, rel=0.01)


def test_a_long_step_is_not_repeated(clock: VirtualClock) -> None:
    counts = {"regions": 0}
    present = ""

    def step(batch: Any) -> None:
        counts[present] = counts.get(present, 0) + 1
        with hr.region("all of it"):
            clock.sleep(10)

    def tell(name: str, number: int) -> None:
        nonlocal present
        present = name

    report = examined(step, progress=tell)
    assert counts["regions"] == 0 and report.regions == []
    assert any("too long for its regions" in note for note in report.notes)


# Regions that torch reports by itself.


def make_step(clock: VirtualClock | None = None) -> tuple[Any, Any, Any]:
    torch = pytest.importorskip("torch")

    class Slow(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, seconds: float) -> None:
            super().__init__()
            self.seconds, self.linear = seconds, torch.nn.Linear(3, 3)

        def forward(self, x: Any) -> Any:
            if clock is not None:
                clock.sleep(self.seconds)
            return self.linear(x)

    class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.head = Slow(0.004), Slow(0.001)

        def forward(self, x: Any) -> Any:
            return self.head(self.encoder(x))

    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)

    def step(batch: Any) -> None:
        optimizer.zero_grad()
        out = model(torch.as_tensor(batch))
        if clock is not None:
            clock.sleep(0.002)
        loss = out.square().mean()
        loss.backward()
        optimizer.step()

    return model, optimizer, step


def test_forward_children_loss_backward_and_optimizer_are_found(clock: VirtualClock) -> None:
    model, optimizer, step = make_step(clock)
    found = by_path(examined(step, model=model, optimizer=optimizer))
    assert list(found) == [
        "step",
        "step/optimizer.zero_grad",
        "step/forward",
        "step/forward/encoder",
        "step/forward/head",
        "step/loss",
        "step/backward",
        "step/optimizer.step",
    ]
    for path, seconds in [("forward", 0.005), ("forward/encoder", 0.004), ("loss", 0.002)]:
        assert found[f"step/{path}"].seconds == pytest.approx(seconds, abs=1e-4), path
    assert found["step/forward"].own_seconds == pytest.approx(0, abs=1e-4)
    assert {region.calls for region in found.values()} == {1}


def test_a_region_named_loss_replaces_the_guess(clock: VirtualClock) -> None:
    torch = pytest.importorskip("torch")
    model, optimizer, _ = make_step(clock)

    def step(batch: Any) -> None:
        out = model(torch.as_tensor(batch))
        clock.sleep(0.004)
        with hr.region("loss"):
            clock.sleep(0.001)
            loss = out.square().mean()
        loss.backward()

    found = by_path(examined(step, model=model, optimizer=optimizer))
    assert found["step/loss"].seconds == pytest.approx(0.001, abs=1e-4)
    assert found["step/loss"].calls == 1 and found["step/backward"].calls == 1


def test_hooks_and_methods_are_restored() -> None:
    torch = pytest.importorskip("torch")
    model, optimizer, step = make_step()
    modules = [model, *model.children()]
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_forward_hooks_always_called")

    def state() -> list[Any]:
        hooks = [dict(getattr(m, kind)) for m in modules for kind in kinds]
        steps = [
            dict(optimizer._optimizer_step_pre_hooks),
            dict(optimizer._optimizer_step_post_hooks),
        ]
        return [*hooks, *steps, optimizer.__dict__.get("step"), optimizer.__dict__.get("zero_grad")]

    backward = torch.Tensor.backward, torch.autograd.backward
    before = state()
    during: list[Any] = []

    def watching(batch: Any) -> None:
        during.append(state())
        step(batch)

    report = examined(watching, model=model, optimizer=optimizer)
    assert by_path(report)["step/backward"].seconds > 0
    assert any(seen != before for seen in during)  # otherwise nothing was tested
    assert state() == before
    assert (torch.Tensor.backward, torch.autograd.backward) == backward


def test_hooks_and_methods_are_restored_after_ctrl_c() -> None:
    torch = pytest.importorskip("torch")
    model, optimizer, step = make_step()
    backward = torch.Tensor.backward
    present = ""

    def tell(name: str, number: int) -> None:
        nonlocal present
        present = name

    def pressed(batch: Any) -> None:
        step(batch)
        if present == "regions":
            raise KeyboardInterrupt

    report = examined(pressed, model=model, optimizer=optimizer, progress=tell)
    assert report.interrupted and torch.Tensor.backward is backward
    assert not model._forward_hooks and "zero_grad" not in optimizer.__dict__


def test_importing_headrace_imports_no_regions() -> None:
    code = (
        "import sys, headrace as hr\n"
        "assert not any(name.startswith('headrace.insight.examination') for name in sys.modules)\n"
        "with hr.region('fusion'): pass\n"
        "assert 'torch' not in sys.modules and 'headrace.insight.report' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
