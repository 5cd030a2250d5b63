# SPDX-License-Identifier: Apache-2.0
"""Waits until a descriptor is readable. Uses poll(), since select() cannot handle descriptors above
1023, and a training process may have more."""

from __future__ import annotations

import select


def is_readable(descriptor: int, seconds: float = 0) -> bool:
    """Whether it becomes readable within this many seconds; also true at end of file."""
    asked = select.poll()
    asked.register(descriptor, select.POLLIN)
    return bool(asked.poll(seconds * 1000))
