# SPDX-License-Identifier: Apache-2.0
"""The wait for a batch has a name in the traces of PyTorch's profiler."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace import _core

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


def profiled_on_all_threads() -> Any:
    configuration = torch._C._profiler._ExperimentalConfig
    try:
        every = configuration(profile_all_threads=True)
    except TypeError:
        pytest.skip("this torch only profiles the threads that it knows")
    return torch.profiler.profile(experimental_config=every)


def test_the_stages_of_a_prefetcher_are_regions_of_its_thread() -> None:
    with profiled_on_all_threads() as profiler:
        batches = [torch.zeros(2) for _ in range(3)]
        for _ in hr.prefetch(batches, "cpu", transform=lambda batch: batch + 1):
            pass
    counts = {event.key: event.count for event in profiler.key_averages()}
    assert counts["headrace.source"] == 4  # the last one finds the end
    assert counts["headrace.transform"] == 3
    waits = {event.thread for event in profiler.events() if event.name == "headrace.next"}
    stages = {event.thread for event in profiler.events() if event.name == "headrace.source"}
    assert len(waits) == len(stages) == 1 and waits != stages


def test_a_transform_after_the_copy_is_a_region_inside_the_wait() -> None:
    device = _core.simulated_device(1)
    with torch.profiler.profile() as profiler:
        batches = [np.zeros(2, np.float32) for _ in range(3)]
        for _ in hr.prefetch(batches, device, transform=lambda batch: batch):
            pass
    spans = {"headrace.next": [], "headrace.transform": []}
    for event in profiler.events():
        if event.name in spans:
            spans[event.name].append((event.time_range.start, event.time_range.end))
    assert len(spans["headrace.transform"]) == 3
    for begin, end in spans["headrace.transform"]:
        assert any(b <= begin and end <= e for b, e in spans["headrace.next"])


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
