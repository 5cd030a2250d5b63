#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Inserts the results of a compare.py run into documents.

    python bench/figures.py build/bench README.md docs/*/*.md

Replaces everything between `<!-- figures: NAME -->` or `<!-- figures: NAME SET -->` and
`<!-- /figures -->` by what tables.py makes under that name; copies the charts that a document shows
next to it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

import tables

SLOT = re.compile(r"(<!-- figures: ([a-z-]+)(?: ([\w-]+))? -->\n).*?(<!-- /figures -->)", re.S)
WITH_A_SET = {
    "pictures": tables.pictures,
    "loaders": tables.loaders,
    "summary": tables.summary,
    "differences": tables.differences,
    "hashes": tables.hashes,
    "packing": tables.packing,
}
WITHOUT = {
    "circumstances": tables.circumstances,
    "headline": tables.headline,
    "one-core": tables.one_core,
    "stages": tables.stages,
    "entropy": tables.entropy,
    "kernels": tables.kernels,
    "scaling": tables.scaling,
}
IMAGES = Path(__file__).parent.parent / "docs" / "images"


def text_for(report: dict[str, Any], name: str, pictures: str | None) -> str:
    if name in WITH_A_SET and pictures:
        return WITH_A_SET[name](report, pictures)
    if name in WITHOUT and not pictures:
        return WITHOUT[name](report)
    raise KeyError(f"there are no figures `{name}` of {pictures or 'a run'}")


def fill(document: str, report: dict[str, Any]) -> tuple[str, list[str]]:
    """The document with its figures, and the slots missing from the run, which are unchanged."""
    missing = []

    def replace(slot: re.Match[str]) -> str:
        opening, name, pictures, closing = slot.groups()
        try:
            return f"{opening}{text_for(report, name, pictures)}\n{closing}"
        except KeyError as error:
            missing.append(str(error.args[0]))
            return slot.group(0)

    return SLOT.sub(replace, document), missing


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="the output folder of compare.py")
    parser.add_argument("documents", nargs="+", type=Path)
    parser.add_argument("--images", type=Path, default=IMAGES, help="output folder of the charts")
    args = parser.parse_args()
    report = json.loads((args.run / "imagenet-train.json").read_text())
    for path in args.documents:
        text, missing = fill(path.read_text(), report)
        for what in missing:
            print(f"{path}: left unchanged: {what}", file=sys.stderr)
        path.write_text(text)
    charts = {"one-core.svg": "one-core.svg"}
    if report["sets"]:
        charts["throughput.svg"] = f"imagenet-train-{report['sets'][0]['name']}.svg"
    for name, made in charts.items():
        if (args.run / made).exists():
            (args.images / name).write_text((args.run / made).read_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
