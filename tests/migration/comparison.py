# SPDX-License-Identifier: Apache-2.0
"""Compares the loader that from_dataloader makes with the script's original one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.utils.data import DataLoader

import headrace as hr

# ToTensor divides by 255 and ToDtype multiplies by the inverse; Normalize enlarges the difference
# up to 5 times.
FLOATS = 2e-6


def migrated(dataloader: Any, **options: Any) -> Any:
    return hr.from_dataloader(dataloader, verbose=False, **options)


def native(dataloader: Any, **options: Any) -> Any:
    """The loader; fails if a step runs in Python."""
    loader = migrated(dataloader, **options)
    assert not loader.report.python, loader.report
    return loader


def records_native(dataloader: Any, **options: Any) -> Any:
    """The loader; fails if a step on records runs in Python. Steps on finished batches may."""
    loader = migrated(dataloader, **options)
    of_records = [
        part.name
        for part in loader.report.python
        if not part.name.startswith(("collate_fn", "PrefetchLoader"))
    ]
    assert not of_records, loader.report
    return loader


def in_order(dataloader: Any, batch_size: int | None = None, stride: int = 1) -> Any:
    """The same dataset and collate function, without the random order: every stride-th record, and
    again from the first that is left. REQUIRES: stride and the number of records are coprime."""
    count = len(dataloader.dataset)
    return DataLoader(
        dataloader.dataset,
        batch_size or dataloader.batch_size,
        sampler=[number * stride % count for number in range(count)] if stride > 1 else None,
        collate_fn=dataloader.collate_fn,
    )


def assert_equal_batches(loader: Any, dataloader: Any, *, left_out: tuple[str, ...] = ()) -> None:
    """All batches of an epoch. left_out: keys of dictionaries that are not compared."""
    theirs, ours = list(dataloader), list(loader.torch())
    assert len(ours) == len(theirs) == len(loader.torch())
    for one, other in zip(ours, theirs, strict=True):
        assert_equal(one, other, left_out)


def assert_equal(ours: Any, theirs: Any, left_out: tuple[str, ...] = ()) -> None:
    """Values that nest: of the same classes of containers, dtypes and shapes."""
    if isinstance(theirs, Mapping):
        assert set(ours) - set(left_out) == set(theirs) - set(left_out)
        for key in set(theirs) - set(left_out):
            assert_equal(ours[key], theirs[key], left_out)
    elif isinstance(theirs, (list, tuple)):
        assert isinstance(ours, (list, tuple)) and len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert_equal(one, other, left_out)
    elif isinstance(theirs, torch.Tensor):
        assert ours.shape == theirs.shape
        if not theirs.numel():  # torch.tensor([]) is float32, whatever the dtype of the others
            return
        assert ours.dtype == theirs.dtype
        exact = 0 if not theirs.is_floating_point() else FLOATS
        torch.testing.assert_close(torch.Tensor(ours), torch.Tensor(theirs), rtol=exact, atol=exact)
    elif hasattr(theirs, "tensors"):  # DETR's
        assert_equal(vars(ours), vars(theirs), left_out)
    else:
        assert ours == theirs
