# SPDX-License-Identifier: Apache-2.0
"""Finds out whether data is the bottleneck, which part of loading, and what to change: ``doctor``,
``watch``, ``region``.

    measure      times of loops, and what the machine does meanwhile; no conclusions
    model        the rules over these numbers: the verdict, the predicted gain of a remedy
    probes       measures what each kind of loader does for a record
    examination  the experiments in order, their findings, and what follows
    remedies     remedies that are tried and applied
    scripts      unmodified training scripts
    kit          one chart kit and one page kit, for every report
    report       what an examination shows: text, a page, a trace
    live         watches a running training
    demo         what `./dev demo` runs

This package is imported when one of these functions is first called, and never by a loader.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from headrace.insight.measure.regions import region

if TYPE_CHECKING:
    from headrace.insight.examination.examine import Tell
    from headrace.insight.live.seen import Watch
    from headrace.insight.measure.loop import Step
    from headrace.insight.report.report import Report

__all__ = ["doctor", "region", "watch"]


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
    progress: Tell = lambda name, number: None,
) -> Report:
    """Examines a loader: does training wait for data, which part of loading is slow, and what would
    help?

    Works on a headrace.Loader, on torch's DataLoader and, with less detail, on any iterable. The
    dataset is only read.

    Args:
        loader: what the training loop iterates. The position of a Headrace loader is restored.
        step: called with each batch, as in your loop. It actually trains; without a step, the
            report covers only what limits the loader, not waiting.
        seconds: approximate duration. If a batch takes longer, the doctor waits for it.
        skip: names of experiments to skip: host, ceiling, real, cached, cold, storage,
            decode, samples, copy, regions, remedies.
        model, optimizer: their state_dict(), training flags and gradients are restored, and their
            parts of the step are timed; ``hr.region`` names other parts.
        sweep: also try different numbers of threads, or of a DataLoader's workers; adds 50 % to the
            duration.
        patience: seconds by which an experiment may exceed its time before the doctor gives up;
            also how long ranks wait for each other.
        ranks: if RANK and WORLD_SIZE are set, as by torchrun, all ranks must call this at the same
            place; they make the same number of steps and are compared.
        verify: afterwards apply a remedy, for another half of ``seconds``, and report its gain next
            to the predicted one: True for the first, or its name ("pack", "threads", "without
            Resize"). It runs on a copy of the loader; a pack or an index is made in a temporary
            folder, in at most two minutes, and removed.
        progress: called with the name and number of each experiment as it starts.

    Returns a Report: ``print`` it. Ctrl-C ends it early with the measurements so far. Raises
    ConfigError if loader is not iterable, for an unknown name in skip or verify, or if seconds is
    not positive.
    """
    from headrace.insight.examination.examine import chosen, examine
    from headrace.insight.examination.findings import Findings
    from headrace.insight.examination.ranks import compare, meet
    from headrace.insight.examination.state import kept
    from headrace.insight.measure.rendezvous import place_from
    from headrace.insight.remedies import verify as verifying

    names = chosen(skip, ["sweep"] if sweep else [])
    if verify:
        verifying.check(verify)
    found = Findings(loader, step)
    if ranks:
        found.rendezvous = meet(place_from(), found, patience)
    try:
        report = examine(found, names, seconds, progress, model, optimizer, patience)
        if found.rendezvous is not None:
            compare(found, found.rendezvous, patience + 2 * seconds)
        if verify and not report.interrupted:
            try:
                with kept(found.ours, model, optimizer, report.notes):
                    report.verified = verifying.verify(found, verify, 0.5 * seconds, progress)
            except KeyboardInterrupt:
                report.interrupted = True
    finally:
        if found.rendezvous is not None:
            found.rendezvous.leave("has ended")
            found.rendezvous.clear()
    return report


def watch(
    loader: Any,
    *,
    every: float | None = 10.0,
    warn: float | None = 0.10,
    port: int | None = None,
    host: str = "127.0.0.1",
    name: str = "",
    window: float = 30.0,
) -> Watch:
    """Watches a training loop: how long it waits for data, and whether that gets worse.

    with hr.watch(loader) as seen:
        for batch in loader:  # as usual
            step(batch)

    Works on a headrace.Loader and its views, hr.prefetch(...), torch's DataLoader and other objects
    of classes in Python. Other iterables (a list, a generator) must be iterated as ``for batch in
    seen``, which works for all. The cost is two clock readings per batch.

    Args:
        loader: what the training loop iterates. It is restored when the context ends.
        every: seconds between status lines on standard error: updated in place on a terminal, at
            most one per minute elsewhere. None: no line. With several ranks, only the first writes.
        warn: if more than this share of the time (0 to 1) is spent waiting for data, one
            headrace.Warning reports that the input has begun to stall. None: never.
        port: serve metrics for Prometheus at http://host:port/metrics; 0 chooses a free port, given
            by ``seen.port``. None: no server.
        host: address to listen on; by default only this machine can connect.
        name: name of the loader, in the status line and as a label of the metrics.
        window: length in seconds of the "recent" window, over which the share is judged.

    Returns a context manager; see its ``stats()``, ``status()`` and ``prometheus()``.
    Raises ConfigError for an object that cannot be iterated, invalid numbers, and a port in use.
    """
    from headrace.insight.live.seen import Watch

    return Watch(loader, every, warn, port, host, name, window)
