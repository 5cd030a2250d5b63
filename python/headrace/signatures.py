# SPDX-License-Identifier: Apache-2.0
"""Signatures and reference texts of operators, formats and samplers, from their records.

Imports nothing of Headrace, because stubs are generated from it before the package is built.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

_ANNOTATIONS = {
    "bool": "bool",
    "int": "int",
    "float": "float",
    "string": "str",
    "dtype": "Any",
    "ints": "int | Sequence[int]",
    "floats": "float | Sequence[float]",
    "transforms": "Sequence[Any]",
    "branches": "Sequence[Any]",
    "strings": "Sequence[str]",
    "lists": "Sequence[Any]",
    "source": "Source",
}


# Formats without a function of their own name: list() is Python's, and pack() writes packs. open()
# reads both.
NOT_FUNCTIONS = {"list", "pack"}


def annotation(param: Mapping[str, Any]) -> str:
    """A parameter's type as shown in the signature."""
    text = _ANNOTATIONS[param["type"]]
    if param["choices"]:
        text = f"str | {text}" if param["type"] in ("floats", "strings") else "str | Enum"
    by_default = param["default"] is None and not param["required"]
    if (by_default or param["or_none"]) and text != "Any":
        text += " | None"
    return text


def words(param: Mapping[str, Any]) -> str:
    """The words allowed as a parameter's value; numbers may be allowed, too."""
    if not param["choices"]:
        return ""
    either = {"floats": "Or one", "strings": "Each is one"}.get(param["type"], "One")
    return f" {either} of {', '.join(map(repr, param['choices']))}."


def _shown(default: Any) -> Any:
    return tuple(default) if isinstance(default, list) else default


def signature(record: Mapping[str, Any]) -> inspect.Signature:
    kinds = inspect.Parameter
    out = [
        kinds(
            param["name"],
            kinds.POSITIONAL_OR_KEYWORD,
            default=kinds.empty if param["required"] else _shown(param["default"]),
            annotation=annotation(param),
        )
        for param in record["params"]
        if param["type"] != "branches"
    ]
    out.append(kinds("fields", kinds.KEYWORD_ONLY, default=(), annotation="str | Iterable[str]"))
    for param in record["params"]:
        if param["type"] == "branches":
            out.append(kinds(param["name"], kinds.VAR_KEYWORD, annotation=annotation(param)))
    # A required parameter after one with a default is valid as a keyword-only one.
    for i in range(1, len(out) - 1):
        if out[i].default is kinds.empty and out[i - 1].default is not kinds.empty:
            out[i] = out[i].replace(default=None)
    return inspect.Signature(out)


def docstring(record: Mapping[str, Any]) -> str:
    """The reference text of an operator: what it does, its arguments, and the reference for its
    result."""
    lines = [record["doc"], ""]
    if record["params"]:
        lines.append("Args:")
        for param in record["params"]:
            text = param["doc"] + words(param)
            lines.append(f"    {param['name']}: {text}")
        lines.append("")
    if record["oracle"]:
        lines.append(f"Equals: {record['oracle']}")
    return "\n".join(lines).rstrip() + "\n"


def format_signature(record: Mapping[str, Any]) -> inspect.Signature:
    """Signature of the function that opens a format: a path, its parameters, kinds, progress."""
    kinds = inspect.Parameter
    path = "str | PathLike[str]"
    out = [
        kinds(
            "path",
            kinds.POSITIONAL_OR_KEYWORD,
            annotation=f"{path} | Sequence[{path}]" if record["shards"] else path,
        )
    ]
    for param in record["params"]:
        out.append(
            kinds(
                param["name"],
                kinds.POSITIONAL_OR_KEYWORD,
                default=None if param["required"] else _shown(param["default"]),
                annotation=annotation(param).replace(" | Enum", ""),
            )
        )
    out.append(
        kinds(
            "kinds",
            kinds.KEYWORD_ONLY,
            default=None,
            annotation="Mapping[str, str] | None",
        )
    )
    out.append(
        kinds(
            "progress",
            kinds.KEYWORD_ONLY,
            default=None,
            annotation="Callable[[int, int], object] | None",
        )
    )
    return inspect.Signature(out, return_annotation="Source")


def format_docstring(record: Mapping[str, Any]) -> str:
    """The reference text of a format: what it is, its parameters, an example."""
    lines = [record["doc"], "", "Args:"]
    several = ", a pattern of several, or a list of paths" if record["shards"] else ""
    lines.append(f"    path: Path of the dataset{several}.")
    for param in record["params"]:
        text = param["doc"] + words(param)
        lines.append(f"    {param['name']}: {text}")
    lines.append("    kinds: Kinds of fields, see Source.with_kinds: {'seg': 'mask'}.")
    lines.append("    progress: Called with (done, total or -1) while its records are located.")
    return "\n".join([*lines, "", f"Example: {record['example']}"]) + "\n"


_PER_RECORD = {
    "weights": "Any",
    "labels": "Any",
    "lengths": "Any",
    "durations": "Any",
    "indices": "Sequence[int] | np.ndarray[Any, Any]",
    "order": "Any",
}


def sampler_fields(record: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """A sampler's arguments: (name, annotation), and the default if there is one."""
    annotations = [annotation(param) for param in record["params"]]
    if record["per_record"] in _PER_RECORD:
        annotations[0] = _PER_RECORD[record["per_record"]]
    return [
        (param["name"], text) if param["required"] else (param["name"], text, param["default"])
        for param, text in zip(record["params"], annotations, strict=True)
    ]


def sampler_docstring(record: Mapping[str, Any]) -> str:
    """The reference text of a sampler: what it does, its arguments, an example."""
    lines = [record["doc"], "", "Args:"]
    lines += [f"    {param['name']}: {param['doc']}" for param in record["params"]]
    return "\n".join([*lines, "", f"Example: {record['example']}"]) + "\n"
