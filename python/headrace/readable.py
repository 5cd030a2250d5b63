# SPDX-License-Identifier: Apache-2.0
"""Whether a descriptor has something to read. By poll(): select() takes no descriptor above 1023,
and a process that trains may have more."""

from __future__ import annotations

import select


def is_readable(descriptor: int, seconds: float = 0) -> bool:
    """Whether it becomes readable within so many seconds. True at its end, too."""
    asked = select.poll()
    asked.register(descriptor, select.POLLIN)
    return bool(asked.poll(seconds * 1000))
