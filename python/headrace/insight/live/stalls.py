# SPDX-License-Identifier: Apache-2.0
"""Detects when the input begins to fall behind, and what changed at that time.

>>> stalls = Stalls(0.10)
>>> [stalls.begins(share) for share in (0.02, 0.30, 0.01, 0.30, 0.40, 0.50)]
[False, False, False, False, True, False]
"""

from __future__ import annotations

from headrace.counters import WORK
from headrace.insight.live.window import Snapshot

_WINDOWS = 2  # consecutive windows that confirm a stall
_MORE = 1.3  # factor by which a figure must change to be named


class Stalls:
    """One warning per stall: it begins with two windows above the threshold, and ends with two
    below half of it.
    """

    def __init__(self, share: float) -> None:
        self.share = share
        self._run = 0  # consecutive windows that indicate a change
        self.stalled = False
        self.count = 0

    def begins(self, share: float | None) -> bool:
        """Called after each window; ``share`` is the fraction of waiting, None without a loop."""
        if share is None:
            return False
        changing = share < self.share / 2 if self.stalled else share > self.share
        self._run = self._run + 1 if changing else 0
        if self._run < _WINDOWS:
            return False
        self._run = 0
        self.stalled = not self.stalled
        self.count += self.stalled
        return self.stalled


def message(before: Snapshot | None, now: Snapshot, who: str = "") -> str:
    """The warning. ``before``: the last good window, if there was one."""
    share = now.figures.wait_share or 0.0
    text = f"{who}the loop waits for data {share:.0%} of its time"
    if before is None:
        text += ", since it began"
    else:
        text += f", {before.figures.wait_share or 0.0:.0%} before"
    sentences = [text, *changes(before, now)]
    return (
        "; ".join(sentences)
        + ". What would help: hr.doctor(loader, step), or on the command line `headrace doctor`."
    )


def changes(before: Snapshot | None, now: Snapshot) -> list[str]:
    """Differences, the most significant first; for a loader with counters, its slowest stage."""
    found = []
    bad = now.counters.get("bad_records", 0.0)
    if bad:
        found.append(f"{bad:,.0f} {'records were' if bad > 1 else 'record was'} bad")
    slower = _slower_stages(before, now) if before else []
    found += slower
    if not slower:
        found += _slowest_stage(now)
    if before is None:
        return found
    old, new = before.figures, now.figures
    if old.batches and new.batches and old.step_sum > 0:
        step = (old.step_sum / old.batches) / max(1e-9, new.step_sum / new.batches)
        if step > _MORE:
            found.append(f"a step takes {1 / step:.0%} of its former time, so it needs data faster")
    if new.records and old.batches and new.batches:
        size = (new.records / new.batches) / max(1e-9, old.records / old.batches)
        if size > _MORE or size < 1 / _MORE:
            found.append(f"batches have {size:.1f} times as many records")
    was, held = before.gil_share, now.gil_share
    if was is not None and held is not None and held > 0.5 and held > _MORE * was:
        found.append(f"Python's GIL is held {held:.0%} of the time, {was:.0%} before")
    return found


def _stage_seconds(snapshot: Snapshot) -> dict[str, float]:
    """Seconds of a thread per record, by stage; empty if the loader does not report it."""
    records = snapshot.counters.get("records", 0.0)
    if not records:
        return {}
    return {
        stage: snapshot.counters.get(f"stages.{stage}", 0.0) / records
        for stage in WORK
        if f"stages.{stage}" in snapshot.counters
    }


def _slower_stages(before: Snapshot, now: Snapshot) -> list[str]:
    was, now_is = _stage_seconds(before), _stage_seconds(now)
    total = sum(now_is.values())
    found = []
    for stage, seconds in sorted(now_is.items(), key=lambda item: -item[1]):
        old = was.get(stage, 0.0)
        if seconds > _MORE * old and seconds > 0.1 * total and old > 0:
            found.append(
                f"{WORK[stage]} takes {seconds / old:.1f} times as long "
                f"({1e3 * seconds:.2f} ms per record, {1e3 * old:.2f} ms before)"
            )
    return found


def _slowest_stage(now: Snapshot) -> list[str]:
    stages = _stage_seconds(now)
    total = sum(stages.values())
    if not total:
        return []
    name = max(stages, key=lambda stage: stages[stage])
    return [f"the loader's slowest part is {WORK[name]} ({stages[name] / total:.0%})"]
