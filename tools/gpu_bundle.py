#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Everything that `./dev gpu` runs on a machine without network or compiler, as one file.

    python tools/gpu_bundle.py --programs    # names of the programs to build
    python tools/gpu_bundle.py build/release build/gpu [PHOTOS]

Takes from the build the tests with a GPU variant and gpu_figures, and the libraries that they are
linked with (except glibc, which the machine provides); from build/gpu/wheels compute-sanitizer;
from build/gpu/site the package with the dependencies of its command line except NumPy, which the
machine provides; and builds its module for every other CPython that this machine has headers for:
those on PATH and pyenv's. With --photos the JPEGs of a folder are included, for
bench/gpu_loaders.py. Writes build/gpu/bundle.tar.gz and removes the intermediate files. Exit status
1 if it exceeds the size limit.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
MOST_BYTES = 60 << 20
OF_GLIBC = re.compile(r"(ld-linux|lib(c|m|dl|rt|pthread|resolv))[-.]")
# A Python there has its own, which may be newer and required by other imports.
OF_COMPILER = re.compile(r"lib(stdc\+\+|gcc_s)[-.]")
OLDEST_PYTHON = (3, 10)
SANITIZER = re.compile(r"nvidia/cu\d+/compute-sanitizer/[^/]+$")


def programs_of(build: Path) -> list[Path]:
    """The tests whose source mentions a GPU, and the figures program."""
    found = [build / "gpu_figures"]
    for source in sorted(ROOT.glob("headrace/**/*_test.cc")):
        text = source.read_text()
        if any(word in text for word in ("batch_test_devices.h", "test_devices()", "kGpu")):
            found.append(build / source.stem)
    return found


def libraries_of(programs: list[Path]) -> list[Path]:
    found = set()
    for program in programs:
        told = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
        for name, path in re.findall(r"(\S+) => (\S+)", told):
            if not OF_GLIBC.match(name):
                found.add((name, path))
    return [Path(path) for _, path in sorted(found)]


def unpack_sanitizer(wheels: Path, to: Path) -> str:
    [wheel] = wheels.glob("nvidia_cuda_sanitizer_api-*.whl")
    to.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            if not SANITIZER.match(entry.filename):
                continue
            path = to / Path(entry.filename).name
            path.write_bytes(archive.read(entry))
            path.chmod(0o755)
    return wheel.name.split("-")[1]


def pythons() -> dict[str, Path]:
    """The CPythons whose headers are installed, by their module suffix: cpython-312-x86_64..."""
    ask = (
        "import os, sys, sysconfig as s;"
        "print(sys.implementation.name, *sys.version_info[:2], s.get_config_var('SOABI'),"
        "os.path.exists(os.path.join(s.get_path('include'), 'Python.h')))"
    )
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep)]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    named = [path for folder in folders for path in folder.glob("python3.[0-9]*")]
    found: dict[str, Path] = {}
    for path in (*sorted(pyenv.glob("*/bin/python3")), *named):
        done = subprocess.run([path, "-c", ask], capture_output=True, text=True)
        told = done.stdout.split()
        if done.returncode != 0 or len(told) != 5:
            continue  # a shim without its Python, python3.11-config
        name, major, minor, module, headers = told
        if (name, headers) == ("cpython", "True") and (int(major), int(minor)) >= OLDEST_PYTHON:
            found.setdefault(module, path)
    return found


def make_modules(site: Path, folder: Path) -> list[str]:
    """The package's module for each of them, in addition to the existing one; with their names."""
    nanobind = output_of(sys.executable, "-m", "nanobind", "--cmake_dir")
    there = site / "headrace"
    for module, python in pythons().items():
        if (there / f"_core.{module}.so").exists():
            continue
        build = folder / module
        configure = (
            "cmake", "-G", "Ninja", "-S", ROOT / "bindings", "-B", build,
            f"-DHEADRACE_ENGINE={(there / 'libheadrace.so').resolve()}",
            f"-DPython_EXECUTABLE={python}", f"-Dnanobind_ROOT={nanobind}",
        )  # fmt: skip
        subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
        subprocess.run(("cmake", "--build", build, "--", "--quiet"), check=True)
        # Linked with the engine's path here; on the other machine, it is next to it.
        (installed,) = build.glob("_core.*.so")
        subprocess.run(
            ("cmake", "--install", build, "--prefix", site), check=True, stdout=subprocess.DEVNULL
        )
        assert (there / installed.name).exists(), installed
        shutil.rmtree(build)
    return sorted(path.name.split(".")[1] for path in there.glob("_core.*.so"))


def output_of(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip().splitlines()[-1] if done.returncode == 0 and done.stdout else "?"


def main(build: Path, folder: Path, photos: Path | None) -> int:
    there = folder / "there"
    shutil.rmtree(there, ignore_errors=True)
    for name in ("bin", "lib", "lib/compiler"):
        (there / name).mkdir(parents=True)
    programs = programs_of(build)
    for program in programs:
        shutil.copy(program, there / "bin")
    for library in libraries_of([*programs, folder / "site/headrace/libheadrace.so"]):
        of_compiler = OF_COMPILER.match(library.name)
        shutil.copy(library, there / ("lib/compiler" if of_compiler else "lib"))
    sanitizer = unpack_sanitizer(folder / "wheels", there / "compute-sanitizer")
    modules = make_modules(folder / "site", folder)
    for numpy in folder.glob("site/numpy*"):
        shutil.rmtree(numpy)
    shutil.move(folder / "site", there / "site")
    if photos:
        shutil.copytree(photos, there / "photos")
    shutil.rmtree(folder / "wheels")
    cache = (build / "CMakeCache.txt").read_text()
    nvcc = re.search(r"^CMAKE_CUDA_COMPILER:.*?=(.+)$", cache, re.M)
    compiler = output_of(nvcc.group(1), "--version") if nvcc else "unknown"
    glibc = platform.libc_ver()[1]
    (there / "contents.txt").write_text(
        f"commit {output_of('git', 'rev-parse', 'HEAD')}\n"
        f"nvcc {compiler}\n"
        f"{platform.machine()}, glibc {glibc} or newer; {', '.join(modules)}\n"
        f"compute-sanitizer {sanitizer}; {len(programs)} programs\n"
    )
    bundle = folder / "bundle.tar.gz"
    with tarfile.open(bundle, "w:gz") as archive:
        archive.add(there, arcname=".")
    shutil.rmtree(there)
    size = bundle.stat().st_size
    print(f"{bundle}: {size / (1 << 20):.1f} MiB, {len(programs)} programs")
    if size > MOST_BYTES:
        print(f"more than {MOST_BYTES >> 20} MiB, which is what travels with a checkout")
        return 1
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "--programs":
        print(*(program.name for program in programs_of(Path())))
        sys.exit()
    given = [Path(argument) for argument in sys.argv[1:]]
    sys.exit(main(given[0], given[1], given[2] if len(given) > 2 else None))
