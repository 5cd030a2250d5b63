# SPDX-License-Identifier: Apache-2.0
"""A part of a job: its records, and the names of its files.

>>> part = part_from("3/256")
>>> part.name, part.of(1_000_000)
('part-00003-of-00256', range(11718, 15625))
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from headrace import arguments

MOST_PARTS = 99_999  # five digits: names sort as the parts do


class Part(NamedTuple):
    """One of ``parts`` equal shares of the records; the first is number 0."""

    number: int
    parts: int

    @property
    def name(self) -> str:
        return f"part-{self.number:05}-of-{self.parts:05}"

    def of(self, records: int, longer_first: bool = False) -> range:
        """The records of the part. Raises BAD_VALUE if there are more parts than records.
        longer_first: if they do not divide evenly, the first parts have one record more, as in
        packs.
        """
        if self.parts > max(1, records):
            raise arguments.BAD_VALUE.error(
                f"part: {self.parts} parts of {records} records", hint="use fewer parts"
            )
        ends = self.number, self.number + 1
        if longer_first:
            size, rest = divmod(records, self.parts)
            return range(*(size * at + min(at, rest) for at in ends))
        return range(*(records * at // self.parts for at in ends))


def part_from(given: Any) -> Part:
    """Parses (3, 256) or "3/256". Raises ConfigError HR0160 if the argument has any other form, or
    the part does not exist.
    """
    numbers = given
    if isinstance(given, str):
        match = re.fullmatch(r"(\d+)/(\d+)", given)
        numbers = match and tuple(map(int, match.groups()))
    if not isinstance(numbers, (tuple, list)) or len(numbers) != 2:
        raise arguments.BAD_VALUE.error(
            f"part must be its number and the number of parts (got {given!r})",
            hint='part=(3, 256), or "3/256"; the first is part 0',
        )
    parts = arguments.integer("part[1]", numbers[1], 1, MOST_PARTS)
    number = arguments.integer("part[0]", numbers[0])
    if number >= parts:
        raise arguments.BAD_VALUE.error(
            f"part {number} of {parts}: the last is part {parts - 1}", hint="the first is part 0"
        )
    return Part(number, parts)
