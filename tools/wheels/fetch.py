# SPDX-License-Identifier: Apache-2.0
"""Fetches the sources of libraries.toml with apt, checks and unpacks them.

apt reads a list of its own, in build/wheels/apt: nothing of the machine's configuration changes.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

from places import SOURCES, WORK, Library, libraries

KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def mirror() -> str:
    """Debian's archive as this machine reaches it."""
    places = [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]
    text = "\n".join(place.read_text() for place in places if place.is_file())
    found = re.search(r"^(?:URIs:|deb\b.*?)\s*(https?://\S+/debian/?)(?:\s|$)", text, re.M)
    return found[1] if found else "http://deb.debian.org/debian"


def configure_apt(suites: set[str]) -> dict[str, str]:
    """The environment in which apt knows the sources of these suites, and nothing else."""
    apt = WORK / "apt"
    for folder in ("lists/partial", "archives/partial"):
        (apt / folder).mkdir(parents=True, exist_ok=True)
    (apt / "status").touch()
    lines = [f"deb-src [signed-by={KEYS}] {mirror()} {suite} main\n" for suite in sorted(suites)]
    (apt / "sources.list").write_text("".join(lines))
    (apt / "conf").write_text(
        f'Dir::State "{apt}"; Dir::State::status "{apt}/status"; Dir::Cache "{apt}";\n'
        f'Dir::Etc::sourcelist "{apt}/sources.list"; Dir::Etc::sourceparts "-";\n'
        f'APT::Sandbox::User "{os.environ.get("USER", "root")}";\n'
    )
    return {**os.environ, "APT_CONFIG": str(apt / "conf")}


def archive_of(library: Library) -> Path | None:
    """The archive with the pinned checksum, if it was fetched before."""
    for archive in SOURCES.glob(f"{library['package']}_*.orig.tar.*"):
        if hashlib.sha256(archive.read_bytes()).hexdigest() == library["sha256"]:
            return archive
    return None


def unpack(archive: Path, folder: Path) -> None:
    """The archive's single folder becomes `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    (inner,) = folder.iterdir()
    inner = inner.rename(folder.with_name("unpacked"))
    folder.rmdir()
    inner.rename(folder)


def main() -> None:
    SOURCES.mkdir(parents=True, exist_ok=True)
    wanted = {name: each for name, each in libraries().items() if not archive_of(each)}
    if wanted:
        apt = configure_apt({library["suite"] for library in wanted.values()})
        subprocess.run(["apt-get", "-qq", "update"], env=apt, check=True)
        sources = [f"{library['package']}={library['version']}" for library in wanted.values()]
        command = ["apt-get", "-qq", "source", "--download-only", "--tar-only", *sources]
        subprocess.run(command, env=apt, cwd=SOURCES, check=True)
    for name, library in libraries().items():
        archive = archive_of(library)
        if not archive:
            raise SystemExit(f"{name}: the archive of {library['version']} has another checksum")
        if not (SOURCES / name).exists() or name in wanted:
            unpack(archive, SOURCES / name)


if __name__ == "__main__":
    main()
