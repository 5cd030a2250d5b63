# SPDX-License-Identifier: Apache-2.0
"""The training loader of our trainer for Ultralytics on two ranks, without training, for which
Ultralytics needs two GPUs. See forked.py.

Called with a folder of results and one of images with labels.
"""

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist
from forked import Notes, ranks

folder, root = Path(sys.argv[1]), Path(sys.argv[2])
EPOCHS = 3


def note(event: str) -> None:
    with (folder / "events").open("a") as file:
        print(event, file=file)


def run() -> None:
    from headrace.trainers import ultralytics  # here, since Ultralytics reads RANK when imported

    class Trainer(ultralytics.DetectionTrainer):
        def build_dataset(self, *given: Any) -> Any:
            note(f"{rank} begins")
            dataset = super().build_dataset(*given)
            note(f"{rank} has ended")
            return dataset

    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo")
    trainer = Trainer(
        overrides={
            "data": str(root / "data.yaml"),
            "model": "unused.yaml",
            "imgsz": 64,
            "device": "cpu",
            "project": str(folder),
        }
    )
    trainer.model = SimpleNamespace(stride=torch.tensor([32]))
    dist.barrier()
    loader = trainer.get_dataloader(str(root / "images" / "train"), batch_size=4, rank=rank)
    notes = Notes(folder, "two")
    for epoch in range(EPOCHS):
        loader.sampler.set_epoch(epoch)
        for batch in loader:
            notes.add([epoch, [int(Path(file).stem) for file in batch["im_file"]]])


torch.set_num_threads(1)
(root / "labels" / "train.cache").unlink(missing_ok=True)
assert ranks(run) == [0, 0]
