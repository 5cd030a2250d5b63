# SPDX-License-Identifier: Apache-2.0
"""A headrace.Loader as the dataloader in torchtitan's configuration.

    config.dataloader = torchtitan.DataLoader.Config(make=make)

where ``make(rank, world_size, **known)`` returns a Loader with one field of tokens. The loader's
state is the same on all ranks, so a checkpoint can be resumed with a different number of
data-parallel ranks.

Tested with torchtitan 0.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torchtitan.components.dataloader import BaseDataLoader

from headrace.loader import Loader
from headrace.trainers import MISFIT
from headrace.trainers.dcp import LoaderState


def _tokens(batch: Any) -> Any:
    """Splits a field of n + 1 tokens per record into n inputs, their positions, and the next
    tokens."""
    (tokens,) = batch
    if tokens.ndim != 2 or tokens.is_floating_point():
        raise MISFIT.error(
            f"tokens of shape {tuple(tokens.shape)} and dtype {tokens.dtype}, which are not "
            "rows of integers",
            hint='use fields="tokens" with seq_len + 1 integers per record, or batch= for '
            "a different form",
        )
    inputs = tokens[:, :-1].long()
    positions = torch.arange(inputs.shape[1]).expand_as(inputs)
    return {"input": inputs, "positions": positions}, tokens[:, 1:].long()


class DataLoader(BaseDataLoader):  # type: ignore[misc]
    """torchtitan's BaseDataLoader over a headrace.Loader."""

    @dataclass(kw_only=True, slots=True)
    class Config(BaseDataLoader.Config):  # type: ignore[misc]
        """make: ``make(rank, world_size, **known) -> headrace.Loader``; known: the trainer's
        ``tokenizer``, ``seq_len``, ``local_batch_size`` and other arguments. batch: converts a
        batch of torch tensors to torchtitan's ``({"input": ...}, labels)``; default: splits n + 1
        tokens into n inputs and the next tokens. infinite, repeat: whether epochs repeat
        (torchtitan's validation sets one of them)."""

        make: Callable[..., Loader]
        batch: Callable[[Any], Any] = _tokens
        infinite: bool = True
        repeat: bool = True

    def __init__(self, config: Config, *, dp_world_size: int, dp_rank: int, **known: Any) -> None:
        self._config = config
        self._loader = config.make(dp_rank, dp_world_size, **known)
        shard = self._loader.assembly.shard
        if (shard.rank, shard.world_size) != (dp_rank, dp_world_size):
            raise MISFIT.error(
                f"the loader is rank {shard.rank} of {shard.world_size}, torchtitan's "
                f"data-parallel rank is {dp_rank} of {dp_world_size}",
                hint="hr.Loader(..., shard=(rank, world_size)) with the arguments of make()",
            )

    def __iter__(self) -> Iterator[Any]:
        view = self._loader.torch()
        while True:
            for batch in view:
                yield self._config.batch(batch)
            if not (self._config.infinite and self._config.repeat):
                return

    def state_dict(self) -> dict[str, Any]:
        return dict(LoaderState(self._loader).state_dict())

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        if state_dict:  # {}: torchtitan starts from the beginning
            LoaderState(self._loader).load_state_dict(state_dict)

    def close(self) -> None:
        self._loader.close()
