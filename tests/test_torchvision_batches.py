# SPDX-License-Identifier: Apache-2.0
"""Batches have the form that torchvision's reference scripts pass to its models: images and targets
of detection, images and class ids of segmentation, padded as in the reference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

import headrace as hr
from headrace import transforms as T

PEOPLE = [[2, 3, 10, 8], [0, 0, 4, 5]]  # xywh


@pytest.fixture
def annotations(tmp_path: Path) -> Path:
    """Three images: two people and a dog, nothing, a dog. Categories 1 and 18, as COCO's."""
    images, rows = [], []
    for number, (width, height) in enumerate([(30, 20), (20, 30), (25, 25)]):
        name = f"{number}.png"
        Image.new("RGB", (width, height)).save(tmp_path / name)
        images.append({"id": 10 + number, "file_name": name, "width": width, "height": height})
    for image, category, box in [(10, 1, PEOPLE[0]), (10, 1, PEOPLE[1]), (10, 18, PEOPLE[0])]:
        rows.append({"image_id": image, "category_id": category, "bbox": box, "iscrowd": 0})
    rows.append({"image_id": 12, "category_id": 18, "bbox": PEOPLE[0], "iscrowd": 1, "area": 7.5})
    for number, row in enumerate(rows):
        row["id"] = number
    categories = [{"id": 1, "name": "person"}, {"id": 18, "name": "dog"}]
    path = tmp_path / "instances.json"
    path.write_text(json.dumps({"images": images, "annotations": rows, "categories": categories}))
    return path


def loaded(path: Path, ragged: str, category_ids: str = "keep") -> Any:
    source = hr.coco(str(path), category_ids=category_ids)
    return hr.Loader(source, [T.Resize((16, 16))], batch_size=3, ragged=ragged)


@pytest.mark.parametrize("ragged", ["list", "pad", "packed"])
def test_targets_equal_those_of_torchvisions_detectors(annotations: Path, ragged: str) -> None:
    (batch,) = loaded(annotations, ragged)
    images, targets = batch.detection()
    assert [image.shape for image in images] == [(3, 16, 16)] * 3
    assert [target["image_id"] for target in targets] == [10, 11, 12]
    assert all(type(target["image_id"]) is int for target in targets)
    assert set(targets[0]) == {"boxes", "labels", "iscrowd", "area", "image_id"}
    assert [target["labels"].tolist() for target in targets] == [[1, 1, 18], [], [18]]
    assert [target["boxes"].shape for target in targets] == [(3, 4), (0, 4), (1, 4)]
    assert targets[0]["boxes"].dtype == np.float32
    assert targets[0]["labels"].dtype == np.int64
    x0, y0, x1, y1 = targets[0]["boxes"][0]
    assert x0 < x1 and y0 < y1
    assert targets[2]["area"].tolist() == [7.5]
    assert targets[2]["iscrowd"].tolist() == [1]


def test_label_0_is_refused_because_it_is_the_background(annotations: Path) -> None:
    (batch,) = loaded(annotations, "list", category_ids="remap")
    with pytest.raises(hr.ConfigError, match=r'(?s)HR0744.*label is 0.*category_ids="keep"'):
        batch.detection()


def test_boxes_of_another_format_are_refused(annotations: Path) -> None:
    source = hr.coco(str(annotations), category_ids="keep", boxes="xywh")
    (batch,) = hr.Loader(source, [T.Resize((16, 16))], batch_size=3, ragged="list")
    with pytest.raises(hr.ConfigError, match=r"HR0744.*'boxes' are xywh"):
        batch.detection()


def test_class_names_are_indexed_by_the_original_ids(annotations: Path) -> None:
    kept = hr.coco(str(annotations), category_ids="keep")
    assert len(kept.classes) == 19
    assert (kept.classes[0], kept.classes[1], kept.classes[18]) == (
        "__background__",
        "person",
        "dog",
    )
    assert kept.classes[7] == "N/A"
    assert hr.coco(str(annotations)).classes == ["person", "dog"]


def test_torchvisions_detectors_learn_from_such_targets(annotations: Path) -> None:
    torch = pytest.importorskip("torch")
    (batch,) = loaded(annotations, "packed").torch()
    images, targets = batch.detection()
    assert all(isinstance(image, torch.Tensor) for image in images)
    assert targets[0]["labels"].dtype == torch.int64
    assert targets[1]["boxes"].shape == (0, 4)


def masked(sizes: list[tuple[int, int]]) -> Any:
    rng = np.random.default_rng(4)
    records = [
        {
            "image": rng.integers(1, 256, (3, *size), np.uint8),
            "mask": rng.integers(0, 21, (1, *size), np.uint8),
        }
        for size in sizes
    ]
    return hr.open(records, kinds={"mask": "mask"})


def test_masks_are_class_ids_without_an_axis_of_channels() -> None:
    source = masked([(20, 30)] * 4)
    for view in (hr.Loader(source, batch_size=4), hr.Loader(source, batch_size=4).numpy()):
        (batch,) = view
        images, masks = batch.segmentation()
        assert np.shape(images) == (4, 3, 20, 30)
        assert (masks.shape, str(masks.dtype)) == ((4, 20, 30), "int64")
        assert np.array_equal(np.asarray(masks), np.asarray(batch.mask)[:, 0])


def test_torch_masks_fit_cross_entropy() -> None:
    torch = pytest.importorskip("torch")
    (batch,) = hr.Loader(masked([(20, 30)] * 4), [T.ToDtype("float32")], batch_size=4).torch()
    masks = batch.segmentation()[1]
    assert masks.dtype == torch.int64
    scores = torch.zeros(4, 21, 20, 30)
    torch.nn.functional.cross_entropy(scores, masks, ignore_index=255)


def test_masks_that_are_not_one_tensor_are_refused() -> None:
    (batch,) = hr.Loader(masked([(20, 30), (8, 9)]), batch_size=2, ragged="list")
    with pytest.raises(hr.ConfigError, match=r"HR0744 .*'mask' is a list"):
        batch.segmentation()
    with pytest.raises(hr.ConfigError, match=r"HR0744 .*no field 'seg'"):
        batch.segmentation(mask="seg")


@pytest.mark.parametrize("size", [(20, 30), (50, 30), (20, 70), (50, 70)])
def test_images_smaller_than_the_crop_are_padded_on_the_right_and_bottom(
    size: tuple[int, int],
) -> None:
    """Like PadIfSmaller of torchvision's reference for segmentation: black, and 255 in masks."""
    source = masked([size])
    (batch,) = hr.Loader(source, [T.PadIfSmaller(40, mask_fill=255)], batch_size=1)
    border = (0, 0, max(0, 40 - size[1]), max(0, 40 - size[0]))
    for name, fill in (("image", 0), ("mask", 255)):
        for got, plane in zip(np.asarray(batch[name])[0], source[0][name], strict=True):
            assert np.array_equal(got, ImageOps.expand(Image.fromarray(plane), border, fill))


def test_the_segmentation_preset_keeps_small_images_in_the_corner() -> None:
    """If nothing is cropped at the top left, the image's first row and column are the crop's."""
    source = masked([(10, 12)] * 8)
    steps = hr.presets.segmentation_train(96, base=40, dtype="uint8")
    for batch in hr.Loader(source, steps, batch_size=8):
        images, masks = batch.segmentation()
        ignored = np.asarray(masks) == 255
        assert not ignored[:, 0, 0].any()
        assert ignored[:, -1, -1].all()
        assert (np.asarray(images).max(axis=1)[ignored] == 0).all()
