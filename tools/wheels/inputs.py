# SPDX-License-Identifier: Apache-2.0
"""What a part of the wheels is built from, as a checksum: the part is rebuilt when that changes."""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import inspect
import shutil
from collections.abc import Callable
from pathlib import Path

import building
import codec_libraries
import compilers
import engine_libraries
import media_libraries
from places import HERE, PREFIX, libraries

RECIPES: dict[str, Callable[[Path], None]] = {
    **engine_libraries.RECIPES,
    **codec_libraries.RECIPES,
    **media_libraries.RECIPES,
}


def checksum(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def without_comments(text: str) -> str:
    """Python's code, also without docstrings: rewording them builds nothing again."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [
                each
                for each in body
                if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
            ]
    return ast.dump(tree)


def recipe_text(name: str) -> str:
    """The recipe with its module's constants and other functions, but without other recipes."""
    module = inspect.getmodule(RECIPES[name])
    assert module
    text = inspect.getsource(module)
    for other in module.RECIPES.values():
        if other is not RECIPES[name]:
            text = text.replace(inspect.getsource(other), "")
    return without_comments(text.split("\nRECIPES = ")[0])


def of_compilers() -> str:
    symbols = (HERE / "glibc_symbols.h").read_text()
    return checksum(
        importlib.metadata.version("ziglang"),
        without_comments(inspect.getsource(compilers)),
        symbols,
    )


def of_library(name: str) -> str:
    library = libraries()[name]
    needed = [of_library(other) for other in library.get("needs", [])]
    builder = without_comments(inspect.getsource(building))
    return checksum(of_compilers(), builder, recipe_text(name), library["sha256"], *needed)


def of_engine() -> str:
    """Beyond the sources, whose changes ninja sees: copied headers are older than its objects."""
    headers = sorted(file for file in (PREFIX / "include").rglob("*") if file.is_file())
    contents = [hashlib.sha256(file.read_bytes()).hexdigest() for file in headers]
    nvcc = importlib.metadata.version("nvidia-cuda-nvcc")
    return checksum(of_compilers(), nvcc, *(str(file) for file in headers), *contents)


def empty_if_changed(build: Path, wanted: str) -> None:
    """Objects of an earlier run remain in this folder only if they were built from the same."""
    stamp = build / "inputs"
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(build, ignore_errors=True)
        build.mkdir(parents=True)
        stamp.write_text(wanted)
