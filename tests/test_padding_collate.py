# SPDX-License-Identifier: Apache-2.0
"""torchvision's collate function for segmentation becomes padding by the engine; a function that
differs from it in any way runs unchanged."""

# ruff: noqa: B905

from __future__ import annotations

from typing import Any

import pytest
from migrated_classes import translated

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader  # noqa: E402


def cat_list(images, fill_value=0):  # type: ignore[no-untyped-def]
    max_size = tuple(max(s) for s in zip(*[img.shape for img in images]))
    batch_shape = (len(images),) + max_size  # noqa: RUF005
    batched_imgs = images[0].new(*batch_shape).fill_(fill_value)
    for img, pad_img in zip(images, batched_imgs):
        pad_img[..., : img.shape[-2], : img.shape[-1]].copy_(img)
    return batched_imgs


def collate_fn(batch):  # type: ignore[no-untyped-def]
    images, targets = list(zip(*batch))
    batched_imgs = cat_list(images, fill_value=0)
    batched_targets = cat_list(targets, fill_value=255)
    return batched_imgs, batched_targets


def other_fill(batch):  # type: ignore[no-untyped-def]
    images, targets = list(zip(*batch))
    batched_imgs = cat_list(images, fill_value=1)
    batched_targets = cat_list(targets, fill_value=255)
    return batched_imgs, batched_targets


class Pairs:
    """Images and masks of differing sizes."""

    def __init__(self, dtype: Any = torch.int64) -> None:
        self.dtype = dtype

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> Any:
        height, width = 3 + index % 4, 9 - index
        image = torch.arange(3.0 * height * max(width, 1)).reshape(3, height, max(width, 1))
        return image + index, (image[0] + index).to(self.dtype)


@pytest.mark.parametrize("function", [collate_fn, other_fill])
@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8])
def test_batches_are_padded_like_the_functions(function: Any, dtype: Any) -> None:
    dataloader = DataLoader(Pairs(dtype), batch_size=5, collate_fn=function)
    loader = translated(dataloader)
    assert ("padded to the largest" in str(loader.report)) == (function is collate_fn)
    for ours, theirs in zip(loader.torch(), dataloader, strict=True):
        assert type(ours) is type(theirs) and len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert one.dtype == other.dtype and torch.equal(one, other)


def test_requested_lists_stay_lists() -> None:
    dataloader = DataLoader(Pairs(), batch_size=5, collate_fn=collate_fn)
    assert "padded to the largest" not in str(translated(dataloader, ragged="list").report)
