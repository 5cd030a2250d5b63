# SPDX-License-Identifier: Apache-2.0
"""The wait for a batch has a name in the traces of PyTorch's profiler."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import headrace as hr

torch = pytest.importorskip("torch")


def loader() -> Any:
    return hr.Loader(hr.records(x=np.arange(10)), batch_size=2)


def waits_in(profiler: Any) -> int:
    return sum(event.name == "headrace.next" for event in profiler.events())


def test_each_wait_is_a_region_of_the_profiler() -> None:
    with torch.profiler.profile() as profiler:
        assert len([batch for batch in loader().torch()]) == 5
    assert waits_in(profiler) == 6  # the last one reaches the epoch's end


def test_each_wait_for_a_prefetched_batch_is_a_region_too() -> None:
    with torch.profiler.profile() as profiler:
        batches = [torch.zeros(2) for _ in range(3)]
        assert len(list(hr.prefetch(batches, "cpu"))) == 3
    assert waits_in(profiler) == 4


def test_the_region_ends_with_the_wait() -> None:
    with torch.profiler.profile() as profiler:
        for batch in loader().torch():
            (batch[0] if isinstance(batch, (tuple, list)) else batch.x) + 1
    named = [e for e in profiler.events() if e.name in ("headrace.next", "aten::add")]
    spans = sorted((e.time_range.start, e.time_range.end) for e in named)
    assert len(spans) == 11
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))


def test_no_region_is_made_without_a_profiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("a region was made")

    monkeypatch.setattr(torch.autograd.profiler, "record_function", fail)
    assert len(list(loader().torch())) == 5
