# SPDX-License-Identifier: Apache-2.0
"""torchvision's reference script for segmentation, unmodified: its loaders become native and give
the same batches."""

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


# One size from 64 to below 65 is drawn, and padded to the crop.
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


def test_masks_of_v2_are_resized_as_by_pillow(root: Path) -> None:
    """Images are equal; torchvision resizes tv_tensors.Mask with an offset of up to half a
    pixel."""
    validation = script.loaders(root, use_v2=True)[1]
    masks = validation.dataset.masks
    for (image, target), (theirs, _), path in zip(
        migrated(validation).torch(), validation, masks, strict=True
    ):
        assert_equal(image, theirs)
        with Image.open(path) as mask:
            assert np.array_equal(target[0, 0], np.asarray(mask.resize((64, 64), 0)))


def test_batches_of_v2_are_padded_as_by_the_script(root: Path) -> None:
    train = script.loaders(root, use_v2=True, train=PINNED)[0]
    ordered = in_order(train, batch_size=3)
    loader = native(ordered)
    for (image, target), (theirs, mask) in zip(loader.torch(), ordered, strict=True):
        assert_equal(image, theirs)
        # the border line of objects
        assert ((target == 255) == (mask == 255)).float().mean() > 0.97
        assert target.dtype == mask.dtype and target.shape == mask.shape


@pytest.mark.parametrize("pinned", [True, False], ids=["padded", "cropped"])
def test_the_scripts_own_transforms_for_v1_are_native(root: Path, pinned: bool) -> None:
    """The script's own classes that do what their names say, to images and masks alike."""
    options = PINNED if pinned else {"scale": (1.0, 1.0), "hflip_prob": 1.0, "crop_size": 60}
    train, validation, _ = script.loaders(root, train=options)
    joint = train.dataset.transforms.transforms.transforms
    if pinned:
        joint[0].max_size = joint[0].min_size
    else:  # the window is drawn at random; pictures are padded to the largest one in the batch
        # instead
        joint[2:3] = []
    ordered = in_order(train, batch_size=3)
    loader = native(ordered)
    assert_equal_batches(loader, ordered)
    assert_equal_batches(native(validation), validation)
    report = str(loader.report)
    assert "native       RandomResize\n" in report and "mask equal" in report
    assert "collate_fn=collate_fn: padded to the largest of the batch" in report


class FlipBoth(script.RandomHorizontalFlip):
    """Has a common name, but does more."""

    def __call__(self, image: Any, target: Any) -> Any:
        image, target = super().__call__(image, target)
        return image.transpose(Image.Transpose.FLIP_TOP_BOTTOM), target


class Counted(script.RandomHorizontalFlip):
    """Keeps a state."""

    calls = 0

    def __call__(self, image: Any, target: Any) -> Any:
        self.calls += 1
        return super().__call__(image, target)


@pytest.mark.parametrize("kind", [FlipBoth, Counted])
def test_a_transform_that_does_more_than_its_name_says_runs_in_python(
    root: Path, kind: type
) -> None:
    named = type("RandomHorizontalFlip", (kind,), {})
    train = script.loaders(root, train=PINNED)[0]
    train.dataset.transforms.transforms.transforms[1] = named(1.0)
    loader = migrated(in_order(train, batch_size=3))
    assert [part.name for part in loader.report.python] == ["VOCSegmentation (24 records)"]
    if kind is FlipBoth:
        assert "decoded, resized and cropped by the engine" in str(loader.report)


def test_comparing_a_scripts_transform_calls_only_a_copy() -> None:
    from headrace.migrate.translations.image_and_mask import Pair, pair
    from headrace.migrate.translations.registry import Form, NoOperator

    counted = type("RandomHorizontalFlip", (Counted,), {})(1.0)
    probe = {"image": Image.new("RGB", (40, 30)), "mask": Image.new("L", (40, 30))}
    with pytest.raises(NoOperator, match="behaves differently from the published one"):
        pair(Pair(counted), Form("pil", "uint8", False, [probe]))
    assert counted.calls == 0


@pytest.mark.parametrize("use_v2", [False, True], ids=["v1", "v2"])
def test_the_loop_runs_on_the_view(root: Path, use_v2: bool) -> None:
    train, validation, _ = script.loaders(root, use_v2=use_v2)
    model = torch.nn.Conv2d(3, 21, 3, padding=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    view = migrated(train).torch()
    if not use_v2:  # v2's masks are (B, 1, H, W), which cross_entropy rejects
        assert script.train_one_epoch(model, optimizer, view) > 0
    assert script.evaluate(migrated(validation).torch()) == 12
