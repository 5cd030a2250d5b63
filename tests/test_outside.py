# SPDX-License-Identifier: Apache-2.0
"""Promise: a downloaded dataset does not choose which files of this machine are read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import mds_writer
import pytest

import headrace as hr

SECRET = "root:x:0:0"
LEADING_OUT = ("{root}/secret.png", "../secret.png", "a/../../secret.png", "..")


@pytest.fixture
def data(pictures: Path, tmp_path: Path) -> Path:
    """A dataset's folder with one image, next to a file and an image that are not part of it."""
    folder = tmp_path / "data"
    folder.mkdir()
    (tmp_path / "secret.png").write_text(SECRET)
    picture = (pictures / "cat/00.png").read_bytes()
    (folder / "good.png").write_bytes(picture)
    (tmp_path / "other.png").write_bytes(picture)
    return folder


def coco(data: Path, name: str) -> Path:
    images = [
        {"id": i, "file_name": n, "width": 9, "height": 9} for i, n in enumerate(["good.png", name])
    ]
    path = data / "coco.json"
    path.write_text(json.dumps({"images": images, "annotations": [], "categories": []}))
    return path


def table(data: Path, name: str, suffix: str) -> Path:
    pa = pytest.importorskip("pyarrow")
    rows = [{"bytes": None, "path": "good.png"}, {"bytes": None, "path": name}]
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    made = pa.table({"image": pa.array(rows, kind)})
    path = data / f"t.{suffix}"
    if suffix == "parquet":
        pytest.importorskip("pyarrow.parquet").write_table(made, path)
    else:
        with pa.ipc.new_file(str(path), made.schema) as writer:
            writer.write_table(made)
    return path


@pytest.mark.parametrize("name", LEADING_OUT)
@pytest.mark.parametrize("kind", ["coco", "arrow", "parquet"])
def test_data_that_refers_to_outside_files_is_refused(data: Path, kind: str, name: str) -> None:
    name = name.format(root=data.parent)
    path = coco(data, name) if kind == "coco" else table(data, name, kind)
    with pytest.raises(hr.ConfigError, match=r"HR0276[^\n]*1 name of 2"):
        hr.open(path)
    if kind == "parquet":  # read on demand
        with pytest.raises(hr.Error, match="HR0276"):
            hr.open(path, memory=0)[1]


@pytest.mark.parametrize("kind", ["coco", "arrow", "parquet"])
@pytest.mark.parametrize("to", ["tar", "pack"])
def test_an_allowed_outside_file_must_still_be_an_image(
    data: Path, kind: str, to: str, tmp_path: Path
) -> None:
    def opened(name: str) -> hr.Source:
        path = coco(data, name) if kind == "coco" else table(data, name, kind)
        return hr.open(path, allow_outside=True)

    good = opened("../other.png")
    assert good[1]["image"].shape == good[0]["image"].shape
    given: Any = {"to": to}
    assert hr.convert(good, tmp_path / "out", **given)["files_outside"] == 1
    for name in ("../secret.png", str(tmp_path / "secret.png")):
        with pytest.raises(hr.DataError, match="HR0278"):
            hr.convert(opened(name), tmp_path / "leak", **given)
    assert not (tmp_path / "leak").exists()
    for path in tmp_path.glob("leak.partial/**/*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes()


@pytest.mark.parametrize("suffix", ["txt", "csv"])
def test_a_list_may_only_name_image_files(data: Path, suffix: str, tmp_path: Path) -> None:
    def written(*names: str) -> hr.Source:
        path = data / f"list.{suffix}"
        head = "path,label,size\n" if suffix == "csv" else ""
        end = ",0,1\n" if suffix == "csv" else " 0\n"
        path.write_text(head + "".join(name + end for name in names))
        return hr.open(path)

    inside = str(data / "good.png")
    source = written("good.png", inside, str(tmp_path / "other.png"), "../other.png")
    assert len({record["image"].tobytes() for record in source}) == 1
    to = "tar"
    assert hr.convert(source, tmp_path / "out.tar", to)["files_outside"] == 2
    assert hr.pack(source, tmp_path / "out.hrpack")["files_outside"] == 2
    for name in ("../secret.png", str(tmp_path / "secret.png")):
        bad = written("good.png", name)
        with pytest.raises(hr.DataError, match=r"HR0278[\s\S]*secret\.png"):
            bad[1]
        with pytest.raises(hr.DataError, match="HR0278"):
            hr.convert(bad, tmp_path / "leak.tar", to)
    assert not (tmp_path / "leak.tar").exists()


def test_files_in_the_folder_may_be_broken_or_links(data: Path, tmp_path: Path) -> None:
    """A broken image is a bad record; links are a normal way to assemble datasets."""
    (data / "list.txt").write_text("good.png 0\nbroken.png 1\nlinked.png 0\n")
    (data / "broken.png").write_text("")
    (data / "linked.png").symlink_to(tmp_path / "other.png")
    source = hr.open(data / "list.txt")
    assert source.engine.files_outside() == 0
    assert source[2]["image"].shape == source[0]["image"].shape
    assert hr.pack(source, tmp_path / "out.hrpack")["unusable_count"] == 1


@pytest.mark.parametrize("kind", ["folder", "list", "manifest", "coco", "arrow"])
def test_a_link_out_of_the_folder_only_gives_images(data: Path, kind: str, tmp_path: Path) -> None:
    """An archive can contain links, too; none of them gets another file's bytes into the output."""
    (data / "linked.png").symlink_to(tmp_path / "secret.png")
    if kind == "folder":
        source = hr.open(data)
    elif kind == "coco":
        source = hr.open(coco(data, "linked.png"))
    elif kind == "arrow":
        source = hr.open(table(data, "linked.png", kind))
    else:
        text = {"list": "good.png 0\nlinked.png 1\n", "manifest": "image,n,m\n{0},1,2\n{1},3,4\n"}
        path = data / ("l.txt" if kind == "list" else "m.csv")
        path.write_text(text[kind].format("good.png", "linked.png"))
        source = hr.open(path)
    assert source[0]["image"].any()
    with pytest.raises(hr.DataError, match=r"HR0278[\s\S]*a link leads out"):
        source[1]
    for to in ("tar", "pack"):
        with pytest.raises(hr.DataError, match="HR0278"):
            hr.convert(source, tmp_path / f"leak.{to}", to)
        assert not (tmp_path / f"leak.{to}").exists()
    left = [path for path in tmp_path.glob("leak*") if path.is_file()]
    left += [path for path in tmp_path.glob("leak*/**/*") if path.is_file()]
    assert left
    assert not any(SECRET.encode() in path.read_bytes() for path in left)
    loader = hr.Loader(source, batch_size=2, ragged="list", on_error="skip")
    assert [len(batch.image) for batch in loader] == [1]


def test_a_linked_folder_is_read(data: Path, tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set/a").symlink_to(data)
    (tmp_path / "again").symlink_to(tmp_path / "set")
    (data / "cut.png").write_bytes((data / "good.png").read_bytes()[:40])
    (data / "empty.png").write_bytes(b"")
    source = hr.open(tmp_path / "again")
    assert source[2]["image"].any()
    assert hr.pack(source, tmp_path / "out.hrpack")["unusable_count"] == 2


def test_relative_roots_work(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (data / "list.txt").write_text(f"good.png 0\n{data}/good.png 0\n{data.parent}/other.png 0\n")
    for folder, path in ((data, "list.txt"), (data.parent, "data/list.txt"), (data, "./list.txt")):
        monkeypatch.chdir(folder)
        assert hr.open(path).engine.files_outside() == 1
        assert hr.open(coco(data, "good.png").relative_to(os.getcwd()))[1]["image"].any()
    monkeypatch.chdir(data)
    assert hr.open(table(data, "good.png", "arrow").name)[1]["image"].any()


def test_outside_mds_shards_are_read_on_request(data: Path) -> None:
    folder = mds_writer.write(data / "mds", {"label": ("int", 8)}, [[bytes(8)]] * 3)
    (data.parent / "elsewhere.mds").write_bytes((folder / "shard.00000.mds").read_bytes())
    for name in ("../../elsewhere.mds", str(data.parent / "elsewhere.mds")):
        index = json.loads((folder / "index.json").read_text())
        index["shards"][0]["raw_data"]["basename"] = name
        (folder / "index.json").write_text(json.dumps(index))
        with pytest.raises(hr.DataError, match=r"HR0486[^\0]*allow_outside=True"):
            hr.open(folder)
        assert len(hr.mds(folder, allow_outside=True)) == 3
