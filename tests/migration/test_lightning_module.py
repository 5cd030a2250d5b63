# SPDX-License-Identifier: Apache-2.0
"""A Lightning script with a LightningDataModule, unmodified."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import made_data
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("lightning")
import lightning_module as script  # noqa: E402
from comparison import assert_equal_batches, native  # noqa: E402


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_data.image_folder(tmp_path_factory.mktemp("folder"))


class Native(script.FolderDataModule):
    """A user adds two methods."""

    def train_dataloader(self) -> Any:
        return native(super().train_dataloader()).torch()

    def val_dataloader(self) -> Any:
        return native(super().val_dataloader()).torch()


def test_the_loaders_are_native_and_equal(root: Path) -> None:
    module = script.FolderDataModule(root)
    module.setup("fit")
    validation = module.val_dataloader()
    assert_equal_batches(native(validation), validation)
    images, labels = next(iter(native(module.train_dataloader()).torch()))
    assert images.shape == (8, 3, 64, 64) and labels.dtype == torch.int64


def test_the_trainer_fits_on_views(root: Path) -> None:
    model = script.Classifier()
    script.trainer_of(root, epochs=2).fit(model, datamodule=Native(root))
    assert (model.seen, model.validated) == (2 * 29, 2 * 18)
