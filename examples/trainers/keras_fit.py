# SPDX-License-Identifier: Apache-2.0
"""Keras 3 takes a loader's batches with any backend: `KERAS_BACKEND=torch python
examples/trainers/keras_fit.py`.
"""

import os
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "torch")
import keras

import headrace as hr

files = sorted(Path(__file__).parent.glob("../images/*.jpg"))
source = hr.records(image=[str(file) for file in files], label=list(range(len(files))))
train = hr.Loader(
    hr.subset(source, list(range(len(files))) * 16),
    hr.presets.imagenet_train(64),
    batch_size=32,
    shuffle=True,
    memory_format="channels_last",
)
model = keras.Sequential(
    [
        keras.layers.Input((64, 64, 3)),
        keras.layers.Conv2D(16, 8, strides=8, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(len(files)),
    ]
)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(0.01), loss=loss, metrics=["accuracy"])
history = model.fit(train.keras(), epochs=2, verbose=0)
print([round(value, 3) for value in history.history["loss"]])
