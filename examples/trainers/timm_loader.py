# SPDX-License-Identifier: Apache-2.0
"""A script that uses timm's create_loader can use ours: `python examples/trainers/timm_loader.py`.

Only the import changes; the report printed first says how each part was translated.
"""

import tempfile
from pathlib import Path

import torch
from headrace.trainers.timm import create_loader  # was: from timm.data import create_loader
from timm.data import FastCollateMixup, create_dataset

files = sorted(Path(__file__).parent.glob("../images/*.jpg"))
with tempfile.TemporaryDirectory() as root:
    for number, file in enumerate(files * 4):
        folder = Path(root) / "train" / file.stem
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.jpg").symlink_to(file.resolve())
    mixup = {"mixup_alpha": 0.8, "cutmix_alpha": 1.0, "num_classes": len(files)}
    loader = create_loader(
        create_dataset("", root, split="train", is_training=True),
        input_size=(3, 64, 64),
        batch_size=8,
        is_training=True,
        auto_augment="rand-m9-mstd0.5-inc1",
        re_prob=0.25,
        collate_fn=FastCollateMixup(**mixup),
        num_workers=0,
        device=torch.device("cpu"),
    )
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 8, stride=8), torch.nn.Flatten(), torch.nn.LazyLinear(len(files))
    )
    net(torch.zeros(1, 3, 64, 64))
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    for epoch in range(3):
        loader.sampler.set_epoch(epoch)
        loader.mixup_enabled = epoch < 2  # --mixup-off-epoch 2
        for images, target in loader:
            loss = torch.nn.functional.cross_entropy(net(images), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}")
    loader.close()
