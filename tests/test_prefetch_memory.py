# SPDX-License-Identifier: Apache-2.0
"""hr.prefetch takes no more memory than documented: batches ahead, pinned memory, the device's."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace import _core


def simulated(seed=1, **options):
    return _core.simulated_device(seed, **options)


def numbered(n, shape=(3, 5)):
    for i in range(n):
        yield np.full(shape, i, np.int32)


def test_the_source_is_at_most_depth_ahead():
    taken = []
    for depth in (1, 2, 5):
        taken.clear()

        def source():
            for i in range(50):
                taken.append(i)
                yield np.full(4, i)

        for i, _ in enumerate(hr.prefetch(source(), simulated(), depth=depth)):
            # the source may hold one more
            assert len(taken) <= i + 1 + depth + 1


def test_memory_does_not_grow_and_held_batches_stay_valid():
    batches = hr.prefetch(numbered(3000, (64, 1024)), simulated(), depth=2)
    kept = []
    for i, batch in enumerate(batches):
        if i == 100:
            before = batches.stats()["device_bytes"]
        if i % 500 == 0:
            kept.append((i, batch))
        del batch
    stats = batches.stats()
    assert stats["batches"] == 3000
    for i, batch in kept:
        assert (batch == i).all()
    # 3 batches in the ring; additional batches that are kept have separate memory
    assert before <= 3 * 64 * 1024 * 4 * 9 // 8 + 3 * 8192
    assert stats["device_bytes"] <= before + (len(kept) + 1) * 64 * 1024 * 4 * 9 // 8 + 65536


def test_a_consumer_that_holds_every_batch_is_warned_once_and_gets_all():
    with pytest.warns(hr.Warning, match="keeps 3 batches") as caught:
        kept = list(hr.prefetch(numbered(30, (300, 300)), simulated(), depth=2))
    assert len([w for w in caught if "keeps" in str(w.message)]) == 1
    for i, batch in enumerate(kept):
        assert (batch == i).all()


def test_out_of_device_memory_is_an_error_with_the_sizes_and_recoverable():
    batches = hr.prefetch(
        [np.zeros(1 << n, np.uint8) for n in range(10, 24)], simulated(memory_limit=1 << 20)
    )
    with pytest.raises(hr.ResourceLimitError, match=r"HR0880 .* MiB are needed") as caught:
        list(batches)
    assert isinstance(caught.value, MemoryError)
    assert (next(iter(batches)) == 0).all()


def test_unpinnable_memory_is_used_with_one_warning():
    with pytest.warns(hr.Warning, match="cannot be pinned"):
        got = list(hr.prefetch(numbered(5), simulated(pins=False)))
    assert len(got) == 5


def test_pinned_memory_stays_within_its_limit():
    batches = hr.prefetch(numbered(50, (64, 1024)), simulated(), depth=4, pinned_limit="600 KiB")
    assert all((batch == i).all() for i, batch in enumerate(batches))
    assert 0 < batches.stats()["pinned_bytes"] <= 600 * 1024
