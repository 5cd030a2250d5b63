# SPDX-License-Identifier: Apache-2.0
"""One of two JAX processes with two devices each: rank_jax.py RANK PORT."""

import os
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

import jax
import numpy as np

import headrace as hr

rank, port = int(sys.argv[1]), sys.argv[2]
jax.distributed.initialize(f"localhost:{port}", 2, rank)
mesh = jax.sharding.Mesh(jax.devices(), ("data",))
by_rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
everywhere = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
total = jax.jit(lambda x: x[:, 0].sum(), out_shardings=everywhere)

records = [{"x": np.float32([number, -number])} for number in range(24)]
part = (jax.process_index(), jax.process_count())
mine = hr.Loader(records, batch_size=4, shuffle=True, shard=part).jax(sharding=by_rows)
whole = hr.Loader(records, batch_size=8, shuffle=True, shard=False)
for batch, expected in zip(mine, whole, strict=True):
    assert batch.x.shape == (8, 2)
    for shard in batch.x.addressable_shards:
        np.testing.assert_array_equal(np.asarray(shard.data), expected.x[shard.index])
    assert float(total(batch.x)) == expected.x[:, 0].sum()
print(f"{len(mine)} batches")
