# SPDX-License-Identifier: Apache-2.0
"""Bad files affect only their own records: no crash, no hang, no stale pixel."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import io
import json
import os
import random
import signal
import struct
import subprocess
import sys
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from PIL import Image

import headrace as hr
from headrace import _core
from headrace import transforms as T

SMALL = [T.Resize((32, 32))]
BATCH = 64
PR_SET_DUMPABLE = 4


@contextlib.contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Turns a hang into a failure; next() handles signals."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"no end after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def photo(width: int = 75, height: int = 58, seed: int = 0) -> Image.Image:
    """Smooth areas with noise, so that every coefficient is used."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    waves = np.stack([128 + 90 * np.sin(x / 9 + c) * np.cos(y / 7 - c) for c in range(3)], 2)
    return Image.fromarray((waves + rng.normal(0, 12, waves.shape)).clip(0, 255).astype(np.uint8))


def encoded(picture: Image.Image, kind: str, **options: Any) -> bytes:
    out = io.BytesIO()
    picture.save(out, kind, **options)
    return out.getvalue()


def good_files() -> dict[str, bytes]:
    return {
        "baseline.jpg": encoded(photo(), "jpeg", quality=85),
        "progressive.jpg": encoded(photo(), "jpeg", quality=85, progressive=True),
        "restarts.jpg": encoded(photo(), "jpeg", quality=70, restart_marker_blocks=3),
        "color.png": encoded(photo(), "png"),
        "palette.png": encoded(photo().quantize(40), "png"),
    }


def truncations() -> dict[str, bytes]:
    return {
        f"cut-{i:02}-{name}": data[: len(data) * i // 64]
        for name, data in good_files().items()
        for i in range(64)
    }


def mutations() -> dict[str, bytes]:
    """1,000 files with one to eight bytes changed, or a part removed, repeated or overwritten."""
    chance = random.Random(20240607)
    files = {}
    for name, data in good_files().items():
        for i in range(200):
            changed = bytearray(data)
            for _ in range(chance.randint(1, 8)):
                changed[chance.randrange(len(changed))] = chance.randrange(256)
            at, length = chance.randrange(len(changed)), chance.randint(1, 40)
            if i % 4 == 1:
                del changed[at : at + length]
            elif i % 4 == 2:
                changed[at:at] = changed[at : at + length]
            elif i % 4 == 3:
                changed[at : at + length] = b"\xff" * length
            files[f"changed-{i:03}-{name}"] = bytes(changed)
    return files


def corpus(kind: str) -> dict[str, bytes]:
    root = os.environ.get("HEADRACE_TEST_DATA")
    if not root:
        pytest.skip("HEADRACE_TEST_DATA names no folder")
    folder = Path(root) / "corrupt" / kind
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


class Mixed(NamedTuple):
    """Suspicious records, each followed by a good one."""

    source: hr.Source
    suspicious: list[str]  # names, indexed by half the record's number
    good: np.ndarray[Any, np.dtype[np.uint8]]  # the good picture's pixels


def mix(files: dict[str, bytes], folder: Path) -> Mixed:
    good = folder / "good.png"
    good.write_bytes(good_files()["color.png"])
    paths = []
    for number, data in enumerate(files.values()):
        paths += [folder / f"{number:05}.jpg", good]
        paths[-2].write_bytes(data)
    (alone,) = hr.Loader(hr.records(image=[good]), SMALL, batch_size=1, fields="image")
    return Mixed(hr.records(image=paths), list(files), alone.image[0].copy())


class Run(NamedTuple):
    images: np.ndarray[Any, np.dtype[np.uint8]]
    ids: list[int]
    quarantine: list[dict[str, Any]]
    digest: str


def run(source: hr.Source, threads: int) -> Run:
    loader = hr.Loader(
        source,
        SMALL,
        batch_size=BATCH,
        threads=threads,
        on_error="substitute",
        error_budget=10**9,
        fields=("image", "id", "key"),
    )
    images, ids, digest = [], [], hashlib.sha256()
    sizes = []
    with at_most(120):
        for batch in loader:
            sizes.append(len(batch.image))
            assert len(batch.id) == len(batch.key) == len(batch.image)
            images.append(batch.image.copy())
            ids += batch.id.tolist()
            digest.update(batch.image.tobytes() + batch.id.tobytes() + repr(batch.key).encode())
    full, rest = divmod(len(source), BATCH)
    assert sizes == [BATCH] * full + [rest] * bool(rest)
    quarantine = loader.quarantine
    digest.update(repr(quarantine).encode())
    loader.close()
    return Run(np.concatenate(images), ids, quarantine, digest.hexdigest())


def check(mixed: Mixed) -> int:
    """Returns the number of suspicious files that were rejected."""
    first = run(mixed.source, threads=2)
    assert {run(mixed.source, threads).digest for threads in (1, 3)} == {first.digest}
    refused = {entry["record"]: entry for entry in first.quarantine}
    assert len(refused) == len(first.quarantine), "a record has more than one line"
    for record, (image, id_) in enumerate(zip(first.images, first.ids, strict=True)):
        if record % 2 == 1:
            assert record not in refused and id_ == record
            np.testing.assert_array_equal(image, mixed.good)
        elif record not in refused:
            assert id_ == record, mixed.suspicious[record // 2]
        else:
            assert id_ != record and id_ not in refused
            np.testing.assert_array_equal(image, first.images[id_])
            entry = refused[record]
            assert entry["code"] in _core.error_codes() and entry["what"]
            assert entry["file"] == entry["key"] == mixed.source.key(record)
            assert entry["position"] == record and entry["epoch"] == 0
            assert entry["action"] == f"substituted by record {id_}"
    return len(refused)


def test_truncated_files_affect_only_their_records(tmp_path: Path) -> None:
    refused = check(mix(truncations(), tmp_path))
    assert refused == 5 * 64  # the whole picture is requested, and none is complete


def test_changed_files_affect_only_their_records(tmp_path: Path) -> None:
    refused = check(mix(mutations(), tmp_path))
    assert 200 < refused < 900


@pytest.mark.parametrize("kind", ["jpeg", "png"])
def test_corpus_files_affect_only_their_records(kind: str, tmp_path: Path) -> None:
    files = corpus(kind)
    assert len(files) > 500
    assert 0 < check(mix(files, tmp_path)) < len(files)


# Named after each symptom, with its message.


def refusal(source: Any, **options: Any) -> hr.Error:
    with at_most(20), pytest.raises(hr.Error) as caught:
        list(hr.Loader(source, SMALL, batch_size=1, **options))
    return caught.value


def of_one_file(folder: Path, name: str, data: bytes) -> Path:
    (folder / "class").mkdir()
    (folder / "class" / name).write_bytes(data)
    return folder


def says(error: hr.Error, code: str, what: str, name: str, hint: str) -> None:
    assert error.code == code
    assert what in str(error) and hint in error.hint and error.hint in str(error)
    assert error.where.file.endswith(name) and name in str(error)


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(hr.ConfigError) as caught:
        hr.open(tmp_path)
    assert caught.value.code == "HR0404" and f"no image in {tmp_path}" in str(caught.value)
    assert "the folder is empty" in caught.value.hint


def test_an_empty_file(tmp_path: Path) -> None:
    error = refusal(of_one_file(tmp_path, "a.png", b""))
    says(error, "HR0340", "the file is empty", "a.png", "download the file again")


def test_text_with_the_name_of_an_image(tmp_path: Path) -> None:
    error = refusal(of_one_file(tmp_path, "a.jpg", b"<html>404</html>"))
    says(error, "HR0340", "this is an HTML page", "a.jpg", "download the file again")


def test_bytes_of_an_unknown_format(tmp_path: Path) -> None:
    error = refusal(of_one_file(tmp_path, "a.jpg", b"nothing like an image"))
    says(error, "HR0340", "they begin with 6e 6f 74 68", "a.jpg", "check the file")


def test_a_file_that_vanishes_after_it_was_listed(tmp_path: Path) -> None:
    source = hr.open(of_one_file(tmp_path, "a.png", good_files()["color.png"]))
    (tmp_path / "class" / "a.png").unlink()
    says(refusal(source), "HR0201", "No such file", "a.png", "check the path")


@pytest.mark.parametrize(
    ("name", "code", "what"),
    [
        ("color.png", "HR0331", "ends too early"),
        ("baseline.jpg", "HR0302", "contains no image"),
    ],
)
def test_a_file_that_shrinks_after_it_was_listed(
    name: str, code: str, what: str, tmp_path: Path
) -> None:
    source = hr.open(of_one_file(tmp_path, name, good_files()[name]))
    with open(tmp_path / "class" / name, "r+b") as file:
        file.truncate(40)
    says(refusal(source), code, what, name, "again")


@contextlib.contextmanager
def unprivileged() -> Iterator[None]:
    """Not as root, which can read everything."""
    user = os.geteuid()
    if user != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)
        # The kernel has hidden this process's /proc from its user; caches are shared through it.
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)


def test_a_file_without_read_permission(tmp_path: Path) -> None:
    source = hr.open(of_one_file(tmp_path, "a.png", good_files()["color.png"]))
    (tmp_path / "class" / "a.png").chmod(0)
    with unprivileged():
        error = refusal(source)
    says(error, "HR0202", "Permission denied", "a.png", "chmod")


def test_files_that_reappear_are_read_again(tmp_path: Path) -> None:
    """Permission and existence are checked in each epoch, not cached."""
    source = hr.open(of_one_file(tmp_path, "a.png", good_files()["color.png"]))
    path = tmp_path / "class" / "a.png"
    loader = hr.Loader(source, SMALL, batch_size=1)
    path.rename(tmp_path / "away.png")
    with pytest.raises(hr.StorageError):
        list(loader)
    (tmp_path / "away.png").rename(path)
    assert len(list(loader)) == 1


def test_a_folder_with_the_name_of_an_image(tmp_path: Path) -> None:
    of_one_file(tmp_path, "a.png", good_files()["color.png"])
    (tmp_path / "class" / "x.jpg").mkdir()
    assert len(hr.open(tmp_path)) == 1
    error = refusal(hr.records(image=[tmp_path / "class" / "x.jpg"]))
    says(error, "HR0203", "a folder is where a file was expected", "x.jpg", "remove it")


def test_a_pipe_with_the_name_of_an_image_does_not_hang(tmp_path: Path) -> None:
    of_one_file(tmp_path, "a.png", good_files()["color.png"])
    os.mkfifo(tmp_path / "class" / "pipe.jpg")
    with at_most(20):
        assert len(list(hr.Loader(tmp_path, SMALL, batch_size=1))) == 1
    error = refusal(hr.records(image=[tmp_path / "class" / "pipe.jpg"]))
    says(error, "HR0203", "a named pipe is where a file was expected", "pipe.jpg", "remove it")


def test_a_dangling_link(tmp_path: Path) -> None:
    of_one_file(tmp_path, "a.png", good_files()["color.png"])
    (tmp_path / "class" / "b.jpg").symlink_to("/nowhere/b.jpg")
    says(refusal(tmp_path), "HR0201", "No such file", "b.jpg", "check the path")


def test_images_of_one_pixel_work(tmp_path: Path) -> None:
    of_one_file(tmp_path, "a.jpg", encoded(Image.new("RGB", (1, 1), (9, 9, 9)), "jpeg"))
    (tmp_path / "class" / "b.png").write_bytes(
        encoded(Image.new("RGB", (1, 1), (20, 30, 40)), "png")
    )
    (batch,) = hr.Loader(tmp_path, SMALL, batch_size=2)
    np.testing.assert_array_equal(batch.image[0], np.full((3, 32, 32), 9))
    np.testing.assert_array_equal(batch.image[1, :, 31, 31], [20, 30, 40])


def huge(kind: str) -> bytes:
    """A small file whose header claims 65,500 x 65,500 pixels."""
    if kind == "jpg":
        data = bytearray(encoded(photo(), "jpeg"))
        frame = data.index(b"\xff\xc0")
        data[frame + 5 : frame + 9] = struct.pack(">HH", 65500, 65500)
        return bytes(data)
    data = bytearray(encoded(photo(), "png"))
    data[16:24] = struct.pack(">II", 65500, 65500)
    data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
    return bytes(data)


GROWTH = """
import sys, headrace as hr
from headrace import transforms as T
def status(name):
    return next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith(name))
source = hr.open(sys.argv[1])
loader = hr.Loader(source, [T.Resize((8, 8))], batch_size=1, fields="image")
before = status("VmRSS")
try:
    list(loader)
except hr.ResourceLimitError as error:
    print(error.code, status("VmHWM") - before)
"""


@pytest.mark.parametrize("kind", ["jpg", "png"])
def test_a_huge_header_is_refused_before_allocation(kind: str, tmp_path: Path) -> None:
    folder = of_one_file(tmp_path, f"huge.{kind}", huge(kind))
    error = refusal(folder)
    assert isinstance(error, hr.ResourceLimitError)
    says(error, "HR0310", "65500 x 65500 pixels", f"huge.{kind}", "max_pixels=")
    done = subprocess.run(
        [sys.executable, "-c", GROWTH, str(folder)], capture_output=True, text=True, check=True
    )
    code, growth_kib = done.stdout.split()
    assert code == "HR0310" and int(growth_kib) < 64 << 10


def test_a_huge_image_that_is_allowed_must_still_fit_in_memory(tmp_path: Path) -> None:
    folder = of_one_file(tmp_path, "huge.jpg", huge("jpg"))
    error = refusal(folder, max_pixels=2**40, memory_limit="128 MiB")
    says(error, "HR0703", "MiB of working memory", "huge.jpg", "raise memory_limit")


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    folder = os.fsencode(of_one_file(tmp_path, "ok.png", good_files()["color.png"])) + b"/class/"
    names = [b'bad\xfe\n".png', b"ok.png", b"\xff.png"]  # in byte order
    for name, data in ((names[0], b"no"), (names[2], good_files()["color.png"])):
        with open(folder + name, "wb") as file:
            file.write(data)
    source = hr.open(tmp_path)
    assert [os.fsencode(source.key(i)) for i in range(3)] == [folder + name for name in names]
    assert os.fsencode(refusal(source).where.file) == folder + names[0]

    path = tmp_path / "bad.jsonl"
    options: dict[str, Any] = {"on_error": "skip", "error_budget": 1, "fields": ("image", "key")}
    loader = hr.Loader(source, SMALL, batch_size=3, quarantine=path, **options)
    (batch,) = loader
    assert list(map(os.fsencode, batch.key)) == [folder + name for name in names[1:]]
    (entry,) = loader.quarantine
    assert os.fsencode(entry["file"]) == folder + names[0]
    assert [json.loads(line) for line in path.read_text().splitlines()] == [entry]

    columns = hr.records(image=[os.fsdecode(folder + names[2])])  # and back into the engine
    assert len(list(hr.Loader(columns, SMALL, batch_size=1))) == 1


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_an_error_in_a_damaged_image_names_file_and_record(tmp_path: Path, kind: str) -> None:
    suffix = {"JPEG": "jpg", "PNG": "png"}[kind]
    good, bad = tmp_path / f"0.{suffix}", tmp_path / f"1.{suffix}"
    good.write_bytes(encoded(photo(), kind))
    bad.write_bytes(good.read_bytes()[:30])
    source = hr.open(tmp_path)
    assert source[0]["image"].shape == (3, 58, 75)
    with pytest.raises(hr.DataError) as raised:
        source[1]
    assert raised.value.where.file == str(bad) and raised.value.where.record == 1
    assert str(bad) in str(raised.value)


def test_an_error_in_damaged_audio_in_an_archive_names_file_and_record(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    with tarfile.open(tmp_path / "set" / "a.tar", "w") as tar:
        for number in range(2):
            wav = b"RIFF" + bytes(40)
            member = tarfile.TarInfo(f"{number}.wav")
            member.size = len(wav)
            tar.addfile(member, io.BytesIO(wav))
    with pytest.raises(hr.DataError) as raised:
        hr.open(tmp_path / "set" / "a.tar")[1]
    assert raised.value.where.record == 1 and "a.tar" in raised.value.where.file
