# SPDX-License-Identifier: Apache-2.0
"""Promise: parts of a dataset (train, val, test) are never silently opened as one."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from headrace.drawing.png import png_from_pixels

import headrace as hr

SPLITS = {"train": 3, "test": 2, "validation": 1}


def png(value: int) -> bytes:
    return png_from_pixels(np.full((3, 4, 4), value, np.uint8))


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """train/, test/ and validation/ of flat folders; the first pixel identifies the record."""
    folder = tmp_path / "pictures"
    for n, (split, count) in enumerate(SPLITS.items()):
        (folder / split).mkdir(parents=True)
        for i in range(count):
            (folder / split / f"{i}.png").write_bytes(png(100 * n + i))
    return folder


def converted(to: str, suffix: str) -> Any:
    def write(pictures: Path, out: Path, name: str) -> None:
        hr.convert(pictures / name, out / f"{name}-00000-of-00001{suffix}", to=to)

    return write


def table_of(pictures: Path, name: str) -> Any:
    pa = pytest.importorskip("pyarrow")
    return pa.table({"image": [path.read_bytes() for path in sorted((pictures / name).iterdir())]})


def parquet(pictures: Path, out: Path, name: str) -> None:
    table = table_of(pictures, name)
    pq: Any = importlib.import_module("pyarrow.parquet")
    pq.write_table(table, out / f"{name}-00000-of-00001.parquet")


def arrow(pictures: Path, out: Path, name: str) -> None:
    table = table_of(pictures, name)
    pa: Any = importlib.import_module("pyarrow")
    with pa.OSFile(str(out / f"{name}.arrow"), "wb") as f, pa.ipc.new_file(f, table.schema) as w:
        w.write_table(table)


def hdf5(pictures: Path, out: Path, name: str) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(out / f"{name}.h5", "w") as file:
        file["image"] = np.zeros((SPLITS[name], 4, 4, 3), np.uint8)


def npy(pictures: Path, out: Path, name: str) -> None:
    np.save(out / f"x_{name}.npy", np.zeros((SPLITS[name], 4, 4, 3), np.uint8))


WRITERS = {
    "tar": converted("tar", ".tar"),
    "tfrecord": converted("tfrecord", ".tfrecord"),
    "recordio": converted("recordio", ".rec"),
    "parquet": parquet,
    "arrow": arrow,
    "hdf5": hdf5,
    "npy": npy,
}


@pytest.fixture(params=WRITERS)
def shards(request: pytest.FixtureRequest, pictures: Path, tmp_path: Path) -> Path:
    out = tmp_path / request.param
    out.mkdir()
    for name in SPLITS:
        WRITERS[request.param](pictures, out, name)
    return out


def test_a_folder_of_shards_of_several_splits_is_refused_with_patterns_to_open(
    shards: Path,
) -> None:
    with pytest.raises(hr.ConfigError) as caught:
        hr.open(shards)
    assert caught.value.code == "HR0405"
    patterns = re.findall(r'"([^"]+)"', caught.value.hint)
    sizes = sorted(len(hr.open(pattern)) for pattern in patterns[:3])
    assert sizes == [1, 2, 3]
    if shards.name != "npy":  # whose files are fields
        assert len(hr.open(patterns[3])) == 6


def test_shards_of_one_split_open(shards: Path) -> None:
    for path in shards.iterdir():
        if "train" not in path.name:
            path.unlink()
    given = {"each_file": "field"} if shards.name == "npy" else {}
    assert len(hr.open(shards, **given)) == 3


@pytest.mark.parametrize("format", ["parquet", "arrow"])
@pytest.mark.parametrize("data", ["data", "."])
def test_a_repository_of_hugging_face_opens_its_splits_by_name(
    pictures: Path, tmp_path: Path, format: str, data: str
) -> None:
    repository = tmp_path / "repository"
    (repository / data).mkdir(parents=True, exist_ok=True)
    (repository / "README.md").write_text("---\nconfigs:\n---\n")
    (repository / ".cache").mkdir()
    for name in SPLITS:
        WRITERS[format](pictures, repository / data, name)
    with pytest.raises(hr.ConfigError, match="HR0405"):
        hr.open(repository)
    for name, count in {**SPLITS, "val": 1}.items():
        assert len(hr.open(repository, split=name)) == count
    assert int(hr.open(repository, split="test")[1]["image"][0, 0, 0]) == 101
    with pytest.raises(hr.ConfigError, match=r'no file .* split "other"'):
        hr.open(repository, split="other")


@pytest.mark.parametrize(
    "names",
    [
        ("seg_train", "seg_test"),
        ("train_set", "test_set"),
        ("trainset", "valset"),
        ("Train1", "dev"),
    ],
)
def test_folders_whose_names_only_differ_by_split_are_not_classes(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    for name in (*names, "seg_pred"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.png").write_bytes(png(1))
    with pytest.raises(hr.ConfigError) as caught:
        hr.open(tmp_path)
    assert caught.value.code == "HR0405" and names[0] in caught.value.hint
    meant = hr.open(tmp_path, classes=sorted([*names, "seg_pred"]))
    assert len(meant) == 3


def test_classes_whose_names_contain_split_words_are_classes(tmp_path: Path) -> None:
    names = ["bullet_train", "crash_test", "test_tube", "valley"]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.png").write_bytes(png(1))
    assert hr.open(tmp_path).classes == names


@pytest.mark.parametrize("targets", ["masks", "labels", "Annotations"])
def test_images_and_masks_are_not_classes(tmp_path: Path, targets: str) -> None:
    for name in ("images", targets):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.png").write_bytes(png(1))
    with pytest.raises(hr.ConfigError) as caught:
        hr.open(tmp_path)
    assert caught.value.code == "HR0419"
    joined = eval(caught.value.hint, {"hr": hr})
    assert [field.kind for field in joined.schema] == ["image", "mask"]
    assert hr.open(tmp_path, classes=["images", targets]).classes == ["images", targets]


@pytest.mark.parametrize("above", ["", "VOCdevkit/VOC2012"])
def test_a_voc_dataset_is_refused_with_a_hint(tmp_path: Path, above: str) -> None:
    root = tmp_path / above
    for name in ("JPEGImages", "Annotations", "SegmentationClass", "ImageSets/Main"):
        (root / name).mkdir(parents=True)
    for number in range(3):
        (root / f"JPEGImages/{number}.png").write_bytes(png(number))
        (root / f"Annotations/{number}.xml").write_text("<annotation/>")
    (root / "SegmentationClass/1.png").write_bytes(png(9))
    (root / "ImageSets/Main/train.txt").write_text("0\n1\n")
    with pytest.raises(hr.ConfigError, match="HR0419") as caught:
        hr.open(tmp_path)
    masks, boxes = caught.value.hint.removeprefix("for masks ").split("; for boxes ")
    (record,) = eval(masks, {"hr": hr})
    assert (record["image"][0, 0, 0], record["mask"][0, 0, 0]) == (1, 9)
    assert (
        f'hr.coco_from_voc("{root}/JPEGImages", "{root}/Annotations", "train.json", ids=' in boxes
    )
    with pytest.raises(hr.ConfigError, match=r"hr\.coco"):
        hr.open(root / "Annotations/0.xml")
    with pytest.raises(hr.ConfigError, match=r"of ids: hr\.records"):
        hr.open(root / "ImageSets/Main/train.txt")


def test_masks_named_differently_from_their_images_are_listed(tmp_path: Path) -> None:
    for name in ("images/train/a.png", "masks/train/a_mask.png"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(png(1))
    with pytest.raises(hr.ConfigError, match=r"HR0419(.|\n)*hr.records\(image=") as caught:
        hr.open(tmp_path)
    (tmp_path / "masks/train/a_mask.png").rename(tmp_path / "masks/train/a.png")
    with pytest.raises(hr.ConfigError) as caught:
        hr.open(tmp_path)
    assert len(eval(caught.value.hint, {"hr": hr})) == 1


def test_folders_added_by_file_servers_are_not_classes(tmp_path: Path) -> None:
    for name in ("cat", "dog", "@eaDir", "__MACOSX", "cat/@eaDir"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.png").write_bytes(png(1))
    source = hr.open(tmp_path)
    assert source.classes == ["cat", "dog"] and len(source) == 2


def test_folders_of_arrays_that_are_splits_are_not_classes(tmp_path: Path) -> None:
    for name in ("train", "val"):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "1.npy", np.zeros(3, np.float32))
    with pytest.raises(hr.ConfigError, match="HR0405"):
        hr.open(tmp_path)


def npz(pictures: Path, out: Path, name: str) -> None:
    np.savez(out / f"{name}.npz", image=np.zeros((SPLITS[name], 4, 4, 3), np.uint8))


def pack(pictures: Path, out: Path, name: str) -> None:
    hr.pack(pictures / name, out / f"{name}.hrpack")


@pytest.mark.parametrize("write", [npz, pack])
def test_a_folder_of_containers_that_open_one_by_one_names_them(
    pictures: Path, tmp_path: Path, write: Any
) -> None:
    (tmp_path / "out").mkdir()
    for name in SPLITS:
        write(pictures, tmp_path / "out", name)
    with pytest.raises(hr.ConfigError, match="HR0404") as caught:
        hr.open(tmp_path / "out")
    calls = re.findall(r'hr\.open\("([^"]+)"\)', caught.value.hint)
    assert [len(hr.open(path)) for path in calls] == [2, 3, 1]
    with pytest.raises(hr.ConfigError, match="HR0418"):
        hr.open(f"{tmp_path}/out/*")


def test_archives_joined_with_cat_are_refused(pictures: Path, tmp_path: Path) -> None:
    for name in ("train", "test"):
        hr.convert(pictures / name, tmp_path / f"{name}.tar", to="tar")
    parts = [(tmp_path / f"{name}.tar").read_bytes() for name in ("train", "test")]
    (tmp_path / "both.tar").write_bytes(b"".join(parts))
    with pytest.raises(hr.DataError, match=r"HR0464 .*more bytes follow the end") as caught:
        hr.open(tmp_path / "both.tar")
    assert caught.value.where.file == str(tmp_path / "both.tar")
    assert "tar -A" in caught.value.hint


@pytest.mark.parametrize("yaml", [True, False])
def test_a_yolo_dataset_is_refused_with_a_hint(tmp_path: Path, yaml: bool) -> None:
    for name in ("images", "labels"):
        (tmp_path / name / "train").mkdir(parents=True)
    (tmp_path / "images/train/1.png").write_bytes(png(1))
    (tmp_path / "labels/train/1.txt").write_text("0 0.5 0.5 0.1 0.1\n")
    (tmp_path / "data.yaml").write_text("names: [cat]\n")
    with pytest.raises(hr.ConfigError) as caught:
        hr.open(tmp_path / "data.yaml" if yaml else tmp_path)
    assert "hr.coco(" in caught.value.hint
