# SPDX-License-Identifier: Apache-2.0
"""Distinguishes modules of the standard library, of installed packages and of the user, and makes
names for objects.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import sysconfig
from typing import Any

_STANDARD = os.path.join(os.path.realpath(sysconfig.get_paths()["stdlib"]), "")
_PACKAGES = re.compile(r"[/\\](site|dist)-packages[/\\]")


def is_installed(file: str) -> bool:
    """Whether a module's file belongs to the standard library or an installed package."""
    return bool(_PACKAGES.search(file)) or os.path.realpath(file).startswith(_STANDARD)


@functools.lru_cache(None)
def is_users(module: str | None) -> bool:
    """Whether a module is the user's, not from an installed package or the standard library;
    notebooks count.
    """
    home = (module or "").partition(".")[0]
    if home == "headrace" or (home in sys.stdlib_module_names and home != "__main__"):
        return False
    files = (getattr(sys.modules.get(name), "__file__", None) for name in (module or "", home))
    file = next((each for each in files if isinstance(each, str)), None)
    return file is None or not is_installed(file)


def module_of(kind: type) -> str:
    """The name of a class's module; empty for a class of an extension that has none."""
    name = kind.__module__
    return name if isinstance(name, str) else ""


def name_of(transform: Any) -> str:
    """A function's name, or that of an object's class."""
    return str(getattr(transform, "__name__", type(transform).__name__))
