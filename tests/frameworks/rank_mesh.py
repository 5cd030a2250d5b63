# SPDX-License-Identifier: Apache-2.0
"""Four processes in a mesh of two data-parallel groups and two tensor-parallel ones.

Called with OUT: each rank writes its coordinates in the mesh to OUT/RANK.json, and for each value
of shard= the ids and weights of its batches.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from torch.distributed.device_mesh import init_device_mesh

import headrace as hr

torch.distributed.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))


def batches(shard: object) -> list[object]:
    """The valid ids and the weight of each batch."""
    loader = hr.Loader(
        hr.records(number=np.arange(25)),
        global_batch_size=5,
        shuffle=True,
        seed=3,
        uneven="pad",
        fields=("number", "valid"),
        shard=shard,
    )
    return [[batch.number[batch.valid].tolist(), batch.weight] for batch in loader]


refused = ""
try:
    batches(mesh)
except hr.ConfigError as error:
    refused = str(error)
note = {
    "dp": mesh["dp"].get_local_rank(),
    "tp": mesh["tp"].get_local_rank(),
    "mesh": batches(mesh["dp"]),
    "group": batches(mesh.get_group("dp")),
    "flat": batches(mesh["dp", "tp"]._flatten("all")),
    "alone": batches("auto"),
    "refused": refused,
}
(Path(sys.argv[1]) / f"{torch.distributed.get_rank()}.json").write_text(json.dumps(note))
torch.distributed.barrier()
torch.distributed.destroy_process_group()
