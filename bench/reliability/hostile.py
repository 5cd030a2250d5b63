# SPDX-License-Identifier: Apache-2.0
"""Hostile archives: members that lead elsewhere, links, and files that would run code.

A secret file lies next to the folder that may be read and written. The kernel reports whether it
or its folder was opened, and what was made there (inotify); a pickle that is loaded would leave a
file behind. Each archive is opened, its records are read, and the readable ones are converted to a
folder, in a process of its own.
"""

from __future__ import annotations

import ctypes
import io
import json
import os
import pickle
import random
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import child
import numpy as np
import sets
from trial import Attempt, Trial

PATIENCE = 120.0
SECRET = b"root:x:0:0:not for you"
# <sys/inotify.h>: opened, created, moved here, changed.
EVENTS = 0x20 | 0x100 | 0x80 | 0x2
LEADING_OUT = ("../secret.jpg", "../../secret.jpg", "a/../../secret.jpg", "{outside}/secret.jpg")

Make = Callable[[Path, Path, random.Random], None]  # folder to write to, folder of the secret
MAKERS: dict[str, Make] = {}


def archive(name: str) -> Callable[[Make], Make]:
    def added(make: Make) -> Make:
        MAKERS[name] = make
        return make

    return added


class Watch:
    """What happens in a folder, from other processes, too."""

    def __init__(self, folder: Path) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._events = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._events < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        if self._libc.inotify_add_watch(self._events, os.fsencode(folder), EVENTS) < 0:
            raise OSError(ctypes.get_errno(), "inotify_add_watch")

    def seen(self) -> list[str]:
        """The names that were opened or made since the last call."""
        names, data = [], b""
        while True:
            try:
                data += os.read(self._events, 1 << 16)
            except BlockingIOError:
                break
        while data:
            _, _, _, length = struct.unpack_from("iIII", data)
            names.append(data[16 : 16 + length].rstrip(b"\0").decode() or ".")
            data = data[16 + length :]
        return names

    def close(self) -> None:
        os.close(self._events)


def jpeg(numbers: random.Random) -> bytes:
    content = io.BytesIO()
    sets.picture(np.random.default_rng(numbers.getrandbits(32)), 40, 30).save(content, "JPEG")
    return content.getvalue()


def add(into: tarfile.TarFile, name: str, data: bytes, **fields: object) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    for field, value in fields.items():
        setattr(member, field, value)
    into.addfile(member, io.BytesIO(data))


def led_out(outside: Path, numbers: random.Random) -> str:
    return numbers.choice(LEADING_OUT).format(outside=outside)


@archive("tar with names that lead out")
def tar_names(folder: Path, outside: Path, numbers: random.Random) -> None:
    with tarfile.open(folder / "a.tar", "w") as file:
        add(file, "0.jpg", jpeg(numbers))
        add(file, led_out(outside, numbers), jpeg(numbers))


@archive("tar with PAX headers that lead out")
def tar_pax(folder: Path, outside: Path, numbers: random.Random) -> None:
    with tarfile.open(folder / "a.tar", "w", format=tarfile.PAX_FORMAT) as file:
        headers = {"path": led_out(outside, numbers), "linkpath": str(outside / "secret.jpg")}
        add(file, "0.jpg", jpeg(numbers), pax_headers=headers)


@archive("tar with links to the secret")
def tar_links(folder: Path, outside: Path, numbers: random.Random) -> None:
    with tarfile.open(folder / "a.tar", "w") as file:
        add(file, "0.jpg", jpeg(numbers))
        for number, kind in enumerate((tarfile.SYMTYPE, tarfile.LNKTYPE), 1):
            add(file, f"{number}.jpg", b"", type=kind, linkname=led_out(outside, numbers))


@archive("tar with a chain of links to folders")
def tar_chain(folder: Path, outside: Path, numbers: random.Random) -> None:
    with tarfile.open(folder / "a.tar", "w") as file:
        add(file, "a", b"", type=tarfile.SYMTYPE, linkname="..")
        add(file, "b", b"", type=tarfile.SYMTYPE, linkname="a/..")
        for name in ("a/secret.jpg", "b/secret.jpg", "a/made.jpg"):
            add(file, name, jpeg(numbers))


@archive("tar with devices and pipes")
def tar_devices(folder: Path, outside: Path, numbers: random.Random) -> None:
    with tarfile.open(folder / "a.tar", "w") as file:
        add(file, "0.jpg", jpeg(numbers))
        for number, kind in enumerate((tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE), 1):
            add(file, f"{number}.jpg", b"", type=kind, devmajor=1, devminor=5)


class Payload:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (os.mkdir, (str(self.path),))


@archive("tar with pickles")
def tar_pickles(folder: Path, outside: Path, numbers: random.Random) -> None:
    with tarfile.open(folder / "a.tar", "w") as file:
        add(file, "0.jpg", jpeg(numbers))
        for suffix in ("pkl", "pickle", "pyd", "pth"):
            add(file, f"0.{suffix}", pickle.dumps(Payload(outside / "executed")))


@archive("NumPy array of objects")
def objects(folder: Path, outside: Path, numbers: random.Random) -> None:
    array = np.array([Payload(outside / "executed")], object)
    np.save(folder / "a.npy", array, allow_pickle=True)


@archive("npz of objects, with names that lead out")
def npz(folder: Path, outside: Path, numbers: random.Random) -> None:
    content, plain = io.BytesIO(), io.BytesIO()
    np.save(content, np.array([Payload(outside / "executed")], object), allow_pickle=True)
    np.save(plain, np.zeros(4))
    with zipfile.ZipFile(folder / "a.npz", "w") as file:
        file.writestr(led_out(outside, numbers).replace(".jpg", ".npy"), plain.getvalue())
        file.writestr("y.npy", content.getvalue())


@archive("torch file with code")
def torch_file(folder: Path, outside: Path, numbers: random.Random) -> None:
    with zipfile.ZipFile(folder / "a.pt", "w") as file:
        file.writestr("archive/data.pkl", pickle.dumps(Payload(outside / "executed"), protocol=2))
        file.writestr("archive/version", "3\n")


@archive("pickle with the name of a CIFAR batch")
def cifar(folder: Path, outside: Path, numbers: random.Random) -> None:
    (folder / "data_batch_1").write_bytes(pickle.dumps(Payload(outside / "executed")))
    (folder / "a.pkl").write_bytes(pickle.dumps(Payload(outside / "executed")))


@archive("HDF5 with links and values in other files")
def hdf5(folder: Path, outside: Path, numbers: random.Random) -> None:
    import h5py

    with h5py.File(folder / "a.h5", "w") as file:
        file["x"] = np.zeros((4, 3), np.float32)
        file["linked"] = h5py.ExternalLink(str(outside / "secret.h5"), "/x")
        size = len(SECRET)
        file.create_dataset(
            "outside", (4, size // 4), "u1", external=[(str(outside / "secret.jpg"), 0, size)]
        )


@archive("HDF5 whose values are all outside")
def hdf5_outside(folder: Path, outside: Path, numbers: random.Random) -> None:
    import h5py

    with h5py.File(folder / "a.h5", "w") as file:
        file.create_dataset("x", (len(SECRET),), "u1", external=[(outside / "secret.jpg", 0, 22)])


@archive("COCO file with names that lead out")
def coco(folder: Path, outside: Path, numbers: random.Random) -> None:
    (folder / "good.jpg").write_bytes(jpeg(numbers))
    names = ["good.jpg", led_out(outside, numbers)]
    images = [{"id": i, "file_name": name, "width": 9, "height": 9} for i, name in enumerate(names)]
    text = json.dumps({"images": images, "annotations": [], "categories": []})
    (folder / "a.json").write_text(text)


@archive("MDS index with names that lead out")
def mds(folder: Path, outside: Path, numbers: random.Random) -> None:
    shard = {
        "column_names": ["x"],
        "column_encodings": ["bytes"],
        "column_sizes": [None],
        "compression": None,
        "format": "mds",
        "raw_data": {"basename": led_out(outside, numbers), "bytes": 22, "hashes": {}},
        "samples": 1,
        "version": 2,
        "zip_data": None,
    }
    (folder / "index.json").write_text(json.dumps({"shards": [shard], "version": 2}))


@archive("folder with links that lead out")
def links(folder: Path, outside: Path, numbers: random.Random) -> None:
    (folder / "good.jpg").write_bytes(jpeg(numbers))
    (folder / "linked.jpg").symlink_to(outside / "secret.jpg")


# The file's content may be looked at: whether it is an image decides whether it is delivered.
OPENED_ON_PURPOSE = {"folder with links that lead out"}


def run(attempt: Attempt) -> None:
    outcomes: dict[str, int] = {}
    missing = set()
    while attempt.goes_on():
        for name, make in MAKERS.items():
            if not attempt.goes_on():
                break
            place = attempt.folder / str(attempt.inputs)
            outside, folder = place / "outside", place / "outside" / "data"
            folder.mkdir(parents=True)
            (outside / "secret.jpg").write_bytes(SECRET)
            (outside / "secret.h5").write_bytes(SECRET)
            try:
                make(folder, outside, attempt.random)
            except ImportError as problem:
                missing.add(str(problem))
                if len(missing) == len(MAKERS):
                    return
                continue
            attempt.inputs += 1
            for outcome in examine(attempt, name, outside, folder):
                outcomes[outcome] = outcomes.get(outcome, 0) + 1
    attempt.figures["kinds"] = len(MAKERS)
    attempt.figures["outcomes"] = dict(sorted(outcomes.items(), key=lambda one: -one[1]))
    if missing:
        attempt.figures["not_run"] = "; ".join(sorted(missing))


def examine(attempt: Attempt, name: str, outside: Path, folder: Path) -> list[str]:
    """Reads and converts; returns the outcomes."""
    before = sorted(path for path in outside.rglob("*") if folder not in path.parents)
    out = outside.parent / "out"
    watch = Watch(outside)
    try:
        process = child.start("read_archive", folder, out, cache=outside.parent / "cache")
        code, told, errors = child.ended(process, PATIENCE)
        seen = [each for each in watch.seen() if each not in (".", folder.name)]
    finally:
        watch.close()
    if code != 0:
        attempt.fails(f"{name}: ends by {code}: {child.last_lines(errors)}")
        return []
    report = json.loads(told)
    if name not in OPENED_ON_PURPOSE:
        attempt.expect(not seen, f"{name}: {sorted(set(seen))} outside opened or made")
    after = sorted(path for path in outside.rglob("*") if folder not in path.parents)
    attempt.expect(before == after, f"{name}: made {sorted(map(str, set(after) - set(before)))}")
    others = {path.name for path in outside.parent.iterdir()} - {"outside", "out", "cache"}
    attempt.expect(not others, f"{name}: made {sorted(others)}")
    kept = [path for path in outside.parent.rglob("*") if path.is_file()]
    leaks = [path for path in kept if outside not in path.parents and SECRET in path.read_bytes()]
    attempt.expect(not leaks, f"{name}: the secret is in {leaks}")
    attempt.expect(not report["leaked"], f"{name}: the secret was delivered")
    for each in report["outcomes"]:
        attempt.expect(not each.startswith("UNNAMED"), f"{name}: {each}")
    return list(report["outcomes"])


TRIAL = Trial(
    "hostile",
    "An archive with names or links that lead out, or with code, opens and makes no file outside "
    "its folder, runs nothing, and is read or an error with a code",
    60,
    "archives",
    run,
    weight=0.5,
    targets=("R6",),
)
