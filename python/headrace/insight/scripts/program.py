# SPDX-License-Identifier: Apache-2.0
"""A user's program, run in this process as ``python`` would run it.

Unlike with ``runpy``, its ``__main__`` is kept after its end: worker processes that are started
later find the program's classes there.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import io
import os
import sys
from collections.abc import Iterator, Sequence
from types import CodeType, ModuleType
from typing import Any

from headrace.errors import declare

NO_PROGRAM = declare(
    "HR0903",
    "config",
    "script or module not found",
    "headrace doctor --script takes a Python file, -m a module that python -m would run.",
)
DOES_NOT_RUN = declare(
    "HR0904",
    "config",
    "script failed",
    "The script could not be compiled, or failed before it had taken a batch from a loader. It is "
    "run as python would run it, with the arguments after --.",
)


@dataclasses.dataclass(frozen=True)
class Program:
    """The program to run: its code, and its values of ``__main__`` and ``sys``."""

    name: str  # as the user calls it
    code: CodeType
    argv: list[str]
    folder: str  # sys.path[0]
    attributes: dict[str, Any]  # of __main__

    @property
    def file(self) -> str:
        return str(self.attributes["__file__"])


def from_file(path: str, arguments: Sequence[str] = ()) -> Program:
    """The program that ``python path arguments`` would run. Raises ConfigError HR0903 if it cannot
    be read, HR0904 if it cannot be compiled.
    """
    try:
        with io.open_code(os.path.abspath(path)) as file:
            text = file.read()
    except OSError as error:
        raise NO_PROGRAM.error(f"{path}: {error.strerror}") from None
    attributes = {"__file__": path, "__spec__": None, "__package__": None, "__cached__": None}
    folder = os.path.dirname(os.path.realpath(path))
    code = _compiled(text, path)
    return Program(path, code, [path, *arguments], folder, attributes)


def from_module(name: str, arguments: Sequence[str] = ()) -> Program:
    """The program that ``python -m name arguments`` would run. Raises ConfigError HR0903 if it is
    not found, HR0904 if it cannot be compiled.
    """
    folder = os.getcwd()
    with _first_on_path(folder):
        spec = _spec_of(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = _spec_of(f"{name}.__main__")
    loader: Any = spec.loader if spec is not None else None
    if spec is None or not hasattr(loader, "get_code"):
        raise NO_PROGRAM.error(
            f"-m {name}", hint="it is searched for as with python -m, from the current folder"
        )
    try:
        code = loader.get_code(spec.name)
    except SyntaxError as error:
        raise _syntax(error, name) from None
    if code is None:
        raise NO_PROGRAM.error(f"-m {name} has no Python code")
    attributes = {
        "__file__": spec.origin,
        "__spec__": spec,
        "__package__": spec.parent,
        "__loader__": loader,
        "__cached__": spec.cached,
    }
    return Program(f"-m {name}", code, [spec.origin or name, *arguments], folder, attributes)


def _spec_of(name: str) -> Any:
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None


def _compiled(text: bytes, path: str) -> CodeType:
    try:
        return compile(text, path, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise _syntax(error, path) from None
    except ValueError as error:  # null bytes
        raise DOES_NOT_RUN.error(f"{path}: {error}") from None


def _syntax(error: SyntaxError, name: str) -> Exception:
    return DOES_NOT_RUN.error(f"{name}, line {error.lineno}: {type(error).__name__}: {error.msg}")


@contextlib.contextmanager
def as_main(program: Program) -> Iterator[dict[str, Any]]:
    """``__main__``, ``sys.argv`` and ``sys.path`` are the program's; yields its globals."""
    module = ModuleType("__main__")
    module.__dict__.update(program.attributes)
    before = sys.modules["__main__"], sys.argv
    sys.modules["__main__"], sys.argv = module, list(program.argv)
    try:
        with _first_on_path(program.folder):
            yield module.__dict__
    finally:
        sys.modules["__main__"], sys.argv = before


@contextlib.contextmanager
def _first_on_path(folder: str) -> Iterator[None]:
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)
