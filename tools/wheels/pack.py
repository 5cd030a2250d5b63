# SPDX-License-Identifier: Apache-2.0
"""Reads and writes wheels: zip files with a list of their contents. The same files give the same
bytes.
"""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

EXECUTABLE, PLAIN = 0o100755, 0o100644


class Packed(NamedTuple):
    content: bytes
    mode: int = PLAIN


def unpack(wheel: Path) -> dict[str, Packed]:
    with zipfile.ZipFile(wheel) as archive:
        return {
            entry.filename: Packed(archive.read(entry), entry.external_attr >> 16)
            for entry in archive.infolist()
            if not entry.is_dir()
        }


def line_of(name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def pack(files: dict[str, Packed], wheel: Path) -> None:
    """RECORD, which lists the others, is rewritten."""
    (metadata,) = (name for name in files if name.endswith(".dist-info/METADATA"))
    record = str(Path(metadata).with_name("RECORD"))
    others = {name: files[name] for name in sorted(files) if name != record}
    lines = [line_of(name, file.content) for name, file in others.items()]
    others[record] = Packed("".join([*lines, f"{record},,\n"]).encode())
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, file in others.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = file.mode << 16
            archive.writestr(entry, file.content, zipfile.ZIP_DEFLATED, 9)


def license_files(names: Iterable[str]) -> str:
    """The lines of METADATA for all files below dist-info/licenses, as PEP 639 has them."""
    found = sorted(name.split(".dist-info/licenses/")[1] for name in names if "/licenses/" in name)
    return "".join(f"License-File: {name}\n" for name in found)
