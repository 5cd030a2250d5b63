# SPDX-License-Identifier: Apache-2.0
"""Types, inline functions and inline values that two C++ files define with the same name in the
same namespace.

The linker silently uses one of two different definitions for both, so that code may use the wrong
struct layout. The compiler only detects it if one file includes both. Unnamed namespaces and class
members are not affected.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

# Relies on clang-format's layout: definitions in a namespace begin in the first column.
_OPENS = re.compile(r"namespace ?(?:([\w:]+) )?\{$")
_CLOSES = re.compile(r"\}  // namespace")
_TEMPLATE = r"(?:template <.*?> )?"
_TYPE = re.compile(
    _TEMPLATE
    + r"(?:struct|class|union|enum(?: class)?) (?:\[\[.*?\]\] |(?:alignas|[A-Z_]+)\(.*?\) )*"
    r"(\w+)(?: final)?(?: : .*)? \{"
)
_INLINE = re.compile(
    _TEMPLATE + r"(?:\w+ )*?inline [^(=]*?(\w+)(?:(\(.*?\)) (?:const |noexcept )*\{| = |\{)"
)
_ROOTS = ("headrace", "headrace-av", "bindings")


def check_twins(texts: Mapping[Path, str]) -> Iterator[str]:
    """Each second definition among C++ sources, by their paths from the root: `file:line: rule`."""
    first: dict[str, str] = {}
    for path, text in texts.items():
        for name, line in definitions(text) if path.parts[0] in _ROOTS else ():
            where = first.setdefault(name, f"{path}:{line}")
            if where.rpartition(":")[0] != str(path):
                yield f"{path}:{line}: `{name}` is also defined in {where}"


def definitions(text: str) -> Iterator[tuple[str, int]]:
    """A file's definitions in named namespaces, `namespace::name(parameters)`, with their lines."""
    namespaces: list[str | None] = []
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if opens := _OPENS.match(line):
            namespaces.append(opens[1])
        elif _CLOSES.match(line) and namespaces:
            namespaces.pop()
        elif not (line[:1].isalpha() and namespaces and all(namespaces)):
            continue
        elif name := _defined(_head(lines[number - 1 :])):
            yield "::".join([*filter(None, namespaces), name]), number


def _head(lines: list[str]) -> str:
    """The lines up to the first that opens a body or ends a declaration, joined."""
    head = []
    for line in lines:
        head.append(line.partition("//")[0].strip())
        if head[-1].endswith((";", "{", "}")):
            break
    return " ".join(head)


def _defined(head: str) -> str | None:
    if found := _TYPE.match(head):
        return found[1]
    if (found := _INLINE.match(head)) and not head.endswith(");"):
        return found[1] + re.sub(r" \w+(?=[,)])", "", found[2] or "")
    return None
