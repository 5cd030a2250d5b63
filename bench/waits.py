# SPDX-License-Identifier: Apache-2.0
"""An epoch as seen by a training loop: how long it waits for each batch."""

from __future__ import annotations

import time
from typing import NamedTuple

import headrace as hr


class Epoch(NamedTuple):
    records: int
    seconds: float
    waits: list[float]  # seconds, by batch

    @property
    def rate(self) -> float:
        """Records per second."""
        return self.records / self.seconds


def epoch_of(loader: hr.Loader, pause: float = 0.0) -> Epoch:
    """pause: seconds per step."""
    waits, records, began = [], 0, time.perf_counter()
    iterator = iter(loader)
    while True:
        asked = time.perf_counter()
        batch = next(iterator, None)
        if batch is None:
            break
        waits.append(time.perf_counter() - asked)
        records += len(batch.image)
        del batch
        if pause:
            time.sleep(pause)
    return Epoch(records, time.perf_counter() - began, waits)
