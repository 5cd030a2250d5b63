# SPDX-License-Identifier: Apache-2.0
"""Accelerate: `accelerate launch --cpu examples/frameworks/train_accelerate.py`, or on two CPUs
`torchrun --nproc-per-node 2 examples/frameworks/train_accelerate.py`.

`prepare` gets the model and the optimizer. The loader needs no preparation: it divides each global
batch over the processes itself. Registered for checkpointing, it resumes in the middle of an epoch.
"""

from pathlib import Path

import accelerate
import torch

import headrace as hr

files = sorted(Path(__file__).parent.glob("../images/*.jpg"))
source = hr.records(image=[str(file) for file in files], label=list(range(len(files))))
source = hr.subset(source, list(range(len(files))) * 16)

accelerator = accelerate.Accelerator(cpu=True)
train = hr.Loader(source, hr.presets.imagenet_train(64), global_batch_size=32, shuffle=True).torch(
    accelerator.device
)
accelerator.register_for_checkpointing(train)

torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 8, stride=8),
    torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(2),
    torch.nn.Flatten(),
    torch.nn.Linear(64, len(files)),
)
net, optimizer = accelerator.prepare(net, torch.optim.Adam(net.parameters(), lr=0.01))

for epoch in range(5):
    total = 0.0
    for images, labels in train:
        loss = torch.nn.functional.cross_entropy(net(images), labels)
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        total += loss.item()
    accelerator.print(f"epoch {epoch}: loss {total / len(train):.3f}")
