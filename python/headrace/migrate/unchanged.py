# SPDX-License-Identifier: Apache-2.0
"""Datasets that were translated, and are given other transforms afterwards."""

from __future__ import annotations

from typing import Any

from headrace.errors import declare
from headrace.migrate.originals import name_of

_CHANGED = declare(
    "HR0836",
    "config",
    "a dataset that was changed after from_dataloader",
    "from_dataloader() makes steps of a dataset's transforms, which run in its place. A transform "
    "that the script sets on the dataset later, as loader.dataset.transform = ..., would not be "
    "heard of. Set it before, or make another loader with from_dataloader() where it changes.",
)

_NAMES = ("transform", "transforms", "target_transform")


class Unchanged:
    """What a dataset, and those that it is a view of, had for transforms."""

    def __init__(self, dataset: Any) -> None:
        self._held: list[tuple[Any, str, Any]] = []
        seen: list[Any] = []
        while dataset is not None and not any(dataset is each for each in seen):
            seen.append(dataset)
            for name in _NAMES:
                value = getattr(dataset, name, None)
                if value is getattr(dataset, name, None):  # no property that makes one each time
                    self._held.append((dataset, name, value))
            dataset = getattr(dataset, "dataset", None)

    def check(self) -> None:
        """Raises ConfigError HR0836 where one is another now."""
        for dataset, name, value in self._held:
            now = getattr(dataset, name, None)
            if now is not value:
                raise _CHANGED.error(
                    f"{type(dataset).__name__}.{name} is {name_of(now)} now, it was "
                    f"{name_of(value)}",
                    hint="set it before hr.from_dataloader(dataloader), or call that again",
                )
