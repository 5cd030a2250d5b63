# SPDX-License-Identifier: Apache-2.0
"""The report on each part of a DataLoader."""

from __future__ import annotations

import dataclasses

from headrace.printable import for_terminal

NATIVE, PYTHON, DROPPED = "native", "Python transform", "not needed"
CHANGED, ADVICE = "changed", "advice"


@dataclasses.dataclass(frozen=True)
class Part:
    """One part: its name, how it was translated (one of the words above), and a note."""

    name: str
    became: str
    note: str = ""
    cost: str = ""  # cost of a Python transform
    way: str = ""  # advice on how to make it native


class Report:
    """The parts in the order of the data, and the result of comparing records.

    ``native``, ``python``, ``dropped``, ``changed`` and ``advice`` are the parts by kind of
    translation. ``differences`` has the largest difference found in each compared field.
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self.parts: list[Part] = []
        self.differences: dict[str, float] = {}
        self.filtered: dict[
            str, str
        ] = {}  # fields whose original uses another filter, with its name
        self.records_checked = 0

    def add(self, name: str, became: str, note: str = "", cost: str = "", way: str = "") -> None:
        self.parts.append(Part(name, became, note, cost, way))

    def _those(self, became: str) -> list[Part]:
        return [part for part in self.parts if part.became == became]

    @property
    def native(self) -> list[Part]:
        return self._those(NATIVE)

    @property
    def python(self) -> list[Part]:
        return self._those(PYTHON)

    @property
    def dropped(self) -> list[Part]:
        return self._those(DROPPED)

    @property
    def changed(self) -> list[Part]:
        return self._those(CHANGED)

    @property
    def advice(self) -> list[Part]:
        return self._those(ADVICE)

    def __str__(self) -> str:
        lines = [self.title]
        for part in self.parts:
            note = f": {part.note}" if part.note else ""
            lines.append(f"  {part.became:<12} {part.name}{note}")
            lines += [f"  {'':<12} {more}" for more in (part.cost, part.way) if more]
        if self.records_checked:
            found = ", ".join(
                f"{name} {f'differs by at most {largest:.2g}' if largest else 'equal'}"
                + (f" ({self.filtered[name]})" if name in self.filtered else "")
                for name, largest in self.differences.items()
            )
            lines.append(f"  {'compared':<12} {self.records_checked} records: {found}")
        return for_terminal("\n".join(lines))

    __repr__ = __str__
