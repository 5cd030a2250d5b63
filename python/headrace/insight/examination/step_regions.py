# SPDX-License-Identifier: Apache-2.0
"""The experiment "regions": some steps on one batch, with their parts timed."""

from __future__ import annotations

import time
from typing import Any

from headrace.insight.examination.findings import Findings
from headrace.insight.measure.loop import once_more, settle
from headrace.insight.measure.pace import Pace
from headrace.insight.measure.regions import Recorder, clock_of_steps, recording
from headrace.insight.measure.torch_regions import watched
from headrace.insight.stand_in import StandIn, on_device

_PATIENT = 3  # a step longer than this many times the experiment's seconds is skipped
_ENOUGH = 3  # number of steps without any region after which there are assumed to be none


def time_regions(found: Findings, seconds: float) -> None:
    """How a step's time divides into the user's regions, and those that torch's hooks report."""
    if found.step is None or isinstance(found.step, StandIn) or not found.keep():
        return
    if _step_seconds(found) > _PATIENT * seconds:
        found.note("The step is too long for its regions to be timed in so short an examination.")
        return
    recorder = Recorder(clock_of_steps())
    try:
        _run(found, recorder, on_device(found.kept[0], found.step), seconds)
    except Exception as error:
        if not recorder.steps:
            _run(found, recorder, found.kept[0], seconds)  # the step expects a batch on the host
        else:
            found.note(f"The regions of the step ended early: {type(error).__name__}: {error}")
    if recorder.found:
        found.report.regions = recorder.regions()


def _step_seconds(found: Findings) -> float:
    """Seconds of one step; with several ranks, those of the slowest, so that all ranks make the
    same decision."""
    own = found.ceiling.step.mean if found.ceiling is not None else 0.0
    if found.rendezvous is None or found.rendezvous.missing is not None:
        return own
    return float(max(found.rendezvous.exchange(own)))


def _run(found: Findings, recorder: Recorder, batch: Any, seconds: float) -> None:
    """Runs steps for this long; the first one is not counted if there is time for another."""
    step, begin, count = found.step, time.perf_counter(), 0
    pace = Pace(seconds, found.rendezvous)
    assert step is not None
    with recording(recorder), watched(recorder, found.model, found.optimizer):
        while True:
            given = once_more(batch, found.copies)
            with recorder.step():
                step(given)
            settle()
            count += 1
            if count >= _ENOUGH and not recorder.found:
                return
            if pace.over(time.perf_counter() - begin - pace.compared, count):
                return
            if count == 1:
                recorder.forget()
