# SPDX-License-Identifier: Apache-2.0
"""Tells Accelerate's GradientState which loader is iterated, and when its last batch is delivered.

``accumulate()`` needs this for the last update of an epoch, and ``gather_for_metrics`` to drop the
rows that padded the last batch. Accelerate's own DataLoaders register there; there is no public API
for other loaders, so the names used here are private, and covered by tests.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from headrace.errors import warn
from headrace.loader.viewed import ViewedLoader, left_for_last_batch

_warned = False


def known_to_accelerate(loader: ViewedLoader, batches: Iterator[Any]) -> Iterator[Any]:
    """The iterator; if Accelerate is imported, registered with it as long as the iterator lives."""
    module = sys.modules.get("accelerate.state")
    if module is None:
        return batches
    gradients = module.GradientState()
    if not (hasattr(gradients, "_add_dataloader") and hasattr(gradients, "_remove_dataloader")):
        _warn_once()
        return batches
    return _Registered(loader, batches, gradients)


def _warn_once() -> None:
    global _warned
    if not _warned:
        _warned = True
        warn(
            "this Accelerate has no GradientState._add_dataloader: accumulate() does not "
            "recognize the last batch of an epoch, and gather_for_metrics() does not drop the "
            "rows that fill it up; docs/guide/trainers.md lists the tested versions"
        )


class _Place:
    """The attributes that GradientState reads of the iterated loader."""

    def __init__(self, loader: ViewedLoader) -> None:
        self._loader = loader

    @property
    def end_of_dataloader(self) -> bool:
        """Whether the most recent batch is the epoch's last."""
        return self._loader.present_state()["batch"] >= len(self._loader)

    @property
    def remainder(self) -> int:
        """Records in the last batch, over all ranks; 0: it is full or dropped."""
        if self._loader.assembly.given["last_batch"] == "drop":
            return 0
        return left_for_last_batch(self._loader)


class _Registered:
    """The batches of an iteration, registered with GradientState."""

    def __init__(self, loader: ViewedLoader, batches: Iterator[Any], gradients: Any) -> None:
        self._batches = batches
        self._gradients = gradients
        self._place: _Place | None = _Place(loader)  # GradientState refers to it weakly
        gradients._add_dataloader(self._place)

    def __iter__(self) -> _Registered:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._batches)
        except BaseException:
            self._leave()
            raise

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # during its construction
            raise AttributeError(name)
        return getattr(self._batches, name)

    def _leave(self) -> None:
        place, self._place = self._place, None
        if place is not None:
            self._gradients._remove_dataloader(place)

    def __del__(self) -> None:
        self._leave()
