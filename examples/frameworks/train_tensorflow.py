# SPDX-License-Identifier: Apache-2.0
"""TensorFlow and Keras: `python examples/frameworks/train_tensorflow.py`."""

from pathlib import Path

import tensorflow as tf

import headrace as hr

files = sorted(Path(__file__).parent.glob("../images/*.jpg"))
source = hr.records(image=[str(file) for file in files], label=list(range(len(files))))
source = hr.subset(source, list(range(len(files))) * 16)

train = hr.Loader(
    source,
    hr.presets.imagenet_train(64),
    batch_size=32,
    shuffle=True,
    memory_format="channels_last",  # tensors are (B, H, W, C), as Keras expects
).tensorflow()

tf.keras.utils.set_random_seed(0)
net = tf.keras.Sequential(
    [
        tf.keras.layers.Conv2D(16, 8, strides=8, activation="relu"),
        tf.keras.layers.AveragePooling2D(4),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(len(files)),
    ]
)
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.Adam(0.01)


@tf.function
def step(images, labels):
    with tf.GradientTape() as tape:
        loss = loss_of(labels, net(images, training=True))
    slopes = tape.gradient(loss, net.trainable_variables)
    optimizer.apply_gradients(zip(slopes, net.trainable_variables, strict=True))
    return loss


# A hand-written loop takes eager tensors, ...
for epoch in range(3):
    total = 0.0
    for images, labels in train:
        total += float(step(images, labels))
    print(f"epoch {epoch}: loss {total / len(train):.3f}")

# ... and fit() a tf.data.Dataset of the same batches; it continues with the next epoch.
net.compile(optimizer="adam", loss=loss_of)
history = net.fit(train.as_dataset(), epochs=2, verbose=0)
print(f"epochs 3 and 4: loss {history.history['loss']}")
