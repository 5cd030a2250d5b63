# SPDX-License-Identifier: Apache-2.0
"""Checks that files, folders and modules mentioned in documents and comments exist.

- `bindings/released_gil.h`, `packed/dense_jpeg.cc`, `docs/internals/jpeg.md`: the end of a path in
  the repository. Python files only count with a folder, because users have a train.py, too.
- `headrace/base/`, `python/headrace/insight/`: a folder.
- `headrace.insight.measure.loop`: a module of the package, or a name in one.
- Links of Markdown files, except to the web.

`x_test.cc`, `your_op.cc`, `fuzz/NAME/` and `_test.cc` are placeholders.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

_WORDS = re.compile(r"[\w./*{}<>$-]+")
_FILE = re.compile(r"(?:[\w-]+/)*[\w-]+\.(?:h|cc|cu|md|cmake)")
_FILE_IN_FOLDER = re.compile(r"(?:[\w-]+/)+[\w-]+\.(?:py|pyi|txt|sh)")
_FOLDER = re.compile(r"(?:headrace|bindings|docs|tests|tools|bench|cmake|fuzz|python)(?:/[\w-]+)*/")
_MODULE = re.compile(r"\bheadrace(?:\.[a-z_]\w*){2,}")
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
_CXX_COMMENT = re.compile(r"//.*")
_PLACEHOLDER = re.compile(r"(^|/)(x_|x/|_|[A-Z]+/)|your")
_ELSEWHERE = {  # of libraries and of the system
    "base/format/mds/encodings.py",
    "include/dmlc/recordio.h",
    "jpeglib.h",
}


def check_named_paths(texts: Mapping[Path, str]) -> Iterator[str]:
    """Each mention of something that does not exist, as `file:line: rule`. texts: of all files, by
    their paths."""
    files = {path.as_posix() for path in texts}
    ends = {"/".join(parts[at:]) for parts in map(_parts, files) for at in range(len(parts))}
    folders = {str(parent) + "/" for file in files for parent in PurePosixPath(file).parents}
    modules = dict(_modules(texts))
    for path, text in texts.items():
        for line, comment in _comments(path, text):
            for name in (word.rstrip(".") for word in _WORDS.findall(comment)):
                if _PLACEHOLDER.search(name) or name in _ELSEWHERE:
                    continue
                is_file = _FILE.fullmatch(name) or _FILE_IN_FOLDER.fullmatch(name)
                if is_file and name not in ends:
                    yield f"{path}:{line}: there is no file `{name}`"
                if _FOLDER.fullmatch(name) and name not in folders:
                    yield f"{path}:{line}: there is no folder `{name}`"
            for name in _MODULE.findall(comment):
                if not _is_there(name, modules):
                    yield f"{path}:{line}: there is no module or name `{name}`"
            if path.suffix == ".md":
                yield from _check_links(path, line, comment, files | folders)


def _parts(file: str) -> tuple[str, ...]:
    return PurePosixPath(file).parts


def _comments(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """Lines of documents, comments and docstrings."""
    if path.suffix == ".md":
        yield from enumerate(text.split("\n"), 1)
    elif path.suffix in {".h", ".cc", ".cu"}:
        for number, line in enumerate(text.split("\n"), 1):
            yield from ((number, comment) for comment in _CXX_COMMENT.findall(line))
    elif path.suffix == ".py":
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                docstring = ast.get_docstring(node, clean=False) or ""
                first = node.body[0].lineno if node.body else 1
                yield from enumerate(docstring.split("\n"), first)


def _modules(texts: Mapping[Path, str]) -> Iterator[tuple[str, str]]:
    for path, text in texts.items():
        if path.parts[:2] == ("python", "headrace") and path.suffix == ".py":
            parts = path.with_suffix("").parts[1:]
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), text


def _is_there(name: str, modules: Mapping[str, str]) -> bool:
    """Whether its longest prefix that is a module defines what follows."""
    head, _, rest = name, "", ""
    while head not in modules:
        head, _, last = head.rpartition(".")
        rest = last
        if not head:
            return False
    return not rest or re.search(rf"\b{rest}\b", modules[head]) is not None


def _check_links(path: Path, line: int, text: str, known: set[str]) -> Iterator[str]:
    for target in _LINK.findall(text):
        if "://" in target or target.startswith("mailto:"):
            continue
        parts: list[str] = []
        for part in (*path.parent.parts, *target.split("/")):
            if part == "..":
                parts = parts[:-1]
            elif part not in (".", ""):
                parts.append(part)
        joined = "/".join(parts)
        if joined not in known and f"{joined}/" not in known:
            yield f"{path}:{line}: the link to `{target}` leads nowhere"
