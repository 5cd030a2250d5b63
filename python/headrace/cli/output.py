# SPDX-License-Identifier: Apache-2.0
"""Shared by all commands: output, exit codes, progress."""

from __future__ import annotations

import functools
import os
import sys
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, cast

import typer

from headrace.plain_json import json_text
from headrace.printable import for_terminal, printable

PIPE_COLUMNS = 240
GOOD, BAD_ANSWER, USAGE, DATA, ENVIRONMENT = 0, 1, 2, 3, 4
INTERRUPTED = 130
# Codes of errors that concern the output and its path rather than the input, whatever their class.
USAGE_CODES = ("HR0279", "HR0414", "HR0415", "HR0446", "HR0449", "HR0451", "HR0458")
ENVIRONMENT_CODES = (
    *("HR0209", "HR0210", "HR0275", "HR0277", "HR0297", "HR0341"),
    *("HR0447", "HR0448", "HR0457", "HR0463", "HR0730"),
)
P = ParamSpec("P")


def console(stderr: bool = False) -> Any:
    """A rich console; without colors if NO_COLOR is set or the output is not a terminal."""
    from rich.console import Console
    from rich.segment import Segment

    class PrintableConsole(Console):
        """A console that escapes control characters in values, so that a terminal does not obey
        them.
        """

        def render_str(self, text: str, **options: Any) -> Any:
            return super().render_str(printable(text), **options)  # before its width is measured

        def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
            for text, style, control in super().render(renderable, options):
                yield Segment(text if control else printable(text), style, control)

    # Wide enough for pipes: truncated hashes or paths are of no use to a script.
    width = None if is_terminal(stderr) else PIPE_COLUMNS
    return PrintableConsole(stderr=stderr, highlight=False, width=width)


def is_terminal(stderr: bool = False) -> bool:
    """Whether the stream is a terminal."""
    return (sys.stderr if stderr else sys.stdout).isatty()


def use_color() -> bool:
    return is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def print_json(value: object) -> None:
    """One JSON value on standard output: indented for people, one line for pipes."""
    indent = 2 if is_terminal() else None
    sys.stdout.write(json_text(value, indent) + "\n")


def fail(message: str, code: int) -> NoReturn:
    sys.stderr.write(for_terminal(printable(message.rstrip()), sys.stderr) + "\n")
    raise typer.Exit(code)


def command(body: Callable[P, int | None]) -> Callable[P, None]:
    """Makes a function a command: its return value is the exit code, and errors get theirs."""

    @functools.wraps(body)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with exits():
            code = body(*args, **kwargs)
            sys.stdout.flush()
        raise typer.Exit(code or GOOD)

    return run


@contextmanager
def exits() -> Iterator[None]:
    """Prints an error and ends the program with its exit code."""
    try:
        with warnings_as_lines():
            yield
    except BrokenPipeError:
        # The process that reads the pipe has exited (`| head`): not an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(GOOD) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except ImportError as error:
        fail(f"headrace: {error}", ENVIRONMENT)
    except Exception as error:
        fail(f"headrace: {error}", exit_code_of(error))


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Prints Headrace's warnings as lines of the command; others are shown as usual."""
    with warnings.catch_warnings():
        shown = warnings.showwarning

        def show(message: Any, category: Any, *rest: Any, **named: Any) -> None:
            if category.__module__.startswith("headrace."):
                sys.stderr.write(for_terminal(f"headrace: {message}", sys.stderr) + "\n")
            else:
                shown(message, category, *rest, **named)

        warnings.showwarning = cast(Any, show)
        yield


@contextmanager
def resumable(resumes: bool = True) -> Iterator[None]:
    """Ctrl-C prints whether the same command continues the work."""
    try:
        yield
    except KeyboardInterrupt:
        again = "to continue" if resumes else "to start over"
        fail(f"headrace: interrupted; run the same command again {again}", INTERRUPTED)


def writable(option: str, path: Path | None) -> None:
    """Rejects a file that could not be written, before a long computation."""
    if path is None:
        return
    if path.is_dir():
        fail(f"headrace: {option} {path} is a folder, not a file", USAGE)
    if not path.parent.is_dir():
        fail(f"headrace: {option} {path}: no such folder", USAGE)
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        fail(f"headrace: {option} {path}: is not writable", ENVIRONMENT)


def one_of(names: Sequence[str]) -> Any:
    """For an option: lists the allowed words in its help, and checks the value."""

    def check(name: str | None) -> str | None:
        if name is not None and name not in names:
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(map(repr, names))}.")
        return name

    return {"metavar": f"[{'|'.join(names)}]", "callback": check}


def exit_code_of(error: Exception) -> int:
    """The exit code for an error of Headrace; other exceptions are raised again."""
    import headrace

    if not isinstance(error, headrace.Error):
        if isinstance(error, OSError):  # the disk is full, or a file is not writable
            return ENVIRONMENT
        raise error
    if error.code in ENVIRONMENT_CODES:
        return ENVIRONMENT
    if error.code in USAGE_CODES:
        return USAGE
    # An unrecognized path is a data error, whichever class reports it.
    about_data = str(error.code).startswith(("HR02", "HR03", "HR04"))
    return USAGE if isinstance(error, headrace.ConfigError) and not about_data else DATA


def open_source(path: str, **params: Any) -> Any:
    """`headrace.open`, with a progress bar."""
    import headrace

    with _looking() as told:
        return headrace.open(path, progress=told, **params)


@contextmanager
def _looking() -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar for a long search. Yields the function that open() reports to."""
    if not is_terminal(stderr=True):
        yield None
        return
    from rich import progress as bars

    columns = (
        bars.TextColumn("looking for records"),
        bars.BarColumn(),
        bars.TaskProgressColumn(),
        bars.TimeRemainingColumn(),
    )
    bar = bars.Progress(*columns, console=console(stderr=True), transient=True)
    begin = time.monotonic()
    tasks: list[bars.TaskID] = []

    def told(done: int, total: int) -> None:
        if not tasks and time.monotonic() - begin > 0.5:
            bar.start()
            tasks.append(bar.add_task("", total=None))
        if tasks:
            bar.update(tasks[0], completed=done, total=total if total > 0 else None)

    try:
        yield told
    finally:
        bar.stop()


@contextmanager
def progress(title: str, total: int | None, quiet: bool = False) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal, otherwise nothing. Yields a function that reports progress."""
    if quiet or not is_terminal(stderr=True):
        yield lambda done: None
        return
    from rich import progress as bars

    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.update(task, completed=done)


def headline(name: str, rest: str) -> None:
    """A command's subject and its summary: on one line, or on two."""
    from rich.markup import escape

    told = console()
    name = printable(name, lines=False)
    between = "  " if len(name) + 2 + len(rest) <= told.width else "\n"
    name = shortened(name, told.width)
    told.print(f"[bold]{escape(name)}[/]{between}{escape(rest)}")


def facts(pairs: Mapping[str, str], style: str = "dim", gap: int = 1) -> None:
    """One line per fact, with its name in front; long values are wrapped and indented."""
    from rich.markup import escape

    told = console()
    indent = max(map(len, pairs), default=0) + gap
    for name, text in pairs.items():
        lines = textwrap.wrap(
            text, max(20, told.width - indent), break_long_words=False, break_on_hyphens=False
        )
        body = ("\n" + " " * indent).join(map(escape, lines))
        told.print(f"[{style}]{name:<{indent}}[/]{body}", soft_wrap=True)


def bad_record(entry: Mapping[str, Any], reason: str) -> None:
    """A bad record: its key, unchanged so that it can be copied, and the reason below."""
    from rich.markup import escape

    told = console()
    key = escape(printable(entry["key"], lines=False))
    told.print(f"record {entry['record']}: {key}", soft_wrap=True)
    told.print(f"  {reason}")


def shortened(text: str, columns: int) -> str:
    """The text, or its start and end around an ellipsis: most names differ at the end.

    >>> shortened("a_very_long_name_indeed.jpg", 15)
    'a_very_…eed.jpg'
    """
    if len(text) <= columns:
        return text
    tail = max(0, (columns - 1) // 2)
    return f"{text[: max(0, columns - 1 - tail)]}…{text[len(text) - tail :]}"


def count_text(count: int, noun: str, plural: str = "s") -> str:
    """1 record; 1,200 records."""
    return f"{count:,} {noun}" + ("" if count == 1 else plural)


def print_outside(records: int) -> None:
    """Prints how many records were read from outside the dataset's folder."""
    if records:
        console().print(f"[yellow]{records:,} files are outside the dataset's folder[/]")


def size_text(count: float) -> str:
    """A size in readable units, such as "1.4 MB"."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
