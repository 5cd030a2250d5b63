# SPDX-License-Identifier: Apache-2.0
"""hr.from_dataloader() over images and class masks, as in torchvision's reference script for
segmentation, and its preset with the transforms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from migrated_classes import translated
from picture_kinds import waves
from PIL import Image

import headrace as hr
from headrace import transforms as T

torch = pytest.importorskip("torch")
tv = pytest.importorskip("torchvision")
pytest.importorskip("torchvision.transforms.v2")  # so that tv has it
from torch.utils.data import DataLoader  # noqa: E402

v2, tv_tensors = tv.transforms.v2, tv.tv_tensors
SIZES = ((50, 40), (38, 61), (70, 44))


class PadIfSmaller(v2.Transform):
    """On the right and at the bottom, as in the script."""

    def __init__(self, size: int, fill: Any = 0) -> None:
        super().__init__()
        self.size = size
        self.fill = fill

    def _missing(self, inpt: Any) -> list[int]:
        height, width = v2.functional.get_size(inpt)
        return [0, 0, max(self.size - width, 0), max(self.size - height, 0)]

    def transform(self, inpt: Any, params: Any) -> Any:
        kind = tv_tensors.Mask if isinstance(inpt, tv_tensors.Mask) else "others"
        fill = self.fill[kind] if isinstance(self.fill, dict) else self.fill
        return v2.functional.pad(inpt, self._missing(inpt), fill=fill)


class OnTheLeft(PadIfSmaller):
    def _missing(self, inpt: Any) -> list[int]:
        return [*reversed(super()._missing(inpt)[2:]), 0, 0]


def pictures_and_masks(root: Path) -> Path:
    """VOCdevkit/VOC2012 with nine images."""
    base = root / "VOCdevkit" / "VOC2012"
    for folder in ("JPEGImages", "SegmentationClass", "ImageSets/Segmentation"):
        (base / folder).mkdir(parents=True)
    for number in range(9):
        size = SIZES[number % 3]
        waves("RGB", *size).save(base / "JPEGImages" / f"{number}.jpg")
        classes = np.random.default_rng(number).integers(0, 22, (size[1], size[0]), np.uint8)
        mask = Image.fromarray(np.where(classes == 21, 255, classes).astype(np.uint8), "P")
        mask.putpalette([7 * index % 256 for index in range(768)])
        mask.save(base / "SegmentationClass" / f"{number}.png")
    lines = "".join(f"{number}\n" for number in range(9))
    (base / "ImageSets" / "Segmentation" / "train.txt").write_text(lines)
    return root


def wrapped(root: Path, transforms: list[Any]) -> Any:
    plain = tv.datasets.VOCSegmentation(
        root, year="2012", image_set="train", transforms=v2.Compose(transforms)
    )
    return tv.datasets.wrap_dataset_for_transforms_v2(plain)


TO_FLOATS = [
    v2.PILToTensor(),
    v2.ToDtype({torch.Tensor: torch.float32, tv_tensors.Mask: torch.int64, "others": None}, True),
    v2.Normalize((0.5,) * 3, (0.25,) * 3),
    v2.ToPureTensor(),
]


def test_images_and_masks_are_native_and_equal(tmp_path: Path) -> None:
    padded = PadIfSmaller(64, fill={tv_tensors.Mask: 255, "others": 0})
    root = pictures_and_masks(tmp_path)
    dataset = wrapped(root, [v2.RandomHorizontalFlip(1.0), padded, v2.CenterCrop(64), *TO_FLOATS])
    dataloader = DataLoader(dataset, batch_size=3)
    loader = translated(dataloader)
    assert not loader.report.python
    for ours, theirs in zip(loader.torch(), dataloader, strict=True):
        assert torch.equal(ours[0], theirs[0])
        assert torch.equal(ours[1], theirs[1]) and ours[1].dtype == torch.int64
    assert next(iter(loader))[1].dtype == np.int64
    resized = wrapped(root, [v2.Resize((48, 32)), *TO_FLOATS])
    loader = translated(DataLoader(resized, batch_size=3))
    mask = next(iter(loader.torch()))[1]
    for ours, path in zip(mask, resized.masks, strict=False):
        with Image.open(path) as picture:
            assert np.array_equal(ours[0], np.asarray(picture.resize((32, 48), 0)))


@pytest.mark.parametrize("fill", [0, 9], ids=["black", "gray"])
def test_a_class_of_the_same_name_must_behave_the_same(tmp_path: Path, fill: int) -> None:
    root = pictures_and_masks(tmp_path)
    steps = [v2.CenterCrop(64), *TO_FLOATS]
    loader = translated(DataLoader(wrapped(root, [PadIfSmaller(64, fill), *steps]), batch_size=3))
    assert not loader.report.python
    OnTheLeft.__name__ = "PadIfSmaller"
    loader = translated(DataLoader(wrapped(root, [OnTheLeft(64, fill), *steps]), batch_size=3))
    assert loader.report.python


def test_the_preset_for_segmentation_pads_as_the_reference_does(tmp_path: Path) -> None:
    """On the right and at the bottom: a crop of a smaller image begins at its corner."""
    path = tmp_path / "small.png"
    waves("RGB", 40, 30).save(path)
    classes = np.full((30, 40), 5, np.uint8)
    Image.fromarray(classes).save(tmp_path / "mask.png")
    source = hr.records(image=[str(path)], mask=[str(tmp_path / "mask.png")])
    steps = hr.presets.segmentation_train(64, base=30, dtype="uint8")
    steps[:2] = []  # the random size, and the flip
    image, mask = next(iter(hr.Loader(source, steps, batch_size=1)))[:2]
    with Image.open(path) as picture:
        assert np.array_equal(image[0][:, :30, :40], np.asarray(picture).transpose(2, 0, 1))
    assert not image[0][:, 30:].any() and not image[0][:, :, 40:].any()
    assert (mask[0][0, :30, :40] == 5).all() and (mask[0] == 255).sum() == 64 * 64 - 30 * 40


def test_boxes_keep_their_coordinates_when_an_image_is_padded() -> None:
    pixels = np.zeros((3, 20, 30), np.uint8)
    source = hr.records(
        image=pixels[None], boxes=np.float32([[[1, 2, 11, 12]]]), kinds={"boxes": "boxes:xyxy"}
    )
    batch = next(iter(hr.Loader(source, [T.PadIfSmaller((40, 25))], batch_size=1)))
    assert batch.image.shape == (1, 3, 40, 30)
    assert np.array_equal(batch.boxes[0], [[1, 2, 11, 12]])
