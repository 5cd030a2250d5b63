# SPDX-License-Identifier: Apache-2.0
"""Installing from the checkout: the packages listed are those needed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def debian_packages() -> set[str]:
    return set((ROOT / "tools" / "requirements" / "debian.txt").read_text().split())


@pytest.mark.parametrize("page", ["README.md", "docs/start/installing.md"])
def test_the_docs_name_the_list_of_packages_that_dev_installs(page: str) -> None:
    (line,) = re.findall(r"^apt-get install (.*)$", (ROOT / page).read_text(), re.MULTILINE)
    assert line == "--no-install-recommends python3-dev $(cat tools/requirements/debian.txt)"


def test_the_build_names_the_package_of_each_library() -> None:
    named = re.findall(r"^needs\((\S+) ", (ROOT / "cmake/deps.cmake").read_text(), re.MULTILINE)
    beside_the_engine = {"libavcodec-dev"}  # only headrace-av needs it, and may be absent
    assert set(named) == debian_packages() - {"g++"} - beside_the_engine


def test_a_library_that_is_missing_is_named_with_its_package(tmp_path: Path) -> None:
    if not shutil.which("cmake"):
        pytest.skip("there is no cmake")
    command = ["cmake", "-S", ROOT, "-B", tmp_path / "build", "-G", "Ninja"]
    without = ["-DCMAKE_DISABLE_FIND_PACKAGE_PNG=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_JPEG=ON"]
    done = subprocess.run([*command, *without], capture_output=True, text=True, timeout=300)
    assert done.returncode != 0
    told = " ".join(done.stderr.split())
    assert "apt-get install --no-install-recommends libjpeg62-turbo-dev libpng-dev" in told


def test_the_public_python_needs_nothing_that_it_does_not_declare() -> None:
    """Except for NumPy, top-level imports of modules are Python's own or Headrace's."""
    declared = {"numpy", "headrace"}
    for path in (ROOT / "python/headrace").glob("*.py"):
        tops = re.findall(r"^(?:from|import) (\w+)", path.read_text(), re.MULTILINE)
        assert not set(tops) - declared - set(sys.stdlib_module_names), path.name


def dev(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ROOT / "dev", *arguments], capture_output=True, text=True, timeout=300)


def test_help_of_dev_fits_80_columns_and_builds_nothing() -> None:
    for arguments in (("help",), ("demo", "--help"), ("demo", "-h"), ("wheels", "--help")):
        done = dev(*arguments)
        assert done.returncode == 0
        assert max(map(len, done.stdout.splitlines())) <= 80
        assert "==" not in done.stdout
    assert "./dev demo ~/photos --with-torch" in dev("demo", "--help").stdout
    assert "./dev wheels --tests --try trixie" in dev("wheels", "--help").stdout


def test_an_unknown_argument_of_dev_wheels_is_refused_before_anything_is_built() -> None:
    for arguments in (("--test",), ("--tests", "trixie"), ("--try",), ("--try", "../sid")):
        done = dev("wheels", *arguments)
        assert done.returncode != 0 and "--try" in done.stderr and "==" not in done.stdout


def test_a_change_of_included_requirements_installs_them_again(tmp_path: Path) -> None:
    functions = "/^(wanted_by|installed)\\(\\) /,/\\}$/p"
    script = f"""
      set -euo pipefail
      eval "$(sed -nE '{functions}' {ROOT}/dev)"
      mkdir more && echo '-r more/b.txt' >a.txt && echo '-r c.txt' >more/b.txt
      echo 'numpy==2' >more/c.txt && wanted_by a.txt >stamp
      installed stamp a.txt && echo same
      echo 'numpy==3' >more/c.txt
      installed stamp a.txt || echo changed
      installed missing a.txt || echo missing
    """
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.split() == ["same", "changed", "missing"], done.stderr


def test_a_missing_folder_is_reported_before_the_build() -> None:
    done = dev("demo", "nowhere/at/all")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "dev: no such file or folder: nowhere/at/all\n"
