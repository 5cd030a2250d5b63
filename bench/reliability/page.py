# SPDX-License-Identifier: Apache-2.0
"""The results that are kept, one file per trial, and docs/internals/reliability.md made of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from trial import Trial

KEPT = Path(__file__).resolve().parents[1] / "results" / "reliability"
# What a release should be measured by. A trial names the targets that it measures.
TARGETS = {
    "R1": "Fuzzed decoders: 10^8 runs per target, no finding, less than 512 MB",
    "R2": "Fuzzed containers: the same",
    "R3": "Mutated files: 10,000 per format, each is read or an error, three times the same",
    "R4": "Silent damage: 5,000 changed bytes in files with checksums, all detected",
    "R5": "Decompression bombs: 40 files, less than 64 MB of memory, 50 ms",
    "R6": "Hostile archives: 60, nothing outside opened or written, no code run",
    "R7": "Refused allocations: at every allocation of 12 operations, the next call works",
    "R8": "Failing reads: 200 schedules for each of 8 readers",
    "R9": "Lost devices: at each of 200 calls",
    "R10": "Resume: at every step of 20 pipelines, the same bytes",
    "R11": "Resume with a different number of ranks: the same global order, states below 4 KB",
    "R12": "Killed processes: 1,000, no record lost or repeated, nothing left behind",
    "R13": "Exits of programs: all forms, no hang, no process left",
    "R14": "Ctrl-C: 500, within a second, a later loader works",
    "R15": "Forked and spawned processes: 100 each, no deadlock",
    "R16": "Races: 30 minutes of the threaded tests under TSan, with 5 numbers of threads",
    "R17": "Long runs: 10^7 records and 10,000 loaders, memory, threads and descriptors constant",
    "R18": "Memory limit: peak within the limit and 5 %, with a slow consumer",
    "R19": "Bad records: exact reports, the budget ends a run, less than 2 % of time at 0.1 % bad",
    "R20": "Full disks: 50 schedules, no unfinished file, reading works without a cache",
    "R21": "Lost workers of a data service: 1,000 kills, no batch lost or repeated",
    "R22": "Pixels: 2,000 photos equal libjpeg-turbo's; CPU against GPU",
    "R23": "Branch coverage of parsers and scheduler: 95 %",
    "R24": "Error messages: 100 faults, each with code, file, offset and hint",
}
# How to measure a target that has no trial.
WITHOUT_A_TRIAL = {"R23": "`./dev coverage` counts the branches that the C++ tests take"}
HEAD = """# Reliability in figures

Each promise was attacked the stated number of times, and failures were counted. A trial is one
command, whose result is kept in `bench/results/reliability`; this page is made of these files:

```sh
./dev reliability bombs --keep --page docs/internals/reliability.md
```

Without `--hours`, a trial runs to its full number. With it, the time, which the named trials share,
may end first, and both numbers are given. A commit with a plus was followed by changes. "To do the
rest" is the command that reaches the full number, and its time on two busy cores, estimated from
the inputs tried so far.

## By target

The targets were set before anything was measured. A target without a figure is "not measured", even
if tests cover it.

| | target | command | figure | to do the rest | date | commit |
|---|---|---|---|---|---|---|
"""
TRIALS_HEAD = """
## By trial

| trial | promise | tried | failed | figures | date | commit |
|---|---|---|---|---|---|---|
"""


def keep(result: Mapping[str, Any], folder: Path = KEPT) -> None:
    """`result`: of one trial, with the circumstances."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result['name']}.json"
    path.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")


def kept(folder: Path = KEPT) -> dict[str, dict[str, Any]]:
    """By trial."""
    found = (json.loads(file.read_text()) for file in sorted(folder.glob("*.json")))
    return {result["name"]: result for result in found}


def text(trials: Sequence[Trial], results: Mapping[str, Mapping[str, Any]]) -> str:
    measured = [
        (trial, results[trial.name])
        for trial in trials
        if trial.name in results and results[trial.name]["inputs"]
    ]
    plans = dict(WITHOUT_A_TRIAL)
    for trial in trials:
        plans |= dict.fromkeys(trial.targets, f"`./dev reliability {trial.name}`")
    rows = [line for name in TARGETS for line in target_rows(name, plans.get(name, ""), measured)]
    return (
        HEAD
        + "".join(rows)
        + TRIALS_HEAD
        + "".join(trial_row(result) for _, result in measured)
        + failures(result for _, result in measured)
    )


def target_rows(
    target: str, plan: str, measured: Iterable[tuple[Trial, Mapping[str, Any]]]
) -> Iterable[str]:
    stated = f"| {target} | {TARGETS[target]} "
    found = [result for trial, result in measured if target in trial.targets]
    if not found:
        yield f"{stated}| | not measured | {plan} | | |\n"
    for result in found:
        short = result["figures"].get("short_of_the_target")
        figure = f"{tried(result)}, {result['failed']:,} failed"
        figure += f"; short of the target: {short}" if short else ""
        yield f"{stated}| `{result['command']}` | {figure} | {rest(result)} "
        yield f"| {result['date']} | `{result['commit']}` |\n"
        stated = "| | "


def rest(result: Mapping[str, Any]) -> str:
    """The command that runs the trial to its full number, and its time if that was kept."""
    if result["inputs"] >= result["target"]:
        return ""
    command = f"`./dev reliability {result['name']}`"
    if "seconds" not in result:
        return command
    minutes = result["seconds"] / 60 * result["target"] / result["inputs"]
    time = f"{round(minutes):,} min" if minutes < 120 else f"{round(minutes / 60):,} h"
    return f"{command}, {time}"


def tried(result: Mapping[str, Any]) -> str:
    return f"{result['inputs']:,} of {result['target']:,} {result['unit']}"


def trial_row(result: Mapping[str, Any]) -> str:
    figures = "; ".join(
        f"{name.replace('_', ' ')} {shown(v)}" for name, v in result["figures"].items()
    )
    cells = (
        *(f"`{result['name']}`", result["promise"], tried(result), f"{result['failed']:,}"),
        *(figures, result["date"], f"`{result['commit']}`"),
    )
    return "| " + " | ".join(cells) + " |\n"


def shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {number:,}" for name, number in value.items())
    return f"{value:,}" if isinstance(value, (int, float)) else str(value)


def failures(results: Iterable[Mapping[str, Any]]) -> str:
    found = [(one["name"], what) for one in results for what in one["failures"]]
    if not found:
        return ""
    return "\n## What failed\n\n" + "".join(f"- `{name}`: {what}\n" for name, what in found)
