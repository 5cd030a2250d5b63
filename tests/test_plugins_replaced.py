# SPDX-License-Identifier: Apache-2.0
"""A rejected plug-in can be corrected and loaded again; an old file is never used for a new one."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from built_plugins import CASES, case, compiled, needs_compiler

import headrace as hr

pytestmark = needs_compiler

mistakes = pytest.mark.parametrize(
    "mistake", [{"HELP": "NULL"}, {"ABI": 2}, {"NO_TABLE": 1, "RUN": "run"}]
)


def refusal(library: Path) -> str:
    with pytest.raises(hr.ConfigError) as caught:
        hr.load_plugin(library)
    return str(caught.value)


def replace(library: Path, other: Path) -> None:
    """As when it is linked again: the path becomes another file."""
    library.unlink()
    shutil.copy(other, library)


@mistakes
def test_a_corrected_plugin_is_loaded_from_the_path_of_the_rejected_one(
    tmp_path: Path, mistake: Any
) -> None:
    library, _ = case(tmp_path, **mistake)
    refusal(library)
    corrected, name = case(tmp_path)
    replace(library, corrected)
    plugin = hr.load_plugin(library)
    assert plugin.transforms == (name,) and plugin.path == str(library)


@mistakes
def test_a_rejected_plugin_that_the_linker_keeps_is_not_taken_for_the_corrected_one(
    tmp_path: Path, mistake: Any
) -> None:
    defined = {"PLUGIN": '"kept"', "TRANSFORM": '"Kept"', **mistake}
    flags = [f"-D{key}={value}" for key, value in defined.items()]
    library = compiled(CASES, tmp_path / "libkept.so", *flags, "-Wl,-z,nodelete")
    why = refusal(library)
    rejected = Path(shutil.copy(library, tmp_path / "rejected.so"))
    corrected, _ = case(tmp_path)
    replace(library, corrected)
    text = refusal(library)
    assert text.startswith("HR0577") and "since this process rejected it" in text
    replace(library, rejected)
    assert refusal(library) == why
    assert hr.load_plugin(corrected).path == str(corrected)
