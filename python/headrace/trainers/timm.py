# SPDX-License-Identifier: Apache-2.0
"""timm's ``create_loader`` and ``create_naflex_loader`` with Headrace loaders: use ``from
headrace.trainers.timm import create_loader`` in a script such as timm's train.py, without any other
change.

Tested with timm 1.0.31.
"""

from __future__ import annotations

from typing import Any

from timm import data

from headrace.frameworks.torch_view import TorchBatches
from headrace.migrate import from_dataloader
from headrace.trainers.timm_naflex import create_naflex_loader

__all__ = ["create_loader", "create_naflex_loader"]


def create_loader(dataset: Any, *arguments: Any, verbose: bool = True, **options: Any) -> Any:
    """Like ``timm.data.create_loader`` with the same arguments, but loads with Headrace. verbose:
    prints how each part was translated, like ``from_dataloader``. With ``use_prefetcher``, batches
    are delivered normalized on ``device``, ``mixup_enabled`` can be set, and ``set_epoch`` of its
    sampler selects the epoch's order. ``state_dict()`` and ``load_state_dict()`` resume in
    mid-epoch.
    """
    theirs = data.create_loader(dataset, *arguments, **options)
    device = getattr(theirs, "device", None)  # for a PrefetchLoader
    view: TorchBatches = from_dataloader(theirs, verbose=verbose).torch(device)
    return view
