# SPDX-License-Identifier: Apache-2.0
"""``tuple(zip(*batch))``, the collate_fn of torchvision's reference script for detection: a tuple
of all images and a tuple of all targets.

The function does not inspect values, so it is called without the precautions for user functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.migrate.collated import Function, moved
from headrace.migrate.modules import name_of
from headrace.migrate.samples import Columns, Samples
from headrace.per_record import Layout


class Transposed:
    """Replaces ``Collated``."""

    copies = False
    draws = False

    def __init__(self, function: Function, samples: Samples) -> None:
        self.__name__ = name_of(function)
        self._function = function
        self._samples = samples

    def __call__(
        self,
        layout: Layout,
        values: Mapping[str, Any],
        place: tuple[int, ...],
        device: Any = None,
    ) -> Any:
        batch = self._function(self._samples(Columns(layout, values)))
        return batch if device is None else moved(batch, device)
