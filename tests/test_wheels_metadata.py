# SPDX-License-Identifier: Apache-2.0
"""Promises of the metadata of the wheels of `./dev wheels`, and of what pip makes of them.

Tests of wheels are skipped if build/wheels has none; ./dev wheels runs them at its end.
"""

from __future__ import annotations

import importlib.util
import sys
import zipfile
from pathlib import Path
from subprocess import run
from types import ModuleType

import pytest

metadata = pytest.importorskip("packaging.metadata")

ROOT = Path(__file__).parent.parent
WHEELS = ROOT / "build" / "wheels"
DIST = WHEELS / "dist"
BUILT = [*sorted(DIST.glob("headrace-*.whl")), *sorted(DIST.glob("headrace_media-*.whl"))]


@pytest.fixture(params=BUILT or [None], ids=lambda wheel: wheel and wheel.name)
def wheel(request: pytest.FixtureRequest) -> Path:
    if request.param is None:
        pytest.skip("no wheel was built (./dev wheels)")
    path: Path = request.param
    return path


def file_in(wheel: Path, name: str) -> str:
    with zipfile.ZipFile(wheel) as archive:
        (found,) = (each for each in archive.namelist() if each.endswith(f".dist-info/{name}"))
        return archive.read(found).decode()


def read(wheel: Path) -> metadata.Metadata:
    """As PyPI reads it; unknown or malformed fields are errors."""
    return metadata.Metadata.from_email(file_in(wheel, "METADATA"), validate=True)


def test_the_metadata_are_what_pypi_accepts(wheel: Path) -> None:
    found = read(wheel)
    assert found.summary and len(found.summary) < 512 and "\n" not in found.summary
    assert found.keywords and found.author == "The Headrace developers"
    assert found.requires_python == ">=3.10"
    assert "Operating System :: POSIX :: Linux" in found.classifiers
    # License classifiers contradict a license expression (PEP 639).
    assert not [each for each in found.classifiers if each.startswith("License ::")]


def test_classifiers_are_known_to_pypi(wheel: Path) -> None:
    known = pytest.importorskip("trove_classifiers").classifiers
    assert set(read(wheel).classifiers) <= set(known)


def test_the_metadata_list_exactly_the_license_files_inside(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/licenses/" in name]
    inside = sorted(name.split(".dist-info/licenses/")[1] for name in names)
    assert "LICENSE" in inside and len(inside) > 3
    assert sorted(read(wheel).license_files) == inside


def test_the_description_has_no_link_that_leads_nowhere_on_pypi(wheel: Path) -> None:
    text = read(wheel).description
    assert text and "headrace" in text.lower()
    assert "](" not in text.replace("](https://", "")


def test_the_classifiers_name_the_versions_of_python_that_have_wheels() -> None:
    if not BUILT:
        pytest.skip("no wheel was built (./dev wheels)")
    stated = {
        each.rpartition(" ")[2]
        for each in read(BUILT[0]).classifiers
        if each.startswith("Programming Language :: Python :: 3.")
    }
    assert {"3.10", "3.11", "3.12"} <= stated
    for version in stated - {"3.10", "3.11"}:
        assert int(version.split(".")[1]) >= 12  # cp312-abi3 fits


@pytest.mark.parametrize(
    ("version", "tag"),
    [
        ("3.9", None),
        ("3.10", "cp310-cp310"),
        ("3.11", "cp311-cp311"),
        ("3.12", "cp312-abi3"),
        ("3.13", "cp312-abi3"),
        ("3.14", "cp312-abi3"),
        ("3.15", "cp312-abi3"),
    ],
)
def test_pip_chooses_the_wheel_for_each_python(
    version: str, tag: str | None, tmp_path: Path
) -> None:
    built = [wheel for wheel in DIST.glob("headrace-*.whl") if tag and f"-{tag}-" in wheel.name]
    if not BUILT or (tag and not built):
        pytest.skip(f"no wheel was built for Python {version} (./dev wheels)")
    done = run(
        [
            *(sys.executable, "-m", "pip", "--isolated", "download", "-q", "--no-deps"),
            *("--no-index", "--find-links", DIST, "--only-binary=:all:", "-d", tmp_path),
            *("--implementation", "cp", "--python-version", version),
            *("--platform", "manylinux_2_28_x86_64", "headrace", "headrace-media"),
        ],
        capture_output=True,
        text=True,
    )
    chosen = sorted(path.name for path in tmp_path.iterdir())
    if tag is None:
        assert done.returncode != 0 and chosen == [] and "headrace" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    assert len(chosen) == 2 and f"-{tag}-" in chosen[0] and "-py3-none-" in chosen[1]


def test_a_system_with_an_older_glibc_gets_no_wheel(tmp_path: Path) -> None:
    if not BUILT:
        pytest.skip("no wheel was built (./dev wheels)")
    done = run(
        [
            *(sys.executable, "-m", "pip", "--isolated", "download", "-q", "--no-deps"),
            *("--no-index", "--find-links", DIST, "--only-binary=:all:", "-d", tmp_path),
            *("--python-version", "3.12", "--platform", "manylinux_2_17_x86_64", "headrace"),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0 and list(tmp_path.iterdir()) == []


@pytest.fixture
def run_tests(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    pytest.importorskip("tomllib")  # Python 3.11's, as ./dev wheels has it
    folder = ROOT / "tools" / "wheels"
    monkeypatch.syspath_prepend(str(folder))
    spec = importlib.util.spec_from_file_location("run_tests", folder / "run_tests.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_left_out_of_the_tests_of_the_installed_wheels_exists(
    run_tests: ModuleType,
) -> None:
    for name, reason in run_tests.LEFT_OUT.items():
        path, _, test = name.partition("::")
        assert (ROOT / "tests" / path).exists(), name
        assert not test or f"def {test.partition('[')[0]}(" in (ROOT / "tests" / path).read_text()
        assert reason
    assert run_tests.options_of({"a.py": "", "b.py::test_c": ""}) == [
        "--ignore=tests/a.py",
        "--deselect=tests/b.py::test_c",
    ]
