# SPDX-License-Identifier: Apache-2.0
"""Writes a wheel's information on the libraries in it: their licenses, and an SBOM (CycloneDX).

    python tools/wheels/describe.py

In build/wheels/bundled/WHEEL: licenses/NAME/FILE and a file in sboms/, which go into the dist-info
of the wheel as they are (PEP 639 and PEP 770 have these folders). For libraries under the LGPL,
SOURCES.txt next to the licenses says where their sources are and how to replace them.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import quote

import nanobind
import ziglang
from places import BUNDLED, CHECKOUT, SOURCES, WHEELS, archive_of, lgpl_libraries, libraries

ZIG = Path(ziglang.__file__).parent
# Its EULA (attachment A) lists libcudart_static.a among the files that programs may contain.
CUDA_LICENSE = "LicenseRef-NVIDIA-Proprietary"


def component(name: str, version: str, license: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "library",
        "name": name,
        "version": version,
        "licenses": [{"expression": license}],
        **more,
    }


def components(wheel: str) -> list[dict[str, Any]]:
    """Everything whose code is in the wheel, apart from Headrace itself."""
    from_debian = [
        component(
            name,
            library["upstream"],
            library["license"],
            purl=f"pkg:deb/debian/{library['package']}@{quote(library['version'])}?arch=source",
            hashes=[{"alg": "SHA-256", "content": library["sha256"]}],
        )
        for name, library in libraries(wheel).items()
    ]

    def from_pypi(name: str, license: str, package: str) -> dict[str, Any]:
        version = importlib.metadata.version(package)
        return component(name, version, license, purl=f"pkg:pypi/{package}@{version}")

    module = [
        from_pypi("nanobind", "BSD-3-Clause", "nanobind"),
        from_pypi("robin-map", "MIT", "nanobind"),
        from_pypi("cuda-runtime", CUDA_LICENSE, "nvidia-cuda-runtime"),
    ]
    return [
        *from_debian,
        *(module if wheel == "headrace" else []),
        from_pypi("zig", "MIT", "ziglang"),
        from_pypi("llvm", "Apache-2.0 WITH LLVM-exception", "ziglang"),
    ]


def license_expression(wheel: str) -> str:
    """Of Headrace and everything whose code is in the wheel."""
    stated = {each["licenses"][0]["expression"] for each in components(wheel)}
    parts = {part for each in stated for part in each.split(" AND ")} - {"Apache-2.0"}
    return " AND ".join(
        ["Apache-2.0", *sorted(f"({part})" if " OR " in part else part for part in parts)]
    )


def headrace_version() -> str:
    text = (CHECKOUT / "CMakeLists.txt").read_text()
    (version,) = re.findall(r"^project\(headrace VERSION ([0-9.]+)", text, re.MULTILINE)
    return version


def sbom(wheel: str) -> dict[str, Any]:
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": component(wheel, headrace_version(), "Apache-2.0")},
        "components": components(wheel),
    }


def licenses_of_package(name: str) -> list[Path]:
    files = importlib.metadata.files(name) or []
    return [Path(file.locate()) for file in files if file.name.lower().startswith("license")]


def license_texts(wheel: str) -> dict[str, list[Path]]:
    """By component, the files that hold the text."""
    texts = {
        name: [SOURCES / name / text for text in library["texts"]]
        for name, library in libraries(wheel).items()
    }
    if wheel == "headrace":
        texts["nanobind"] = licenses_of_package("nanobind")
        texts["cuda-runtime"] = licenses_of_package("nvidia-cuda-runtime")
    texts["zig"] = [ZIG / "LICENSE"]
    texts["llvm"] = [ZIG / "lib" / "libcxx" / "LICENSE.TXT"]  # also libc++abi's and libunwind's
    return texts


def robin_map_license() -> str:
    """The license of nanobind's hash table, which only appears at the top of its source file."""
    header = Path(nanobind.__file__).parent / "ext/robin_map/include/tsl/robin_map.h"
    return header.read_text().split("*/")[0].replace("/**", "").replace("\n *", "\n").strip() + "\n"


def sources_text(wheel: str) -> str:
    """Where the sources of the libraries under the LGPL are, and how to replace one."""
    head = f"""\
Libraries under the LGPL in {wheel} {headrace_version()}. Each is a shared library in a file of its
own, which may be replaced by another build with the same file name and functions.

They were built from these archives, unmodified, by `./dev wheels` of Headrace's sources (folder
tools/wheels: build options, compilers, the functions kept). Anyone who distributes this wheel has
to offer the archives along with it; `./dev wheels` leaves them next to it, in the folder sources.
They are also Debian's source packages:
"""
    lines = [head]
    for name, library in lgpl_libraries(wheel).items():
        lines.append(f"{name} {library['upstream']} ({library['license']})")
        lines.append(f"  Debian source package {library['package']} {library['version']}")
        lines.append(f"  {archive_of(library).name}  sha256 {library['sha256']}")
    return "\n".join([*lines, ""])


def describe(wheel: str) -> None:
    folder = BUNDLED / wheel
    for name, files in license_texts(wheel).items():
        (folder / "licenses" / name).mkdir(parents=True)
        if not files:
            raise SystemExit(f"{name}: no text of its license")
        for file in files:
            shutil.copy(file, folder / "licenses" / name)
    if wheel == "headrace":
        (folder / "licenses" / "robin-map").mkdir()
        (folder / "licenses" / "robin-map" / "LICENSE").write_text(robin_map_license())
    (folder / "licenses" / "SOURCES.txt").write_text(sources_text(wheel))
    (folder / "sboms").mkdir()
    (folder / "sboms" / f"{wheel}.cdx.json").write_text(json.dumps(sbom(wheel), indent=1) + "\n")


def main() -> None:
    shutil.rmtree(BUNDLED, ignore_errors=True)
    for wheel in WHEELS:
        describe(wheel)


if __name__ == "__main__":
    main()
