# SPDX-License-Identifier: Apache-2.0
"""Writes what a wheel says of the libraries in it: their licenses, and an SBOM (CycloneDX).

    python tools/wheels/describe.py

In build/wheels/bundled: licenses/NAME/FILE and a file in sboms/, which go into the dist-info of the
wheel as they are (PEP 639 and PEP 770 have these folders).
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
from places import BUNDLED, HERE, SOURCES, libraries

CHECKOUT = HERE.parent.parent
ZIG = Path(ziglang.__file__).parent


def component(name: str, version: str, license: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "library",
        "name": name,
        "version": version,
        "licenses": [{"expression": license}],
        **more,
    }


def components() -> list[dict[str, Any]]:
    """Everything whose code is in the module, apart from Headrace itself."""
    from_debian = [
        component(
            name,
            library["upstream"],
            library["license"],
            purl=f"pkg:deb/debian/{library['package']}@{quote(library['version'])}?arch=source",
            hashes=[{"alg": "SHA-256", "content": library["sha256"]}],
        )
        for name, library in libraries().items()
    ]

    def from_pypi(name: str, license: str, package: str) -> dict[str, Any]:
        version = importlib.metadata.version(package)
        return component(name, version, license, purl=f"pkg:pypi/{package}@{version}")

    return [
        *from_debian,
        from_pypi("nanobind", "BSD-3-Clause", "nanobind"),
        from_pypi("robin-map", "MIT", "nanobind"),
        from_pypi("zig", "MIT", "ziglang"),
        from_pypi("llvm", "Apache-2.0 WITH LLVM-exception", "ziglang"),
    ]


def headrace_version() -> str:
    text = (CHECKOUT / "CMakeLists.txt").read_text()
    (version,) = re.findall(r"^project\(headrace VERSION ([0-9.]+)", text, re.MULTILINE)
    return version


def sbom() -> dict[str, Any]:
    headrace = component("headrace", headrace_version(), "Apache-2.0")
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": headrace},
        "components": components(),
    }


def license_texts() -> dict[str, list[Path]]:
    """By component, the files that hold the text."""
    files = importlib.metadata.files("nanobind") or []
    texts = {
        name: [SOURCES / name / text for text in library["texts"]]
        for name, library in libraries().items()
    }
    texts["nanobind"] = [Path(file.locate()) for file in files if file.name.startswith("LICENSE")]
    texts["zig"] = [ZIG / "LICENSE"]
    texts["llvm"] = [ZIG / "lib" / "libcxx" / "LICENSE.TXT"]  # also libc++abi's and libunwind's
    return texts


def robin_map_license() -> str:
    """Of nanobind's hash table, which has it nowhere but at the head of its file."""
    header = Path(nanobind.__file__).parent / "ext/robin_map/include/tsl/robin_map.h"
    return header.read_text().split("*/")[0].replace("/**", "").replace("\n *", "\n").strip() + "\n"


def main() -> None:
    shutil.rmtree(BUNDLED, ignore_errors=True)
    for name, files in license_texts().items():
        folder = BUNDLED / "licenses" / name
        folder.mkdir(parents=True)
        if not files:
            raise SystemExit(f"{name}: no text of its license")
        for file in files:
            shutil.copy(file, folder)
    (BUNDLED / "licenses" / "robin-map").mkdir()
    (BUNDLED / "licenses" / "robin-map" / "LICENSE").write_text(robin_map_license())
    (BUNDLED / "sboms").mkdir()
    (BUNDLED / "sboms" / "headrace.cdx.json").write_text(json.dumps(sbom(), indent=1) + "\n")


if __name__ == "__main__":
    main()
