# SPDX-License-Identifier: Apache-2.0
"""The conda recipe: the version and checksum of an sdist, the libraries of the build, and a form
that rattler-build accepts."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "tools" / "conda"


def filled(folder: Path, name: str = "headrace-1.2.3.tar.gz") -> subprocess.CompletedProcess[str]:
    (folder / name).write_bytes(b"sources")
    command = [sys.executable, str(FOLDER / "write_recipe.py"), str(folder / name), str(folder)]
    return subprocess.run(command, capture_output=True, text=True)


def test_version_and_checksum_are_those_of_the_sdist(tmp_path: Path) -> None:
    done = filled(tmp_path)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "recipe.yaml").read_text()
    assert re.findall(r'^  version: "(.*)"$', text, re.MULTILINE) == ["1.2.3"]
    assert f'sha256: "{hashlib.sha256(b"sources").hexdigest()}"' in text
    assert not re.search(r"(?<!\$)\{\w", text)


def test_an_archive_that_is_not_the_sdist_is_refused(tmp_path: Path) -> None:
    done = filled(tmp_path, "other-1.2.3.tar.gz")
    assert done.returncode == 1 and "not an sdist of headrace" in done.stderr


def test_the_host_has_the_libraries_that_the_build_needs() -> None:
    named = re.findall(r"  # ([a-z0-9-]+-dev)$", (FOLDER / "recipe.yaml").read_text(), re.MULTILINE)
    wanted = (ROOT / "tools" / "requirements" / "debian.txt").read_text().split()
    assert sorted(named) == sorted(set(wanted) - {"g++"})


def test_requirements_are_those_of_the_python_package() -> None:
    recipe, project = (FOLDER / "recipe.yaml").read_text(), (ROOT / "pyproject.toml").read_text()
    for name in ("numpy", "typer", "rich", "nanobind", "scikit-build-core", "cmake"):
        pattern = rf'"?{name}(?:\.version = ")?(>=[0-9.]+)"'
        (version,) = set(re.findall(pattern, project))
        assert f"- {name} {version}\n" in recipe, name


@pytest.mark.parametrize("platform", ["linux-64", "linux-aarch64"])
def test_rattler_build_accepts_and_renders_it(platform: str, tmp_path: Path) -> None:
    rattler = pytest.importorskip("rattler_build")
    filled(tmp_path)
    recipe = rattler.Stage0Recipe.from_yaml((tmp_path / "recipe.yaml").read_text())
    variants = rattler.VariantConfig(
        {"python": ["3.11.*", "3.13.*"], "c_stdlib": ["sysroot"], "c_stdlib_version": ["2.28"]}
    )
    of = rattler.PlatformConfig(target_platform=platform)
    rendered = recipe.render(variants, rattler.RenderConfig(of))
    names = [str(one.recipe.to_dict()["package"]["name"]) for one in rendered]
    assert sorted(set(names)) == ["headrace", "headrace-media"] and len(names) == 4
    for one in rendered:
        package = one.recipe.to_dict()
        assert package["package"]["version"] == "1.2.3"
        assert package["tests"] and package["about"]["license"] == "Apache-2.0"
