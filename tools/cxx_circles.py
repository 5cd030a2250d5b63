# SPDX-License-Identifier: Apache-2.0
"""Cycles of C++ includes: between files, and between the folders below headrace/.

Layer rules apply to whole layers. Within a layer, folders such as `formats/tar` and
`formats/shards` must not depend on each other in a cycle. Tests and fuzz targets may include both.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from circles import circles

_INCLUDE = re.compile(r'^\s*#\s*include\s+"(headrace/[^"]+)"', re.MULTILINE)
_LOOKS_BOTH_WAYS = re.compile(r"_(test|fuzz)\.cc$")


def check_circles(texts: Mapping[Path, str]) -> Iterator[str]:
    """Each cycle among C++ sources, by their paths from the root, as `file:line: rule`."""
    files: dict[str, set[str]] = {}
    folders: dict[str, set[str]] = defaultdict(set)
    for path, text in texts.items():
        if path.parts[0] != "headrace" or _LOOKS_BOTH_WAYS.search(path.name):
            continue
        files[str(path)] = set(_INCLUDE.findall(text))
        folder = _folder_of(path)
        folders[folder] |= {_folder_of(Path(name)) for name in files[str(path)]} - {folder}
    for kind, needs in (("files", files), ("folders", folders)):
        for way in circles(needs):
            yield f"{way[0]}:1: {kind} include each other in a cycle: {' -> '.join(way)}"


def _folder_of(path: Path) -> str:
    """headrace/ops/op.h -> headrace/ops; headrace/loader.h -> headrace/loader."""
    if len(path.parts) == 2:
        return f"headrace/{path.stem.split('_')[0]}"
    return str(path.parent)
