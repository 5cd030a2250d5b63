# SPDX-License-Identifier: Apache-2.0
"""Checks that a dataset's records are the same with deferred images, and measures the gain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headrace import _core
from headrace.errors import Error
from headrace.migrate.deferred import library


def deferred_fields(
    fetch: Any, numbers: Sequence[int], expected: Sequence[Mapping[str, Any]]
) -> list[str] | None:
    """Fields that the engine can decode and finish; None if images have to be opened as usual: a
    value of a record differs, or Pillow opens no image. fetch: the dataset as a deferring step,
    with the same draws for every record.
    """
    if not library.can_defer():
        return None
    opened = library.count_opened()
    found: dict[str, None] = {}
    for number, wanted in zip(numbers, expected, strict=True):
        try:
            record = fetch.fields(number, 0)
        except Exception:
            return None
        for name, value in record.items():
            if isinstance(value, _core.DeferredPicture):
                found[name] = None
            if not _is_equal(value, wanted[name]):
                return None
    return list(found) if fetch.defers and library.count_opened() > opened else None


def _is_equal(value: Any, wanted: Any) -> bool:
    if isinstance(value, _core.DeferredPicture):
        try:
            value = value.pixels()
        except Error:
            return False
    if isinstance(value, (str, bytes)) or isinstance(wanted, (str, bytes)):
        return bool(value == wanted)
    one, other = np.asarray(value), np.asarray(wanted)
    return (one.dtype, one.shape) == (other.dtype, other.shape) and one.tobytes() == other.tobytes()
