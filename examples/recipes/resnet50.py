# SPDX-License-Identifier: Apache-2.0
"""torchvision's reference recipe for ResNet-50: TrivialAugment, RandomErasing, MixUp or CutMix.

`python examples/recipes/resnet50.py [FOLDER]` trains a small network on images of 64 x 64. At
full size it is `hr.presets.imagenet_reference(176)` with batch_size=128 a GPU, and torchvision's
resnet50() with label smoothing 0.1, SGD with momentum, a cosine schedule and an average of
weights.
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
    files = sorted((Path(__file__).parents[1] / "images").glob("*.jpg"))
    source = hr.records(image=[str(file) for file in files], label=list(range(len(files))))
    source = hr.subset(source, list(range(len(files))) * 16)
classes = int(source.column("label").max()) + 1

train = hr.Loader(
    source,
    hr.presets.imagenet_reference(64, num_classes=classes),
    batch_size=32,
    shuffle=True,
    last_batch="drop",
    on_error="substitute",
).torch()

net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 8, stride=8),
    torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(2),
    torch.nn.Flatten(),
    torch.nn.Linear(64, classes),
)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=2e-5)

for epoch in range(3):
    total = 0.0
    for images, targets in train:  # targets: (B, classes), each row sums to 1
        loss = torch.nn.functional.cross_entropy(net(images), targets, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(train):.3f}")
print(train.bottleneck())
