# SPDX-License-Identifier: Apache-2.0
"""The layers of the Python package: allowed imports, and names that stay inside a module.

- A module imports from its own layer and from those above it in LAYERS. Imports inside functions
  and for type checkers count. If a lower layer is needed nevertheless (a loader's `.torch()` needs
  the adapter, which needs loaders), the import is in a function or under TYPE_CHECKING and marked
  with `# late`. No other import has that mark.
- Modules do not import each other in a cycle, in any layer.
- A name that begins with an underscore stays in its module: it is not imported, and no other module
accesses it on an object. `_core` is the compiled module; `_make` and similar names belong to
namedtuple.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from circles import circles

PACKAGE = "headrace"
# Each may import those before it; those in the same line may import each other. "" is the package
# itself; a name with a dot is a subpackage with layers of its own.
LAYERS = (
    ("_core",),
    ("errors", "log", "printable", "plain_json", "dtypes", "plain_array", "readable", "whole_file"),
    ("drawing",),
    (
        "arguments",
        "clouds",
        "finalizers",
        "remote",
        "counters",
        "environment",
        "signatures",
        "absent",
    ),
    ("process_group", "fail_together", "profiled"),
    ("sampling",),
    ("global_draws", "twisters"),
    ("steps", "library_steps", "transforms", "presets", "pipeline"),
    ("step_config", "plugins"),
    ("surroundings",),
    ("sources",),
    ("formats",),
    ("annotations", "jobs", "write", "pack", "convert", "index"),
    ("decode", "workers"),
    ("batch", "inspection", "loader", "overlays", "per_record", "torchvision_batches"),
    ("compose", "token_writer"),
    ("frameworks",),
    ("delivery",),
    ("migrate",),
    ("ray",),
    ("insight.measure",),
    ("insight.stand_in",),
    ("insight.model",),
    ("insight.probes",),
    ("insight.kit",),
    ("insight.report",),
    ("insight.examination", "insight.remedies"),
    ("insight.scripts",),
    ("insight.live",),
    ("insight",),
    ("trainers",),
    ("",),
    ("cli", "insight.demo", "__main__"),
)
LATE = "# late"
_OF_NAMEDTUPLES = {"_asdict", "_fields", "_make", "_replace"}


class Module(NamedTuple):
    name: str  # "headrace.loader.turn"
    path: Path
    tree: ast.Module
    lines: list[str]


class Import(NamedTuple):
    module: str
    line: int
    is_late: bool  # the mark
    is_inside: bool  # a function, or for type checkers only


def check_package(root: Path) -> Iterator[str]:
    """Each violation below root/python/headrace as `file:line: rule`."""
    modules = {module.name: module for module in _modules(root)}
    known = {*modules, f"{PACKAGE}._core"}
    private = {name: set(_private_names(module.tree)) for name, module in modules.items()}
    needs: dict[str, set[str]] = {}
    for name, module in modules.items():
        imports = list(_imports(module, known))
        needs[name] = {one.module for one in imports if not one.is_late}
        yield from _check_layer(module, imports)
        elsewhere = set().union(*(names for other, names in private.items() if other != name))
        yield from _check_names(module, private[name], elsewhere)
    for way in circles(needs):
        yield f"{modules[way[0]].path}:1: imports in a cycle: {' -> '.join(way)}"


def _modules(root: Path) -> Iterator[Module]:
    for path in sorted((root / "python" / PACKAGE).rglob("*.py")):
        parts = path.relative_to(root / "python").with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text(encoding="utf-8")
        yield Module(name, path.relative_to(root), ast.parse(text), text.splitlines())


def layer_of(module: str) -> int | None:
    """headrace.insight.kit.svg -> the position of "insight.kit" in LAYERS, otherwise that of
    "insight"."""
    parts = module.partition(".")[2].split(".")
    for top in (".".join(parts[:2]), parts[0]):
        for place, names in enumerate(LAYERS):
            if top in names:
                return place
    return None


def _check_layer(module: Module, imports: list[Import]) -> Iterator[str]:
    own = layer_of(module.name)
    if own is None:
        yield f"{module.path}:1: `{module.name}` is in no layer (tools/python_layers.py)"
        return
    for one in imports:
        place, what = layer_of(one.module), f"{module.path}:{one.line}: "
        upward = place is not None and place > own
        if upward and not one.is_late:
            yield f"{what}may not import `{one.module}`, which is below it"
        elif one.is_late and not (upward and one.is_inside):
            yield f"{what}`{LATE}` is for imports from below, inside a function or TYPE_CHECKING"


def _imports(module: Module, known: set[str]) -> Iterator[Import]:
    inside = {
        id(inner)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or is_type_checking(node)
        for inner in ast.walk(node)
    }
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            is_late = LATE in module.lines[node.lineno - 1]
            for name in _imported(module, node, known):
                yield Import(name, node.lineno, is_late, id(node) in inside)


def _imported(module: Module, node: ast.Import | ast.ImportFrom, known: set[str]) -> Iterator[str]:
    """Names of modules of the package."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        base = node.module or ""
        if node.level:
            package = module.name if module.path.name == "__init__.py" else _parent(module.name)
            for _ in range(node.level - 1):
                package = _parent(package)
            base = f"{package}.{base}".rstrip(".")
        whole = {alias.name: f"{base}.{alias.name}" for alias in node.names}
        names = [path if path in known else base for path in whole.values()]
    yield from (name for name in names if name.split(".")[0] == PACKAGE)


def _parent(name: str) -> str:
    return name.rpartition(".")[0]


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name not in {"_", "_core"}


def _private_names(tree: ast.Module) -> Iterator[str]:
    """What a module defines: functions, classes, variables, attributes, parameters."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names = [node.attr]
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names = [node.id]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = [node.value]  # from __slots__, from setattr
        else:
            continue
        yield from filter(is_private, names)


def _check_names(module: Module, own: set[str], elsewhere: set[str]) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom):
            ours = node.level or (node.module or "").split(".")[0] == PACKAGE
            for alias in node.names:
                if ours and is_private(alias.name):
                    yield f"{module.path}:{node.lineno}: imports `{alias.name}`, which is private"
        elif isinstance(node, ast.Attribute) and is_private(node.attr):
            is_theirs = node.attr in elsewhere and node.attr not in own | _OF_NAMEDTUPLES
            if is_theirs:
                text = ast.unparse(node)
                yield f"{module.path}:{node.lineno}: `{text}` is private to another module"
