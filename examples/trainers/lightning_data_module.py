# SPDX-License-Identifier: Apache-2.0
"""Lightning with a data module of loaders: `python examples/trainers/lightning_data_module.py`.

Batches arrive on the trainer's device, copied ahead. The fraction of time spent waiting is logged.
"""

from pathlib import Path

import torch
from headrace.trainers import lightning
from lightning import LightningModule, Trainer

import headrace as hr

files = sorted(Path(__file__).parent.glob("../images/*.jpg"))
source = hr.records(image=[str(file) for file in files], label=list(range(len(files))))
many = hr.subset(source, list(range(len(files))) * 16)


class Net(LightningModule):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(
            torch.nn.Conv2d(3, 16, 8, stride=8),
            torch.nn.AdaptiveAvgPool2d(2),
            torch.nn.Flatten(),
            torch.nn.Linear(64, len(files)),
        )

    def training_step(self, batch, _):
        return torch.nn.functional.cross_entropy(self.body(batch.image), batch.label)

    def validation_step(self, batch, _):
        right = self.body(batch.image).argmax(1) == batch.label
        self.log("right", right.float().mean(), prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


data = lightning.DataModule(
    train=hr.Loader(many, hr.presets.imagenet_train(64), global_batch_size=32, shuffle=True),
    val=hr.Loader(source, hr.presets.imagenet_eval(64), batch_size=8),
)
trainer = Trainer(
    max_epochs=2,
    accelerator="cpu",
    callbacks=[lightning.WaitShare()],
    log_every_n_steps=2,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(Net(), datamodule=data)
print({name: round(float(value), 3) for name, value in trainer.logged_metrics.items()})
