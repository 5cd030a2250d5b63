# SPDX-License-Identifier: Apache-2.0
"""Waits for conditions, and checks that are repeated, so that no test depends on how busy the
machine is.

Where the subject of a test is a number of seconds, a busy machine may exceed a short one in places
that the test does not expect, so the check is repeated with longer ones. A broken promise fails
with all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest

Value = TypeVar("Value")

PATIENCE = 300  # seconds; only reached if something hangs
LIMITS = (0.4, 2.0, 10.0, 60.0)


def with_longer_limits(check: Callable[[float], Value], limits: Iterable[float] = LIMITS) -> Value:
    """The result of the first call with one of these seconds that does not fail."""
    *shorter, longest = limits
    for limit in shorter:
        try:
            return check(limit)
        except (Exception, pytest.fail.Exception):  # the latter is not an Exception
            continue
    return check(longest)


def with_attempts(check: Callable[[], Value], attempts: int = 4) -> Value:
    """The same for measurements that other work on the machine enlarges, but not every time."""
    return with_longer_limits(lambda _: check(), range(attempts))


def wait_until(holds: Callable[[], object], missing: str, seconds: float = PATIENCE) -> None:
    """Fails with what is missing if the condition does not hold in time."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, missing
        time.sleep(0.01)
