# SPDX-License-Identifier: Apache-2.0
"""Promise: ``cache=`` and resume states belong to one dataset, even if another one has much in
common with it."""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from headrace.drawing.png import png_from_pixels

import headrace as hr
from headrace import transforms as T

Open = Callable[[], Any]


def png(value: int) -> bytes:
    return png_from_pixels(np.full((3, 8, 8), value, np.uint8))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """rgb/0.png ... contain 0 to 3, depth/0.png ... 100 to 103."""
    monkeypatch.chdir(tmp_path)
    for name, base in (("rgb", 0), ("depth", 100)):
        for folder in (name, f"run_{name}/train"):
            (tmp_path / folder).mkdir(parents=True)
            for i in range(4):
                (tmp_path / folder / f"{i}.png").write_bytes(png(base + i))
    return tmp_path


def add_member(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))


def coco(here: Path) -> tuple[Open, Open]:
    images = [{"id": i, "file_name": f"{i}.png", "width": 8, "height": 8} for i in range(4)]
    text = json.dumps({"images": images, "categories": [], "annotations": []})
    (here / "c.json").write_text(text)
    return lambda: hr.coco("c.json", images="rgb"), lambda: hr.coco("c.json", images="depth")


def manifest(here: Path) -> tuple[Open, Open]:
    (here / "m.csv").write_text("path,label,x\n" + "".join(f"{i}.png,a,1\n" for i in range(4)))
    return lambda: hr.manifest("m.csv", root="rgb"), lambda: hr.manifest("m.csv", root="depth")


def tar_fields(here: Path) -> tuple[Open, Open]:
    with tarfile.open("s.tar", "w") as tar:
        for i in range(4):
            add_member(tar, f"{i}.left.png", png(i))
            add_member(tar, f"{i}.right.png", png(100 + i))
    return (
        lambda: hr.webdataset("s.tar", fields=["image=left.png"]),
        lambda: hr.webdataset("s.tar", fields=["image=right.png"]),
    )


def tar_classes(here: Path) -> tuple[Open, Open]:
    with tarfile.open("k.tar", "w") as tar:
        for i in range(4):
            add_member(tar, f"{i}.png", png(i))
            add_member(tar, f"{i}.cls", b"cat" if i % 2 else b"dog")
    return (
        lambda: hr.webdataset("k.tar", classes=["cat", "dog"]),
        lambda: hr.webdataset("k.tar", classes=["dog", "cat"]),
    )


def tar_json(here: Path) -> tuple[Open, Open]:
    with tarfile.open("j.tar", "w") as tar:
        for i in range(4):
            add_member(tar, f"{i}.png", png(i))
            add_member(tar, f"{i}.json", json.dumps({"a": i, "b": 10 + i}).encode())
    return (
        lambda: hr.webdataset("j.tar", json_fields=["label=a:int64"]),
        lambda: hr.webdataset("j.tar", json_fields=["label=b:int64"]),
    )


def relative(here: Path) -> tuple[Open, Open]:
    def opened(folder: str) -> Any:
        os.chdir(here / folder)
        return hr.open("train")

    return lambda: opened("run_rgb"), lambda: opened("run_depth")


def parquet(here: Path) -> tuple[Open, Open]:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for name, base in (("a", 0), ("b", 100), ("c", 200)):
        pq.write_table(pa.table({"image": [png(base + i) for i in range(2)]}), f"{name}.parquet")
    return (
        lambda: hr.parquet(["a.parquet", "b.parquet"], memory=16),
        lambda: hr.parquet(["a.parquet", "c.parquet"], memory=16),
    )


def lmdb(here: Path) -> tuple[Open, Open]:
    library = pytest.importorskip("lmdb")
    datum = b"\x08\x03\x10\x02\x18\x02\x22\x0c"
    with library.open("d_lmdb", map_size=1 << 20) as env, env.begin(write=True) as txn:
        for i in range(4):
            pixels = bytes([i] * 4 + [50] * 4 + [100] * 4)
            txn.put(b"%04d" % i, datum + pixels + b"\x28" + bytes([i]))
    return lambda: hr.lmdb("d_lmdb", bgr=True), lambda: hr.lmdb("d_lmdb", bgr=False)


def in_memory(here: Path) -> tuple[Open, Open]:
    class Pixels:
        """Both look the same from outside."""

        def __init__(self, base: int) -> None:
            self.base = base

        def __len__(self) -> int:
            return 4

        def __getitem__(self, i: int) -> dict[str, Any]:
            return {"image": np.full((3, 8, 8), self.base + i, np.uint8)}

    return lambda: Pixels(0), lambda: Pixels(100)


def views(here: Path) -> tuple[Open, Open]:
    def view(folder: str) -> Any:
        return hr.subset(hr.open(folder), [3, 1])

    return lambda: view("rgb"), lambda: view("depth")


def joins(here: Path) -> tuple[Open, Open]:
    def joined(left: str, right: str) -> Any:
        names = {"image": "other"}
        return hr.join(hr.open(left), hr.open(right), rename=names)

    return lambda: joined("rgb", "depth"), lambda: joined("depth", "rgb")


def kinds(here: Path) -> tuple[Open, Open]:
    from PIL import Image

    (here / "gray").mkdir()
    for i in range(4):  # as a mask the index, as an image the palette's color
        picture = Image.new("P", (8, 8), i)
        picture.putpalette([200 + j for j in range(256 - 200) for _ in range(3)])
        picture.save(here / "gray" / f"{i}.png")
    return lambda: hr.open("gray"), lambda: hr.open("gray", kinds={"image": "mask"})


CASES = [
    coco,
    manifest,
    tar_fields,
    tar_classes,
    tar_json,
    relative,
    parquet,
    lmdb,
    in_memory,
    views,
    joins,
    kinds,
]
# To a resume state, a copy of a dataset in another place is the same dataset.
LIKE_COPIES = {coco, manifest, relative, in_memory, views, joins}


@pytest.fixture(params=CASES, ids=lambda case: case.__name__)
def pair(request: pytest.FixtureRequest, here: Path) -> tuple[Open, Open]:
    first, second = request.param(here)
    return first, second


def values(source: Any, cache: str | None) -> tuple[hr.Loader, list[Any]]:
    names = sorted({field.name for field in hr.open(source).schema} & {"image", "label", "other"})
    steps = [T.Resize((8, 8))] if "image" in names else []
    loader = hr.Loader(source, steps, batch_size=2, threads=1, cache=cache, fields=tuple(names))
    batches = [{name: np.array(batch[name]).tolist() for name in names} for batch in loader]
    return loader, batches


def test_a_cache_is_not_shared_with_another_dataset(pair: tuple[Open, Open]) -> None:
    first, second = pair
    loader, before = values(first(), "16 MiB")
    _, expected = values(second(), None)
    other, got = values(second(), "16 MiB")
    assert got == expected != before
    del loader, other


def test_a_cache_is_shared_by_sources_that_were_opened_alike(here: Path) -> None:
    for name in ("rgb", str(here / "rgb")):
        loader = hr.Loader(hr.open("rgb"), [T.Resize((8, 8))], batch_size=4, cache="16 MiB")
        next(iter(loader))
        again = hr.Loader(hr.open(name), [T.Resize((8, 8))], batch_size=4, cache="16 MiB")
        next(iter(again))
        assert again.stats()["cache"]["hits"] >= 4


def test_a_resume_state_depends_on_options_that_determine_records(
    pair: tuple[Open, Open], request: pytest.FixtureRequest
) -> None:
    if request.node.callspec.params["pair"] in LIKE_COPIES:
        return
    first, second = map(hr.open, (pair[0](), pair[1]()))
    assert first.fingerprint == hr.open(pair[0]()).fingerprint
    assert first.fingerprint != second.fingerprint
    steps = [T.Resize((8, 8))]
    state = hr.Loader(first, steps, batch_size=2, fields=("image",)).state_dict()
    with pytest.raises(hr.ConfigError, match="fingerprints differ"):
        hr.Loader(second, steps, batch_size=2, fields=("image",)).load_state_dict(state)


def test_a_relative_path_means_the_same_after_a_change_of_folder(here: Path) -> None:
    sources = [
        hr.open("rgb"),
        hr.records(image=[f"rgb/{i}.png" for i in range(4)]),
    ]
    os.chdir(here / "run_depth")
    (here / "run_depth" / "train").rename(here / "run_depth" / "rgb")
    for source in sources:
        assert [int(record["image"][0, 0, 0]) for record in source] == [0, 1, 2, 3]
