# SPDX-License-Identifier: Apache-2.0
"""Nested records: batches of hr.from_dataloader() nest like those of torch's DataLoader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from migrated_classes import translated

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader  # noqa: E402


def view(seed: int) -> Any:
    return torch.from_numpy(np.random.default_rng(seed).random((3, 4, 5), np.float32))


def assert_alike(ours: Any, theirs: Any) -> None:
    """Lists and dictionaries of the same length and keys, tensors equal in dtype and value."""
    if isinstance(theirs, Mapping):
        keys = list(theirs)
        assert list(ours.keys() if isinstance(ours, Mapping) else ours._fields) == keys
        for key in keys:
            assert_alike(ours[key], theirs[key])
    elif isinstance(theirs, (list, tuple)):
        assert isinstance(ours, (list, tuple)) and len(ours) == len(theirs)
        for mine, other in zip(ours, theirs, strict=True):
            assert_alike(mine, other)
    elif isinstance(theirs, str):
        assert ours == theirs
    else:
        assert ours.dtype == theirs.dtype and torch.equal(ours, theirs)


RECORDS = {
    "two views as a list": [[[view(i), view(i + 99)], i] for i in range(7)],
    "two views as a tuple": [((view(i), view(i + 99)), i) for i in range(7)],
    "image and dictionary": [(view(i), {"boxes": view(500 + i), "label": i}) for i in range(7)],
    "dictionary in a dictionary": [
        {"x": view(i), "y": {"text": f"n{i}", "k": i}} for i in range(7)
    ],
    "views in a dictionary": [{"views": [view(i), view(i), view(i)], "y": i} for i in range(7)],
    "lists of numbers": [(view(i), [0.5 * i, 1.0, 2.0], [i, 3]) for i in range(7)],
    "of one kind and another": [(view(i), (i, 0.5 * i, f"n{i}")) for i in range(7)],
    "a bare tensor": [view(i) for i in range(7)],
    "one view in a list": [([view(i)], i) for i in range(7)],
    "the same key twice": [{"x": view(i), "y": {"x": view(500 + i)}} for i in range(7)],
}


@pytest.mark.parametrize("records", RECORDS.values(), ids=RECORDS)
def test_batches_nest_like_torchs(records: Any) -> None:
    dataloader = DataLoader(records, batch_size=3)
    loader = translated(dataloader)
    for ours, theirs in zip(loader.torch(), dataloader, strict=True):
        assert_alike(ours, theirs)
    seen = loader.torch().peek()  # which has id and key next to the fields
    assert_alike(seen[0] if isinstance(theirs, torch.Tensor) else seen, next(iter(dataloader)))


def test_a_moco_loop_gets_both_views() -> None:
    loader = translated(DataLoader(RECORDS["two views as a list"], batch_size=7))
    for images, labels in loader.torch():
        assert images[0].shape == images[1].shape == (7, 3, 4, 5) and len(images) == 2
        assert not torch.equal(images[0], images[1]) and labels.tolist() == list(range(7))


def test_a_nested_batch_is_split_into_records() -> None:
    records = RECORDS["image and dictionary"]
    batch = next(iter(translated(DataLoader(records, batch_size=7)).torch()))
    for part, (image, target) in zip(batch.per_record(), records, strict=True):
        assert torch.equal(part["image"], image) if "image" in part else True
        assert torch.equal(part["target"]["boxes"], target["boxes"])
        assert int(part["target"]["label"]) == target["label"]


def test_a_batch_as_a_dictionary_keeps_its_nesting() -> None:
    batch = next(
        iter(translated(DataLoader(RECORDS["two views as a list"], 4)).torch(batch="dict"))
    )
    assert list(batch) == ["data", "label"] and len(batch["data"]) == 2


def targets(batch: Any) -> Any:
    return tuple(zip(*batch))  # noqa: B905  (as scripts have it)


def test_targets_of_detection_are_a_tuple_of_dictionaries() -> None:
    boxes = [torch.rand(2 + i, 4) for i in range(3)]
    records = [(view(i), {"boxes": boxes[i], "labels": torch.arange(2 + i)}) for i in range(3)]
    loader = translated(DataLoader(records, batch_size=3, collate_fn=targets))
    ((_, given),) = list(loader.torch())
    assert isinstance(given, tuple)
    for ours, (_, theirs) in zip(given, records, strict=True):
        assert_alike(ours, theirs)


def test_a_record_that_nests_differently_is_an_error() -> None:
    records = [[[view(0), view(1)], 0], [[view(0)], 1], [[view(0), view(1)], 2]]
    with pytest.raises(Exception, match="record 1 has the fields"):
        translated(DataLoader(records, batch_size=1))


class Boxes:
    """Like datasets for detection: a record without boxes has empty tensors of torch's default
    dtype."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> Any:
        # one box in each record that is sampled
        count = 0 if index in (0, 7, 23) else 1 + (index == 31)
        boxes = torch.tensor([[1.0, 2, 3, 4 + index]] * count)
        size = 6 if index == 13 else 5
        labels = torch.tensor([index] * count)
        return torch.zeros(3, size, 4), {"boxes": boxes, "labels": labels}


def test_records_in_lists_may_have_any_shape_and_empty_ones_any_dtype() -> None:
    def collate(batch: Any) -> Any:
        return tuple(zip(*batch))  # noqa: B905  (as scripts have it)

    dataloader = DataLoader(Boxes(), batch_size=5, collate_fn=collate)  # type: ignore[arg-type]
    loader = translated(dataloader)
    seen = 0
    for (images, targets), (theirs, expected) in zip(loader.torch(), dataloader, strict=True):
        assert [image.shape for image in images] == [image.shape for image in theirs]
        for one, other in zip(targets, expected, strict=True):
            assert len(one["boxes"]) == len(other["boxes"]) and one["boxes"].ndim == 2
            assert one["labels"].dtype == torch.int64
            assert one["labels"].tolist() == other["labels"].tolist()
            seen += 1
    assert seen == 40
