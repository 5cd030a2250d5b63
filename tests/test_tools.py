# SPDX-License-Identifier: Apache-2.0
"""The house rules: tools/check_layers.py finds each kind of breach, and tools/tally.py counts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parent.parent / "tools"
SPDX_CXX = "// SPDX-License-Identifier: Apache-2.0\n"
SPDX_PY = "# SPDX-License-Identifier: Apache-2.0\n"


def run(tool: str, *arguments: object) -> tuple[int, str]:
    command = [sys.executable, str(TOOLS / tool), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def check(root: Path, name: str, text: str) -> tuple[int, str]:
    write(root, name, text)
    return run("check_layers.py", root)


def test_including_downward_is_clean(tmp_path: Path) -> None:
    text = SPDX_CXX + '#include "headrace/base/error.h"\n#include "headrace/ops/op.h"\n'
    assert check(tmp_path, "headrace/ops/flip.cc", text) == (0, "1 files, 0 breaches\n")


@pytest.mark.parametrize(
    ("name", "header", "message"),
    [
        ("headrace/base/buffer.h", "headrace/codecs/codec.h", "`base` may not include `codecs`"),
        ("headrace/codecs/jpeg.cc", "headrace/image/recipe.h", "`codecs` may not include `image`"),
        ("headrace/executor/run.cc", "headrace/loader.h", "`executor` may not include `loader`"),
        ("headrace/ops/flip_test.cc", "headrace/pipeline/plan.h", "may not include `pipeline`"),
        ("headrace/ops/flip.cc", "headrace/extras/x.h", "unknown layer `extras`"),
    ],
)
def test_including_upward_is_refused(tmp_path: Path, name: str, header: str, message: str) -> None:
    code, out = check(tmp_path, name, f'{SPDX_CXX}\n#include "{header}"\n')
    assert code == 1
    assert f"{name}:3: " in out
    assert message in out


def test_a_folder_outside_the_list_is_refused(tmp_path: Path) -> None:
    code, out = check(tmp_path, "headrace/extras/x.cc", SPDX_CXX)
    assert code == 1
    assert "`extras` is not in the list" in out


@pytest.mark.parametrize(
    "text",
    [
        "import torch\n",
        "from torch.utils import dlpack\n",
        "try:\n    import jax\nexcept ImportError:\n    pass\n",
        "class A:\n    import tensorflow as tf\n",
    ],
)
def test_importing_a_framework_with_the_package_is_refused(tmp_path: Path, text: str) -> None:
    code, out = check(tmp_path, "python/headrace/x.py", SPDX_PY + text)
    assert code == 1
    assert "at import time" in out


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    import torch\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\n",
        "from headrace import torch\nfrom . import jax\n",
    ],
)
def test_importing_a_framework_when_it_is_needed_is_clean(tmp_path: Path, text: str) -> None:
    code, out = check(tmp_path, "python/headrace/x.py", SPDX_PY + text)
    assert (code, out) == (0, "1 files, 0 breaches\n")


def test_a_file_past_800_lines_is_refused_and_past_400_listed(tmp_path: Path) -> None:
    write(tmp_path, "headrace/base/long.cc", SPDX_CXX + "\n" * 500)
    code, out = run("check_layers.py", tmp_path)
    assert code == 0
    assert "headrace/base/long.cc: 501 lines" in out
    code, out = check(tmp_path, "headrace/base/longer.cc", SPDX_CXX + "\n" * 800)
    assert code == 1
    assert "headrace/base/longer.cc:1: 801 lines; 800 is the limit" in out


@pytest.mark.parametrize("stem", ["utils", "string_utils", "common", "helpers", "slot_manager"])
def test_a_name_that_says_nothing_is_refused(tmp_path: Path, stem: str) -> None:
    code, out = check(tmp_path, f"headrace/base/{stem}.h", SPDX_CXX)
    assert code == 1
    assert "says nothing" in out


def test_a_source_without_a_licence_line_is_refused(tmp_path: Path) -> None:
    code, out = check(tmp_path, "tools/x.py", "print()\n")
    assert code == 1
    assert "tools/x.py:1: no SPDX line" in out


def test_build_outputs_are_not_looked_at(tmp_path: Path) -> None:
    code, out = check(tmp_path, "build/headrace/utils.cc", "")
    assert (code, out) == (0, "0 files, 0 breaches\n")


def test_this_repository_is_clean() -> None:
    code, out = run("check_layers.py", TOOLS.parent)
    assert code == 0, out


def test_the_tally_adds_suites_and_steps(tmp_path: Path) -> None:
    write(tmp_path, "steps.txt", "step 0 format\nstep 1 types\nskip - torch\nsuite 0 units\n")
    write(tmp_path, "units/a.xml", '<testsuites><testsuite tests="5" skipped="2"/></testsuites>')
    write(tmp_path, "units/b.xml", '<testsuite tests="4" failures="1" errors="1"/>')
    code, out = run("tally.py", tmp_path)
    assert code == 1
    assert out.splitlines()[-1] == "6 passed, 3 failed, 3 skipped"
    assert "failed: types" in out


def test_the_tally_counts_a_suite_that_died_without_a_report(tmp_path: Path) -> None:
    write(tmp_path, "steps.txt", "step 0 format\nsuite 8 units\n")
    write(tmp_path, "units/a.xml", '<testsuite tests="4"/>')
    code, out = run("tally.py", tmp_path)
    assert (code, out.splitlines()[-1]) == (1, "5 passed, 1 failed")


def test_the_tally_counts_a_suite_in_which_nothing_ran(tmp_path: Path) -> None:
    write(tmp_path, "steps.txt", "suite 0 units\n")
    code, out = run("tally.py", tmp_path)
    assert (code, out.splitlines()[-1]) == (1, "0 passed, 1 failed")


def test_the_tally_says_nothing_of_skips_when_there_are_none(tmp_path: Path) -> None:
    write(tmp_path, "steps.txt", "step 0 format\n")
    code, out = run("tally.py", tmp_path)
    assert (code, out.splitlines()[-1]) == (0, "1 passed, 0 failed")
