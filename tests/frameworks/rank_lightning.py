# SPDX-License-Identifier: Apache-2.0
"""Lightning's own loop, launcher and checkpoints. See ranks.py."""

import lightning
import torch
from ranks import EPOCHS, STOP, arguments, make_view, note


class Noting(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Linear(2, 1)
        self.batches: list[list[int]] = []

    def training_step(self, batch, _):  # type: ignore[no-untyped-def]
        self.batches.append(batch.id.tolist())
        return self.net(batch.x).mean()

    def on_train_batch_end(self, *_: object) -> None:
        if given.stop and len(self.batches) == STOP:
            self.trainer.save_checkpoint(given.stop)
            self.trainer.should_stop = True

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), 1e-3)


given = arguments()
trainer = lightning.Trainer(
    max_epochs=EPOCHS,
    max_steps=STOP if given.stop else -1,
    accelerator="cpu",
    devices=2,
    strategy="ddp",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
module = Noting()
trainer.fit(module, make_view(), ckpt_path=given.resume)
note(given.out, trainer.global_rank, module.batches)
