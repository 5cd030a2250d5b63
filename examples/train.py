# SPDX-License-Identifier: Apache-2.0
"""A folder of images and a training loop: `python examples/train.py [FOLDER]`.

FOLDER has one folder for each class. Without one, the images next to this file are used.
"""

import sys
from pathlib import Path

import headrace as hr

try:
    import torch
except ImportError:
    sys.exit(print("This example needs PyTorch: pip install torch"))

if len(sys.argv) > 1:
    source = hr.open(sys.argv[1])
else:
    files = sorted(Path(__file__).parent.glob("images/*.jpg"))
    source = hr.records(image=[str(file) for file in files], label=list(range(len(files))))
    source = hr.subset(source, list(range(len(files))) * 16)

train = hr.Loader(
    source,
    hr.presets.imagenet_train(96),
    batch_size=32,
    shuffle=True,
    on_error="substitute",  # a damaged image is replaced and reported, and the run continues
).torch()

classes = int(source.column("label").max()) + 1
net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 8, stride=8),
    torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(2),
    torch.nn.Flatten(),
    torch.nn.Linear(64, classes),
)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)

for epoch in range(5):
    total = 0.0
    for images, labels in train:  # each loop is the next epoch, in a new order
        loss = torch.nn.functional.cross_entropy(net(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(train):.3f}")
print(train.bottleneck())
