# SPDX-License-Identifier: Apache-2.0
"""Finds where something hung or failed: the user's line, and our loader's position."""

from __future__ import annotations

import os
import sysconfig
import traceback
from pathlib import Path

from headrace.errors import Error
from headrace.loader.viewed import ViewedLoader

_PACKAGE = str(Path(__file__).resolve().parents[2])
_NOT_THE_USERS = (_PACKAGE, sysconfig.get_path("stdlib"), "<")  # except packages installed by pip


def line_of(error: BaseException) -> str:
    """ "train.py, line 12, in step": the innermost line of the user's code; "" if there is none."""
    found = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        if "site-packages" in code.co_filename or code.co_filename.startswith(_NOT_THE_USERS):
            continue
        found = f"{os.path.basename(code.co_filename)}, line {line}, in {code.co_name}"
    return found


def told(error: BaseException) -> str:
    """The error's message, and where it happened."""
    line = line_of(error)
    return f"{error} ({line})" if line else str(error)


def place_of(loader: ViewedLoader) -> str:
    """The batches delivered by a loader, and the first record of its next batch."""
    try:
        state = loader.state_dict()
        text = f"The loader had delivered {state['batch']} batches of epoch {state['epoch']}"
        numbers = loader.assembly.engine().indices(state["epoch"], state["batch"])
        return text + f"; the next begins with record {_named(loader, int(numbers[0]))}."
    except (Error, LookupError, OSError):
        return ""  # it is closed, or at its end


def _named(loader: ViewedLoader, number: int) -> str:
    try:
        return f"{number}, {loader.source.key(number)}"
    except (Error, AttributeError, LookupError):
        return str(number)
