# SPDX-License-Identifier: Apache-2.0
"""Read tasks of hr.ray.datasource together have the batches of one loader, for any division."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from headrace.ray.data import batches_before, divided

import headrace as hr

RECORDS = 36
BAD: dict[str, set[int]] = {
    "one batch": {6, 7, 8},  # of records in order, in batches of three
    "neighbors": {6, 7, 8, 9, 10, 11, 12, 13, 14},
    "the first": {0, 1, 2},
    "the last": {33, 34, 35},
    "scattered": {2, 9, 10, 11, 15, 23, 24, 25, 26},
}


class Records:
    """A list of numbers, some of which cannot be read."""

    def __init__(self) -> None:
        self.bad: set[int] = set()

    def __len__(self) -> int:
        return RECORDS

    def __getitem__(self, index: int) -> dict[str, Any]:
        if index in self.bad:
            raise ValueError(f"record {index} is damaged")
        return {"x": np.float32([index])}


def numbers(batches: Any) -> list[list[int]]:
    return [batch.x[:, 0].astype(int).tolist() for batch in batches]


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("bad", BAD)
def test_no_row_is_read_by_two_tasks_when_whole_batches_are_bad(bad: str, shuffle: bool) -> None:
    given: dict[str, Any] = {"batch_size": 3, "on_error": "skip", "shuffle": shuffle, "seed": 3}
    records = Records()
    source = hr.open(records)  # which looks at the first one
    records.bad = BAD[bad]
    with hr.Loader(source, **given) as alone:
        count, state, wanted = len(alone), alone.state_dict(), numbers(alone)
    for size in range(1, count + 1):
        parts = []
        for first, end in divided(count, size, 1):
            with hr.Loader(source, **given) as part:
                part.load_state_dict({**state, "batch": first})
                parts.append(numbers(batches_before(end, part)))
        assert list(itertools.chain.from_iterable(parts)) == wanted, size


def test_tasks_divide_the_batches_without_gap_or_overlap() -> None:
    for batches, most, tasks in itertools.product(range(20), range(1, 9), range(1, 25)):
        parts = divided(batches, most, tasks)
        taken = [batch for first, end in parts for batch in range(first, end)]
        assert taken == list(range(batches))
        assert all(0 < end - first <= most for first, end in parts)
        assert len(parts) >= min(batches, tasks) // 2  # of one size, so not always as many
