# SPDX-License-Identifier: Apache-2.0
"""Ultralytics with Headrace's training batches: `python examples/trainers/ultralytics_train.py`.

Only `trainer=` is new: mosaic, affine transforms, HSV and flips follow the usual arguments. The
training is stopped in its second epoch here, and `resume=True` starts that epoch again.
"""

import tempfile
from pathlib import Path

import torch
import torchvision
from headrace.trainers import ultralytics
from ultralytics import YOLO
from ultralytics.utils.nms import TorchNMS

if not torchvision.extension._has_ops():  # a torchvision for CUDA next to a torch for the CPU
    torchvision.ops.nms = TorchNMS.nms

torch.set_num_threads(1)
files = sorted(Path(__file__).parent.glob("../images/*.jpg"))
NETWORK = """nc: 1
backbone:
  - [-1, 1, Conv, [8, 3, 2]]
  - [-1, 1, Conv, [8, 3, 2]]
  - [-1, 1, Conv, [16, 3, 2]]
head:
  - [-1, 1, Conv, [16, 3, 2]]
  - [-1, 1, Conv, [16, 3, 2]]
  - [[2, 3, 4], 1, Detect, [nc]]
"""


class Trainer(ultralytics.DetectionTrainer):
    """Notes the images of each batch, and can be stopped."""

    seen = ()
    stop_at = None

    def preprocess_batch(self, batch):
        if self.model.training:
            type(self).seen += ([Path(file).stem for file in batch["im_file"]],)
            if len(self.seen) == self.stop_at:
                raise KeyboardInterrupt
        return super().preprocess_batch(batch)


def train(root, network, name, **options):
    Trainer.seen = ()
    YOLO(network).train(
        trainer=Trainer,
        data=f"{root}/data.yaml",
        epochs=2,
        batch=4,
        imgsz=64,
        close_mosaic=1,  # the second epoch has no mosaic
        warmup_epochs=0,
        workers=0,
        device="cpu",
        project=f"{root}/runs",
        name=name,
        amp=False,
        plots=False,
        val=False,
        verbose=False,
        **options,
    )
    return Trainer.seen


with tempfile.TemporaryDirectory() as root:
    for number, file in enumerate(files * 2):
        for folder in ("images", "labels"):
            (Path(root) / folder / "train").mkdir(parents=True, exist_ok=True)
        (Path(root) / f"images/train/{number:03}.jpg").symlink_to(file.resolve())
        (Path(root) / f"labels/train/{number:03}.txt").write_text("0 0.5 0.5 0.5 0.5")
    lists = f"path: {root}\ntrain: images/train\nval: images/train\nnames: {{0: thing}}\n"
    (Path(root) / "data.yaml").write_text(lists)
    (Path(root) / "tiny.yaml").write_text(NETWORK)

    whole = train(root, f"{root}/tiny.yaml", "whole")
    per_epoch = len(whole) // 2
    Trainer.stop_at = per_epoch + 1
    try:
        train(root, f"{root}/tiny.yaml", "stopped")
    except KeyboardInterrupt:
        print("stopped in epoch 2")
    Trainer.stop_at = None
    resumed = train(root, f"{root}/runs/stopped/weights/last.pt", "stopped", resume=True)
    assert resumed == whole[per_epoch:]
    print(f"resumed with the same {len(resumed)} batches")
