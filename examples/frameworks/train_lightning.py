# SPDX-License-Identifier: Apache-2.0
"""Lightning: `python examples/frameworks/train_lightning.py [DEVICES]`.

The loader divides each global batch over the processes itself, and Lightning's checkpoints hold its
state: a run that is resumed from one in the middle of an epoch continues with the next batch.
Between epochs Lightning does not use it, so `set_epoch` selects the order.
"""

import sys
from pathlib import Path

import lightning
import torch

import headrace as hr

files = sorted(Path(__file__).parent.glob("../images/*.jpg"))
source = hr.records(image=[str(file) for file in files], label=list(range(len(files))))
source = hr.subset(source, list(range(len(files))) * 16)

train = hr.Loader(source, hr.presets.imagenet_train(64), global_batch_size=32, shuffle=True).torch()


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Conv2d(3, 16, 8, stride=8),
            torch.nn.ReLU(),
            torch.nn.AdaptiveAvgPool2d(2),
            torch.nn.Flatten(),
            torch.nn.Linear(64, len(files)),
        )
        self.losses = []

    def on_train_epoch_start(self):
        train.set_epoch(self.current_epoch)

    def training_step(self, batch, _):
        images, labels = batch
        loss = torch.nn.functional.cross_entropy(self.net(images), labels)
        self.losses.append(loss.item())
        return loss

    def on_train_epoch_end(self):
        print(f"epoch {self.current_epoch}: loss {sum(self.losses) / len(self.losses):.3f}")
        self.losses.clear()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


lightning.seed_everything(0)
trainer = lightning.Trainer(
    max_epochs=5,
    accelerator="cpu",
    devices=int(sys.argv[1]) if len(sys.argv) > 1 else 1,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
)
trainer.fit(Classifier(), train)
