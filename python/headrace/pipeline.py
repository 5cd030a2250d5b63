# SPDX-License-Identifier: Apache-2.0
"""The argument ``transforms=`` of a loader: one list for the record, or one list per field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace import _core
from headrace.steps import Runner
from headrace.transforms import flatten


class Pipeline:
    """The transforms of a loader: one list, or one list per field."""

    def __init__(self, transforms: Any) -> None:
        self.steps: list[Any] = []
        self.by_field: dict[str, list[Any]] = {}
        self.dropped: list[str] = []
        if not isinstance(transforms, Mapping):
            self.steps = flatten(transforms)
            return
        for name, value in transforms.items():
            if value is None:
                self.dropped.append(name)
            else:
                self.by_field[name] = flatten(value)

    def list_specs(self, runner: Runner | None = None) -> list[_core.Spec]:
        return [step.spec(runner) for step in self.steps]

    def field_specs(self, runner: Runner | None = None) -> dict[str, list[_core.Spec]]:
        return {
            name: [step.spec(runner) for step in steps] for name, steps in self.by_field.items()
        }

    def all_steps(self) -> list[Any]:
        return [*self.steps, *(step for steps in self.by_field.values() for step in steps)]

    def prefix(self, count: int) -> Pipeline:
        """The first ``count`` of all steps."""
        out = Pipeline(())
        out.dropped = self.dropped
        out.steps = self.steps[:count]
        for name, steps in self.by_field.items():
            left = max(0, count - len(self.steps) - sum(map(len, out.by_field.values())))
            out.by_field[name] = steps[:left]
        return out
