#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks project rules that compilers do not. Prints each violation as `file:line: rule`.

- Layers: a file may include only from its own folder and from those above it in LAYERS, and no
  files or folders include each other in a cycle (cxx_circles.py).
- Twins: no two C++ files define the same name in the same namespace (cxx_twins.py).
- Locks: code that works on single records uses no mutex and no thread pool.
- Python: layers, circles and private names (python_layers.py); and no module of the package imports
a framework at import time, except those of trainers/.
- SIMD: code compiled for one level includes only lanes and loops (each_level.h says why).
- Errors: their `where` is written as Where{...}, because of a bug of g++ 12.
- Size: source files over 800 lines are errors; over 400 they are listed.
- Names: no file has a meaningless name (`utils`, `common`, `helpers`, ...).
- Paths: files, folders and modules mentioned in documents and comments exist (named_paths.py).
- License: every source has SPDX-License-Identifier in its first two lines.

Usage: check_layers.py [ROOT]. Exit 0 when clean, 1 otherwise.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from cxx_circles import check_circles
from cxx_twins import check_twins
from named_paths import check_named_paths
from python_layers import check_package, is_type_checking

# Each layer may include those before it. loader.h is at the top of headrace/, its parts are in
# loader/.
LAYERS = (
    "base", "device", "storage", "kernels", "codecs", "image", "fields", "sources", "formats",
    "ops", "sampling", "plugin", "pipeline", "finish", "executor", "delivery", "loader",
    "bindings",
)  # fmt: skip
FRAMEWORKS = {
    "accelerate",
    "albumentations",
    "grain",
    "jax",
    "jaxlib",
    "keras",
    "lightning",
    "matplotlib",
    "mxnet",
    "paddle",
    "ray",
    "tensorflow",
    "timm",
    "torch",
    "torchaudio",
    "torchtitan",
    "torchvision",
    "transformers",
    "ultralytics",
}
TRAINERS = "python/headrace/trainers/"  # one module per framework, which imports it  # fmt: skip
BANNED_WORDS = {
    "common", "helper", "helpers", "impl2", "manager", "misc", "util", "utils",
}  # fmt: skip
# Code that must run on any thread or machine independently of others.
LOCKLESS = {f"headrace/executor/{name}" for name in ("partners", "record_order", "record_worker")}
CXX = {".cc", ".h", ".hpp", ".cu", ".cuh"}
SOURCES = CXX | {".py", ".pyi", ".cmake", ".sh"}
SOURCE_NAMES = {"CMakeLists.txt", "dev", "run"}
SKIPPED = {"build", ".git", ".venv", "__pycache__"}
REFUSED_LINES = 800
LISTED_LINES = 400

# headrace/codecs/codec.h; headrace/loader.h, headrace/loader/loader_test_numbers.h
INCLUDE = re.compile(r'^\s*#\s*include\s+"headrace/(?:([a-z_]+)/|([a-z]+)[a-z_]*\.h")')


def files(root: Path) -> Iterator[Path]:
    """Every file below root, except build outputs and caches."""
    for path in sorted(root.iterdir()):
        if path.is_dir():
            hidden = path.name.startswith(".") and path.name != ".ci"
            if not (path.name in SKIPPED or hidden or path.name.endswith(".egg-info")):
                yield from files(path)
        else:
            yield path


def layer_of(path: Path) -> str | None:
    """headrace/codecs/codec.h -> codecs, headrace/loader.h -> loader, bindings/* -> bindings."""
    parts = path.parts
    if parts[0] == "bindings":
        return "bindings"
    if parts[0] != "headrace" or len(parts) < 2:
        return None  # tests, benchmarks and examples may include everything
    if len(parts) > 2:
        return parts[1]
    return path.stem.split("_")[0]  # loader.cc, loader_test.cc, loader_pictures_test.cc


def check_includes(path: Path, text: str) -> Iterator[str]:
    layer = layer_of(path)
    if layer is None:
        return
    if layer not in LAYERS:
        yield f"{path}:1: layer `{layer}` is not in the list (tools/check_layers.py)"
        return
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        target = match.group(1) or match.group(2)
        if target not in LAYERS:
            yield f"{path}:{number}: includes unknown layer `{target}`"
        elif LAYERS.index(target) > LAYERS.index(layer):
            yield f"{path}:{number}: `{layer}` may not include `{target}`, which is below it"


# Code compiled for one SIMD level, and what it may include: a kernel's second half, code between
# target pragmas, and loops.
AT_EACH_LEVEL = "#else  // at each SIMD level"
TARGET, TARGET_END = "HEADRACE_TARGET(", "HEADRACE_TARGET_END"
MADE_FOR_LEVELS = re.compile(
    r"\s*#\s*include\s+(HEADRACE_(LANES|\w*KERNEL)"
    r"|.*(/lanes/|_loops\.h)"
    r"|<xxhash\.h>)"  # after all of its includes; it makes functions static
)


def check_levels(path: Path, text: str) -> Iterator[str]:
    """Note [Nothing is included first at a level] of headrace/kernels/each_level.h."""
    at_level = path.name.endswith("_loops.h")
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith((AT_EACH_LEVEL, TARGET)):
            at_level = True
        elif line.startswith(TARGET_END):
            at_level = False
        elif at_level and line.lstrip().startswith("#include") and not MADE_FOR_LEVELS.match(line):
            yield f"{path}:{number}: includes at one SIMD level; include it before"


def check_nested(path: Path, text: str) -> Iterator[str]:
    """Where a later member throws, g++ 12 destroys those of a nested `{...}` twice."""
    for number, line in enumerate(text.splitlines(), 1):
        if ".where = {" in line:
            yield f"{path}:{number}: write `.where = Where{{...}}`; g++ 12 would destroy it twice"


def imported(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Import):
        return [name.name for name in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        return [node.module]
    return []


def run_at_import(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when the module is imported: not those inside functions."""
    for node in body:
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if is_type_checking(node):
            yield from run_at_import(node.orelse)  # type: ignore[attr-defined]
            continue
        for inner in ("body", "orelse", "finalbody"):
            yield from run_at_import(getattr(node, inner, []))
        for handler in getattr(node, "handlers", []):
            yield from run_at_import(handler.body)


def check_imports(path: Path, text: str) -> Iterator[str]:
    if path.suffix != ".py" or path.parts[0] != "python" or str(path).startswith(TRAINERS):
        return
    for node in run_at_import(ast.parse(text).body):
        for name in imported(node):
            if name.split(".")[0] in FRAMEWORKS:
                yield f"{path}:{node.lineno}: imports `{name}` at import time, not in a function"


def check_file(path: Path, text: str) -> Iterator[str]:
    lines = text.splitlines()
    if not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:2]):
        yield f"{path}:1: no SPDX line"
    if len(lines) > REFUSED_LINES:
        yield f"{path}:1: {len(lines)} lines; {REFUSED_LINES} is the limit"
    for word in re.split(r"[_\W]+", path.stem.lower()):
        if word in BANNED_WORDS:
            yield f"{path}:1: `{word}` says nothing; name the file after its content"
    if path.suffix in CXX:
        yield from check_includes(path, text)
        yield from check_levels(path, text)
        yield from check_nested(path, text)
    if str(path.with_suffix("")) in LOCKLESS and re.search(r"Mutex|mutex\.h|thread_pool\.h", text):
        yield f"{path}:1: names a lock or a pool; what it shares with others is lent to it"
    yield from check_imports(path, text)


def main(arguments: list[str]) -> int:
    root = Path(arguments[0] if arguments else Path(__file__).parent.parent)
    breaches, long_files, count = [], [], 0
    texts: dict[Path, str] = {}
    for absolute in files(root):
        path = absolute.relative_to(root)
        is_source = path.suffix in SOURCES or path.name in SOURCE_NAMES
        texts[path] = text = (
            absolute.read_text(encoding="utf-8") if is_source or path.suffix == ".md" else ""
        )
        if not is_source:
            continue
        count += 1
        breaches += check_file(path, text)
        if LISTED_LINES < (lines := text.count("\n")) <= REFUSED_LINES:
            long_files.append(f"{path}: {lines} lines; could it be two files?")
    cxx = {path: text for path, text in texts.items() if path.suffix in CXX}
    breaches += [
        *check_circles(cxx),
        *check_twins(cxx),
        *check_package(root),
        *check_named_paths(texts),
    ]
    print("\n".join(long_files + breaches), end="\n" if long_files or breaches else "")
    print(f"{count} files, {len(breaches)} breaches")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
