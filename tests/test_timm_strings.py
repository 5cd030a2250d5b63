# SPDX-License-Identifier: Apache-2.0
"""timm's strings are parsed completely, or rejected with the offending part, and its
create_transform is native."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace import transforms as T

try:
    timm: Any = importlib.import_module("timm.data.auto_augment")
except ImportError:
    timm = None


needs_timm = pytest.mark.skipif(timm is None, reason="needs timm")

FILL = (124, 116, 104)


def rand(text: str, transforms: Any = None, **hparams: Any) -> Any:
    return timm.rand_augment_transform(text, {"img_mean": FILL, **hparams}, transforms)


def test_masks_and_boxes_follow_geometric_operations() -> None:
    count = 400
    mask = np.zeros((1, 20, 30), np.uint8)
    mask[0, 5:15, 10:20] = 1
    box = np.float32([[10, 5, 20, 15]])
    data = hr.records(
        image=np.repeat(np.repeat(mask[None], count, 0), 3, 1) * 200,
        mask=np.repeat(mask[None], count, 0),
        boxes=np.repeat(box[None], count, 0),
        kinds={"mask": "mask", "boxes": "boxes:xyxy"},
    )
    moved = 0
    for batch in hr.Loader(data, [T.TimmAugment("rand-m9-n1-p1-inc1", fill=0)], batch_size=100):
        for ours, boxes in zip(np.array(batch.mask), np.array(batch.boxes), strict=True):
            rows, columns = np.nonzero(ours[0])
            there = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
            np.testing.assert_allclose(boxes[0], there, atol=1.1)
            moved += not np.array_equal(ours, mask)
    assert 0.2 * count < moved < 0.45 * count  # five of fifteen move


@pytest.mark.parametrize(("text", "words"), [
    ("rand-m9-w0", '"w0" is no longer supported'),
    ("rand-x3", '"x3" is not an option of this policy'),
    ("rand-mstd.5", '"mstd.5" is not an option of this policy'),
    ("rand-m9.5", '"m9.5" has no whole number'),
    ("rand-m9-m5", 'repeats "m"'),
    ("rand-inc", '"inc" lacks its number'),
    ("rand-p1.5", '"p1.5" is out of range'),
    ("rand-mstd1e999", '"mstd1e999" has no number'),
    ("rand-tfoo", '"tfoo" is not a set'),
    ("rand-n16-tweights", '"n16" requests more operations than exist'),
    ("rand--m9", '"" is not an option of this policy'),
    ("original-m9", '"m9" is not an option of this policy'),
    ("orginal", '"orginal" is not a timm policy'),
    ("", '"" is not a timm policy'),
    ("augmix-n2", '"n2" is not an option of this policy'),
    ("augmix-a0", '"a0" is out of range'),
])  # fmt: skip
def test_a_misspelled_part_of_a_string_is_named_before_anything_runs(text: str, words: str) -> None:
    data = hr.records(image=np.zeros((4, 3, 8, 8), np.uint8))
    with pytest.raises(hr.Error, match="HR0510") as caught:
        hr.Loader(data, [T.TimmAugment(text)], batch_size=2)
    assert words in str(caught.value) and "help: " in str(caught.value)


def test_a_mixture_with_fields_that_it_cannot_move_is_refused() -> None:
    image = np.zeros((4, 3, 8, 8), np.uint8)
    data = hr.records(image=image, mask=image[:, :1], kinds={"mask": "mask"})
    with pytest.raises(hr.Error, match="would not match all of them"):
        hr.Loader(data, [T.TimmAugment("augmix")], batch_size=2)
    hr.Loader(data, [T.TimmAugment("rand")], batch_size=2)
    boxes = hr.records(
        image=image, boxes=np.zeros((4, 1, 4), np.float32), kinds={"boxes": "boxes:xyxy"}
    )
    with pytest.raises(hr.Error, match="HR0186"):
        hr.Loader(boxes, [T.TimmAugment("augmix")], batch_size=2)


@needs_timm
@pytest.mark.parametrize("text", [
    "rand-m9-mstd0.5-inc1", "rand-m7-n3-p0.3-mmax12", "rand-mstd101-tweights", "rand-t3a-m5",
    "rand-t3aw-n3", "augmix-m5-w4-d2", "augmix-b1-a0.5-mstd0.25", "original-mstd0.5", "originalr",
    "v0", "v0r", "3a", None,
])  # fmt: skip
@pytest.mark.parametrize("interpolation", ["random", "bicubic"])
def test_create_transform_has_no_step_in_python(
    pictures: Path, text: str | None, interpolation: str
) -> None:
    torch = pytest.importorskip("torch")
    from torchvision.datasets import ImageFolder

    data = importlib.import_module("timm.data")
    transform = data.create_transform(
        24, is_training=True, auto_augment=text, interpolation=interpolation, vflip=0.1
    )
    dataset = ImageFolder(str(pictures), transform)
    dataloader = torch.utils.data.DataLoader(dataset, batch_size=4)
    with hr.from_dataloader(dataloader, verbose=False) as loader:
        assert not loader.report.python, loader.report
        assert next(iter(loader)).image.shape == (4, 3, 24, 24)
        steps = str(loader.plan())
    if text is None:
        return
    found = re.search(r'TimmAugment\(policy="([^"]*)"(.*)', steps)
    assert found, steps
    assert "fill=(124, 116, 104)" in found[2] or "fill=[124, 116, 104]" in found[2], steps
    assert f'interpolation="{interpolation}"' in found[2]
    assert ("translate_pct=0.3" in found[2]) == (text[:4] == "augm")
    make = {"rand": timm.rand_augment_transform, "augm": timm.augment_and_mix_transform}
    again, theirs = (
        make.get(text[:4], timm.auto_augment_transform)(each, {"img_mean": FILL})
        for each in (found[1], text)
    )
    assert repr(again) == repr(theirs).replace("m=10.0", "m=10")


@needs_timm
def test_a_policy_that_was_changed_stays_a_step_in_python(pictures: Path) -> None:
    torch = pytest.importorskip("torch")
    from torchvision import transforms as v1
    from torchvision.datasets import ImageFolder

    def changed() -> Iterator[Any]:
        yield rand("rand-m9", transforms=["Invert", "Rotate"])
        policy = rand("rand-m9")
        policy.ops[3].magnitude = 4
        yield policy
        policy = rand("rand-m9")
        policy.ops[2].aug_fn = lambda image, **_: image
        yield policy
        policy = rand("rand-m9")
        policy.ops[1].kwargs["fillcolor"] = (1, 2, 3)
        yield policy
        policy = timm.auto_augment_transform("v0")
        policy.policy[4][1].prob = 0.61
        yield policy

    for policy in changed():
        steps = v1.Compose([v1.Resize((24, 24)), policy, v1.PILToTensor()])
        dataset = ImageFolder(str(pictures), steps)
        dataloader = torch.utils.data.DataLoader(dataset, batch_size=4)
        with hr.from_dataloader(dataloader, verbose=False) as loader:
            assert len(loader.report.python) == 1, loader.report
