# SPDX-License-Identifier: Apache-2.0
"""torch.distributed's default process group, where this process has joined one: who it is there,
and the store in which ranks leave each other words without a collective."""

from __future__ import annotations

import contextlib
import sys
from typing import Any


def joined() -> tuple[int, int] | None:
    """Rank and number of ranks; None without a group of several."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    ranks = distributed.get_world_size()
    return None if ranks < 2 else (distributed.get_rank(), ranks)


def own_store(prefix: str) -> Any:
    """The group's store, by a connection of its own where it can have one: a collective that is
    being set up may hold the other. REQUIRES: joined()."""
    distributed: Any = sys.modules["torch"].distributed
    store = distributed.distributed_c10d._get_default_store()
    with contextlib.suppress(AttributeError, RuntimeError):
        store = store.clone()
    return distributed.PrefixStore(prefix, store)
