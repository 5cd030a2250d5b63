# SPDX-License-Identifier: Apache-2.0
"""Runs the Python tests of this checkout with the installed wheels.

    python tools/wheels/run_tests.py [--wheel FILE]... [TEST...]

The wheels of build/wheels/dist, or the given ones, are installed with pip in an environment of
their own (build/wheels/tested), next to what the tests compare with: some 3 GB where pip picks the
torch for CUDA (PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu offers it one of 0.2 GB).
Left out are tests about the checkout instead of the package; the command lists them with the
reason. Tests that need a further package, such as torchvision, skip themselves.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from places import CHECKOUT, DIST, WORK

ENVIRONMENT = WORK / "tested"
REQUIREMENTS = CHECKOUT / "tools" / "requirements"
COMPARED = ("test", "torch")
# By path below tests/, a file, a folder, or a test in a file (FILE::TEST).
BUILDS = "builds the checkout"
SOURCES = "checks the sources, which any build shares"
ELSEWHERE = "runs in environments of its own (./dev test --frameworks)"
LEFT_OUT = {
    "frameworks": ELSEWHERE,
    "migration": ELSEWHERE,
    "trainers": ELSEWHERE,
    "test_conda_recipe.py": SOURCES,
    "test_cpp.py": BUILDS,
    "test_gpu_bundle.py": BUILDS,
    "test_house.py": BUILDS,
    "test_install.py": BUILDS,
    "test_project_files.py": SOURCES,
    "test_tools.py": SOURCES,
    "test_wheel_inputs.py": SOURCES,
    "test_wheels.py": "has run before, with the wheel unpacked",
    "test_wheels_metadata.py": "has run before",
    "test_words.py": SOURCES,
}
ORIGIN = "import headrace, sys; sys.exit(sys.argv[1] not in headrace.__file__)"


def newest_wheels() -> list[Path]:
    (main,) = DIST.glob("headrace-*-cp312-abi3-*.whl")
    return [main, *DIST.glob("headrace_media-*.whl")]


def environment() -> dict[str, str]:
    """Without what would lead to another copy of the package."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**kept, "PATH": f"{ENVIRONMENT / 'bin'}:{os.environ['PATH']}"}


def python(*arguments: str | Path) -> int:
    command = [ENVIRONMENT / "bin" / "python", *arguments]
    return subprocess.run(command, cwd=CHECKOUT, env=environment()).returncode


def install(wheels: list[Path]) -> None:
    """What the tests compare with stays from one run to the next, the wheels do not."""
    texts = [(REQUIREMENTS / f"{name}.txt").read_text() for name in ("demo", *COMPARED)]
    wanted = "".join([*texts, sys.version])
    stamp = ENVIRONMENT / "installed"
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(ENVIRONMENT, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)
        for name in COMPARED:
            if python("-m", "pip", "install", "-q", "-r", REQUIREMENTS / f"{name}.txt"):
                raise SystemExit(f"what tools/requirements/{name}.txt lists cannot be installed")
        stamp.write_text(wanted)
    python("-m", "pip", "uninstall", "-q", "-y", "headrace", "headrace-media")
    if python("-m", "pip", "install", "-q", "--no-deps", *wheels):
        raise SystemExit("the wheels cannot be installed")
    if python("-c", ORIGIN, str(ENVIRONMENT)):
        raise SystemExit("what is imported is not the wheel")


def options_of(left_out: dict[str, str]) -> list[str]:
    """pytest's, for the names of LEFT_OUT."""
    return [
        f"--deselect=tests/{name}" if "::" in name else f"--ignore=tests/{name}"
        for name in sorted(left_out)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="run_tests.py", description=__doc__.partition("\n")[0])
    parser.add_argument("tests", nargs="*", metavar="TEST", help="default: all of tests/")
    parser.add_argument("--wheel", type=Path, action="append", help="a wheel to install instead")
    given = parser.parse_args()
    install([file.resolve() for file in given.wheel or newest_wheels()])
    lines = [f"  {name}: {why}" for name, why in LEFT_OUT.items()]
    print("Left out:", *lines, sep="\n", flush=True)
    return python(
        *("-m", "pytest", "-q", "-rsfE", "-p", "no:cacheprovider"),
        *("-n", os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", "2"), "--dist", "loadfile"),
        *("--max-worker-restart", "0", "--junitxml", WORK / "tested.xml"),
        *options_of(LEFT_OUT),
        *(given.tests or ["tests"]),
    )


if __name__ == "__main__":
    sys.exit(main())
