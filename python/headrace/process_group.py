# SPDX-License-Identifier: Apache-2.0
"""torch.distributed's default process group, if this process has joined one: its rank there, and
the store through which ranks exchange messages without a collective.
"""

from __future__ import annotations

import collections
import contextlib
import os
import sys
from typing import Any

_stores: collections.Counter[str] = (
    collections.Counter()
)  # stores created so far, the same number on all ranks


def initialized() -> tuple[int, int] | None:
    """Rank and number of ranks; None without a group. A process that has not imported torch has
    none; torch is not imported for this.
    """
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed.get_rank(), distributed.get_world_size()


def default_group() -> Any:
    """The default process group. REQUIRES: initialized() is not None."""
    return sys.modules["torch"].distributed.group.WORLD


def members_of(group: Any) -> tuple[int, ...]:
    """The ranks of a process group, or of a DeviceMesh with one dimension, in the default group;
    empty if they are unknown.
    """
    distributed: Any = sys.modules["torch"].distributed
    with contextlib.suppress(Exception):  # a class of another library that resembles one
        found = group.get_group() if hasattr(group, "get_group") else group
        return tuple(int(rank) for rank in distributed.get_process_group_ranks(found))
    return ()


def with_prefix(store: Any, prefix: str) -> Any:
    """The part of a store whose keys have this prefix."""
    return sys.modules["torch"].distributed.PrefixStore(prefix, store)


def shared_store(name: str, together: bool = True) -> tuple[int, int, Any] | None:
    """Rank, number of ranks and a new store shared by them, over a separate connection if possible:
    a collective being set up may block the other one. None without a group of several ranks. All
    ranks must create stores of the same name in the same order. together=False: once per process
    group, and ranks may create none in an earlier group.
    """
    group = initialized()
    if group is None or group[1] < 2:
        return None
    distributed: Any = sys.modules["torch"].distributed
    store = distributed.distributed_c10d._get_default_store()
    with contextlib.suppress(AttributeError, RuntimeError):
        store = store.clone()
    restarts = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")  # which torchrun's store outlives
    name = f"headrace/{restarts}/{name}"
    if together:
        _stores[name] += 1
        number = _stores[name]
    else:
        number = store.add(f"{name}/of rank {group[0]}", 1)
    return *group, distributed.PrefixStore(f"{name}/{number}", store)
