# SPDX-License-Identifier: Apache-2.0
"""Programs that end in the middle of an epoch, in every way: none hangs, none leaves a process."""

from __future__ import annotations

import itertools
import os
import signal
import time

import child
import sets
from process_tree import processes
from trial import Attempt, Trial

RECORDS = 60
LATEST = 10.0  # seconds until a program that ends has ended
ORPHANS = 2.0  # seconds in which its other processes must be gone
ENDINGS = {  # and the exit code
    "return": 0,
    "raise": 1,
    "sys.exit": 7,
    "os._exit": 7,
    "close": 0,
    "thread": 0,
    "atexit": 0,
    "terminate": -signal.SIGTERM,
    "kill": -signal.SIGKILL,
}
SETTINGS = tuple(itertools.product(("0", "2"), ("1", "3"), ("", "prefetch"), ("", "held")))


def run(attempt: Attempt) -> None:
    photos = sets.photos(attempt.folder / "photos", RECORDS, attempt.random, (32, 64))
    matrix = list(itertools.product(ENDINGS, SETTINGS))
    attempt.random.shuffle(matrix)
    slowest, endings = 0.0, dict.fromkeys(ENDINGS, 0)
    while attempt.goes_on():
        ending, (workers, threads, prefetch, held) = matrix[attempt.inputs % len(matrix)]
        options = " ".join(
            filter(None, (f"workers={workers}", f"threads={threads}", prefetch, held))
        )
        process = child.start("exits", photos, ending, options, cache=attempt.folder / "cache")
        assert process.stdout
        process.stdout.readline()  # it has received batches
        time.sleep(attempt.random.random() * 0.05)
        began = time.monotonic()
        if ending in ("terminate", "kill"):
            process.send_signal(-ENDINGS[ending])
        code, _, errors = child.ended(process, LATEST * attempt.patience)
        attempt.inputs += 1
        endings[ending] += 1
        slowest = max(slowest, time.monotonic() - began)
        what = f"{ending} with {options}"
        if code != ENDINGS[ending]:
            attempt.fails(f"{what}: ended by {code}: {child.last_lines(errors)}")
        if orphans := left_after(process.pid, ORPHANS * attempt.patience):
            attempt.fails(f"{what}: leaves {', '.join(orphans)}")
            os.killpg(process.pid, signal.SIGKILL)
    attempt.figures["slowest_seconds"] = round(slowest, 2)
    attempt.figures["endings"] = endings


def left_after(session: int, seconds: float) -> list[str]:
    """Names of the processes of a session that are still alive after this many seconds."""
    stop = time.monotonic() + seconds
    while (alive := processes_of(session)) and time.monotonic() < stop:
        time.sleep(0.02)
    return alive


def processes_of(session: int) -> list[str]:
    return [
        name
        for _, name, (state, _, _, its_session, *_) in processes()
        if int(its_session) == session and state != "Z"
    ]


TRIAL = Trial(
    "exits",
    "A program may end at any point of an epoch: it ends immediately, and leaves no process behind",
    100 * len(ENDINGS) * len(SETTINGS),
    "programs",
    run,
    targets=("R13",),
)
