#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All that `./dev gpu` runs on a machine without network or compiler, as one file.

    python tools/gpu_bundle.py --programs    # names of what is to be built
    python tools/gpu_bundle.py build/release build/gpu

Takes from the build the tests that have a form for GPUs and gpu_figures, the libraries that they
are linked with (but glibc, which is the machine's own); from build/gpu/wheels compute-sanitizer;
from build/gpu/site the package with what its command line needs. Writes build/gpu/bundle.tar.gz and
removes what it was made of. Exit status 1 where it becomes larger than what is carried along.
"""

from __future__ import annotations

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
SANITIZER = re.compile(r"nvidia/cu\d+/compute-sanitizer/[^/]+$")


def programs_of(build: Path) -> list[Path]:
    """The tests whose source speaks of a GPU, and the program of figures."""
    found = [build / "gpu_figures"]
    for source in sorted(ROOT.glob("headrace/**/*_test.cc")):
        text = source.read_text()
        if "batch_test_places.h" in text or "kGpu" in text:
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


def output_of(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip().splitlines()[-1] if done.returncode == 0 and done.stdout else "?"


def main(build: Path, folder: Path) -> int:
    there = folder / "there"
    shutil.rmtree(there, ignore_errors=True)
    for name in ("bin", "lib"):
        (there / name).mkdir(parents=True)
    programs = programs_of(build)
    for program in programs:
        shutil.copy(program, there / "bin")
    for library in libraries_of(programs):
        shutil.copy(library, there / "lib")
    sanitizer = unpack_sanitizer(folder / "wheels", there / "compute-sanitizer")
    shutil.move(folder / "site", there / "site")
    shutil.rmtree(folder / "wheels")
    cache = (build / "CMakeCache.txt").read_text()
    nvcc = re.search(r"^CMAKE_CUDA_COMPILER:.*?=(.+)$", cache, re.M)
    compiler = output_of(nvcc.group(1), "--version") if nvcc else "unknown"
    glibc = platform.libc_ver()[1]
    (there / "contents.txt").write_text(
        f"commit {output_of('git', 'rev-parse', 'HEAD')}\n"
        f"nvcc {compiler}\n"
        f"{platform.machine()}, glibc {glibc} or newer; Python {platform.python_version()}\n"
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
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
