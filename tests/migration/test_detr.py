# SPDX-License-Identifier: Apache-2.0
"""The unmodified scripts of DETR and RF-DETR: their own transforms run in Python, and batches are
nested tensors and dictionaries."""

from __future__ import annotations

from pathlib import Path

import made_data
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision.transforms.v2")
pytest.importorskip("pycocotools")
import detr as script  # noqa: E402
from comparison import assert_equal_batches, in_order, migrated  # noqa: E402


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_data.coco(tmp_path_factory.mktemp("coco"))


def test_batches_are_equal_without_random_steps(root: Path) -> None:
    train, validation = script.loaders(root)
    assert_equal_batches(migrated(validation), validation)
    train.dataset._transforms = script.make_coco_transforms("train", flip=1.0, sizes=(56,))
    ordered = in_order(train, batch_size=3)
    assert_equal_batches(migrated(ordered), ordered)


def test_the_loop_runs_on_the_view(root: Path) -> None:
    train, validation = script.loaders(root)
    model = torch.nn.Conv2d(3, 4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    assert script.train_one_epoch(model, optimizer, migrated(train).torch()) > 40
    assert script.train_one_epoch(model, None, migrated(validation).torch()) > 20
