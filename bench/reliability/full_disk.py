# SPDX-License-Identifier: Apache-2.0
"""Full disks: what is written goes to a disk of a random, too small size, which then grows.

The disk is a tmpfs that only the process sees, which root alone may mount: elsewhere the trial is
not run, and says so.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import child
import sets
from trial import Attempt, Trial

import headrace as hr

PATIENCE = 120.0
WRITERS = ("pack", "tar", "tfrecord", "folder")
READERS = ("listing", "index", "unpacked")
MOUNT = 'mount -t tmpfs -o "size=$1" headrace "$2" && shift 2 && exec "$@"'


def mounting(size: int, disk: Path) -> tuple[str, ...]:
    """A command before which a program has the disk there."""
    return ("unshare", "--mount", "sh", "-c", MOUNT, "sh", str(size), str(disk))


def why_not(folder: Path) -> str:
    """Why no disk can be mounted there; empty if it can."""
    if os.geteuid() != 0:
        return "only root can mount a disk of a fixed size"
    if not shutil.which("unshare"):
        return "there is no unshare"
    done = subprocess.run([*mounting(4096, folder), "true"], capture_output=True, text=True)
    return done.stderr.strip() if done.returncode else ""


def run(attempt: Attempt) -> None:
    disk = attempt.folder / "disk"
    disk.mkdir()
    reason = why_not(disk)
    if reason:
        attempt.figures["not_run"] = reason
        return
    photos = sets.photos(attempt.folder / "photos", 64, attempt.random, (100, 160))
    archive = attempt.folder / "photos.tar.gz"
    plain = attempt.folder / "photos.tar"
    hr.convert(hr.open(photos), plain, to="tar")
    subprocess.run(["gzip", "--keep", plain], check=True)
    sources = {"listing": photos, "index": plain, "unpacked": archive}
    size = plain.stat().st_size
    outcomes: dict[str, int] = {}
    while attempt.goes_on():
        operation = (*WRITERS, *READERS)[attempt.inputs % len(WRITERS + READERS)]
        # From nothing to all but the last page that is needed.
        limit = attempt.random.randrange(1, size // 4096 if operation in WRITERS else 8) * 4096
        words = (operation, sources.get(operation, photos), disk, attempt.folder / "elsewhere")
        process = child.start(
            *("full_disk", *words),
            cache=disk / "cache" if operation in READERS else attempt.folder / "cache",
            prefix=mounting(limit, disk),
        )
        code, told, errors = child.ended(process, PATIENCE)
        attempt.inputs += 1
        where = f"{operation} on {limit} bytes"
        if code != 0:
            attempt.fails(f"{where}: ends by {code}: {child.last_lines(errors)}")
            continue
        report = json.loads(told)
        for problem in report["problems"]:
            attempt.fails(f"{where}: {problem}")
        name = f"{operation}: {report['outcome']}"
        outcomes[name] = outcomes.get(name, 0) + 1
    attempt.figures["outcomes"] = dict(sorted(outcomes.items()))


TRIAL = Trial(
    "full-disk",
    "Writing to a full disk is an error that says so, no unfinished file has a finished "
    "one's name, and with space the same call gives the same bytes; reading works without a cache",
    70,
    "disks",
    run,
    weight=0.5,
    targets=("R20",),
)
