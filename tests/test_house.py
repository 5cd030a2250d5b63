# SPDX-License-Identifier: Apache-2.0
"""Promise: an addition only needs the files that CONTRIBUTING lists, and no list has to name it.
One of each kind, from tools/templates, is put into a copy of the checkout, found by the build,
compiled against the installed engine, and passes its tests there.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import headrace

ROOT = Path(__file__).parent.parent
TEMPLATES = ROOT / "tools" / "templates"
KINDS = sorted(folder.name for folder in TEMPLATES.iterdir() if folder.is_dir())
IN_PYTHON = {"framework", "writer"}
# Additions without their own fuzz target use that of their kind, with the inputs below fuzz/NAME.
FUZZED_BY_KIND = {
    "template_format": "format",
    "template_codec": "image",
    "template_audio": "audio",
}
SCRATCH = ROOT / "build" / "house"  # always the same, so that a compiler cache hits
WHAT_IS_NEEDED = ("CMakeLists.txt", "cmake", "headrace", "headrace-av", "LICENSE", "tools", "docs")
INSTALLED = Path(headrace.__file__).parent


def files_of(kind: str) -> list[Path]:
    """Their paths in the checkout; edits have the suffix .edit."""
    folder = TEMPLATES / kind
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


def add(kinds: Iterable[str], checkout: Path) -> list[Path]:
    """Copies the templates into a copy of the checkout; returns new and changed files."""
    new = []
    for kind in kinds:
        for name in files_of(kind):
            text = (TEMPLATES / kind / name).read_text()
            target = checkout / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if name.suffix != ".edit":
                assert not target.exists(), f"{name} is there already"
                target.write_text(text)
                new.append(name)
                continue
            target = target.with_suffix("")
            head, _, more = text.partition("\n")
            where, _, line = head.partition(": ")
            whole = target.read_text()
            assert whole.count(line) == 1, f"{name}: {line!r} stands not once in the file"
            at = (
                whole.index(line) if where == "before" else whole.index("\n", whole.index(line)) + 1
            )
            target.unlink()  # not the checkout's own file, if the copy links to it
            target.write_text(whole[:at] + more + whole[at:])
            new.append(name.with_suffix(""))
    return new


def is_source(path: Path) -> bool:
    return path.suffix == ".cc"


def test_contributing_has_each_template() -> None:
    """It shares their table: tests/test_loader_options.py compares the two."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    rows = re.findall(r"^\| ([a-z ]+?) \| (\d+) \|", page, re.MULTILINE)
    assert dict(rows) == {kind.replace("_", " "): str(len(files_of(kind))) for kind in KINDS}


def compile_commands(new: list[Path]) -> dict[Path, list[str]]:
    """The compile command of each of them, which the build has found by itself."""
    known = json.loads((SCRATCH / "build" / "compile_commands.json").read_text())
    by_file = {Path(entry["file"]): shlex.split(entry["command"]) for entry in known}
    commands = {}
    for name in filter(is_source, new):
        at = SCRATCH / name
        if name.stem.endswith("_fuzz"):  # only built with clang: compiled like its neighbor
            neighbor = at.with_name(name.stem.removesuffix("_fuzz") + ".cc")
            commands[name] = [w.replace(str(neighbor), str(at)) for w in by_file[neighbor]]
        else:
            assert at in by_file, f"the build does not find {name}"
            commands[name] = by_file[at]
    return commands


def run(command: list[str], folder: Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env={**os.environ, **environment}
    )
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built() -> Path:
    """The program of the additions and their tests, linked with the installed engine."""
    if shutil.which("cmake") is None or not (INSTALLED / "libheadrace.so").exists():
        pytest.skip("needs cmake, and an engine that was built here")
    shutil.rmtree(SCRATCH, ignore_errors=True)
    SCRATCH.mkdir(parents=True)
    for name in WHAT_IS_NEEDED:
        whole = ROOT / name
        copy = shutil.copytree if whole.is_dir() else shutil.copy2
        copy(whole, SCRATCH / name)
    new = add([kind for kind in KINDS if kind not in IN_PYTHON], SCRATCH)
    options = ["-DHEADRACE_TESTS=ON", "-DHEADRACE_TOGETHER=OFF", "-DCMAKE_BUILD_TYPE=Release"]
    options += ["-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON", "-DCMAKE_CXX_FLAGS_RELEASE=-O0"]
    if shutil.which("ccache"):
        options.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
    run(["cmake", "-S", str(SCRATCH), "-B", str(SCRATCH / "build"), "-G", "Ninja", *options], ROOT)
    commands = compile_commands(new)

    def compiled(name: Path) -> str:
        command, out = commands[name], str(SCRATCH / f"{name.stem}.o")
        command[command.index("-o") + 1] = out
        run(command, SCRATCH / "build")
        return out

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        objects = list(threads.map(compiled, commands))
    compiler = next(word for word in next(iter(commands.values())) if "ccache" not in word)
    engine = [str(INSTALLED / "libheadrace.so"), f"-Wl,-rpath,{INSTALLED}", "-ljpeg", "-lpthread"]
    parts = [out for out in objects if not out.endswith(("_test.o", "_fuzz.o"))]
    tests = [out for out in objects if out.endswith("_test.o")]
    program = SCRATCH / "additions"
    libraries = ["-lgtest_main", "-lgtest", *engine]
    run([compiler, "-o", str(program), *parts, *tests, *libraries], SCRATCH)
    run([compiler, "-shared", "-o", str(SCRATCH / "additions.so"), *parts, *engine], SCRATCH)
    targets = [(out.removesuffix("_fuzz.o"), [out]) for out in objects if out.endswith("_fuzz.o")]
    for name, kind in FUZZED_BY_KIND.items():
        generic = str(SCRATCH / "tools" / f"{kind}_fuzz.cc")
        source = [f"-I{SCRATCH}", f'-DHEADRACE_FUZZED="{name}"', generic]
        targets.append((str(SCRATCH / name), source))
    for target, source in targets:
        replay = ["-std=c++20", str(SCRATCH / "tools" / "replay_fuzz.cc"), *source]
        run([compiler, "-o", f"{target}_replay", *replay, *parts, *engine], SCRATCH)
    return program


def test_the_build_finds_each_addition_and_its_tests_pass(built: Path) -> None:
    said = run([str(built), "--gtest_brief=0"], SCRATCH)
    for kind in set(KINDS) - IN_PYTHON:
        tests = [name for name in files_of(kind) if name.stem.endswith("_test")]
        assert tests, f"the template {kind} has no test"
    assert "[  PASSED  ] " in said and "FAILED" not in said, said


def test_fuzz_targets_have_inputs_that_are_replayed(built: Path) -> None:
    """As in the sanitizer build, with the inputs below fuzz/NAME."""
    kinds = [name.parts for kind in KINDS for name in files_of(kind)]
    fuzzed = {parts[1] for parts in kinds if parts[0] == "fuzz"}
    assert len(fuzzed) >= 3
    for kept in fuzzed:
        assert "/000" in run([str(SCRATCH / f"{kept}_replay"), f"fuzz/{kept}"], SCRATCH)


def test_registered_additions_are_in_the_programs_lists(built: Path) -> None:
    """In addition to those of the engine: the program only links the engine."""
    said = run([str(built), "--gtest_list_tests"], SCRATCH)
    for kind in set(KINDS) - IN_PYTHON:
        for name in files_of(kind):
            for suite in re.findall(r"^TEST\((\w+),", (TEMPLATES / kind / name).read_text(), re.M):
                assert f"{suite}." in said, f"{suite} of {name}"


LOOK_AT_ADDITIONS = """
import ctypes, sys
from pathlib import Path

ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
import headrace as hr
import numpy as np

source = hr.records(label=np.arange(20) % 3)
order = hr.sampling.template_batches("label", most=4)
with hr.Loader(source, sampler=order) as loader:
    sizes = [len(set(batch.label.tolist())) for batch in loader]
    assert set(sizes) == {1} and len(loader) == len(sizes) == 6, sizes
    assert loader.stats()["template_records_a_batch"] == 20 / 6
    from headrace.counters import LOADER
    assert LOADER["template_records_a_batch"]["metric"]
assert hr.transforms.TemplateAdd and hr.template_format
report = hr.convert(source, sys.argv[2], "template_format", verify=True)
assert report["verified"] and Path(sys.argv[2]).read_bytes() == bytes(n % 3 for n in range(20))
"""


def in_python(tmp_path: Path, kinds: Iterable[str]) -> Path:
    """A copy of the package with these additions, on the installed engine."""
    package = tmp_path / "python"
    shutil.copytree(ROOT / "python", package)
    for binary in (*INSTALLED.glob("_core.*.so"), INSTALLED / "libheadrace.so"):
        (package / "headrace" / binary.name).symlink_to(binary)
    add(kinds, tmp_path)
    return package


def test_additions_are_in_the_python_module(built: Path, tmp_path: Path) -> None:
    package = in_python(tmp_path, ["writer"])
    look = [sys.executable, "-c", LOOK_AT_ADDITIONS, str(SCRATCH / "additions.so")]
    run([*look, str(tmp_path / "labels.hrtemplate")], tmp_path, PYTHONPATH=str(package))


def test_a_new_framework_needs_only_its_module_and_a_method(tmp_path: Path) -> None:
    for name in ("docs", "dev", "tests/frameworks", "examples/frameworks"):
        whole, copy = ROOT / name, tmp_path / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if whole.is_dir() else shutil.copy2)(whole, copy)
    package = in_python(tmp_path, ["framework"])
    test = tmp_path / "tests" / "frameworks" / "test_template.py"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--noconftest"]
    said = run([*command, str(test)], tmp_path, PYTHONPATH=str(package))
    assert "1 passed" in said
    train = [sys.executable, "examples/frameworks/train_template.py"]
    photos = str(ROOT / "examples" / "images")
    assert run([*train, photos], tmp_path, PYTHONPATH=str(package)).strip().isdigit()


REGISTERED = re.compile(r"Register<(?:OpRecord|CodecRecord|AudioCodecRecord|VideoContainer)>")


def names_registered_in(text: str) -> list[str]:
    """The names of a file's records, which are literals or a preceding constant."""
    names: list[str] = re.findall(r'\.name = "(\w+)",\s*\.doc', text)
    return names or re.findall(r'std::string_view k\w+ = "(\w+)";', text)


def test_operators_and_codecs_have_tests_next_to_them_or_in_a_named_suite() -> None:
    """The file's own x_test.cc, any test with the name, or "Tested by PATH" in the file."""
    folders = ("headrace/**/*_test.cc", "tests/**/*.py")
    suites = [path for pattern in folders for path in ROOT.glob(pattern) if path != Path(__file__)]
    words = {word for path in suites for word in re.findall(r"\w+", path.read_text())}
    for path in sorted(ROOT.glob("headrace/**/*.cc")):
        text = path.read_text()
        if not REGISTERED.search(text) or path.with_name(f"{path.stem}_test.cc").exists():
            continue
        said = re.findall(r"Tested by ([\w/.]+\w)", text)
        assert all((ROOT / suite).exists() for suite in said), path
        assert said or set(names_registered_in(text)) <= words, f"{path}: in no test"
