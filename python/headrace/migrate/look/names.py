# SPDX-License-Identifier: Apache-2.0
"""Names for a dataset's transforms; equivalent transforms share a name.

``ConcatDataset([Pets("a/", transform()), Pets("b/", transform())])`` has two objects; if they are
torchvision's own and equal in every attribute, records of both are made in the same way.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from headrace.migrate.look.recorders import Made, replaced_in
from headrace.migrate.translations.registry import known_name


class Names:
    """Maps each transform to its first name, and names to objects."""

    def __init__(self) -> None:
        self.reals: dict[str, Any] = {}

    def of(self, name: str, real: Any) -> str:
        for known, other in self.reals.items():
            if other is real or are_equal(other, real):
                return known
        self.reals[name] = real
        return name

    def replace(self, module: str, made: Made) -> None:
        """Replaces the values of a module with mocks."""
        space = vars(sys.modules[module])
        for name, value in replaced_in(space).items():
            space[name] = made(f"{module}.{name}", value)


def are_equal(first: Any, second: Any) -> bool:
    """Whether two transforms of torchvision have the same class and equal attributes."""
    return bool(known_name(first)) and _alike(first, second, 0)


def _alike(first: Any, second: Any, depth: int) -> bool:
    if type(first) is not type(second) or depth > 12:
        return False
    if first is second:
        return True
    if hasattr(first, "detach"):
        return first.shape == second.shape and bool((first == second).all())
    if isinstance(first, (list, tuple)):
        return len(first) == len(second) and all(
            _alike(a, b, depth + 1) for a, b in zip(first, second, strict=True)
        )
    if isinstance(first, Mapping):
        return list(first) == list(second) and all(
            _alike(first[key], second[key], depth + 1) for key in first
        )
    if known_name(first):
        return _alike(vars(first), vars(second), depth + 1)
    if isinstance(first, (set, frozenset)):
        return bool(first == second)
    if isinstance(first, (int, float, str, bytes, bool)) or hasattr(type(first), "__members__"):
        return bool(first == second)
    return False
