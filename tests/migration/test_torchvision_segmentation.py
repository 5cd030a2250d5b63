# SPDX-License-Identifier: Apache-2.0
"""torchvision's reference script for segmentation, as it is: the same batches, with v2 native."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import made_data
import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision.transforms.v2")
import torchvision_segmentation as script  # noqa: E402
from comparison import (  # noqa: E402
    assert_equal,
    assert_equal_batches,
    in_order,
    migrated,
    native,
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_data.voc(tmp_path_factory.mktemp("voc"))


# Of sizes from 64 to below 65 one is drawn, and padded to the crop.
PINNED: dict[str, Any] = {
    "scale": (1.0, 1.02),
    "hflip_prob": 1.0,
    "base_size": 64,
    "crop_size": 140,
}


@pytest.mark.parametrize("backend", ["pil", "tv_tensor"])
def test_the_script_for_v2_is_native(root: Path, backend: str) -> None:
    for dataloader in script.loaders(root, use_v2=True, backend=backend)[:2]:
        image, target = next(iter(native(dataloader).torch()))
        assert image.dtype == torch.float32 and target.dtype == torch.int64
        assert image.shape[-2:] == target.shape[-2:]


def test_masks_of_v2_are_resized_as_pillow_does_it(root: Path) -> None:
    """Images are equal; torchvision resizes tv_tensors.Mask up to half a pixel beside."""
    validation = script.loaders(root, use_v2=True)[1]
    masks = validation.dataset.masks
    for (image, target), (theirs, _), path in zip(
        migrated(validation).torch(), validation, masks, strict=True
    ):
        assert_equal(image, theirs)
        with Image.open(path) as mask:
            assert np.array_equal(target[0, 0], np.asarray(mask.resize((64, 64), 0)))


def test_batches_of_v2_are_padded_as_the_script_does_it(root: Path) -> None:
    train = script.loaders(root, use_v2=True, train=PINNED)[0]
    ordered = in_order(train, batch_size=3)
    loader = native(ordered)
    for (image, target), (theirs, mask) in zip(loader.torch(), ordered, strict=True):
        assert_equal(image, theirs)
        assert ((target == 255) == (mask == 255)).float().mean() > 0.97  # the line of the outlines
        assert target.dtype == mask.dtype and target.shape == mask.shape


def test_the_scripts_own_transforms_for_v1_run_in_python(root: Path) -> None:
    train, validation, _ = script.loaders(root, train={"scale": (1.0, 1.0), "hflip_prob": 1.0})
    ordered = in_order(train, batch_size=3)
    ordered.dataset.transforms.transforms.transforms[2:3] = []  # RandomCrop
    loader = migrated(ordered)
    assert_equal_batches(loader, ordered)
    assert_equal_batches(migrated(validation), validation)
    report = str(loader.report)
    assert "decoded, resized and cropped by the engine (data into the batch)" in report
    assert "collate_fn=collate_fn: padded to the largest of the batch" in report


@pytest.mark.parametrize("use_v2", [False, True], ids=["v1", "v2"])
def test_the_loop_runs_on_the_view(root: Path, use_v2: bool) -> None:
    train, validation, _ = script.loaders(root, use_v2=use_v2)
    model = torch.nn.Conv2d(3, 21, 3, padding=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    view = migrated(train).torch()
    if not use_v2:  # v2's masks are (B, 1, H, W), which cross_entropy does not take
        assert script.train_one_epoch(model, optimizer, view) > 0
    assert script.evaluate(migrated(validation).torch()) == 12
