# SPDX-License-Identifier: Apache-2.0
"""PaddlePaddle: `python examples/frameworks/train_paddle.py`."""

from pathlib import Path

import paddle

import headrace as hr

files = sorted(Path(__file__).parent.glob("../images/*.jpg"))
source = hr.records(image=[str(file) for file in files], label=list(range(len(files))))
source = hr.subset(source, list(range(len(files))) * 16)

train = hr.Loader(source, hr.presets.imagenet_train(64), batch_size=32, shuffle=True).paddle()

paddle.seed(0)
net = paddle.nn.Sequential(
    paddle.nn.Conv2D(3, 16, 8, stride=8),
    paddle.nn.ReLU(),
    paddle.nn.AdaptiveAvgPool2D(2),
    paddle.nn.Flatten(),
    paddle.nn.Linear(64, len(files)),
)
optimizer = paddle.optimizer.Adam(0.01, parameters=net.parameters())

for epoch in range(5):
    total = 0.0
    for images, labels in train:  # `train()` is a reader, for APIs that take one
        loss = paddle.nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        total += float(loss)
    print(f"epoch {epoch}: loss {total / len(train):.3f}")
