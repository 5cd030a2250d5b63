# SPDX-License-Identifier: Apache-2.0
"""The first records of a stream, which determine its fields, and copies of records."""

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
    "The iterable ended before its first record. The usual reasons are a generator that is "
    "already used up, or a path without files.",
)


class Looked:
    """The records read to determine the fields, and the pass that returned them, with which the
    first epoch continues.
    """

    def __init__(self, origin: Origin, replay: bool) -> None:
        self.replay = replay
        self._origin, self._shares = origin, Shares()
        self.records: tuple[Any, ...] = ()
        self._pass: Pass | None = origin.open(self._shares)
        self.look_on(1)
        if not self.records:
            raise NOTHING.error(f"{origin.name} returned no record")

    def look_on(self, most: int) -> None:
        """Inspects this many records, or all of them if there are fewer. Raises HR0691 if the first
        one fails.
        """
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

    def open_pass(self, shares: Shares, state: Any = None) -> tuple[Pass, tuple[Any, ...]]:
        """A pass over the records from an earlier state, and the inspected records that come before
        it.
        """
        taken = self._take(shares) if state is None else None
        return taken or (self._origin.open(shares, state), ())

    def _take(self, shares: Shares) -> tuple[Pass, tuple[Any, ...]] | None:
        """Gives the pass to the first request that matches it."""
        taken, self._pass = self._pass, None
        fits = shares == self._shares or (shares.epoch == 0 and not self._origin.asks_for_rank)
        if taken is not None and (fits or self._origin.is_once):
            return taken, self.records
        if taken is not None:
            taken.close()
        return None


def own(record: Any) -> Any:
    """The record with copies of those arrays that its iterable may reuse."""
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
