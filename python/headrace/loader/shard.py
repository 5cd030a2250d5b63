# SPDX-License-Identifier: Apache-2.0
"""This process's part of every global batch, and how it is determined."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from headrace import process_group
from headrace.arguments import BAD_VALUE, INT32, integer

ALONE = "one process"  # the origin of a shard that nothing determined: ranks may still appear


class Shard(NamedTuple):
    """This process's part of every global batch, and how that was determined."""

    rank: int
    world_size: int
    origin: str


def resolve_shard(shard: Any) -> Shard:
    """ "auto": torch.distributed if it is initialized, otherwise torchrun's variables, otherwise a
    single rank.
    """
    if shard is False or shard is None:
        return Shard(0, 1, "given")
    if isinstance(shard, str) and shard == "auto":
        return _detected_shard()
    if callable(getattr(shard, "size", None)):
        return _of_group(shard)
    try:
        rank, world_size = shard
    except (TypeError, ValueError):
        raise BAD_VALUE.error(
            f"shard must be 'auto', False, (rank, world_size) or a process group (got {shard!r})"
        ) from None
    world_size = integer("world_size of shard", world_size, 1, INT32)
    rank = integer("rank of shard", rank)
    if rank >= world_size:
        raise BAD_VALUE.error(f"rank {rank} of shard is outside a world of {world_size}")
    return Shard(rank, world_size, "given")


def _of_group(group: Any) -> Shard:
    """The shard for a process group of torch.distributed, or a DeviceMesh with one dimension."""
    name = type(group).__name__
    if getattr(group, "ndim", 1) != 1:
        raise BAD_VALUE.error(
            f"shard is a {name} of {group.ndim} dimensions",
            hint='the dimension that divides the batch: shard=mesh["dp"]',
        )
    find = getattr(group, "get_local_rank", None) or getattr(group, "rank", None)
    rank, world_size = int(find()) if callable(find) else -1, int(group.size())
    if not 0 <= rank < world_size:
        raise BAD_VALUE.error(f"this process is not a rank of the {name} given as shard")
    return Shard(rank, world_size, f"of a {name}")


def ranks_here() -> int:
    """Number of ranks on this machine, from LOCAL_WORLD_SIZE; otherwise 1."""
    local = os.environ.get("LOCAL_WORLD_SIZE", "")
    return max(1, int(local)) if local.isdecimal() else 1


def machines(shard: Shard) -> int:
    """Number of machines that run its ranks."""
    return -(-shard.world_size // ranks_here())


def _detected_shard() -> Shard:
    if (group := process_group.initialized()) is not None:
        return Shard(*group, "torch.distributed")
    names = ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
    values = [os.environ.get(name, "") for name in names]
    if all(value.isdecimal() for value in values) and int(values[0]) < int(values[1]):
        return Shard(int(values[0]), int(values[1]), "torchrun's variables")
    return Shard(0, 1, ALONE)
