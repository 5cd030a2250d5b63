# SPDX-License-Identifier: Apache-2.0
"""Lightning on two ranks: uninterrupted, killed in mid-epoch, resumed. See forked.py.

Called with a folder.
"""

import functools
import sys
from pathlib import Path
from typing import Any

import lightning as L
import numpy as np
import torch
from forked import Notes, kill_this_rank, ranks
from headrace.trainers import lightning
from lightning.pytorch.callbacks import ModelCheckpoint

import headrace as hr

RECORDS, EPOCHS, SAVED, KILLED = 45, 2, 3, 5
folder = Path(sys.argv[1])


class Model(L.LightningModule):  # type: ignore[misc]
    def __init__(self, name: str, kill: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.net = torch.nn.Linear(1, 1)
        self.notes, self.kill = Notes(folder, name), kill

    def training_step(self, batch: Any, _: int) -> Any:
        self.notes.add(batch.x[:, 0].tolist())
        return self.net(batch.x).mean()

    def on_train_batch_end(self, *_: Any) -> None:
        if self.kill and self.trainer.global_step == KILLED:
            kill_this_rank()

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=1e-4)


def run(name: str, checkpoint: str | None = None, kill: bool = False) -> None:
    saves = ModelCheckpoint(
        dirpath=folder / name, filename="{step}", every_n_train_steps=SAVED, save_top_k=-1
    )
    trainer = L.Trainer(
        max_epochs=EPOCHS,
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        logger=False,
        callbacks=[saves, lightning.WaitShare()],
        log_every_n_steps=1,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    source = hr.records(x=np.arange(RECORDS, dtype=np.float32)[:, None])
    train = hr.Loader(source, batch_size=4, shuffle=True, seed=3, last_batch="drop")
    model = Model(name, kill)
    trainer.fit(model, datamodule=lightning.DataModule(train=train), ckpt_path=checkpoint)
    notes = Notes(folder, f"{name}_ended")
    notes.add([parameter.tolist() for parameter in model.parameters()])
    notes.add(float(trainer.logged_metrics["data_wait_share"]))


assert ranks(functools.partial(run, "whole")) == [0, 0]
assert ranks(functools.partial(run, "killed", kill=True)) == [-9, -9]
checkpoint = str(folder / "killed" / f"step={SAVED}.ckpt")
assert ranks(functools.partial(run, "resumed", checkpoint)) == [0, 0]
