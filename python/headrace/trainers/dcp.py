# SPDX-License-Identifier: Apache-2.0
"""A loader's state in a checkpoint of ``torch.distributed.checkpoint``, next to an FSDP2 model.

    saved = {"model": ..., "loader": dcp.LoaderState(loader)}
    torch.distributed.checkpoint.save(saved, checkpoint_id=folder)

Tested with torch 2.13.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any


class LoaderState:
    """The state of a headrace.Loader, or of its view, as one entry that DCP does not look into.

    DCP loads only the entries that the state has before loading, and the state of a stream's
    iterable has other entries at each position. The entry is the same on all ranks, and can be
    loaded on a different number of them. Ranks with their own streams have one entry each; DCP then
    refuses a different number of ranks.
    """

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def _key(self) -> str:
        assembly = getattr(self._loader, "loader", self._loader).assembly  # of a view
        shard, stream = assembly.shard, assembly.stream
        apart = stream is not None and stream.shards_itself
        return f"rank_{shard.rank}_of_{shard.world_size}" if apart else "state"

    def state_dict(self) -> dict[str, bytes]:
        return {self._key(): pickle.dumps(dict(self._loader.state_dict()))}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._loader.load_state_dict(pickle.loads(state[self._key()]))
