# SPDX-License-Identifier: Apache-2.0
"""The two runs over a dataset: tracing all records, then verifying some with real files."""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from headrace.migrate.look import child, guards, spies
from headrace.migrate.look.columns import Table
from headrace.migrate.look.homes import fetches_batches, handles_exceptions, homes_of
from headrace.migrate.look.marks import DIFFERS, Attempt, Left
from headrace.migrate.look.names import Names
from headrace.migrate.look.opaque import Opaque, is_opaque
from headrace.migrate.look.outside import Outside, Watch
from headrace.migrate.look.recorders import Recorder, clone, is_composite
from headrace.migrate.look.snapshots import Snapshot
from headrace.migrate.look.stand_ins import StandIns, put
from headrace.migrate.nesting import Node
from headrace.migrate.snapshot import Snapshot as Original
from headrace.printable import in_a_line

LIMIT = 60.0  # seconds that tracing may take


class Looked(NamedTuple):
    """The result: a table of all records; or ``reason``, with advice on what to write instead."""

    reason: str = ""
    way: str = ""
    node: Node | None = None
    columns: tuple[dict[str, Any], ...] = ()
    compared: int = 0  # number of compared images of real files
    keeps_state: bool = False  # why it cannot be native: calls change the results of later ones
    skips: bool = False  # it handles exceptions, so damaged files may be skipped
    deep: bool = False  # the user's wrappers around other transforms were run, too
    outside: Outside = Outside()  # what it read in addition to images


def look(dataset: Any, limit: float = LIMIT) -> Looked:
    """Traces the dataset, and verifies the result. The program's objects are unchanged."""
    if not child.can_fork():
        return Looked(f"{sys.platform} cannot fork a process to trace it")
    if not hasattr(dataset, "__dict__") or len(dataset) == 0:
        return Looked("it has no attributes to inspect")
    if hasattr(dataset, "set_epoch"):
        return Looked("it has set_epoch(): its records may change from epoch to epoch")
    if fetches_batches(dataset):
        return Looked(
            "it has a __getitems__ of its own, which a DataLoader calls for whole batches"
        )
    more = f"; trace={2 * limit:g} allows it longer"
    try:
        wrappers = [real for real in transforms_of(dataset, False).values() if is_composite(real)]
    except Exception as failure:
        return Looked(f"it cannot be copied: {type(failure).__name__}: {failure}")
    for deep in (True, False) if wrappers else (False,):
        traced = child.run(functools.partial(trace, dataset, deep), limit, more)
        found: Looked = traced.value or Looked(traced.problem)
        if not found.reason:
            break
    if found.reason:
        return found
    if not any("paths" in column for column in found.columns):
        return Looked("no value of its records is an image of a file", _NO_FILES)
    assert found.node is not None
    leaves = found.node.leaves
    homes = homes_of(dataset)
    proof = child.run(lambda say: spies.prove(dataset, found, leaves, homes, say), limit, more)
    if proof.problem:
        return Looked(proof.problem)
    reason, compared = proof.value
    return Looked(reason) if reason else found._replace(compared=compared)


def trace(dataset: Any, deep: bool, say: child.Say) -> Looked:
    """Traces every record twice, in two orders, in a child process."""
    attempt = Attempt()
    try:
        return _traced(dataset, attempt, say, deep)
    except Left:
        return Looked(attempt.reason, attempt.way, keeps_state=attempt.keeps_state)
    except Exception as failure:
        raised = f"with a mock of its file, record {attempt.record} raises {in_a_line(failure)}"
        return Looked(attempt.reason or raised, attempt.way)
    except SystemExit:
        return Looked(f"record {attempt.record} ends the process")


def _traced(dataset: Any, attempt: Attempt, say: child.Say, deep: bool) -> Looked:
    homes = homes_of(dataset)
    spaces = [vars(sys.modules[name]) for name in homes]
    names = Names()

    def recorder(name: str, real: Any) -> Any:
        if is_opaque(real):
            return Opaque(name, real, attempt)
        return Recorder(names.of(name, real), real, attempt)

    pairs: list[tuple[Any, Any]] = []
    copy = clone(dataset, recorder, deep, pairs=pairs)
    for home in homes:
        names.replace(home, recorder)
    generators = guards.reader()
    watch = Watch(attempt)
    put(spaces, watch.replacements() | StandIns(attempt, homes).replacements())
    attempt.watches(_snapshot(names, pairs))
    shared = Original({"self": lambda: dataset})  # the attribute of the copy that runs
    before = generators(), guards.held(copy, spaces)
    count = len(dataset)
    calls = _Calls(copy, attempt, watch)
    for number in sorted({0, count // 2, count - 1}):
        calls.watch(number, homes)
    try:
        calls.twice(count, say)
    finally:
        drawn = guards.drawn_from(before[1], guards.held(copy, spaces))
        if drawn or generators() != before[0]:
            if DIFFERS in attempt.reason:  # reported as the reason
                attempt.reason = ""
            raise attempt.leave(f"__getitem__ draws random numbers{drawn}", _DRAW)
    changed = ", ".join(guards.changed(before[1], guards.held(copy, spaces))[:3])
    try:
        changed = changed or shared.change()
    except Left:  # it was compared with an image
        attempt.reason, changed = "", "what holds its images"
    if changed:
        raise attempt.leave(f"__getitem__ changes {changed}", state=True)
    skips = handles_exceptions(dataset)
    columns = tuple(calls.table.sent())
    return Looked(
        node=calls.table.node, columns=columns, skips=skips, deep=deep, outside=watch.read
    )


def _snapshot(names: Names, pairs: list[tuple[Any, Any]]) -> Snapshot:
    """Snapshot of all transforms, and of the attributes of the copies that run."""
    originals = [original for original, _ in pairs]
    apart = [id(each) for each in originals]
    apart += [id(vars(each)) for each in originals if hasattr(each, "__dict__")]
    out = Snapshot(names.reals, apart)
    out.watch("Recorder", vars(Recorder))
    for _, copy in pairs:
        if hasattr(copy, "__dict__"):
            out.watch("self", vars(copy))
    return out


def transforms_of(dataset: Any, deep: bool) -> dict[str, Any]:
    """The dataset's callables by the names used in columns."""
    names = Names()

    def kept(name: str, real: Any) -> Any:
        if not is_opaque(real):
            names.of(name, real)
        return real

    clone(dataset, kept, deep)
    for home in homes_of(dataset):
        names.replace(home, kept)
    return names.reals


_DRAW = (
    "draw in a transform instead: one of torchvision's, or a function of (image, rng) in the list"
)


class _Calls:
    """Calls the dataset once for each possible answer about an image's mode."""

    def __init__(self, copy: Any, attempt: Attempt, watch: Watch) -> None:
        self.table = Table(attempt)
        self._copy = copy
        self._attempt = attempt
        self._watch = watch

    def twice(self, count: int, say: child.Say) -> None:
        """Traces all records, and again in a different order, which must give the same records."""
        for number in range(count):
            self.record(number, self.table.append)
            if number % 64 == 0:
                say(number, 2 * count)
        order = list(range(count))
        random.Random(1).shuffle(order)  # a separate generator
        for done, number in enumerate(order):
            self.record(number, self.table.check)
            if done % 64 == 0:
                say(count + done, 2 * count)

    def record(self, number: int, use: Callable[[int, Any], None]) -> None:
        attempt = self._attempt
        attempt.record = number
        answers: list[bool] = []
        attempt.answers = answers
        record = self._called(number)
        use(number, record)
        if not answers:
            return
        first = self.table.row(record)
        while answers:
            if answers[-1]:
                answers.pop()
                continue
            answers[-1] = True
            if self.table.row(self._called(number)) != first:
                raise attempt.leave(
                    f"the result for the image of record {number} depends on its mode", _CONVERT
                )
            del answers[attempt.asked :]

    def _called(self, number: int) -> Any:
        self._attempt.asked = 0
        with self._watch():
            record = self._copy[number]
        if self._attempt.reason:  # even if the code swallowed the exception
            raise Left
        self._attempt.check("")
        return record

    def watch(self, number: int, homes: list[str]) -> None:
        """Calls it, watching exceptions that the code swallows. A mock can make a function raise
        where an image would not."""
        attempt = self._attempt
        raised: list[str] = []

        def on_event(frame: Any, event: str, argument: Any) -> Any:
            here = event == "exception" and frame.f_globals.get("__name__") in homes
            if here and not issubclass(argument[0], (Left, StopIteration, GeneratorExit)):
                raised.append(argument[0].__name__)
            return on_event

        attempt.record, attempt.answers = number, []
        before = sys.gettrace()
        sys.settrace(on_event)
        try:
            self._called(number)
        finally:
            sys.settrace(before)
        if raised:
            raise attempt.leave(f"__getitem__ catches a {raised[0]} at record {number}")


_NO_FILES = "hr.records(NAME=array, ...) of all records would be native"
_CONVERT = '.convert("RGB") of every image makes it native'
