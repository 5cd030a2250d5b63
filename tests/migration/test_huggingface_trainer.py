# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's image classification example, as it is, also in its Trainer."""

from __future__ import annotations

from pathlib import Path

import made_data
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("datasets")
import huggingface_trainer as script  # noqa: E402
from comparison import assert_equal_batches, migrated  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_data.image_folder(tmp_path_factory.mktemp("folder"))


def test_set_transform_gives_equal_batches(root: Path) -> None:
    dataloader = DataLoader(script.splits(root)["validation"], 8, collate_fn=script.collate_fn)
    assert_equal_batches(migrated(dataloader), dataloader)
    train = DataLoader(script.splits(root)["train"], 8, shuffle=True, collate_fn=script.collate_fn)
    migrated(train)


def test_the_trainer_trains_and_evaluates_on_views(root: Path, tmp_path: Path) -> None:
    """As a script would: the Trainer's own loaders, replaced."""
    trainer = script.trainer_of(root, tmp_path, num_train_epochs=1)
    train = migrated(trainer.get_train_dataloader())
    evaluation = migrated(trainer.get_eval_dataloader())
    trainer.get_train_dataloader = lambda: train.torch()
    trainer.get_eval_dataloader = lambda *_: evaluation.torch()
    result = trainer.train()
    assert result.global_step == 5 and result.training_loss > 0
    assert trainer.evaluate()["eval_loss"] > 0
