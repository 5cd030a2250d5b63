# SPDX-License-Identifier: Apache-2.0
"""A trial: a guarantee that is tested a given number of times, and the results."""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SHOWN = 20  # failures of a trial that are recorded as text


@dataclasses.dataclass
class Attempt:
    """The context of a trial: where it may write, when to stop, and its random numbers.

    inputs counts the inputs tried; each has passed unless fails() was called for it. A trial may
    set target, if the full number depends on what it finds.
    """

    folder: Path
    target: int
    seconds: float
    random: random.Random
    patience: float = 1  # multiplies the limits of seconds, as on a busy machine
    inputs: int = 0
    failures: list[str] = dataclasses.field(default_factory=list)
    failed: int = 0
    figures: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        self.until = time.monotonic() + self.seconds

    def goes_on(self) -> bool:
        """Whether to run another input, within the time limit. The first one always runs."""
        return self.inputs == 0 or (self.inputs < self.target and time.monotonic() < self.until)

    def fails(self, what: str) -> None:
        self.failed += 1
        if len(self.failures) < SHOWN:
            self.failures.append(what)

    def expect(self, holds: bool, what: str) -> None:
        if not holds:
            self.fails(what)


@dataclasses.dataclass(frozen=True)
class Trial:
    """One guarantee.

    weight: its fraction of the time, relative to the others'. targets: those of page.TARGETS that
    it measures.
    """

    name: str
    promise: str
    target: int
    unit: str
    run: Callable[[Attempt], None]
    weight: float = 1.0
    targets: tuple[str, ...] = ()
