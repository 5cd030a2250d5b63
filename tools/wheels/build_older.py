# SPDX-License-Identifier: Apache-2.0
"""Builds the wheels for Python 3.10 and 3.11, whose stable interfaces are too small for the module.

Each is the wheel of build_wheel.py with another module: the same objects of the engine, with
bindings for this one version. A Python version that is missing here, or whose headers are, is
skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from building import COMPILERS, JOBS, SECTIONS, run
from inputs import empty_if_changed, of_compilers
from pack import EXECUTABLE, Packed, pack, unpack
from places import CHECKOUT, DIST, ENGINE, PREFIX, TOOLS, WORK, cuda_toolkit
from python_headers import copy_headers_of

VERSIONS = ("3.10", "3.11")
LIBRARIES = ("jpeg", "png16", "isal", "z", "zstd")
SUITABLE = """
import os, sys, sysconfig
headers = os.path.join(sysconfig.get_path("include"), "Python.h")
sys.exit("%d.%d" % sys.version_info[:2] != sys.argv[1] or not os.path.exists(headers))
"""


def output(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def find_python(version: str) -> Path | None:
    """From PATH or pyenv, with its headers."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = [shutil.which(f"python{version}"), *pyenv.glob(f"versions/{version}.*/bin/python3")]
    for python in filter(None, found):
        done = subprocess.run([python, "-c", SUITABLE, version], stderr=subprocess.DEVNULL)
        if done.returncode == 0:
            return Path(python)
    return None


def archive_engine() -> Path:
    """Without objects that remain of removed sources."""
    compiled = json.loads((ENGINE / "compile_commands.json").read_text())
    outputs = [ENGINE / each["output"] for each in compiled]
    objects = [each for each in outputs if "headrace.dir" in each.parts and each.suffix == ".o"]
    archive = WORK / "libheadrace.a"
    archive.unlink(missing_ok=True)
    run(TOOLS / "ar", "qcs", archive, *objects)  # some have the same name: r would replace them
    return archive


def build_module(version: str, python: Path, engine: Path) -> Path:
    build = WORK / f"py{version}"
    empty_if_changed(build, of_compilers())
    copy_headers_of(python)
    linked = [
        *("-Wl,--whole-archive", engine, "-Wl,--no-whole-archive"),
        *(PREFIX / "lib" / f"lib{name}.a" for name in LIBRARIES),
        cuda_toolkit() / "lib" / "libcudart_static.a",
        *("-lpthread", "-ldl", "-lrt", "-Wl,--gc-sections"),
        f"-Wl,--version-script={CHECKOUT}/bindings/exported.map",
    ]
    run(
        *("cmake", "-S", CHECKOUT / "bindings", "-B", build, "-G", "Ninja", "-Wno-dev"),
        *(f"-DCMAKE_{name}={TOOLS / tool}" for name, tool in COMPILERS.items()),
        f"-DHEADRACE_ENGINE={engine}",
        f"-DPython_EXECUTABLE={python}",
        f"-Dnanobind_ROOT={output(sys.executable, '-m', 'nanobind', '--cmake_dir')}",
        f"-Dheadrace_module_compile_options={';'.join(SECTIONS)}",
        f"-Dheadrace_module_link_options={';'.join(map(str, linked))}",
    )
    run("cmake", "--build", build, "-j", JOBS)
    (module,) = build.glob("_core.*.so")
    stripped = build / "stripped" / module.name
    stripped.parent.mkdir(exist_ok=True)
    run("strip", "-o", stripped, module)
    return stripped


def with_module(files: dict[str, Packed], module: Path, tag: str) -> dict[str, Packed]:
    (old,) = (name for name in files if name.startswith("headrace/_core.") and name.endswith(".so"))
    (about,) = (name for name in files if name.endswith(".dist-info/WHEEL"))
    text = files[about].content.decode().replace("Tag: cp312-abi3-", f"Tag: {tag}-")
    return {
        **{name: file for name, file in files.items() if name != old},
        about: Packed(text.encode()),
        f"headrace/{module.name}": Packed(module.read_bytes(), EXECUTABLE),
    }


def make_environment(version: str, python: Path) -> None:
    """With NumPy alone, for the tests."""
    folder = WORK / f"python{version}"
    if not (folder / "installed").exists():
        run(python, "-m", "venv", "--clear", folder)
        run(folder / "bin" / "python", "-m", "pip", "install", "-q", "numpy")
        (folder / "installed").touch()


def main() -> None:
    (wheel,) = DIST.glob("headrace-*-cp312-abi3-*.whl")
    engine, files = archive_engine(), unpack(wheel)
    for version in VERSIONS:
        python = find_python(version)
        if not python:
            print(f"Python {version} or its headers are missing: no wheel is built for it")
            continue
        tag = "cp{0}-cp{0}".format(version.replace(".", ""))
        module = build_module(version, python, engine)
        pack(
            with_module(files, module, tag),
            wheel.with_name(wheel.name.replace("cp312-abi3", tag)),
        )
        make_environment(version, python)


if __name__ == "__main__":
    main()
