# SPDX-License-Identifier: Apache-2.0
"""Lists: the array's values as Python numbers."""

from __future__ import annotations

import numpy as np

import headrace as hr


class Numbers:
    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> dict[str, object]:
        return {"x": np.float32([index, -index])}


def test_batches_are_lists() -> None:
    with hr.Loader(Numbers(), batch_size=3) as loader:
        batches = [batch[0] for batch in loader.template()]  # type: ignore[attr-defined]
    assert batches == [[[0, 0], [1, -1], [2, -2]], [[3, -3], [4, -4], [5, -5]]]
