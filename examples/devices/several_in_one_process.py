# SPDX-License-Identifier: Apache-2.0
"""One process, several devices: one loader divides each batch over them by rows.

There is one order, one read-ahead and one set of threads for any number of devices. Without GPUs,
the host stands in for two of them.
"""

import copy
import sys
from pathlib import Path

import headrace as hr
from headrace import transforms as T

try:
    import torch
except ImportError:
    sys.exit(print("This example needs PyTorch: pip install torch"))

count = torch.cuda.device_count()
devices = [f"cuda:{i}" for i in range(count)] if count else ["cpu", "cpu"]

files = sorted(Path(__file__).parent.glob("../images/*.jpg"))
source = hr.records(image=[str(file) for file in files], label=list(range(len(files))))
source = hr.subset(source, list(range(len(files))) * 16)
steps = [
    T.RandomResizedCrop(64),
    T.RandomHorizontalFlip(),
    T.ToDtype("float32", scale=True),
    T.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    T.CutMix(num_classes=len(files), group=4),  # a device gets whole groups
]
train = hr.Loader(source, steps, batch_size=32, shuffle=True, last_batch="drop").torch(devices)

torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 8, stride=8),
    torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(2),
    torch.nn.Flatten(),
    torch.nn.Linear(64, len(files)),
)
nets = [copy.deepcopy(net).to(device) for device in devices]
optimizer = torch.optim.Adam(nets[0].parameters(), lr=0.01)

for epoch in range(3):
    total = 0.0
    for parts in train:  # a tuple: the first rows, the next ones
        rows = sum(len(part.label) for part in parts)
        for each, (images, labels) in zip(nets, parts, strict=True):
            loss = torch.nn.functional.cross_entropy(each(images), labels, reduction="sum") / rows
            each.zero_grad()
            loss.backward()
            total += loss.item()
        for first, *others in zip(*(each.parameters() for each in nets), strict=True):
            for other in others:
                first.grad += other.grad.to(first.device)
        optimizer.step()
        for each in nets[1:]:
            each.load_state_dict(nets[0].state_dict())
    print(f"epoch {epoch}: loss {total / len(train):.3f}")
