# SPDX-License-Identifier: Apache-2.0
"""Tar archives equal what Python's tarfile and webdataset read, and the loader's promises hold."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace import transforms as T

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}
Samples = list[tuple[str, dict[str, bytes]]]


def write(path: Path, members: list[tuple[str, bytes]], format: int = tarfile.USTAR_FORMAT) -> Path:
    with tarfile.open(path, "w", format=format) as tar:
        for name, data in members:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return path


def samples_of(path: Path) -> Samples:
    """By tarfile, grouped like webdataset."""
    samples: Samples = []
    with tarfile.open(path) as tar:
        for member in tar:
            last = member.name.rsplit("/", 1)[-1]
            if not member.isreg() or last.startswith(".") or "." not in last:
                continue
            stem, extension = last.split(".", 1)
            key = member.name[: len(member.name) - len(last)] + stem
            if not samples or samples[-1][0] != key:
                samples.append((key, {}))
            file = tar.extractfile(member)
            assert file is not None
            samples[-1][1][extension.lower()] = file.read()
    return samples


def raw(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


@pytest.mark.parametrize("format", FORMATS)
def test_records_equal_those_of_tarfile(tmp_path: Path, format: str) -> None:
    rng = np.random.default_rng(3)
    long = "" if format == "ustar" else "x" * 120 + "/"
    members = []
    for number in range(50):
        for extension in ("bin", "txt"):
            data = rng.integers(32, 127, rng.integers(0, 3000), dtype=np.uint8).tobytes()
            members.append((f"{long}a/{number:03}.{extension}", data))
    path = write(tmp_path / "a.tar", members, FORMATS[format])
    src = hr.open(path)
    expected = samples_of(path)
    assert [src.key(i) for i in range(len(src))] == [key for key, _ in expected]
    for record, (_, sample) in zip((src[i] for i in range(len(src))), expected, strict=True):
        assert raw(record["bin"]) == sample["bin"] and raw(record["text"]) == sample["txt"]


def test_records_equal_those_of_webdataset(tmp_path: Path) -> None:
    iterators = pytest.importorskip("webdataset.tariterators")
    members = [(f"d/{n}.{e}", f"{n}{e}".encode()) for n in range(20) for e in ("A.bin", "TXT")]
    path = write(tmp_path / "a.tar", members)
    with path.open("rb") as stream:
        files = iterators.tar_file_expander([{"url": str(path), "stream": stream}])
        expected = [dict(sample) for sample in iterators.group_by_keys(files)]
    src = hr.open(path)
    assert [src.key(i) for i in range(len(src))] == [sample["__key__"] for sample in expected]
    for i, sample in enumerate(expected):
        assert raw(src[i]["text"]) == sample["txt"] and raw(src[i]["a_bin"]) == sample["a.bin"]


def index_of(path: Path) -> str:
    """Like wds2idx's output, with tarfile's offsets."""
    lines: list[list[str]] = []
    last = None
    with tarfile.open(path) as tar:
        for member in tar:
            key = member.name[: member.name.index(".", member.name.rfind("/") + 1)]
            if key != last:
                lines.append([])
            last = key
            place = f"{member.offset_data} {member.size}"
            lines[-1].append(f"{member.name[len(key) + 1 :]} {place} {member.name}")
    return "".join([f"v1.2 {len(lines)}\n", *(" ".join(line) + "\n" for line in lines)])


@pytest.mark.parametrize("format", FORMATS)
def test_an_index_changes_nothing(tmp_path: Path, format: str) -> None:
    long = "" if format == "ustar" else "x" * 120 + "/"
    members = [
        (f"{long}{n}.{extension}", extension.encode() * (n * 37))
        for n in range(300)
        for extension in ("txt", "seg.bin")
    ]
    path = write(tmp_path / "a.tar", members, FORMATS[format])
    plain = hr.open(path)
    before = [plain[i] for i in range(300)], [plain.key(i) for i in range(300)], repr(plain)
    index = index_of(path)
    (tmp_path / "a.idx").write_text(index)
    (tmp_path / "other.idx").write_text(index)
    for source in (hr.open(path), hr.open(path, index=str(tmp_path / "other.idx"))):
        after = [source[i] for i in range(300)], [source.key(i) for i in range(300)], repr(source)
        assert after == before
    (tmp_path / "a.idx").write_text(index.replace("v1.2 300", "v1.2 299"))
    assert "1 index file not used" in repr(hr.open(path))


@pytest.mark.skipif(not shutil.which("tar"), reason="needs GNU tar, which wds2idx asks")
def test_the_offsets_are_those_that_gnu_tar_lists(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tar", [(f"d/{n}.txt", b"x" * (n * 99)) for n in range(20)])
    listed = subprocess.run(
        ["tar", "--list", "--block-num", "--file", str(path)], capture_output=True, check=True
    ).stdout.decode()
    headers = [int(line.split()[1].rstrip(":")) for line in listed.splitlines()[:20]]
    lines = index_of(path).splitlines()[1:]
    assert [int(line.split()[1]) for line in lines] == [512 * (block + 1) for block in headers]


def corpus() -> list[Path]:
    root = os.environ.get("HEADRACE_TEST_DATA")
    if not root:
        return []
    found = [*Path(root, "formats/webdataset").rglob("*"), *Path(root, "corrupt/tar").rglob("*")]
    return sorted(path for path in found if ".t" in path.name)


@pytest.mark.skipif(not corpus(), reason="needs HEADRACE_TEST_DATA")
@pytest.mark.parametrize("path", corpus(), ids=lambda path: path.name)
def test_archives_of_other_tools_are_read_as_by_tarfile(path: Path) -> None:
    expected = samples_of(path)
    if not expected:
        with pytest.raises(hr.Error, match="HR0468"):
            hr.open(path)
        return
    src = hr.open(path)
    assert [src.key(i) for i in range(len(src))] == [key for key, _ in expected]


@pytest.fixture(scope="module")
def shards(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The images of the folder, in its order, in three shards: one plain, one compressed."""
    root = tmp_path_factory.mktemp("shards")
    names = sorted(path.relative_to(pictures) for path in pictures.rglob("*.png"))
    for shard in range(3):
        part = names[shard * 8 : shard * 8 + 8]
        path = write(
            root / f"set-{shard}.tar", [(str(n), (pictures / n).read_bytes()) for n in part]
        )
        if shard == 1:
            path.write_bytes(gzip.compress(path.read_bytes()))
    return root


PIPELINE = [T.RandomResizedCrop(16), T.RandomHorizontalFlip()]


def batches(source: Any, **options: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    loader = hr.Loader(source, PIPELINE, batch_size=4, shuffle=True, **options)
    return [(np.array(batch["image"]), np.array(batch["label"])) for batch in loader]


def test_shards_give_the_batches_of_their_folder(pictures: Path, shards: Path) -> None:
    src = hr.open(str(shards / "set-{0..2}.tar"))
    assert src.classes == hr.open(pictures).classes and len(src) == 23
    for mine, folder in zip(batches(src), batches(hr.open(pictures)), strict=True):
        assert np.array_equal(mine[0], folder[0]) and np.array_equal(mine[1], folder[1])


def test_shards_resume_at_every_step(shards: Path) -> None:
    src = hr.open(shards)
    whole = batches(src)
    for step in range(len(whole)):
        loader = hr.Loader(src, PIPELINE, batch_size=4, shuffle=True)
        iterator = iter(loader)
        for _ in range(step):
            next(iterator)
        state = loader.state_dict()
        resumed = hr.Loader(src, PIPELINE, batch_size=4, shuffle=True)
        resumed.load_state_dict(state)
        rest = [np.array(batch["image"]) for batch in resumed]
        assert all(np.array_equal(a, b[0]) for a, b in zip(rest, whole[step:], strict=True))


def test_ranks_together_read_all_records(shards: Path) -> None:
    src = hr.open(shards)
    seen: list[int] = []
    for rank in range(2):
        loader = hr.Loader(
            src, PIPELINE, batch_size=4, shuffle=True, shard=(rank, 2),
            last_batch="pad", fields=("image", "id", "valid"),
        )  # fmt: skip
        for batch in loader:
            seen += [int(i) for i, valid in zip(batch["id"], batch["valid"], strict=True) if valid]
    assert sorted(seen) == list(range(23))


def test_a_truncated_shard_does_not_end_a_run(shards: Path, tmp_path: Path) -> None:
    whole = (shards / "set-0.tar").read_bytes()
    (tmp_path / "a.tar").write_bytes(whole[: len(whole) // 2])
    src = hr.open(tmp_path / "a.tar", classes=["cat", "dog", "eel"])
    loader = hr.Loader(src, [T.Resize((8, 8))], batch_size=2, on_error="skip")
    assert sum(len(batch["label"]) for batch in loader) == len(src) - 1
    (bad,) = loader.quarantine
    assert bad["code"] == "HR0464" and "a.tar" in str(bad)
