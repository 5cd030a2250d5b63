# SPDX-License-Identifier: Apache-2.0
"""YOLO and VOC annotations: converted to COCO once, by the code that the error suggests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import headrace as hr


def image(path: Path, size: tuple[int, int] = (40, 20), orientation: int = 1) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.new("RGB", size).save(path, exif=exif)


def text(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


@pytest.fixture
def yolo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In Ultralytics' layout; of the images of 40 x 20 one has a box and an outline, one has no
    file."""
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "data"
    for split in ("train", "val"):
        image(root / "images" / split / "a.jpg")
        image(root / "images" / split / "sub" / "b.jpg")
        text(
            root / "labels" / split / "a.txt",
            "1 0.5 0.5 0.25 0.5\n\n0 0.1 0.1 0.5 0.1 0.5 0.9 0.1 0.9\n",
        )
    text(root / "data.yaml", "train: images/train\nval: images/val\nnames: [cat, dog]\n")
    return root


def call_in(caught: Any) -> Any:
    """Annotations written as the hint suggests."""
    found = re.search(r"hr\.coco\(.*\)", caught.value.hint)
    assert found, caught.value.hint
    return eval(found[0], {"hr": hr})


@pytest.mark.parametrize("given", ["", "data.yaml", "images and labels"])
def test_the_call_suggested_for_a_yolo_folder_opens_its_boxes(yolo: Path, given: str) -> None:
    with pytest.raises(hr.ConfigError) as caught:
        hr.open(yolo / given if given != "images and labels" else yolo)
    source = call_in(caught)
    assert len(source) == 2
    # (0.5 -+ 0.25 / 2) * 40, (0.5 -+ 0.5 / 2) * 20; the outline's corners.
    np.testing.assert_allclose(source[0]["boxes"], [[15, 5, 25, 15], [4, 2, 20, 18]], atol=1e-5)
    assert source[0]["labels"].tolist() == [1, 0] and source[1]["boxes"].shape == (0, 4)


def test_yolo_polygons_become_masks(yolo: Path) -> None:
    text(yolo / "labels/train/a.txt", "0 0.1 0.1 0.5 0.1 0.5 0.9 0.1 0.9\n")
    images = yolo / "images/train"
    file = hr.coco_from_yolo(images, yolo / "labels/train", "a.json", names={0: "cat", 1: "dog"})
    masks = hr.coco(file, images=images, masks=True)[0]["masks"]
    expected = np.zeros((1, 20, 40), np.uint8)
    expected[0, 2:18, 4:20] = 1
    np.testing.assert_array_equal(masks, expected)


@pytest.mark.parametrize("line", ["0 1 2 3", "0 .1 .1 .2 .2 .9", "cat .5 .5 .1 .1", "0 .1 nan 0 0"])
def test_a_line_that_is_not_a_box_is_an_error_with_its_file(yolo: Path, line: str) -> None:
    text(yolo / "labels/val/a.txt", f"0 .5 .5 .1 .1\n{line}\n")
    with pytest.raises(hr.DataError, match=r"HR1403.*line 2 of .*labels/val/a\.txt"):
        hr.coco_from_yolo(yolo / "images/val", yolo / "labels/val", "val.json")


def test_a_class_without_a_name_is_an_error(yolo: Path) -> None:
    with pytest.raises(hr.DataError, match=r"HR1403.*class 1 of a\.jpg has no name: names= has 1"):
        hr.coco_from_yolo(yolo / "images/val", yolo / "labels/val", "val.json", names=["cat"])


def test_fractions_refer_to_the_upright_image(yolo: Path) -> None:
    image(yolo / "images/val/a.jpg", orientation=6)
    text(yolo / "labels/val/a.txt", "0 0.5 0.5 0.5 0.5")
    images = yolo / "images/val"
    file = hr.coco_from_yolo(images, yolo / "labels/val", "val.json", names=["cat"])
    loader = hr.Loader(
        hr.coco(file, images=images), batch_size=1, ragged="list", exif_orientation=True
    )
    assert np.asarray(next(iter(loader)).boxes[0]).tolist() == [[5, 10, 15, 30]]
    with pytest.raises(hr.DataError, match="HR0140"):
        next(iter(hr.Loader(hr.coco(file, images=images), batch_size=1, ragged="list")))


OBJECT = (
    "<object><name>{}</name><difficult>{}</difficult><bndbox><xmin>{}</xmin><ymin>{}</ymin>"
    "<xmax>{}</xmax><ymax>{}</ymax></bndbox></object>"
)


@pytest.fixture
def voc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "VOCdevkit" / "VOC2012"
    objects = {
        "one": [("dog", 0, 16, 6, 25, 15), ("cat", 1, 1, 1, 40, 20)],
        "two": [("cat", 0, 3, 4, 5, 6)],
        "three": [],
    }
    for name, each in objects.items():
        image(root / "JPEGImages" / f"{name}.jpg")
        found = "".join(OBJECT.format(*values) for values in each)
        content = f"<annotation><filename>{name}.jpg</filename>{found}</annotation>"
        text(root / "Annotations" / f"{name}.xml", content)
    text(root / "ImageSets/Main/train.txt", "two\none\n")
    text(root / "ImageSets/Main/cat_train.txt", "two  1\none -1\n")
    (root / "SegmentationClass").mkdir()
    return root


def test_voc_boxes_equal_those_of_torchvisions_annotations(voc: Path) -> None:
    datasets = pytest.importorskip("torchvision.datasets")
    theirs = datasets.VOCDetection(str(voc.parent.parent), year="2012", image_set="train")
    with pytest.raises(hr.ConfigError) as caught:
        hr.open(voc)
    source = call_in(caught)
    assert len(source) == len(theirs) and source.classes == ["cat", "dog"]
    for record, (_, target) in zip(source, theirs, strict=True):
        objects = target["annotation"]["object"]
        assert [source.classes[label] for label in record["labels"]] == [o["name"] for o in objects]
        corners = [
            [int(o["bndbox"][side]) for side in ("xmin", "ymin", "xmax", "ymax")] for o in objects
        ]
        # Pixels count from 1 in VOC, and the last pixel is inside.
        np.testing.assert_array_equal(record["boxes"], np.array(corners) - [1, 1, 0, 0])
        assert record["crowd"].tolist() == [int(o["difficult"]) for o in objects]


def test_voc_images_are_all_or_those_of_a_list(voc: Path) -> None:
    images, annotations = voc / "JPEGImages", voc / "Annotations"
    for ids, count in ((None, 3), (["three"], 1), (voc / "ImageSets/Main/cat_train.txt", 2)):
        file = hr.coco_from_voc(images, annotations, "voc.json", ids=ids)
        assert len(hr.coco(file, images=images)) == count
    file = hr.coco_from_voc(images, annotations, "voc.json", ids=["two"], first_pixel=0)
    assert hr.coco(file, images=images)[0]["boxes"].tolist() == [[3, 4, 5, 6]]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("<annotation><object></annotation>", "mismatched tag"),
        (
            "<annotation><object><name>a</name></object></annotation>",
            "object 1 of .*one.xml has no name, or",
        ),
    ],
)
def test_an_unreadable_voc_annotation_is_an_error(voc: Path, content: str, said: str) -> None:
    (voc / "Annotations/one.xml").write_text(content)
    with pytest.raises(hr.DataError, match=f"HR1403.*{said}"):
        hr.coco_from_voc(voc / "JPEGImages", voc / "Annotations", "voc.json")
    (voc / "JPEGImages/two.jpg").unlink()
    with pytest.raises(hr.DataError, match=r"HR1403.*neither two\.jpg nor two\.jpg"):
        hr.coco_from_voc(voc / "JPEGImages", voc / "Annotations", "voc.json", ids=["two"])
