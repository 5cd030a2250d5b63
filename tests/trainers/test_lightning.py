# SPDX-License-Identifier: Apache-2.0
"""Lightning's data module of loaders, the waiting fraction in its log, and a kill in mid-epoch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forked import notes_of, output_of

import headrace as hr

torch = pytest.importorskip("torch")
L = pytest.importorskip("lightning")
from headrace.trainers import lightning  # noqa: E402


def loader_of(count: int) -> hr.Loader:
    return hr.Loader(hr.records(x=np.arange(count, dtype=np.float32)[:, None]), batch_size=4)


class Model(L.LightningModule):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Linear(1, 1)
        self.seen: dict[str, int] = {"train": 0, "val": 0, "test": 0, "predict": 0}

    def training_step(self, batch: Any, _: int) -> Any:
        first = batch["a"] if isinstance(batch, dict) else batch
        self.seen["train"] += len(first.x)
        return self.net(first.x).mean()

    def validation_step(self, batch: Any, _: int, dataloader_idx: int = 0) -> None:
        self.seen["val"] += len(batch.x)

    def test_step(self, batch: Any, _: int) -> None:
        self.seen["test"] += len(batch.x)

    def predict_step(self, batch: Any, _: int) -> Any:
        return self.net(batch.x)

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=1e-4)


def trainer_of(**options: Any) -> Any:
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "logger": False}
    return L.Trainer(
        max_epochs=2, accelerator="cpu", enable_checkpointing=False, num_sanity_val_steps=0,
        log_every_n_steps=2, **quiet, **options,
    )  # fmt: skip


def test_each_stage_has_its_loader(tmp_path: Path) -> None:
    data = lightning.DataModule(
        train={"a": loader_of(22), "b": loader_of(22)},
        val=[loader_of(7), loader_of(5)],
        test=loader_of(9),
        predict=loader_of(6),
    )
    model, waits = Model(), lightning.WaitShare()
    trainer = trainer_of(callbacks=[waits])
    trainer.fit(model, datamodule=data)
    trainer.test(model, datamodule=data, verbose=False)
    predicted = trainer.predict(model, datamodule=data)
    assert model.seen == {"train": 44, "val": 24, "test": 9, "predict": 0}
    assert sum(map(len, predicted)) == 6
    assert 0 <= float(trainer.logged_metrics.get("data_wait_share", 0)) <= 1


def test_a_stage_without_a_loader_is_skipped() -> None:
    model = Model()
    trainer_of(limit_val_batches=0).fit(model, datamodule=lightning.DataModule(train=loader_of(8)))
    assert model.seen["train"] == 16 and model.seen["val"] == 0


def test_two_ranks_resume_exactly_after_a_kill(tmp_path: Path) -> None:
    output_of("trainers/ranks_lightning.py", tmp_path, cwd=tmp_path)
    for rank in range(2):
        whole, killed, resumed = (
            notes_of(tmp_path, name, rank) for name in ("whole", "killed", "resumed")
        )
        assert len(whole) == 10 and killed == whole[:5] and resumed == whole[3:]
        weights, share = notes_of(tmp_path, "whole_ended", rank)
        assert notes_of(tmp_path, "resumed_ended", rank)[0] == weights
        assert 0 <= share <= 1
