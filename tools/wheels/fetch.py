# SPDX-License-Identifier: Apache-2.0
"""Fetches the sources of libraries.toml with apt, checks and unpacks them.

apt reads a separate list, in build/wheels/apt: the machine's configuration does not change.
Versions that the suite no longer has come from snapshot.debian.org.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import snapshot
from places import SOURCES, WORK, Library, archive_if_fetched, archive_of, libraries

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


def unpack(archive: Path, folder: Path) -> None:
    """The archive's single folder becomes `folder`, when all of it is there."""
    unfinished = folder.with_name("unpacking")
    for each in (folder, unfinished):
        shutil.rmtree(each, ignore_errors=True)
    with tarfile.open(archive) as files:
        files.extractall(unfinished, filter="data")
    (inner,) = unfinished.iterdir()
    inner.rename(folder)
    unfinished.rmdir()


def fetch(library: Library, apt: dict[str, str]) -> None:
    source = f"{library['package']}={library['version']}"
    command = ["apt-get", "-qq", "source", "--download-only", "--tar-only", source]
    subprocess.run(command, env=apt, cwd=SOURCES, check=False)
    if archive_if_fetched(library):
        return
    print(f"{source} not available from {library['suite']}, trying {snapshot.HOST}", flush=True)
    try:
        snapshot.fetch(library, SOURCES)
    except (OSError, LookupError, ValueError) as problem:
        raise SystemExit(f"{source}: {snapshot.HOST}: {problem}") from problem


def main() -> None:
    SOURCES.mkdir(parents=True, exist_ok=True)
    wanted = [each for each in libraries().values() if not archive_if_fetched(each)]
    if wanted:
        apt = configure_apt({library["suite"] for library in wanted})
        subprocess.run(["apt-get", "-qq", "update"], env=apt, check=True)
        for library in wanted:
            fetch(library, apt)
    for name, library in libraries().items():
        archive = archive_of(library)
        unpacked = SOURCES / f"{name}.unpacked"  # names the archive that was unpacked there
        if not unpacked.exists() or unpacked.read_text() != library["sha256"]:
            unpack(archive, SOURCES / name)
            unpacked.write_text(library["sha256"])


if __name__ == "__main__":
    main()
