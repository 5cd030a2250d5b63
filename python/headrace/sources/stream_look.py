# SPDX-License-Identifier: Apache-2.0
"""The first records of a stream, which say what its fields are, and copies of records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from headrace.errors import declare
from headrace.sources.stream_origin import FAILED, Origin, Pass, Shares
from headrace.steps import describe

NOTHING = declare(
    "HR0694",
    "data",
    "stream without records",
    "The iterable ended before its first record. A generator that was used up before, or a path "
    "without files, are the usual reasons.",
)


class Looked:
    """The records that were read to learn what the fields are, and the pass that gave them, which
    the first epoch goes on with."""

    def __init__(self, origin: Origin, replay: bool) -> None:
        self.replay = replay
        self._origin, self._shares = origin, Shares()
        self.records: tuple[Any, ...] = ()
        self._pass: Pass | None = origin.open(self._shares)
        self.look_on(1)
        if not self.records:
            raise NOTHING.error(f"{origin.name} gave no record")

    def look_on(self, most: int) -> None:
        """So many records, or as many as there are. HR0691 where the first fails."""
        if (opened := self._pass) is None:
            return
        try:
            while len(self.records) < most:
                self.records += (own(next(opened)),)
        except StopIteration:
            pass
        except Exception as failure:
            if not self.records:
                raise FAILED.error(
                    f"{self._origin.name} failed at record 0: {describe(failure)}"
                ) from failure
            opened.fail_next(failure)

    def take(self, shares: Shares) -> tuple[Pass, tuple[Any, ...]] | None:
        """The pass, for the first that wants one like it."""
        taken, self._pass = self._pass, None
        fits = shares == self._shares or (shares.epoch == 0 and not self._origin.asks_for_rank)
        if taken is not None and (fits or self._origin.is_once):
            return taken, self.records
        if taken is not None:
            taken.close()
        return None


def own(record: Any) -> Any:
    """The record with copies of what its iterable may fill again."""
    if isinstance(record, Mapping):
        return {name: _own_value(value) for name, value in record.items()}
    if isinstance(record, tuple):
        values = map(_own_value, record)
        return type(record)(*values) if hasattr(record, "_fields") else tuple(values)
    return [_own_value(each) for each in record] if type(record) is list else _own_value(record)


def _own_value(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if type(value).__module__ == "torch" and hasattr(value, "clone"):
        return value.detach().clone()
    return list(value) if type(value) is list else value
