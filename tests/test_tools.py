# SPDX-License-Identifier: Apache-2.0
"""The house rules: tools/check_layers.py finds each kind of breach, tools/tally.py counts, and
./dev ends within its time."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from timing import wait_until, with_longer_limits

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


@pytest.mark.parametrize(
    ("first", "second", "name"),
    [
        ("struct Span {\n  int a;\n};\n", "struct Span {\n  long a;\n};\n", "Span"),
        ("class Op;\nclass Op final : public A,\n  B {\n", "class [[nodiscard]] Op {\n", "Op"),
        ("enum class Way : uint8_t { kUp };\n", "template <class T>\nstruct Way {};\n", "Way"),
        ("inline int f(int a) { return 1; }\n", "constexpr inline int f(int b) {\n", "f(int)"),
        ("inline constexpr int kMost = 1;\n", "inline constexpr int kMost = 2;\n", "kMost"),
    ],
)
def test_two_definitions_of_one_name_in_a_namespace_are_refused(
    tmp_path: Path, first: str, second: str, name: str
) -> None:
    opened, closed = f"{SPDX_CXX}namespace headrace {{\n", "}  // namespace headrace\n"
    write(tmp_path, "headrace/ops/a.h", opened + first + closed)
    code, out = check(tmp_path, "headrace/sampling/b.cc", opened + second + closed)
    assert code == 1
    assert (
        f"headrace/sampling/b.cc:3: `headrace::{name}` is also defined in headrace/ops/a.h" in out
    )


@pytest.mark.parametrize(
    "text",
    [
        "struct Span;\n",
        "struct Line::Span {\n};\n",
        "namespace {\nstruct Span {\n};\n}  // namespace\n",
        "}  // namespace headrace\nnamespace headrace::avx2 {\nstruct Span {\n};\n",
        "class Line {\n  struct Span {\n  };\n};\n",
        "inline int f(float a) { return 1; }\n",
        "struct Span span() {\n}\n",
    ],
)
def test_distinct_names_are_not_duplicates(tmp_path: Path, text: str) -> None:
    opened, closed = f"{SPDX_CXX}namespace headrace {{\n", "}  // namespace headrace\n"
    twin = "struct Span {\n  int a;\n};\ninline int f(int a) { return 1; }\n"
    write(tmp_path, "headrace/ops/a.h", opened + twin + closed)
    clean = (0, "2 files, 0 breaches\n")
    assert check(tmp_path, "headrace/sampling/b.cc", opened + text + closed) == clean


def test_a_record_worker_that_uses_a_lock_is_refused(tmp_path: Path) -> None:
    text = f'{SPDX_CXX}#include "headrace/base/mutex.h"\n'
    assert check(tmp_path, "headrace/executor/open_batches.cc", text)[0] == 0
    code, out = check(tmp_path, "headrace/executor/record_worker.cc", text)
    assert code == 1
    assert "headrace/executor/record_worker.cc:1: names a lock or a pool" in out


def test_a_nested_member_of_an_error_names_its_type(tmp_path: Path) -> None:
    text = SPDX_CXX + "Error x() { return {.where = %s{.file = path}, .hint = hint}; }\n"
    assert check(tmp_path, "headrace/base/x.cc", text % "Where")[0] == 0
    code, out = check(tmp_path, "headrace/base/x.cc", text % "")
    assert code == 1
    assert "headrace/base/x.cc:2: write `.where = Where{...}`" in out


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
    code, out = check(tmp_path, "python/headrace/loader/x.py", SPDX_PY + text)
    assert code == 1
    assert "at import time" in out


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    import torch\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\n",
        "from headrace.loader import torch\nfrom . import jax\n",
    ],
)
def test_importing_a_framework_on_first_use_is_clean(tmp_path: Path, text: str) -> None:
    code, out = check(tmp_path, "python/headrace/loader/x.py", SPDX_PY + text)
    assert (code, out) == (0, "1 files, 0 breaches\n")


def write_package(root: Path, **modules: str) -> None:
    """Modules of the Python package by path, with __ for /; each begins with its license."""
    for name, text in modules.items():
        write(root, f"python/headrace/{name.replace('__', '/')}.py", SPDX_PY + text)


def test_importing_from_above_is_clean(tmp_path: Path) -> None:
    text = "from headrace.errors import Error\n\ndef f():\n    from headrace.loader import turn\n"
    write_package(tmp_path, errors="Error = 1\n", loader__turn="", insight__call=text)
    assert run("check_layers.py", tmp_path) == (0, "3 files, 0 breaches\n")


@pytest.mark.parametrize(
    "text",
    [
        "from headrace.insight import call\n",
        "import headrace.insight.call\n",
        "from ..insight.call import doctor\n",
        "def f():\n    from headrace.insight import call\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import headrace.insight.call\n",
        "from headrace.insight import call  # late\n",  # but not inside anything
    ],
)
def test_importing_from_below_is_refused(tmp_path: Path, text: str) -> None:
    write_package(tmp_path, loader__turn=text, insight__call="")
    code, out = run("check_layers.py", tmp_path)
    assert code == 1
    assert f"python/headrace/loader/turn.py:{len(text.splitlines()) + 1}: " in out


def test_an_import_from_below_may_be_declared_late(tmp_path: Path) -> None:
    text = "def f():\n    from headrace.insight import call  # late\n"
    write_package(tmp_path, loader__turn=text, insight__call="import headrace.loader.turn\n")
    assert run("check_layers.py", tmp_path) == (0, "2 files, 0 breaches\n")


def test_an_import_from_above_is_not_declared_late(tmp_path: Path) -> None:
    text = "def f():\n    from headrace.loader import turn  # late\n"
    write_package(tmp_path, loader__turn="", insight__call=text)
    code, out = run("check_layers.py", tmp_path)
    assert code == 1
    assert "is for imports from below" in out


@pytest.mark.parametrize(
    "text",
    [
        "import headrace.delivery.b\n",
        "def f():\n    from . import b\n",
        "import typing\nif typing.TYPE_CHECKING:\n    from headrace.delivery.b import B\n",
    ],
)
def test_modules_that_import_each_other_are_refused(tmp_path: Path, text: str) -> None:
    modules = {"a": text, "b": "from headrace.delivery import c\n", "c": "from . import a\n"}
    write_package(tmp_path, **{f"delivery__{name}": text for name, text in modules.items()})
    code, out = run("check_layers.py", tmp_path)
    assert code == 1
    names = [f"headrace.delivery.{name}" for name in "abca"]
    assert f"imports in a cycle: {' -> '.join(names)}" in out


def test_a_module_outside_of_all_layers_is_refused(tmp_path: Path) -> None:
    write_package(tmp_path, extras="")
    code, out = run("check_layers.py", tmp_path)
    assert code == 1
    assert "`headrace.extras` is in no layer" in out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("from headrace.loader.turn import _secret\n", "imports `_secret`, which is private"),
        ("from headrace.loader import turn\nturn._secret()\n", "`turn._secret` is private"),
        ("def f(it):\n    return it.turn._holder\n", "`it.turn._holder` is private"),
        (
            "from headrace.loader.turn import Turn\n\nclass Mine(Turn):\n"
            "    def f(self):\n        return self._holder\n",
            "`self._holder` is private",
        ),
    ],
)
def test_private_names_of_another_module_are_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    turn = "class Turn:\n    def __init__(self):\n        self._holder = None\n"
    write_package(tmp_path, loader__turn=f"{turn}\ndef _secret(): ...\n", insight__call=text)
    code, out = run("check_layers.py", tmp_path)
    assert code == 1
    assert f"python/headrace/insight/call.py:{len(text.splitlines()) + 1}: " in out
    assert message in out


def test_private_names_of_the_module_itself_and_of_libraries_are_clean(tmp_path: Path) -> None:
    text = (
        "import sys\nfrom headrace import _core\n\nclass A:\n    _kept = 1\n\n"
        "def f(other: A):\n    return other._kept, sys._getframe(), other._replace, _core.x\n"
    )
    write_package(tmp_path, insight__call=text, loader__turn="_holder = 1\n")
    assert run("check_layers.py", tmp_path) == (0, "2 files, 0 breaches\n")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("headrace/ops/flip.h", "headrace/ops/op.h"),
        ("headrace/formats/tar/tar.h", "headrace/formats/shards/scan.h"),
        ("headrace/loader.h", "headrace/loader.h"),
    ],
)
def test_including_each_other_is_refused(tmp_path: Path, one: str, other: str) -> None:
    write(tmp_path, one, f'{SPDX_CXX}#include "{other}"\n')
    if other != one:
        write(tmp_path, other, f'{SPDX_CXX}#include "{one}"\n')
    code, out = run("check_layers.py", tmp_path)
    assert code == 1
    assert "files include each other in a cycle" in out


def test_folders_of_one_layer_include_each_other_in_one_direction(tmp_path: Path) -> None:
    for source, header in (("tar/tar.cc", "shards/scan.h"), ("shards/kind.cc", "tar/name.h")):
        text = f'{SPDX_CXX}#include "headrace/formats/{header}"\n'
        write(tmp_path, f"headrace/formats/{source}", text)
    code, out = run("check_layers.py", tmp_path)
    assert code == 1
    way = "headrace/formats/shards -> headrace/formats/tar -> headrace/formats/shards"
    assert f"folders include each other in a cycle: {way}" in out
    test = tmp_path / "headrace/formats/shards/kind.cc"
    test.rename(test.with_name("kind_test.cc"))
    assert run("check_layers.py", tmp_path) == (0, "2 files, 0 breaches\n")


def test_a_file_past_800_lines_is_refused_and_past_400_listed(tmp_path: Path) -> None:
    write(tmp_path, "headrace/base/long.cc", SPDX_CXX + "\n" * 500)
    code, out = run("check_layers.py", tmp_path)
    assert code == 0
    assert "headrace/base/long.cc: 501 lines" in out
    code, out = check(tmp_path, "headrace/base/longer.cc", SPDX_CXX + "\n" * 800)
    assert code == 1
    assert "headrace/base/longer.cc:1: 801 lines; 800 is the limit" in out


@pytest.mark.parametrize(
    ("name", "text", "missing"),
    [
        ("docs/a.md", "See `ops/flop.cc`.", "there is no file `ops/flop.cc`"),
        ("docs/a.md", "In `headrace/opera/`.", "there is no folder `headrace/opera/`"),
        ("docs/a.md", "[here](../b.md)", "the link to `../b.md` leads nowhere"),
        ("headrace/ops/op.h", "// As flop.h says.", "there is no file `flop.h`"),
        ("tests/test_a.py", "# tests/seeds.py makes them", "there is no file `tests/seeds.py`"),
        (
            "tools/a.py",
            '"""Of headrace.loader.torn."""',
            "there is no module or name `headrace.loader.torn`",
        ),
    ],
)
def test_references_to_missing_files_are_refused(
    tmp_path: Path, name: str, text: str, missing: str
) -> None:
    write(tmp_path, "headrace/ops/flip.cc", SPDX_CXX)
    write_package(tmp_path, loader__turn="def take(): ...\n")
    spdx = {".h": SPDX_CXX, ".py": SPDX_PY}.get(Path(name).suffix, "\n")
    code, out = check(tmp_path, name, f"{spdx}{text}\n")
    assert code == 1
    assert f"{name}:2: {missing}" in out


def test_references_to_existing_files_and_placeholders_are_clean(tmp_path: Path) -> None:
    write(tmp_path, "headrace/ops/flip.cc", SPDX_CXX + "// As x_test.cc, ops/flip.cc, flip.cc.\n")
    write_package(tmp_path, loader__turn="def take(): ...  # run by train.py\n")
    text = (
        "`headrace/ops/your_op.cc`, `headrace/ops/`, `fuzz/NAME/`, headrace.loader.turn.take;\n"
        "[that](../headrace/ops/flip.cc), [b](a.md#part), [c](https://x.org/y.md), `*_test.cc`"
    )
    write(tmp_path, "docs/a.md", text)
    assert run("check_layers.py", tmp_path) == (0, "2 files, 0 breaches\n")


@pytest.mark.parametrize("stem", ["utils", "string_utils", "common", "helpers", "slot_manager"])
def test_a_meaningless_name_is_refused(tmp_path: Path, stem: str) -> None:
    code, out = check(tmp_path, f"headrace/base/{stem}.h", SPDX_CXX)
    assert code == 1
    assert "says nothing" in out


def test_a_source_without_a_license_line_is_refused(tmp_path: Path) -> None:
    code, out = check(tmp_path, "tools/x.py", "print()\n")
    assert code == 1
    assert "tools/x.py:1: no SPDX line" in out


def test_build_outputs_are_not_checked(tmp_path: Path) -> None:
    code, out = check(tmp_path, "build/headrace/utils.cc", "")
    assert (code, out) == (0, "0 files, 0 breaches\n")


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


def test_the_tally_omits_skips_if_there_are_none(tmp_path: Path) -> None:
    write(tmp_path, "steps.txt", "step 0 format\n")
    code, out = run("tally.py", tmp_path)
    assert (code, out.splitlines()[-1]) == (0, "1 passed, 0 failed")


def test_a_run_of_limited_time_stops_its_steps_and_names_them(tmp_path: Path) -> None:
    script = (TOOLS.parent / "dev").read_text()
    begin = script.index("# COMMAND...: runs it. After $TEST_MINUTES")
    functions = script[begin : script.index("cxx_sources() {")]
    program = """
set -euo pipefail
passes() { false || true; }
fails() { false; touch "$results/reached"; }
hangs() { sleep 600 & echo $! >"$results/hanging"; wait; touch "$results/reached"; }
step "passes" passes
step "fails" fails
SECONDS=$((60 - LEFT))
step "hangs" hangs
step "comes later" passes
"""

    def check(seconds: float) -> None:
        results = tmp_path / str(seconds)
        results.mkdir()
        environment = {"results": str(results), "TEST_MINUTES": "1", "LEFT": str(seconds)}
        environment["PATH"] = os.environ["PATH"]
        command = ["bash", "-c", functions + program]
        run = subprocess.run(command, env=environment, timeout=300, check=False)
        assert run.returncode == 0
        steps = (results / "steps.txt").read_text().splitlines()
        assert steps[:2] == ["step 0 passes", "step 1 fails"]
        assert [line.split(":")[0] for line in steps[2:]] == ["skip - hangs", "skip - comes later"]
        assert not (results / "reached").exists()
        status = Path("/proc", (results / "hanging").read_text().strip(), "status")
        wait_until(lambda: has_ended(status), "what a stopped step had started still runs")

    with_longer_limits(check, (2, 10, 50))


def has_ended(status: Path) -> bool:
    try:
        return "State:\tZ" in status.read_text()  # nobody may wait for it
    except OSError:
        return True


def test_branches_of_all_programs_count_once(tmp_path: Path) -> None:
    source = TOOLS.parent / "headrace/base/error.h"
    two_programs = [
        f"SF:{source}\nBRDA:3,0,0,7\nBRDA:3,0,1,0\nBRDA:5,1,0,-\nend_of_record\n",
        f"SF:{source}\nBRDA:3,0,0,0\nBRDA:3,0,1,2\nBRDA:5,1,0,0\nend_of_record\n",
        f"SF:{TOOLS.parent}/headrace/base/paths_test.cc\nBRDA:1,0,0,0\nend_of_record\n",
        "SF:/usr/include/string.h\nBRDA:1,0,0,0\nend_of_record\n",
    ]
    (tmp_path / "lcov").write_text("".join(two_programs))
    status, text = run("branch_coverage.py", tmp_path / "lcov", "--list", tmp_path / "list")
    assert status == 0
    rows = [line.split() for line in text.splitlines()]
    assert ["base", "3", "2", "66.7%"] in rows and ["total", "3", "2", "66.7%"] in rows
    lines = (tmp_path / "list").read_text().splitlines()
    assert len(lines) == 1 and lines[0].startswith("headrace/base/error.h:5: 1 not taken: ")


def outer_choices(pattern: str) -> list[str]:
    """The parts of `a|b(c|d)|e` outside of parentheses."""
    parts, depth = [""], 0
    for sign in pattern:
        depth += (sign == "(") - (sign == ")")
        if sign == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return parts


def test_each_folder_that_a_preset_tests_has_tests() -> None:
    root = TOOLS.parent
    presets = json.loads((root / "CMakePresets.json").read_text())["configurePresets"]
    engine = root / "headrace"
    tests = [str(path.relative_to(engine)) for path in engine.rglob("*_test.cc")]
    for preset in presets:
        chosen = preset.get("cacheVariables", {}).get("HEADRACE_TESTS_IN", "")
        for part in outer_choices(chosen) if chosen else []:
            assert any(re.match(part, test) for test in tests), f"{preset['name']}: {part}"
