# SPDX-License-Identifier: Apache-2.0
"""torch.distributed's default process group, where this process has joined one: who it is there,
and the store in which ranks leave each other words without a collective."""

from __future__ import annotations

import collections
import contextlib
import sys
from typing import Any

_stores: collections.Counter[str] = collections.Counter()  # made so far, equally many on all ranks


def initialized() -> tuple[int, int] | None:
    """Rank and number of ranks; None without a group. A process that never imported torch has none,
    and torch is not imported for it."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed.get_rank(), distributed.get_world_size()


def shared_store(name: str) -> tuple[int, int, Any] | None:
    """Rank, number of ranks and a new store of theirs, by a connection of its own where it can have
    one: a collective that is being set up may hold the other. None without a group of several.

    Ranks ask for stores of a name in the same order."""
    group = initialized()
    if group is None or group[1] < 2:
        return None
    _stores[name] += 1
    distributed: Any = sys.modules["torch"].distributed
    store = distributed.distributed_c10d._get_default_store()
    with contextlib.suppress(AttributeError, RuntimeError):
        store = store.clone()
    return *group, distributed.PrefixStore(f"headrace/{name}/{_stores[name]}", store)
