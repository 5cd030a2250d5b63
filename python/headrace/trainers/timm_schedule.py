# SPDX-License-Identifier: Apache-2.0
"""Which records are in which batch of timm's NaFlex loader, and what a batch has in common."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from timm.data.naflex_transforms import Patchify

from headrace import _core
from headrace.sampling import Batches, Records, Sampling
from headrace.trainers import MISFIT


class Key(NamedTuple):
    """What all records of a batch have in common."""

    seq_len: int
    patch: int  # index of the patch size


class Planned(NamedTuple):
    key: Key
    records: list[int]


class Training:
    """The batches of each epoch as timm's NaFlexMapDatasetWrapper plans them."""

    is_training = True

    def __init__(self, wrapper: Any) -> None:
        if wrapper.mixup_fn is not None:
            raise MISFIT.error(
                "mixup_fn mixes images of different sizes, which this loader does not",
                hint="pass mixup_fn=None, or use timm's own create_naflex_loader",
            )
        self.wrapper, self.base = wrapper, wrapper.base_dataset
        self.transforms = {Key(*key): each for key, each in wrapper.transforms.items()}
        self.patches = list(wrapper.patch_sizes)
        self.is_flat = not wrapper.variable_patch_size
        self.seed, self.rank = int(wrapper.seed), int(wrapper.rank)
        self.epoch = int(wrapper.shared_epoch.value)

    def batches(self, epoch: int) -> list[Planned]:
        planned = self.wrapper._prepare_epoch_batches(epoch)
        return [Planned(Key(seq_len, patch), rows) for seq_len, patch, rows in planned]

    def __len__(self) -> int:
        return len(self.wrapper)

    def identity(self) -> Any:
        w = self.wrapper
        return [w.world_size, w.seed, w.shuffle, w._canonical_batch_schedule, w.patch_size_probs]


class Evaluation:
    """All records in order, with one sequence length."""

    seed = rank = epoch = 0
    is_flat, is_training = True, False

    def __init__(self, loader: Any) -> None:
        dataset = self.base = loader.dataset
        *steps, patchify = dataset.transform.transforms
        assert isinstance(patchify, Patchify)
        composed = copy.copy(dataset.transform)
        composed.transforms = steps
        self.key = Key(loader.collate_fn.max_seq_len, 0)
        self.transforms = {self.key: composed}
        self.patches = [patchify.patch_size]
        self._order = [int(index) for index in loader.sampler]
        self._size: int = loader.batch_size

    def batches(self, epoch: int) -> list[Planned]:
        begins = range(0, len(self._order), self._size)
        return [Planned(self.key, self._order[at : at + self._size]) for at in begins]

    def __len__(self) -> int:
        return -(-len(self._order) // self._size)

    def identity(self) -> Any:
        return [len(self._order), self._size]


class FixedBatches(Sampling):
    """These batches of record indices, in every epoch."""

    def __init__(self, batches: Sequence[Sequence[int]]) -> None:
        self._sizes = [len(batch) for batch in batches]
        self._order = np.fromiter((i for batch in batches for i in batch), np.int64)

    def engine(self, source: Records, shuffle: bool, batches: Batches) -> _core.Sampler:
        def order(seed: int, epoch: int) -> Any:
            return self._order

        fingerprint = digest(self._sizes, self._order.tobytes())
        count = len(self._order)
        text = "timm's schedule"
        return _core.asked(order, len(source), count, self._sizes, fingerprint, text)


def digest(*described: Any) -> int:
    """A number of 56 bits that stands for these values."""
    made = hashlib.blake2b(repr(described).encode(), digest_size=7).digest()
    return int.from_bytes(made, "little")
