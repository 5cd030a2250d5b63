# SPDX-License-Identifier: Apache-2.0
"""MXNet: `python examples/frameworks/train_mxnet.py`."""

from pathlib import Path

import mxnet as mx

import headrace as hr

files = sorted(Path(__file__).parent.glob("../images/*.jpg"))
source = hr.records(image=[str(file) for file in files], label=list(range(len(files))))
source = hr.subset(source, list(range(len(files))) * 16)

train = hr.Loader(source, hr.presets.imagenet_train(64), batch_size=32, shuffle=True).mxnet()

mx.random.seed(0)
net = mx.gluon.nn.Sequential()
net.add(
    mx.gluon.nn.Conv2D(16, 8, strides=8, activation="relu"),
    mx.gluon.nn.AvgPool2D(4),
    mx.gluon.nn.Flatten(),
    mx.gluon.nn.Dense(len(files)),
)
net.initialize(mx.init.Xavier())
loss_of = mx.gluon.loss.SoftmaxCrossEntropyLoss()
trainer = mx.gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})

for epoch in range(5):
    total = 0.0
    for batch in train:  # mxnet.io.DataBatch
        with mx.autograd.record():
            loss = loss_of(net(batch.data[0]), batch.label[0])
        loss.backward()
        trainer.step(len(batch.label[0]))
        total += float(loss.mean().asscalar())
    print(f"epoch {epoch}: loss {total / len(train):.3f}")
    train.reset()
