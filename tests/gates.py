# SPDX-License-Identifier: Apache-2.0
"""Steps that wait until they are released, for tests of threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

LIMIT = 300  # seconds; only reached if something hangs


class Gate:
    """A step that waits until it is released."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.reached = threading.Event()

    def __call__(self, x: Any) -> Any:
        self.reached.set()
        assert self.open.wait(LIMIT)
        return x


def records(count: int) -> list[dict[str, int]]:
    return [{"x": i} for i in range(count)]


def outcome_of(call: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Starts the call on a thread; its outcome is appended to the list."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(call())
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, outcome
