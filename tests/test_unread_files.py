# SPDX-License-Identifier: Apache-2.0
"""Promise: what lies in a folder beside the files that are read is read, or named."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from headrace.charts.png import png_from_pixels
from headrace.errors import Warning

import headrace as hr

PNG = png_from_pixels(np.zeros((3, 4, 4), np.uint8))


def folder_of(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def refusal(root: Path) -> str:
    with pytest.raises(hr.ConfigError) as error:
        hr.open(root)
    return str(error.value).replace(str(root), "ROOT")


@pytest.mark.parametrize(
    ("table", "content", "advice"),
    [
        ("train.csv", "file,breed\n1.png,pug\n", '"ROOT/train.csv", root="ROOT/images")'),
        ("train.csv", "id,age,x\n1,2,3\n", "(columns 'id', 'age' and 'x')"),
        ("paths.tsv", "file\tage\tx\nimages/1.png\t2\t3\n", '"ROOT/paths.tsv") (columns'),
        ("meta/train.csv", "file,breed\n1.png,pug\n", '"ROOT/meta/train.csv", root="ROOT/images")'),
        ("a.json", '{"images": [{"file_name": "1.png"}]}', 'ROOT/a.json", images="ROOT/images")'),
        ("annotations.mat", "MATLAB 5.0", "hr.records(image=[...], label=[...])"),
        ("train.txt", "1.png 0\n", '"ROOT/train.txt", root="ROOT/images")'),
    ],
)
def test_a_table_beside_one_folder_makes_it_no_class(
    tmp_path: Path, table: str, content: str, advice: str
) -> None:
    root = folder_of(tmp_path, {"images/1.png": PNG, table: content})
    said = refusal(root)
    assert said.startswith("HR1401") and '"images" would be the only class' in said
    assert table in said and advice in said and 'without it: hr.open("ROOT/images")' in said
    assert hr.open(root, classes=["images"]).classes == ["images"]


def test_a_document_beside_one_class_is_no_table(tmp_path: Path) -> None:
    files = {"cat/1.png": PNG, "README.txt": "1.png", "classes.txt": "cat\n", "a.json": "{}"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert hr.open(folder_of(tmp_path, files)).classes == ["cat"]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {"a/1.png": PNG, "b/2.png": PNG, "x.csv": "p,q,r\na/1.png,1,2\n"},
            "'x.csv' in ROOT is not",
        ),
        ({"1.png": PNG, "x.csv": "p,q,r\n1.png,1,2\n"}, 'hr.open("ROOT/x.csv") (columns'),
        (
            {"1.png": PNG, "1.txt": "0 .5 .5 1 1", "2.png": PNG, "2.txt": ""},
            "2 files such as 1.txt",
        ),
        ({"a/1.png": PNG, "a/1.xml": "<a/>", "b/2.png": PNG}, "1 file such as a/1.xml"),
        ({"a/1.png": PNG, "a/1_mask.png": PNG, "b/2.png": PNG}, "1 image such as a/1_mask.png"),
        ({"1.jpg": PNG, "1.png": PNG}, "1 image such as 1.png"),
    ],
)
def test_files_beside_records_are_named(
    tmp_path: Path, files: dict[str, str | bytes], said: str
) -> None:
    root = folder_of(tmp_path, files)
    with pytest.warns(Warning, match=re.escape(said.replace("ROOT", str(root)))):
        hr.open(root)


@pytest.mark.parametrize(
    ("images", "masks"),
    [("PNGImages", "PedMasks"), ("leftImg8bit", "gtFine"), ("train", "train_masks")],
)
def test_folders_named_for_masks_in_other_words_are_no_classes(
    tmp_path: Path, images: str, masks: str
) -> None:
    said = refusal(folder_of(tmp_path, {f"{images}/1.png": PNG, f"{masks}/1.png": PNG}))
    assert f'hr.join(hr.open("ROOT/{images}"), hr.open("ROOT/{masks}")' in said


def test_classes_with_and_without_a_mask_are_classes(tmp_path: Path) -> None:
    root = folder_of(tmp_path, {"with_mask/1.png": PNG, "without_mask/2.png": PNG})
    assert hr.open(root).classes == ["with_mask", "without_mask"]


def test_splits_name_their_annotations(tmp_path: Path) -> None:
    files = {f"{split}2017/1.png": PNG for split in ("train", "val")}
    for kind in ("captions", "instances"):
        files |= {f"annotations/{kind}_{split}2017.json": b"{}" for split in ("train", "val")}
    advice = 'hr.open("ROOT/annotations/instances_train2017.json", images="ROOT/train2017")'
    assert advice in refusal(folder_of(tmp_path / "coco", files))
    files = {"train/1.png": PNG, "test/2.png": PNG, "labels.csv": b"id,age,x\n1,2,3\n"}
    advice = 'hr.open("ROOT/labels.csv", root="ROOT/train")'
    assert advice in refusal(folder_of(tmp_path / "competition", files))


@pytest.mark.parametrize(
    ("table", "fields"),
    [
        ("id,breed\nab,pug\ncd,husky\n", ["image", "label"]),
        ("image_id,rust,scab\nab,0,1\ncd,1,0\n", ["image", "rust", "scab"]),
        ("file,x,y\nab.png,0,1\ncd.png,1,0\n", ["image", "x", "y"]),
    ],
)
def test_ids_of_a_table_are_files_of_its_root(
    tmp_path: Path, table: str, fields: list[str]
) -> None:
    root = folder_of(tmp_path, {"train/ab.png": PNG, "train/cd.png": PNG, "train.csv": table})
    with pytest.raises(hr.ConfigError, match="HR1402") as error:
        hr.open(root / "train.csv")
    assert f'hr.open("{root}/train.csv", root="{root}/train")' in str(error.value)
    source = hr.open(root / "train.csv", root=root / "train")
    assert (len(source), [name for name in source[0] if name != "key"]) == (2, fields)
    assert source[1]["image"].shape == (3, 4, 4) and source.key(1).endswith("train/cd.png")
    assert "label" not in fields or (source.classes, source[0]["label"]) == (["husky", "pug"], 1)


def test_an_id_with_two_files_is_refused(tmp_path: Path) -> None:
    files = {"1.png": PNG, "1.jpg": PNG, "list.csv": "id,kind\n1,pug\n"}
    with pytest.raises(hr.ConfigError, match=r"'\.jpg' and '\.png'"):
        hr.open(folder_of(tmp_path, files) / "list.csv")
