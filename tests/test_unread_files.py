# SPDX-License-Identifier: Apache-2.0
"""Promise: other files in a folder of records are read, or named in a warning."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from headrace.drawing.png import png_from_pixels
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
def test_a_table_next_to_one_folder_makes_it_not_a_class(
    tmp_path: Path, table: str, content: str, advice: str
) -> None:
    root = folder_of(tmp_path, {"images/1.png": PNG, table: content})
    said = refusal(root)
    assert said.startswith("HR1401") and '"images" would be the only class' in said
    assert table in said and advice in said and 'without it: hr.open("ROOT/images")' in said
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert hr.open(root, classes=["images"]).classes == ["images"]


def test_a_document_next_to_one_class_is_not_a_table(tmp_path: Path) -> None:
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
        (
            {"1.png": PNG, "1.txt": "0 .5 .5 1 1"},
            'hr.coco_from_yolo("ROOT", "ROOT", "train.json"), images="ROOT")',
        ),
        ({"1.png": PNG, "1.txt": "a cat"}, "hr.records(image=[...], text=[...])"),
        ({"a/1.png": PNG, "a/1.xml": "<a/>", "b/2.png": PNG}, "1 file such as a/1.xml"),
        ({"a/1.png": PNG, "a/1_mask.png": PNG, "b/2.png": PNG}, "1 image such as a/1_mask.png"),
        ({"1.jpg": PNG, "1.png": PNG}, "1 image such as 1.png"),
    ],
)
def test_other_files_next_to_records_are_named(
    tmp_path: Path, files: dict[str, str | bytes], said: str
) -> None:
    root = folder_of(tmp_path, files)
    with pytest.warns(Warning, match=re.escape(said.replace("ROOT", str(root)))):
        hr.open(root)


@pytest.mark.parametrize(
    ("images", "masks"),
    [("PNGImages", "PedMasks"), ("leftImg8bit", "gtFine"), ("train", "train_masks")],
)
def test_folders_with_other_names_for_masks_are_not_classes(
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


@pytest.mark.parametrize(
    ("at", "paths", "way"),
    [
        ("labels.csv", "gone/x{}.png", 'hr.open("ROOT/labels.csv", root="FOLDER")'),
        ("lists/labels.csv", "{}.png", 'root="ROOT/images")'),
        ("images/labels.csv", "images/{}.png", 'root="ROOT")'),
        ("labels.csv", "/old/home/images/{}.png", 'remove "/old/home/" from the paths, then '),
    ],
)
@pytest.mark.parametrize("columns", ["path,label", "path,label,x"])
def test_missing_files_of_a_table_are_one_error(
    tmp_path: Path, at: str, paths: str, way: str, columns: str
) -> None:
    rows = "\n".join(
        f"{paths.format(i)},1,2"[: -2 if columns == "path,label" else 99] for i in "123"
    )
    files: dict[str, str | bytes] = {f"images/{i}.png": PNG for i in "123"}
    root = folder_of(tmp_path, files | {at: f"{columns}\n{rows}\n"})
    with pytest.raises(hr.ConfigError, match="HR1402") as error:
        hr.open(root / at)
    said = str(error.value).replace(str(root), "ROOT")
    assert f'"{paths.format(1)}"' in said and "nor any of 2 others tried" in said and way in said


def test_columns_of_missing_files_are_one_error(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{i}.png") for i in range(3)]
    with pytest.raises(hr.ConfigError, match=r"HR1402.*/0\.png.*any of 2 others") as error:
        hr.records(image=paths, label=[0, 1, 2])
    assert 'hr.records(image=[os.path.join("FOLDER", path), ...])' in str(error.value)
    with pytest.raises(hr.ConfigError, match=r"hr\.records\(image=paths, label=labels\)"):
        hr.records(paths)
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"path": paths})
    pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "x.parquet")
    with pytest.raises(
        hr.ConfigError, match=r'HR0113.*(?s:.)*where "path" contains paths: hr\.rec'
    ):
        hr.Loader(tmp_path / "x.parquet", hr.transforms.Resize(8), batch_size=1)


@pytest.mark.parametrize("kind", ["frame", "columns", "pairs", "ids"])
def test_files_of_a_table_in_memory_are_looked_for_at_once(tmp_path: Path, kind: str) -> None:
    root = folder_of(tmp_path, {"images/1.png": PNG, "images/2.png": PNG})
    paths, labels = ["1.png", "2.png"], ["cat", "dog"]
    if kind in ("frame", "ids"):
        pandas = pytest.importorskip("pandas")
        table = pandas.DataFrame({"path": paths, "label": labels})
        if kind == "ids":
            table = pandas.DataFrame({"id": [1, 2], "label": labels})
    else:
        table = list(zip(paths, labels, strict=True))
        if kind == "columns":
            table = {"image": paths, "label": labels}
    with pytest.raises(hr.ConfigError, match="HR1402") as error:
        hr.open(table, root=root)
    assert f'hr.open(..., root="{root}/images")' in error.value.hint
    source = hr.open(table, root=root / "images")
    assert [field.name for field in source.schema] == ["image", "label"]
    assert source[1]["image"].shape == (3, 4, 4) and source.key(1) == f"{root}/images/2.png"


def test_annotations_with_images_elsewhere_get_a_hint(tmp_path: Path) -> None:
    coco = {"images": [{"id": 1, "file_name": "1.png", "width": 4, "height": 4}]}
    coco |= {"annotations": [], "categories": [{"id": 1, "name": "cat"}]}
    root = folder_of(tmp_path, {"photos/1.png": PNG, "a.json": json.dumps(coco)})
    for given in ({}, {"images": root}):
        with pytest.raises(hr.ConfigError, match="HR0436") as error:
            hr.open(root / "a.json", **given)
        assert error.value.hint == f'hr.open("{root}/a.json", images="{root}/photos")'


@pytest.mark.parametrize(
    ("lines", "what", "way"),
    [
        ("1 a/1.png\n2 a/2.png\n", "a number before the path", "hr.open([(path, label), ...])"),
        ("a/1.png 0 1\na/2.png 1 1\n", "more than one value after", "a header (path,a,b)"),
        ("a_1 0 1 1\na_2 1 1 1\n", "more than one value after", "a header (path,a,b)"),
        ("a/1.png a/2.png\n", "two paths", "hr.records(image=[...], mask=[...])"),
        ("a/1.png 0.5\n", "a number with a fraction", "a header (path,age)"),
    ],
)
def test_lines_of_more_than_a_path_and_a_label_are_refused(
    tmp_path: Path, lines: str, what: str, way: str
) -> None:
    root = folder_of(tmp_path, {"a/1.png": PNG, "a/2.png": PNG, "list.txt": lines})
    with pytest.raises(hr.DataError, match=r"HR0410 .*line 1") as error:
        hr.open(root / "list.txt")
    assert what in str(error.value) and way in error.value.hint


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        ("image,mask\na/1.png,a/2.png\n", "mask"),
        ("path,age\na/1.png,31.5\n", "tensor"),
        ("image,caption\na/1.png,a cat\n", "text"),
    ],
)
def test_a_second_column_that_is_not_a_label_is_a_field(
    tmp_path: Path, table: str, kind: str
) -> None:
    root = folder_of(tmp_path, {"a/1.png": PNG, "a/2.png": PNG, "t.csv": table})
    field = hr.open(root / "t.csv").schema[1]
    assert (field.name, field.kind) == (table.split("\n")[0].split(",")[1], kind)


def test_tuples_of_more_than_a_path_and_a_label_are_fields(tmp_path: Path) -> None:
    path = str(folder_of(tmp_path, {"1.png": PNG}) / "1.png")
    assert [field.name for field in hr.open([(path, 0, 0.5)]).schema] == ["image", "label", "data"]
    named = hr.open([(path, "cat", 0.5)], names=("image", "label", "weight"))
    assert float(named[0]["weight"]) == 0.5 and named.classes == ["cat"]
    with pytest.raises(hr.ConfigError, match=r'HR0156 .*two paths(.|\n)*names=\("image", "mask"\)'):
        hr.open([(path, path)])
    assert hr.open([(path, path)], names=("image", "mask")).schema[1].kind == "mask"
    assert hr.open({path: 3})[0]["label"] == 3


def test_an_id_with_two_files_is_refused(tmp_path: Path) -> None:
    files = {"1.png": PNG, "1.jpg": PNG, "list.csv": "id,kind\n1,pug\n"}
    with pytest.raises(hr.ConfigError, match=r"'\.jpg' and '\.png'"):
        hr.open(folder_of(tmp_path, files) / "list.csv")
