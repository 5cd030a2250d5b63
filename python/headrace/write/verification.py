# SPDX-License-Identifier: Apache-2.0
"""Reads a converted dataset back, record by record, and compares it with its source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace import _core, write
from headrace.errors import declare
from headrace.sources import Source
from headrace.sources import open as open_source
from headrace.write.conversion import Told

DIFFERS = declare(
    "HR0416",
    "data",
    "converted dataset differs from its source",
    "Reading the result back found a record that differs from the source. The disk may be bad, or "
    "the source changed in the meantime. The destination was kept for inspection.",
)
_AS_STORED = "mask"  # images of this kind are decoded without checking channels again


def verify_all(
    src: Source, target: str, to: str, tell: Told, records: range, options: Mapping[str, Any]
) -> None:
    """Raises HR0416 at the first record of ``target`` that differs from that of the source."""
    container = write.container(to)
    if container.verify:
        container.verify(src, target, options, lambda done: tell.have_done(len(records) + done))
        return
    written = open_source(target, format=container.format, **container.arguments(src))
    if len(written) != len(records):
        raise DIFFERS.error(
            f"{target} has {len(written)} records, but the source has {len(records)}"
        )
    for number, place in zip(records, container.order(written), strict=True):
        expected, got = src.engine.read(number), written.engine.read(place)
        for field, value in expected.items():
            pixels = not container.keeps_bytes and isinstance(value, bytes)
            same = _same_pixels if pixels else _same
            if field not in got or not same(value, got[field]):
                raise DIFFERS.error(f"{target}: field {field!r} of record {number} differs")
        tell.add(1)
        if number % 64 == 0:
            tell.show()
    tell.show()


def _same_pixels(expected: bytes, got: bytes) -> bool:
    """Compares images that a pack stores in a different form; broken ones are unchanged."""
    import numpy as np

    if expected == got:
        return True
    left, right = (
        np.asarray(_core.decode_field(value, _AS_STORED, lenient=True)) for value in (expected, got)
    )
    return bool(np.array_equal(left, right))


def _same(expected: Any, got: Any) -> bool:
    import numpy as np

    if isinstance(expected, (bytes, str, int)):
        return bool(expected == got) or (isinstance(got, float) and float(expected) == got)
    if isinstance(got, bytes):  # an array that was written as an image
        got = _core.decode_field(got, _AS_STORED, lenient=True)
    left, right = np.asarray(expected), np.asarray(got)
    return left.size == right.size and bool(np.array_equal(left.ravel(), right.ravel()))
