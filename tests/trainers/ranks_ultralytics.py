# SPDX-License-Identifier: Apache-2.0
"""Ultralytics' detection trainer with our training loader: uninterrupted, killed in mid-epoch,
resumed from its last checkpoint. See forked.py.

Called with a folder of results and one of images with labels.
"""

import functools
import sys
from pathlib import Path
from typing import Any

import torch
import torchvision
from forked import Notes, kill_this_rank, ranks
from headrace.trainers import ultralytics
from ultralytics import YOLO
from ultralytics.utils.nms import TorchNMS

if not torchvision.extension._has_ops():  # its CUDA wheel, next to a torch for the CPU
    torchvision.ops.nms = TorchNMS.nms

folder, root = Path(sys.argv[1]), Path(sys.argv[2])
EPOCHS, KILLED = 4, 12  # of 9 batches
NETWORK = Path(folder) / "tiny.yaml"
NETWORK.write_text(
    """nc: 3
backbone:
  - [-1, 1, Conv, [8, 3, 2]]
  - [-1, 1, Conv, [8, 3, 2]]
  - [-1, 1, Conv, [16, 3, 2]]
head:
  - [-1, 1, Conv, [16, 3, 2]]
  - [-1, 1, Conv, [16, 3, 2]]
  - [[2, 3, 4], 1, Detect, [nc]]
"""
)


class Trainer(ultralytics.DetectionTrainer):
    """Records its inputs."""

    notes: Notes
    kill = False
    seen = 0

    def preprocess_batch(self, batch: Any) -> Any:
        if self.model.training:
            files = [int(Path(file).stem) for file in batch["im_file"]]
            steps = self.train_loader._view.assembly.pipeline.steps
            mosaic = any(step.name == "Mosaic" for step in steps)
            pixels = batch["img"].double().sum().item()
            type(self).notes.add([self.epoch, mosaic, files, len(batch["cls"]), pixels])
            type(self).seen += 1
            if type(self).kill and type(self).seen == KILLED:
                kill_this_rank()
        return super().preprocess_batch(batch)


def run(name: str, kill: bool = False, resume: bool = False) -> None:
    Trainer.notes, Trainer.kill = Notes(folder, name), kill
    where = "killed" if resume else name
    model = YOLO(str(folder / where / "weights" / "last.pt") if resume else str(NETWORK))
    model.train(
        trainer=Trainer,
        data=str(root / "data.yaml"),
        epochs=EPOCHS,
        batch=4,
        imgsz=64,
        close_mosaic=1,
        warmup_epochs=0,
        workers=0,
        device="cpu",
        project=str(folder),
        name=where,
        exist_ok=True,
        amp=False,
        plots=False,
        val=False,
        resume=resume,
    )


torch.set_num_threads(1)
assert ranks(functools.partial(run, "whole"), 0) == [0]
assert ranks(functools.partial(run, "killed", kill=True), 0) == [-9]
assert ranks(functools.partial(run, "resumed", resume=True), 0) == [0]
