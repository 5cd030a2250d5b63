# SPDX-License-Identifier: Apache-2.0
"""The loader of Ultralytics' detection trainer: build_yolo_dataset and build_dataloader."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from ultralytics.cfg import get_cfg
from ultralytics.data.build import build_dataloader, build_yolo_dataset

NAMES = {0: "cat", 1: "dog", 2: "eel"}


def loader(
    root: Path, *, mode: str = "train", batch_size: int = 4, workers: int = 0, **options: Any
) -> Any:
    cfg = get_cfg(overrides={"imgsz": 64, "task": "detect", "mode": mode, **options})
    data = {"names": NAMES, "nc": len(NAMES), "channels": 3}
    dataset = build_yolo_dataset(
        cfg, str(root / "images" / "train"), batch_size, data, mode=mode, rect=False, stride=32
    )
    return build_dataloader(
        dataset, batch_size, workers, shuffle=mode == "train", rank=-1, device="cpu"
    )


def train_one_epoch(train_loader: Any) -> int:
    boxes = 0
    for batch in train_loader:
        batch["img"] = batch["img"].float() / 255
        for k in ("batch_idx", "cls", "bboxes"):
            batch[k] = batch[k].to("cpu", non_blocking=True)
        assert len(batch["im_file"]) == len(batch["img"])
        assert batch["bboxes"].shape == (len(batch["batch_idx"]), 4)
        boxes += len(batch["cls"])
    return boxes


def main(root: Path, epochs: int = 1) -> None:
    train_loader = loader(root)
    dataset = train_loader.dataset
    print(f"{len(dataset)} images, {len(train_loader.sampler)} sampled, {train_loader.num_workers}")
    for epoch in range(epochs):
        print(f"epoch {epoch}: {train_one_epoch(train_loader)} boxes")
    dataset.close_mosaic(hyp=get_cfg(overrides={"imgsz": 64}))
    train_loader.reset()
    print(f"{train_one_epoch(train_loader)} boxes without mosaic")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
