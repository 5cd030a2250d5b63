# SPDX-License-Identifier: Apache-2.0
"""IterableDatasets of torch as streams, and streams as torch's tensors."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import headrace as hr

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader, IterableDataset  # noqa: E402


class Counted(IterableDataset):  # type: ignore[misc]
    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[Any]:
        tensor = torch.zeros(2)
        for i in range(self.count):
            tensor.fill_(i)
            yield {"x": tensor, "label": torch.tensor(i)}


def test_an_iterable_dataset_is_a_stream() -> None:
    loader = hr.Loader(Counted(7), batch_size=3)
    for _ in range(2):
        batches = list(loader.torch())
        assert [batch.label.tolist() for batch in batches] == [[0, 1, 2], [3, 4, 5], [6]]
        assert all(isinstance(batch.x, torch.Tensor) for batch in batches)
        assert batches[2].x.tolist() == [[6, 6]]


def test_an_iterable_dataset_with_a_len_is_a_stream_too() -> None:
    class Sized(Counted):
        def __len__(self) -> int:
            return 1000  # may be wrong, so it is not used

    assert [len(batch.label) for batch in hr.Loader(Sized(7), batch_size=4)] == [4, 3]


def test_a_view_of_a_stream_has_no_len_but_can_be_iterated() -> None:
    view = hr.Loader(hr.stream(Counted(7)), batch_size=3).torch(batch="dict")
    with pytest.raises(TypeError, match="HR0690"):
        len(view)
    assert [len(batch["label"]) for batch in view] == [3, 3, 1]
    assert view.state_dict()["epoch"] == 1
    assert len(hr.Loader(hr.stream(Counted(7), length=7), batch_size=3).torch()) == 3


def test_batches_equal_those_of_a_dataloader() -> None:
    theirs = DataLoader(Counted(10), batch_size=4, collate_fn=lambda rows: rows)
    labels = [[int(row["label"]) for row in rows] for rows in theirs]
    ours = hr.Loader(Counted(10), batch_size=4)
    assert [batch.label.tolist() for batch in ours] == labels


def test_torchvisions_compose_works_over_a_stream() -> None:
    vision = pytest.importorskip("torchvision.transforms.v2")
    from PIL import Image

    def photos() -> Iterator[Any]:
        for i in range(5):
            yield {"image": Image.new("RGB", (20 + i, 20), (10 * i, 0, 0)), "label": i}

    steps = vision.Compose([vision.Resize((8, 8)), vision.ToTensor()])
    [first, second] = hr.Loader(hr.stream(photos), steps, batch_size=4).torch()
    assert first.image.shape == (4, 3, 8, 8) and second.image.shape == (1, 3, 8, 8)
    np.testing.assert_allclose(second.image[0, 0], 40 / 255, atol=1e-6)


def test_from_dataloader_suggests_a_stream() -> None:
    with pytest.raises(hr.ConfigError, match=r"(?s)HR0834.*hr\.Loader\(hr\.stream\("):
        hr.from_dataloader(DataLoader(Counted(7), batch_size=3))
