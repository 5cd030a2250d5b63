# SPDX-License-Identifier: Apache-2.0
"""torchvision's reference script for detection, unmodified: its loaders become native and give the
same batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import made_data
import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision.transforms.v2")
pytest.importorskip("pycocotools")
import torchvision_detection as script  # noqa: E402
from comparison import assert_equal, assert_equal_batches, in_order, migrated, native  # noqa: E402

POLICIES = ("hflip", "lsj", "multiscale", "ssd", "ssdlite")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_data.coco(tmp_path_factory.mktemp("coco"))


def whole_targets(batches: Any) -> list[Any]:
    """Batches whose targets have boxes, labels and masks even for images without objects."""
    out = []
    for images, targets in batches:
        size = images[0].shape[-2:]
        empty = {
            "boxes": torch.zeros(0, 4),
            "labels": torch.zeros(0, dtype=torch.int64),
            "masks": torch.zeros(0, *size, dtype=torch.uint8),
        }
        out.append((images, tuple({**empty, **target} for target in targets)))
    return out


@pytest.mark.parametrize("masks", [False, True], ids=["boxes", "masks"])
@pytest.mark.parametrize("policy", POLICIES)
def test_policies_are_native(root: Path, policy: str, masks: bool) -> None:
    loader = native(script.loaders(root, policy, with_masks=masks)[0])
    seen = 0
    for images, targets in loader.torch():
        for image, target in zip(images, targets, strict=True):
            assert image.dtype == torch.float32 and image.ndim == 3
            assert target["boxes"].shape == (len(target["labels"]), 4)
            assert set(target["labels"].tolist()) <= {1, 3, 18}, "COCO's own categories"
            if masks:
                assert target["masks"].shape == (len(target["labels"]), *image.shape[-2:])
            seen += len(target["boxes"])
    assert seen > 30


@pytest.mark.parametrize("backend", ["pil", "tv_tensor"])
def test_batches_are_equal_without_random_steps(root: Path, backend: str) -> None:
    options = {"backend": backend, "with_masks": True, "hflip_prob": 1.0}
    train, validation, _ = script.loaders(root, "hflip", **options)
    ordered = in_order(train, batch_size=3)
    assert_equal_batches(native(ordered), ordered)
    ours = list(native(validation).torch())
    assert_equal(whole_targets(ours), whole_targets(validation))


def test_batches_have_images_of_similar_shape_and_a_new_order_each_epoch(root: Path) -> None:
    dataloader = script.loaders(root, "hflip")[0]
    view = native(dataloader).torch()
    orders = []
    for _ in range(3):
        batches = [[int(target["image_id"]) for target in targets] for _, targets in view]
        assert len(batches) == len(dataloader) == len(view)
        for batch in batches:
            ratios = [_ratio(root, number) for number in batch]
            assert len({np.searchsorted(BINS, ratio, side="right") for ratio in ratios}) == 1
        orders.append(batches)
    assert orders[0] != orders[1] != orders[2]


BINS = 2 ** np.linspace(-1, 1, 7)


def _ratio(root: Path, image_id: int) -> float:
    with Image.open(root / "train2017" / f"{image_id - 1:012}.jpg") as image:
        return image.height / image.width


def test_the_loop_and_the_evaluation_run_on_the_view(root: Path) -> None:
    train, validation, _ = script.loaders(root, "multiscale", with_masks=True)
    view, evaluated = native(train).torch(), native(validation).torch()
    model = script.SmallDetector()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    assert script.train_one_epoch(model, optimizer, view) > 40
    assert script.evaluate(evaluated) == made_data.COUNT // 2


def test_the_scripts_own_transforms_for_v1_run_in_python(root: Path) -> None:
    """They are the script's own code and have no native form; batches are the same."""
    train, validation, _ = script.loaders(root, use_v2=False, hflip_prob=1.0)
    ordered = in_order(train, batch_size=3)
    assert_equal_batches(migrated(ordered), ordered)
    assert_equal_batches(migrated(validation), validation)
    model = script.SmallDetector()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    assert script.train_one_epoch(model, optimizer, migrated(train).torch()) > 40
