# SPDX-License-Identifier: Apache-2.0
"""Fetches the archive of a source package from snapshot.debian.org, which keeps every version: a
suite of Debian only has the newest.

Its interface (https://salsa.debian.org/snapshot-team/snapshot/raw/master/API) lists the files of a
version with their SHA-1; the checksum in libraries.toml decides whether the archive is accepted.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

from places import Library

HOST = "https://snapshot.debian.org"
SECONDS = 60


def archive_in(answer: bytes, package: str) -> tuple[str, str]:
    """Name and SHA-1 of the package's archive in a list of files."""
    form = re.compile(rf"{re.escape(package)}_[\w.+~-]+\.orig\.tar\.(?:gz|bz2|xz)")
    for sha1, places in json.loads(answer)["fileinfo"].items():
        for place in places:
            if form.fullmatch(place["name"]) and re.fullmatch("[0-9a-f]{40}", sha1):
                return place["name"], sha1
    raise LookupError(f"it lists no archive of {package}")


def fetch(library: Library, folder: Path, host: str = HOST) -> Path:
    """The archive in `folder`. Raises LookupError unless it has the pinned checksum."""
    package, version = library["package"], library["version"]
    listed = f"{host}/mr/package/{quote(package)}/{quote(version, safe='')}/srcfiles?fileinfo=1"
    with urlopen(listed, timeout=SECONDS) as answer:
        name, sha1 = archive_in(answer.read(), package)
    with urlopen(f"{host}/file/{sha1}", timeout=SECONDS) as answer:
        content = answer.read()
    if hashlib.sha256(content).hexdigest() != library["sha256"]:
        raise LookupError(f"its {name} has another checksum")
    (folder / name).write_bytes(content)
    return folder / name
