# SPDX-License-Identifier: Apache-2.0
"""Options of the form FILE.py:NAME: runs the user's file and returns an object of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from headrace.cli import output


def function(option: str, text: str) -> Callable[[Any], Any]:
    """ "train.py:step": the function of that name in that file."""
    found = _found(option, text)
    if not callable(found):
        path, _, name = text.rpartition(":")
        output.fail(f"headrace: {option} {text}: {path} has no function {name}", output.USAGE)
    called: Callable[[Any], Any] = found
    return called


def transforms(option: str, text: str) -> list[Any] | dict[str, Any]:
    """ "train.py:transforms": a list, or a dict by field, as headrace.Loader takes it; or a
    function without parameters that returns one."""
    found = _found(option, text)
    if callable(found) and not isinstance(found, (list, dict)):
        try:
            found = found()
        except Exception as error:
            output.fail(
                f"headrace: {option} {text}: calling it failed: {type(error).__name__}: {error}",
                output.USAGE,
            )
    if isinstance(found, tuple):
        found = list(found)
    if not isinstance(found, (list, dict)):
        output.fail(
            f"headrace: {option} {text} is {_what(found)}; it must be a list of transforms, a "
            "dict of them by field, or a function that returns one",
            output.USAGE,
        )
    return found


def _found(option: str, text: str) -> Any:
    import runpy

    path, _, name = text.rpartition(":")
    if not path or not Path(path).is_file():
        output.fail(f"headrace: {option} {text}: no such file; write FILE.py:NAME", output.USAGE)
    try:
        return runpy.run_path(path, run_name="headrace_named").get(name)
    except Exception as error:
        output.fail(
            f"headrace: {option} {text}: {path} does not run: {type(error).__name__}: {error}",
            output.USAGE,
        )


def _what(value: Any) -> str:
    return "not in that file" if value is None else f"of type {type(value).__name__}"
