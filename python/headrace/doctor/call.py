# SPDX-License-Identifier: Apache-2.0
"""The function that people call: ``hr.doctor(loader, step)``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headrace.doctor.examination import Tell, chosen, examine
from headrace.doctor.findings import Findings
from headrace.doctor.ranks import compare, meet
from headrace.doctor.remedies import verify as verifying
from headrace.doctor.reports.report import Report
from headrace.doctor.state import kept
from headrace.measure.loop import Step
from headrace.measure.rendezvous import place_from


def doctor(
    loader: Any,
    step: Step | None = None,
    *,
    seconds: float = 40.0,
    skip: Iterable[str] = (),
    model: Any = None,
    optimizer: Any = None,
    sweep: bool = False,
    patience: float = 60.0,
    ranks: bool = True,
    verify: bool | str = False,
    tell: Tell = lambda name, number: None,
) -> Report:
    """Examines a loader: does training wait for data, for which part of it, and what would help?

    Works on a headrace.Loader, on torch's DataLoader, and on anything that a for loop accepts,
    about which less can be told. The dataset is only read.

    Args:
        loader: what the training loop iterates. Its position is put back, if it is ours.
        step: called with each batch, as your loop does. It trains for real; without one nothing is
            said about waiting, only about what limits the loader.
        seconds: about how long it takes. A batch that takes longer is waited for.
        skip: names of experiments to leave out: host, ceiling, real, cached, cold, storage,
            decode, samples, copy, regions, remedies.
        model, optimizer: have their state_dict(), training flags and gradients put back, and
            their parts of the step timed; ``hr.region`` names others.
        sweep: also try other numbers of threads, or of workers of a DataLoader, in half as much
            time again.
        patience: seconds that an experiment may take beyond its time before it is given up; also
            how long ranks wait for each other.
        ranks: where RANK and WORLD_SIZE say that this is one process of several, as torchrun does,
            all of them call this at the same place, do as many steps, and are compared.
        verify: apply a remedy for real, afterwards, for as long again as half of ``seconds``, and
            say what it gave beside what was predicted: True for the first, or its name ("pack",
            "threads", "without Resize"). It runs on a copy of the loader; a pack or an index is
            made in a temporary folder, in at most two minutes, and removed.
        tell: called with the name and number of each experiment as it begins.

    Returns a Report: ``print`` it. Ctrl-C ends it early with what was measured until then.
    Raises ConfigError for what is no loader, an unknown name in skip or verify, or no seconds.
    """
    names = chosen(skip, ["sweep"] if sweep else [])
    if verify:
        verifying.check(verify)
    found = Findings(loader, step)
    if ranks:
        found.rendezvous = meet(place_from(), found, patience)
    try:
        report = examine(found, names, seconds, tell, model, optimizer, patience)
        if found.rendezvous is not None:
            compare(found, found.rendezvous, patience + 2 * seconds)
        if verify and not report.interrupted:
            try:
                with kept(found.ours, model, optimizer, report.notes):
                    report.verified = verifying.verify(found, verify, 0.5 * seconds, tell)
            except KeyboardInterrupt:
                report.interrupted = True
    finally:
        if found.rendezvous is not None:
            found.rendezvous.leave("has ended")
            found.rendezvous.clear()
    return report
