# SPDX-License-Identifier: Apache-2.0
"""What a wheel of `./dev wheels` promises: one file for many systems, with nothing to install.

Where none was built in build/wheels these tests are skipped; ./dev wheels ends with them.
"""

from __future__ import annotations

import email
import json
import re
import subprocess
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WHEELS = ROOT / "build" / "wheels"
BUILT = sorted((WHEELS / "dist").glob("headrace-*.whl"))
TOOLS = WHEELS / "python" / "bin"
PINNED = re.findall(r"^\[(.*?)\]", (ROOT / "tools/wheels/libraries.toml").read_text(), re.MULTILINE)
MODULE = "headrace/_core.abi3.so"


@pytest.fixture(scope="module")
def wheel() -> Path:
    if not BUILT:
        pytest.skip("no wheel was built (./dev wheels)")
    return BUILT[-1]


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


@pytest.fixture(scope="module")
def dist_info(unpacked: Path) -> Path:
    (folder,) = unpacked.glob("headrace-*.dist-info")
    return folder


def output(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_its_name_says_any_python_from_3_12_on_and_glibc_2_28(wheel: Path) -> None:
    assert wheel.name.endswith("-cp312-abi3-manylinux_2_28_x86_64.whl")


def test_auditwheel_finds_nothing_that_is_younger_than_its_name_says(wheel: Path) -> None:
    told = " ".join(output(TOOLS / "python", "-m", "auditwheel", "show", wheel).split())
    assert 'is consistent with the following platform tag: "manylinux_2_28_x86_64"' in told


def test_the_module_needs_the_c_library_alone(unpacked: Path) -> None:
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", unpacked / MODULE)))
    parts = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2"}
    assert needed <= parts


def test_abi3audit_finds_nothing_outside_the_stable_interface(wheel: Path) -> None:
    report = json.loads(output(TOOLS / "abi3audit", "--report", wheel))
    (found,) = [each["result"] for spec in report["specs"].values() for each in spec["wheel"]]
    assert found["is_abi3"]
    assert not found["non_abi3_symbols"] and not found["future_abi3_objects"]


def test_the_module_exports_nothing_but_its_initialization(unpacked: Path) -> None:
    symbols = output("nm", "-D", "--defined-only", unpacked / MODULE).splitlines()
    assert [line.split()[-1].split("@")[0] for line in symbols] == ["PyInit__core"]


def test_the_module_takes_its_functions_from_glibc_not_from_its_compiler(unpacked: Path) -> None:
    table = (ROOT / "tools" / "wheels" / "glibc_symbols.h").read_text()
    asked = set(re.findall(r"\.symver \w+, (\S+)\"", table))
    taken = set(output("nm", "-D", "--undefined-only", unpacked / MODULE).split())
    assert {"memcpy@GLIBC_2.14", "memset@GLIBC_2.2.5", "sin@GLIBC_2.2.5"} <= asked & taken


def test_the_module_is_the_only_library_and_its_stubs_are_there(unpacked: Path) -> None:
    shared = {str(file.relative_to(unpacked)) for file in unpacked.rglob("*.so*")}
    assert shared == {MODULE}
    for stub in ("_core", "formats", "sampling", "transforms", "loader/keywords"):
        assert (unpacked / "headrace" / f"{stub}.pyi").stat().st_size > 0
    assert not list(unpacked.rglob("*.h"))


def test_its_version_is_that_of_the_build(dist_info: Path) -> None:
    metadata = email.message_from_string((dist_info / "METADATA").read_text())
    stated = (ROOT / "CMakeLists.txt").read_text()
    assert f"project(headrace VERSION {metadata['Version']} " in stated
    assert metadata["License-Expression"] == "Apache-2.0"


def test_whatever_is_inside_comes_with_its_license_and_is_in_the_sbom(dist_info: Path) -> None:
    inside = {*PINNED, "nanobind", "robin-map", "zig", "llvm"}
    texts = {file.parent.name for file in (dist_info / "licenses").glob("*/*")}
    sbom = json.loads((dist_info / "sboms" / "headrace.cdx.json").read_text())
    assert sbom["bomFormat"] == "CycloneDX"
    assert texts == {component["name"] for component in sbom["components"]} == inside
    assert all(component["licenses"] for component in sbom["components"])
    assert "Apache License" in (dist_info / "licenses" / "LICENSE").read_text()


READS = """
import sys
import headrace as hr
from headrace import transforms as T
steps = [T.Resize((32, 48)), T.ToDtype("float32", scale=True)]
loader = hr.Loader(sys.argv[1], steps, batch_size=4)
print(hr.__file__, [batch["image"].shape for batch in loader][0])
"""


def test_it_reads_pictures_where_only_numpy_is(unpacked: Path, tmp_path: Path) -> None:
    command = [TOOLS / "python", "-c", READS, ROOT / "examples" / "pictures"]
    environment = {
        "PATH": "/nowhere",
        "PYTHONPATH": str(unpacked),
        "HEADRACE_CACHE": str(tmp_path),
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split(" ", 1) == [
        str(unpacked / "headrace" / "__init__.py"),
        "(4, 3, 32, 48)\n",
    ]
