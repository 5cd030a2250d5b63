# SPDX-License-Identifier: Apache-2.0
"""The result of ``loader.torch()``: batches as torch tensors, with a DataLoader's attributes.

It is not a DataLoader, because frameworks replace the sampler of a DataLoader.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterator
from typing import Any

from headrace.frameworks.accelerate import known_to_accelerate
from headrace.frameworks.torch import devices_for, make_hand_over
from headrace.frameworks.torch_parts import Batches, Order, Records, finished_batch
from headrace.loader.viewed import ViewedLoader
from headrace.loader.views import Delivered


class TorchBatches(Delivered):
    """A loader whose batches are torch's tensors. Everything else is forwarded to the loader."""

    # A DataLoader's options, with the values of one without worker processes. Nothing here reads
    # them; scripts and trainers may read and set them.
    num_workers = 0
    prefetch_factor = None
    persistent_workers = False
    pin_memory = False
    pin_memory_device = ""
    timeout = 0
    worker_init_fn = None
    multiprocessing_context = None
    generator = None
    in_order = True

    collate_fn = staticmethod(finished_batch)
    _batches: weakref.ref[Batches] | None = None

    def __init__(
        self, loader: ViewedLoader, device: Any = None, batch: str = "tuple", depth: int = 2
    ) -> None:
        targets = devices_for(device)
        super().__init__(loader, make_hand_over(device), batch, targets, depth)

    def __iter__(self) -> Iterator[Any]:
        return known_to_accelerate(self.loader, super().__iter__())

    @functools.cached_property
    def dataset(self) -> Any:
        """The dataset of the DataLoader given to ``from_dataloader``; otherwise the records of the
        loader's source: their number, ``classes``, and record i as a dictionary before any
        transform.
        """
        original = getattr(self.loader.original, "dataset", None)
        if original is None or not hasattr(original, "__dict__"):
            return Records(self.loader, original)
        return original

    @property
    def batch_sampler(self) -> Batches:
        """The batches of the next epoch, each as its record indices."""
        batches = None if self._batches is None else self._batches()
        if batches is None:
            batches = Batches(self, self.loader)
            self._batches = weakref.ref(batches)  # it refers to the view
        return batches

    @property
    def sampler(self) -> Order:
        """The record indices of this rank in the next epoch."""
        return self.batch_sampler.sampler

    @property
    def mixup_enabled(self) -> bool:
        """The attribute of timm's PrefetchLoader given to ``from_dataloader``; it may be set."""
        return bool(self.loader.mixup_enabled)  # type: ignore[attr-defined]

    @mixup_enabled.setter
    def mixup_enabled(self, enabled: bool) -> None:
        self.loader.mixup_enabled = enabled  # type: ignore[attr-defined]

    @property
    def drop_last(self) -> bool:
        """Whether an incomplete last batch is dropped."""
        return self.batch_sampler.drop_last
