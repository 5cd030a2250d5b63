# SPDX-License-Identifier: Apache-2.0
"""JAX: `python examples/frameworks/train_jax.py`.

Over several devices the rows of each batch are divided by a sharding; on a machine with one CPU,
XLA_FLAGS=--xla_force_host_platform_device_count=4 makes it appear as four devices.
"""

from pathlib import Path

import jax
import jax.numpy as jnp

import headrace as hr

files = sorted(Path(__file__).parent.glob("../images/*.jpg"))
source = hr.records(image=[str(file) for file in files], label=list(range(len(files))))
source = hr.subset(source, list(range(len(files))) * 16)

mesh = jax.sharding.Mesh(jax.devices(), ("data",))
by_rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
train = hr.Loader(
    source,
    hr.presets.imagenet_train(64),
    batch_size=32,
    shuffle=True,
    last_batch="drop",  # so that the devices divide every batch
    memory_format="channels_last",  # arrays are (B, H, W, C), as jax.lax.conv likes them
).jax(sharding=by_rows if len(jax.devices()) > 1 else None)


def loss_of(weights, images, labels):
    features = jax.lax.conv_general_dilated(
        images, weights["conv"], (8, 8), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    features = jax.nn.relu(features).reshape(-1, 2, 4, 2, 4, 16).mean((2, 4)).reshape(-1, 64)
    scores = jax.nn.log_softmax(features @ weights["linear"])
    return -jnp.take_along_axis(scores, labels[:, None], 1).mean()


@jax.jit
def step(weights, images, labels):
    loss, slopes = jax.value_and_grad(loss_of)(weights, images, labels)
    return jax.tree.map(lambda w, slope: w - 0.1 * slope, weights, slopes), loss


first, second = jax.random.split(jax.random.key(0))
weights = {
    "conv": jax.random.normal(first, (8, 8, 3, 16)) * 0.05,
    "linear": jax.random.normal(second, (64, len(files))) * 0.1,
}
for epoch in range(5):
    total = 0.0
    for images, labels in train:
        weights, loss = step(weights, images, labels)
        total += float(loss)
    print(f"epoch {epoch}: loss {total / len(train):.3f}")
