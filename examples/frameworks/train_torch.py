# SPDX-License-Identifier: Apache-2.0
"""PyTorch, on one process or several: `python examples/frameworks/train_torch.py`, or
`torchrun --nproc-per-node 2 examples/frameworks/train_torch.py`.

Each process takes its part of every global batch; the loop is the same.
"""

import os
from pathlib import Path

import torch

import headrace as hr

files = sorted(Path(__file__).parent.glob("../images/*.jpg"))
source = hr.records(image=[str(file) for file in files], label=list(range(len(files))))
source = hr.subset(source, list(range(len(files))) * 16)

if "RANK" in os.environ:
    torch.distributed.init_process_group("gloo")

train = hr.Loader(
    source, hr.presets.imagenet_train(64), global_batch_size=32, shuffle=True
).torch()  # .torch("cuda") on a GPU

torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 8, stride=8),
    torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(2),
    torch.nn.Flatten(),
    torch.nn.Linear(64, len(files)),
)
if "RANK" in os.environ:
    net = torch.nn.parallel.DistributedDataParallel(net)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)

for epoch in range(5):
    total = 0.0
    for images, labels in train:
        loss = torch.nn.functional.cross_entropy(net(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(train):.3f}")

if "RANK" in os.environ:
    torch.distributed.destroy_process_group()
