# SPDX-License-Identifier: Apache-2.0
"""Promise: ``convert`` only deletes and replaces results of a conversion, and only on request."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import headrace as hr


@pytest.fixture
def data(pictures: Path, tmp_path: Path) -> Path:
    """A project: images, and a script next to them."""
    root = tmp_path / "project"
    shutil.copytree(pictures, root / "photos")
    (root / "train.py").write_text("mine")
    return root


def tree(root: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None
        for path in sorted(root.rglob("*"))
    }


def refused(data: Path, dest: Path, to: str, **given: object) -> None:
    before = tree(data)
    with pytest.raises(hr.ConfigError, match="HR0415"):
        hr.convert(data / "photos", dest, to, overwrite=True, **given)  # type: ignore[arg-type]
    assert tree(data) == before


@pytest.mark.parametrize(("to", "shards"), [("tar", 1), ("tar", 2), ("folder", 1)])
def test_forcing_output_onto_a_parent_of_the_source_deletes_nothing(
    data: Path, to: str, shards: int
) -> None:
    refused(data, data, to, shards=shards)
    refused(data, data / "photos" / "..", to, shards=shards)
    refused(data, data / "photos", to, shards=shards)


def test_a_folder_with_an_unrelated_file_is_not_replaced(data: Path) -> None:
    for to, shards in (("folder", 1), ("tar", 2)):
        out = data / to
        hr.convert(data / "photos", out, to, shards=shards)
        (out / "notes.txt").write_text("mine")
        refused(data, out, to, shards=shards)
        (out / "notes.txt").unlink()
        link = out / ("000000000-x.png" if to == "folder" else "data-00009-of-00009.tar")
        link.symlink_to(data / "train.py")
        refused(data, out, to, shards=shards)
        link.unlink()
        hr.convert(data / "photos", out, to, shards=shards, overwrite=True)
        assert not list(data.glob("*.old*")) and not list(data.glob("*.partial"))


def test_every_kind_of_conversion_replaces_every_other(data: Path) -> None:
    out = data / "out"
    kinds = [("tar", 1), ("folder", 1), ("tar", 2), ("recordio", 2), ("tfrecord", 1), ("folder", 1)]
    for to, shards in [*kinds, *reversed(kinds)]:
        hr.convert(data / "photos", out, to, shards=shards, overwrite=True)
        assert out.is_dir() == (to == "folder" or shards > 1)
    assert sorted(path.name for path in data.iterdir()) == ["out", "photos", "train.py"]


def test_the_source_is_not_replaced_by_its_own_conversion(data: Path) -> None:
    shards = data / "shards"
    hr.convert(data / "photos", shards, "tar", shards=2)
    (data / "link").symlink_to(shards)
    first = shards / "data-00000-of-00002.tar"
    sources: list[tuple[object, Path]] = [
        (shards, shards),
        (data / "link", shards),
        (shards, data / "link"),
        (first, first),
        (str(shards / "data-*.tar"), shards),
        (first, shards),
        (hr.subset(shards, [1, 2]), shards),
        (hr.concat(hr.open(first), hr.open(first)), shards),
        (hr.records(image=[data / "photos/cat/00.png"]), data / "photos/cat/00.png"),
    ]
    before = tree(data)
    for source, dest in sources:
        with pytest.raises(hr.ConfigError, match="HR0415"):
            hr.convert(source, dest, "tfrecord", overwrite=True)
    assert tree(data) == before


def test_images_are_not_written_into_their_source_folder(data: Path) -> None:
    refused(data, data / "photos" / "again", "folder")
    hr.convert(data / "photos", data / "photos" / "all.tar", "tar")  # not a picture: no harm
    assert len(hr.open(data / "photos")) == 23


@pytest.mark.parametrize("dest", ["s3://bucket/train", "memory://volume/train"])
@pytest.mark.parametrize("to", ["tar", "folder", "pack"])
def test_an_address_is_not_mistaken_for_a_local_folder(
    data: Path, dest: str, to: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(data)
    before = tree(data)
    with pytest.raises(hr.ConfigError, match=r"HR0414.*is a URL"):
        hr.convert(data / "photos", dest, to)
    assert tree(data) == before


def test_a_link_is_replaced_but_not_its_target(data: Path) -> None:
    (data / "out.tar").symlink_to(data / "train.py")
    hr.convert(data / "photos", data / "out.tar", "tar", overwrite=True)
    assert not (data / "out.tar").is_symlink()
    assert (data / "train.py").read_text() == "mine"


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_a_partial_file_of_another_program_is_not_deleted(data: Path, kind: str) -> None:
    partial = data / "out.tar.partial"
    if kind == "folder":
        partial.mkdir()
        (partial / "mine.txt").write_text("mine")
    elif kind == "file":
        partial.write_text("mine")
    else:
        (data / "elsewhere").mkdir()
        partial.symlink_to(data / "elsewhere")
    before = tree(data)
    with pytest.raises(hr.ConfigError, match="HR0415"):
        hr.convert(data / "photos", data / "out.tar", "tar")
    assert tree(data) == before


def test_an_existing_index_is_not_overwritten(data: Path) -> None:
    (data / "x.idx").write_text("mine")
    with pytest.raises(hr.ConfigError, match=r"HR0415[^\n]*x\.idx"):
        hr.convert(data / "photos", data / "x.rec", "recordio")
    assert (data / "x.idx").read_text() == "mine" and not (data / "x.rec").exists()
    hr.convert(data / "photos", data / "x.rec", "recordio", overwrite=True)
    assert (data / "x.idx").read_text() != "mine"
    with pytest.raises(hr.ConfigError, match="HR0415"):
        hr.convert(data / "photos", data / "y.idx", "recordio")


@pytest.mark.parametrize("at", ["first", "second", "third"])
def test_killed_while_replacing_the_destination_it_resumes(
    data: Path, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headrace.write import destination

    calls = {"first": 1, "second": 2, "third": 3}[at]
    count = 0

    class Killed(BaseException):
        pass

    def dying(real: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object) -> object:
            nonlocal count
            count += 1
            if count == calls:
                raise Killed
            return real(*arguments)

        return call

    with monkeypatch.context() as patched:
        patched.setattr(destination, "_put", dying(destination._put))
        patched.setattr(destination.shutil, "rmtree", dying(shutil.rmtree))
        with pytest.raises(Killed):
            hr.convert(data / "photos", data / "x.rec", "recordio")
    if (data / "x.rec").exists():  # it was complete, except for the working folder
        assert len(hr.open(data / "x.rec")) == 23
        return
    hr.convert(data / "photos", data / "x.rec", "recordio", verify=True)
    assert sorted(path.name for path in data.glob("x*")) == ["x.idx", "x.rec"]


WAITING = """
import sys, headrace as hr
def tell(done, total):
    print("begun", flush=True)
    sys.stdin.readline()
hr.convert(sys.argv[1], sys.argv[2], "tar", progress=tell)
"""


def test_concurrent_conversions_to_one_destination_do_not_mix(data: Path) -> None:
    out = data / "out.tar"
    command = [sys.executable, "-c", WAITING, str(data / "photos"), str(out)]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as first:
        assert first.stdout and first.stdin
        assert first.stdout.readline() == "begun\n"
        with pytest.raises(hr.ConfigError, match="HR0277"):
            hr.convert(data / "photos", out, "tar")
        first.communicate("\n" * 1000)
        assert first.returncode == 0
    assert len(hr.open(out)) == 23
    assert sorted(os.listdir(data)) == ["out.tar", "photos", "train.py"]
