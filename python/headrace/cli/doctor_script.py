# SPDX-License-Identifier: Apache-2.0
"""`headrace doctor --script train.py -- ARGS`: runs, measures and stops an unmodified script."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NoReturn

from headrace.cli import output
from headrace.printable import printable

if TYPE_CHECKING:
    from headrace.insight.report.report import Report


def examine(
    script: str | None,
    module: str | None,
    arguments: Iterable[str],
    seconds: float,
    patience: float,
    skip: Iterable[str],
    show: Callable[[Report], int],
) -> NoReturn:
    """Ends this process with the exit code that ``show`` returns for the report, regardless of
    threads, processes and exit handlers left by the script.
    """
    from headrace.errors import Error
    from headrace.insight.measure.rendezvous import place_from
    from headrace.insight.scripts.examined import Options, examine_script
    from headrace.insight.scripts.program import from_file, from_module

    if script is not None and module is not None:
        output.fail("headrace: --script and -m exclude each other", output.USAGE)
    place = place_from()
    first = place is None or place.rank == 0

    def say(text: str) -> None:
        if first:
            sys.stderr.write(printable(text))

    def tell(name: str, number: int) -> None:
        if first and output.is_terminal(stderr=True):
            sys.stderr.write(f"headrace doctor: {printable(name)}\n")

    with _prints_elsewhere() as put_back:

        def leave(report: Report) -> NoReturn:
            put_back()
            # Other ranks report nothing and exit with 0: otherwise a launcher would kill the first
            # rank.
            _end(show(report) if first else output.GOOD)

        options = Options(seconds, patience, tuple(skip), (), tell, say)
        try:
            words = list(arguments)
            program = from_file(script, words) if script else from_module(str(module), words)
            leave(examine_script(program, options, leave))
        except Error as error:
            put_back()
            rank = "" if first else f" (rank {place.rank if place else 0})"
            sys.stderr.write(printable(f"headrace{rank}: {error}\n"))
            _end(output.exit_code_of(error) if first else output.GOOD)


@contextlib.contextmanager
def _prints_elsewhere() -> Iterator[Callable[[], None]]:
    """Redirects the output of the script and its processes to standard error, until the yielded
    function is called: standard output is for the report.
    """
    sys.stdout.flush()
    stdout, kept = sys.stdout, os.dup(1)
    os.dup2(2, 1)

    def put_back() -> None:
        for stream in (sys.stdout, stdout):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os.dup2(kept, 1)
        sys.stdout = stdout

    try:
        yield put_back
    finally:
        put_back()


def _end(code: int) -> NoReturn:
    import multiprocessing

    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    for process in multiprocessing.active_children():
        process.terminate()
    os._exit(code)
