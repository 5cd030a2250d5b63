# SPDX-License-Identifier: Apache-2.0
"""An unmodified training script under examination: ``headrace doctor --script train.py -- ARGS``.

It runs in this process, without trackers or lost files, until its training loop has been measured
from inside its loader (see running, served). Then it is stopped, and the other experiments run on
its loader.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any

from headrace.errors import declare
from headrace.insight.examination import ranks
from headrace.insight.examination.examine import BAD_SECONDS, Tell, chosen, examine
from headrace.insight.examination.experiments import EXPERIMENTS
from headrace.insight.examination.findings import Findings
from headrace.insight.examination.worker_deaths import told_by_loaders_only
from headrace.insight.measure.process_sampler import ProcessSampler
from headrace.insight.measure.rendezvous import SEVERAL_MACHINES, Place, place_from
from headrace.insight.measure.time_limit import Stuck, TimeLimit
from headrace.insight.report.report import Report
from headrace.insight.scripts import harmless
from headrace.insight.scripts.journal import Journal, journal
from headrace.insight.scripts.program import DOES_NOT_RUN, Program, as_main
from headrace.insight.scripts.running import Over, Running
from headrace.insight.scripts.served import CACHED, ON_DEVICE, ONE, REAL, Loop, Plan
from headrace.loader import Loader

NO_LOADER = declare(
    "HR0905",
    "config",
    "no loader was iterated",
    "The script ended, or the time ran out, before it iterated a torch DataLoader or a Headrace "
    "loader on its main thread. Any other iterable can be examined with hr.doctor(loader, step) in "
    "a few lines of Python.",
)
BAD_PATIENCE = declare(
    "HR0907",
    "config",
    "invalid patience",
    "patience= is the number of seconds after which a batch or a step counts as hanging; it must "
    "be positive.",
)
_NAMED = 6  # paths in a note


@dataclasses.dataclass(frozen=True)
class Options:
    """How a script is examined; see headrace.insight.doctor for the options in common."""

    seconds: float = 40.0
    patience: float = 120.0
    skip: Iterable[str] = ()
    also: Iterable[str] = ()
    tell: Tell = lambda name, number: None
    say: Callable[[str], object] = lambda text: None  # before the script runs


@dataclasses.dataclass(frozen=True)
class End:
    """How a script ended; ``text`` is a sentence for the report, or ""."""

    text: str = ""
    failed: bool = False
    by_loader: bool = False  # the loader is then unusable
    stopped: bool = False  # by Ctrl-C


def examine_script(program: Program, options: Options, leave: Callable[[Report], object]) -> Report:
    """Runs the program and examines its loader; the report is like that of ``hr.doctor``. If the
    script cannot be ended, ``leave`` is called with the report, and does not return. Raises
    ConfigError HR0904 if it does not run, HR0905 if it iterates over no loader.
    """
    names = chosen(options.skip, options.also)
    if not options.seconds > 0:
        raise BAD_SECONDS.error(f"seconds={options.seconds!r}")
    if not options.patience > 0:
        raise BAD_PATIENCE.error(f"patience={options.patience!r}")
    place = place_from()
    if place is not None and not place.one_machine:
        raise SEVERAL_MACHINES.error(f"{place.count} ranks, {place.local_count} of them here")
    options.say(told_before(program, options.seconds))
    return _Examination(program, options, names, place, leave).run()


def told_before(program: Program, seconds: float) -> str:
    """The message printed before anything runs."""
    return (
        f"headrace doctor runs {program.name}, measures its loop for about {0.4 * seconds:.0f} "
        "seconds, and stops it.\n"
        "  Run it in a scratch folder: files that it creates remain, and are listed at the\n"
        "  end; overwritten ones are restored. Downloads and the effects\n"
        "  of other processes are not undone.\n"
        f"  Disabled: {', '.join(harmless.TRACKERS)}.\n"
    )


class _Examination:
    def __init__(
        self,
        program: Program,
        options: Options,
        names: list[str],
        place: Place | None,
        leave: Callable[[Report], object],
    ) -> None:
        self._program, self._options, self._names = program, options, names
        self._leave = leave
        self._found = Findings([], None)
        self._rendezvous = ranks.meet(place, self._found, options.patience)
        share = options.seconds
        plan = Plan(
            0.6 * EXPERIMENTS["real"].share * share,
            EXPERIMENTS["cached"].share * share,
            EXPERIMENTS["ceiling"].share * share,
        )
        self._limit = TimeLimit(options.patience, self._leave_now)
        self._sampler = ProcessSampler()
        self._running = Running(plan, self._limit, self._sampler, self._rendezvous, self._leave_now)
        self._left = False

    def run(self) -> Report:
        begin = time.perf_counter()
        # The folder is kept until the end: trackers may still write to it.
        with (
            _temporary() as folder,
            as_main(self._program) as namespace,
            _stops_noticed(self._running),
            told_by_loaders_only(),
        ):
            end = self._run(namespace, folder)
            self._found.report.seconds = time.perf_counter() - begin
            gc.collect()  # releases the script's frames, with its iterators and their workers
            report = self._conclude(end)
        return report

    def _run(self, namespace: dict[str, Any], folder: str) -> End:
        """Runs only the script itself."""
        with contextlib.ExitStack() as around:
            written = journal(folder, (folder,))
            around.callback(lambda: self._tell_of_writing(kept))  # then restored
            kept = around.enter_context(written)
            around.enter_context(harmless.harmless(folder, kept))
            around.enter_context(self._sampler)
            around.enter_context(_no_bytecode())
            around.enter_context(self._running.attached())
            around.enter_context(self._found.contention.watched())
            around.enter_context(self._limit)
            self._limit.begin("The script has requested no batch")
            return self._ended(namespace)

    def _ended(self, namespace: dict[str, Any]) -> End:
        running, name = self._running, self._program.name
        end = End()
        try:
            exec(self._program.code, namespace)
        except Over:
            pass
        except Stuck:
            pass
        except SystemExit as error:
            code = error.code
            if not running.over and code not in (None, 0):
                end = End(f"{name} ended by sys.exit({code!r}).", failed=True)
        except KeyboardInterrupt:
            running.stopped = True
        except BaseException as error:
            if not running.over and not self._limit.expired and not running.stopped:
                # An error that killed a worker could also kill this process.
                died = "DataLoader worker" in str(error)
                end = End(f"{name} ended early, {_where(error)}.", failed=True, by_loader=died)
                longer = [loop for loop in running.loops if loop.epoch and loop.trains]
                if longer and not died:
                    end = End(_of_longer_epoch(longer[-1], name, error))
        if running.stopped:
            return End(stopped=True)
        if self._limit.expired:
            what = self._limit.what
            waited = what.startswith(("The loader", "A loader"))
            text = f"{what} for {self._options.patience:g} seconds, so it was stopped."
            return End(text, failed=True, by_loader=waited)
        if not running.over and running.loops and not end.text:
            end = End(f"{name} ended before its loop had been measured for long enough.")
        return end

    def _conclude(self, end: End) -> Report:
        """Concludes from the loops, and the other experiments on the loader."""
        found, loop = self._found, self._running.chosen()
        if end.text:
            found.note(end.text)
        if self._rendezvous is not None and (end.failed or end.stopped):
            self._rendezvous.leave(f"is gone: {end.text or 'it was interrupted'}")
        found.report.failed = end.failed
        names = [name for name in self._names if name not in ("ceiling", "cached")]
        if loop is not None:
            self._take_over(loop, end)
        elif self._running.elsewhere:
            found.loader = self._running.elsewhere[0]
            found.note(
                "A thread of the script iterates the loader, so its step could not be measured."
            )
        elif end.stopped:
            names = []
        else:
            raise self._nothing(end)
        if end.by_loader:
            names = [name for name in names if name == "host"]
        if end.stopped:
            found.report.interrupted, names = True, []
        report = examine(found, names, self._options.seconds, self._options.tell)
        if self._rendezvous is not None:
            patience = 2 * self._options.seconds + self._options.patience
            ranks.compare(found, self._rendezvous, patience, end.text if end.failed else "")
            self._rendezvous.leave("has ended")
            self._rendezvous.clear()
        return report

    def _take_over(self, loop: Loop, end: End) -> None:
        found, report = self._found, self._found.report
        failure = end.text if end.failed else ""
        timed = loop.finish()
        found.loader, found.kept = loop.loader, loop.kept
        for name, what, phases in (
            ("real", "the loop", (REAL,)),
            ("cached", "the step on batches from memory", (CACHED,)),
            ("ceiling", "the step", (ON_DEVICE, ONE)),
        ):
            best = next((timed[p] for p in phases if p in timed and timed[p].windows), None)
            if best is not None:
                setattr(found, name, found.counted(name, what, best))
        if found.ceiling is not None:
            found.step_cores = loop.step_cores
        if found.real is not None:
            report.vitals = loop.vitals
        report.script = {
            "name": self._program.name,
            "loop": loop.place,
            "loader": described(loop.loader),
            "batches": loop.taken,
            "trains": loop.trains,
            "other_loops": [
                {"loop": other.place, "loader": described(other.loader), "batches": other.taken}
                for other in self._running.loops
                if other is not loop
            ],
        }
        for note in notes_on(loop, failure):
            found.note(note)

    def _nothing(self, end: End) -> Exception:
        if self._rendezvous is not None:
            self._rendezvous.leave(f"is gone: {end.text or 'its script does not iterate a loader'}")
        if end.failed and not self._limit.expired:
            return DOES_NOT_RUN.error(end.text.rstrip("."))
        text = f"{self._program.name} has ended" if not end.text else end.text
        hint = "hr.doctor(loader, step) takes any iterable"
        if self._limit.expired:
            hint = f"--patience waits for longer; {hint}"
        return NO_LOADER.error(text.rstrip("."), hint=hint)

    def _leave_now(self) -> None:
        """For a script that catches every exception that would end it: the rest is done here,
        inside the script.
        """
        if self._left:
            return
        self._left = True
        self._limit.__exit__()
        self._running.ended = True
        name = self._program.name
        end = End(
            f"{name} catches the exception that ends it, so the examination continued inside it."
        )
        self._leave(self._conclude(end))

    def _tell_of_writing(self, kept: Journal) -> None:
        note = self._found.note
        if kept.put_back:
            note(
                "The script overwrote or removed these files, which were restored: "
                f"{listed(kept.put_back)}."
            )
        if kept.left:
            note(f"The script wrote these files, which remain: {listed(kept.left)}.")


def notes_on(loop: Loop, failure: str) -> Iterator[str]:
    """Remarks about the chosen loop."""
    if loop.trains:
        yield (
            "The script's steps actually trained the weights in memory, even on repeated batches."
        )
    elif loop.batches and "torch" in sys.modules:
        yield f"No backward pass was run in the loop at {loop.place}: it does not train."
    if loop.batches > 8 and loop.iterators > 0.5 * loop.batches:
        yield (
            f"A new iterator is created for nearly every batch at {loop.place}: workers are "
            "restarted and their read-ahead is lost. Create one iterator per epoch."
        )
    if loop.batches and loop.among > 0.5 * loop.batches:
        yield (
            f"The loop at {loop.place} also takes batches of another loader; waiting for those "
            "counts as part of its step."
        )


def described(loader: Any) -> str:
    """ "DataLoader(batch_size=64, num_workers=2)": the loader's class and main arguments."""
    names = ("batch_size", "num_workers", "threads")
    given = loader.assembly.given if isinstance(loader, Loader) else {}
    values = {n: given.get(n) if n in given else getattr(loader, n, None) for n in names}
    inside = ", ".join(f"{n}={v}" for n, v in values.items() if isinstance(v, int))
    return f"{type(loader).__name__}({inside})"


def listed(paths: list[str]) -> str:
    """Some of the paths, relative to the current folder if they are below it."""
    here = os.path.join(os.getcwd(), "")
    shown = [path[len(here) :] if path.startswith(here) else path for path in paths]
    more = len(shown) - _NAMED
    return ", ".join(shown[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _of_longer_epoch(loop: Loop, name: str, error: BaseException) -> str:
    """For a script that may count batches or steps of a schedule: the measurements so far are
    valid."""
    return (
        f"{name} ended {_where(error)}. The doctor had continued past the {loop.epoch} batches of "
        "its epoch to measure longer; the measurements up to then count. More data or fewer "
        "--seconds avoid this."
    )


def _where(error: BaseException) -> str:
    """ "at train.py:12: ValueError: no such thing", the nearest line that is not a library's."""
    from headrace.insight.scripts.running import is_users

    frames = traceback.extract_tb(error.__traceback__)
    users = [frame for frame in frames if is_users(frame.filename)]
    frame = (users or frames)[-1]
    text = str(error).strip().splitlines()
    what = f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
    return f"at {frame.filename}:{frame.lineno}: {what}".rstrip(".")


@contextlib.contextmanager
def _temporary() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="headrace-doctor-", ignore_cleanup_errors=True) as path:
        yield path


@contextlib.contextmanager
def _no_bytecode() -> Iterator[None]:
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


@contextlib.contextmanager
def _stops_noticed(running: Running) -> Iterator[None]:
    """Records Ctrl-C, and termination by a launcher, even if the script catches them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        running.stopped = True
        raise KeyboardInterrupt

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
