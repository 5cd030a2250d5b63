# SPDX-License-Identifier: Apache-2.0
"""docs/start/migrating/torchvision-transforms.md lists all of torchvision v2's public classes, and
its statement about each is true."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from headrace.migrate import collate, translations
from headrace.migrate.translations import registry

from headrace import transforms as T

pytest.importorskip("torch")
pytest.importorskip("torchvision")
from torchvision.transforms import v2

NAME = "docs/start/migrating/torchvision-transforms.md"
PAGE = Path(__file__).parent.parent / NAME
ROW = re.compile(r"\| `(\w+)` \| (`T\.\w+`|none|not yet) \| ([^|]+) \| ([^|]*) \|")
NO_TRANSFORMS = {
    "Transform",
    "AutoAugmentPolicy",
    "InterpolationMode",
}  # a base class, two lists of words


def rows() -> dict[str, tuple[str, str, str]]:
    table = PAGE.read_text().partition("| torchvision v2 | operator |")[2].partition("\n\n")[0]
    found = [row.groups() for row in map(ROW.fullmatch, table.splitlines()[2:]) if row]
    assert len(found) == len(table.splitlines()) - 2, "a row that is not a row of this table"
    assert [row[0] for row in found] == sorted({row[0] for row in found})
    return {name: (operator, how, remark) for name, operator, how, remark in found}


def test_every_public_class_has_its_row() -> None:
    classes = {name for name, value in vars(v2).items() if inspect.isclass(value)}
    assert set(rows()) == classes - NO_TRANSFORMS


@pytest.mark.parametrize("name", rows())
def test_every_row_is_true(name: str) -> None:
    operator, how, remark = rows()[name]
    if operator == "not yet":
        assert not hasattr(T, name), f"{NAME}: {name} has an operator now"
    elif operator == "none":
        assert not hasattr(T, name) and (how == "nothing" or remark)
    else:
        assert hasattr(T, operator.strip("`").removeprefix("T."))
    assert translations.__all__
    if name == "Compose":
        return
    native = name in registry._translations or name in collate.MIXING
    known = "native" if native else "Python transform"
    known = "nothing" if name in registry._nothing else known
    assert how.strip() in (known, "HR0834"), f"{NAME}: {name} is {known} now"
