# SPDX-License-Identifier: Apache-2.0
"""Our data module for RF-DETR on two ranks of Lightning: uninterrupted, killed in mid-epoch,
resumed from its last checkpoint. See forked.py.

Called with a folder of results and one of COCO's files.
"""

import functools
import sys
import warnings
from pathlib import Path
from typing import Any

import pytorch_lightning
import torch
from forked import Notes, kill_this_rank, ranks
from headrace.trainers import rfdetr
from pytorch_lightning.callbacks import ModelCheckpoint
from rfdetr.config import RFDETRNanoConfig, TrainConfig

folder, root = Path(sys.argv[1]), sys.argv[2]
EPOCHS, SAVED, KILLED = 2, 4, 6


class Model(pytorch_lightning.LightningModule):
    """Notes its inputs, the evaluation's with a mark."""

    def __init__(self, notes: Notes, kill: bool) -> None:
        super().__init__()
        self.net = torch.nn.Linear(4, 4)
        self.notes, self.kill = notes, kill

    def _noted(self, batch: Any, mark: str) -> list[Any]:
        samples, targets = batch
        images, padding = samples.decompose()
        assert samples.no_padding and not padding.any() and isinstance(targets, list)
        self.notes.add([mark, [int(t["image_id"]) for t in targets], float(images.sum())])
        return targets

    def training_step(self, batch: Any, _: int) -> Any:
        targets = self._noted(batch, "training")
        if self.kill and self.global_step == KILLED:
            kill_this_rank()
        boxes = torch.cat([t["boxes"] for t in targets])
        return (self.net(boxes) - boxes).square().mean()

    def validation_step(self, batch: Any, _: int) -> None:
        self._noted(batch, "validation")

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def run(name: str, kill: bool = False, resumed: str | None = None) -> None:
    size, batch = RFDETRNanoConfig(pretrain_weights=None, resolution=64), 2
    data = rfdetr.DataModule(
        size,
        TrainConfig(dataset_dir=root, dataset_file="coco", batch_size=batch, multi_scale="off"),
    )
    saves = ModelCheckpoint(dirpath=folder / name, filename="{step}", every_n_train_steps=SAVED)
    trainer = pytorch_lightning.Trainer(
        max_epochs=EPOCHS,
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        logger=False,
        callbacks=[saves],
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    checkpoint = None if resumed is None else str(folder / resumed / f"step={SAVED}.ckpt")
    trainer.fit(Model(Notes(folder, name), kill), data, ckpt_path=checkpoint)


warnings.simplefilter("ignore")
torch.set_num_threads(1)
assert ranks(functools.partial(run, "whole")) == [0, 0]
assert ranks(functools.partial(run, "killed", kill=True)) == [-9, -9]
assert ranks(functools.partial(run, "resumed", resumed="killed")) == [0, 0]
