# SPDX-License-Identifier: Apache-2.0
"""A loader's batches on devices: the same ones, in the same order, counted when received."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

import headrace as hr
from headrace import _core


def simulated(seed=1):
    return _core.simulated_device(seed)


def loader(**options):
    rng = np.random.default_rng(0)
    data = [(rng.integers(0, 255, (3, 80, 90), dtype=np.uint8), i) for i in range(50)]
    return hr.Loader(data, batch_size=8, shuffle=True, seed=3, **options)


def copied(batch):
    return tuple(np.array(value) for value in batch)


def equal(batches, others):
    return len(batches) == len(others) and all(
        (a == b).all()
        for one, two in zip(batches, others, strict=True)
        for a, b in zip(one, two, strict=True)
    )


def test_a_loader_delivers_the_same_batches_to_a_device():
    expected = [[copied(batch) for batch in loader()], []]
    train = loader()
    view = train.dlpack(device=simulated(), depth=3)
    assert equal([copied(batch) for batch in view], expected[0])
    assert train.epoch == 1
    second = [copied(batch) for batch in view]
    host = loader()
    host.set_epoch(1)
    assert equal(second, [copied(batch) for batch in host])


def test_a_loaders_slots_are_copied_in_place():
    view = loader().dlpack(device=simulated())
    for _ in view:
        pass
    # 50 labels are below 64 KiB and pass through staging; 7 batches of pictures do not.
    assert view.stats()["devices"]["simulated"]["pinned_bytes"] <= 3 * 8192


def test_a_loaders_state_counts_what_was_received_on_the_device():
    expected = [copied(batch) for batch in loader()]
    train = loader()
    run = iter(train.dlpack(device=simulated(), depth=4))
    got = [copied(next(run)) for _ in range(3)]
    assert train.state_dict()["batch"] == 3
    rest = loader()
    rest.load_state_dict(train.state_dict())
    got += [copied(batch) for batch in rest.dlpack(device=simulated(2))]
    assert equal(got, expected)


def test_a_loader_may_alternate_between_host_and_device():
    train = loader()
    for i, _ in enumerate(train.dlpack(device=simulated())):
        if i == 2:
            break
    assert (train.epoch, train.state_dict()["batch"]) == (0, 3)
    train.set_epoch(0)
    expected = [copied(batch) for batch in loader()]
    assert equal([copied(batch) for batch in train], expected)
    train.set_epoch(0)
    assert equal([copied(batch) for batch in train.dlpack(device=simulated())], expected)
    assert equal([copied(train.dlpack(device=simulated()).batch(0, 1))], expected[1:2])


def test_a_bad_record_ends_the_run_at_its_batch_and_can_be_retried(tmp_path):
    for i in range(20):
        Image.new("RGB", (20, 20), (i, 0, 0)).save(tmp_path / f"{i:02}.png")
    (tmp_path / "13.png").write_bytes(b"no picture")
    transforms = [hr.transforms.Resize((20, 20))]
    view = hr.Loader(tmp_path, transforms, batch_size=4).dlpack(device=simulated(), depth=3)
    run = iter(view)
    for i in range(3):
        assert np.asarray(next(run)[0])[0, 0, 0, 0] == 4 * i
    with pytest.raises(hr.DataError, match=r"13\.png"):
        next(run)
    assert view.state_dict()["batch"] == 3


def test_one_loader_feeds_several_devices_with_the_same_sequence():
    expected = [copied(batch) for batch in loader(fields=("image", "label", "key"))]
    for count in (1, 2, 4, 8):
        train = loader(fields=("image", "label", "key"))
        view = train.dlpack(device=[simulated(i) for i in range(count)], depth=2)
        got = []
        for parts in view:
            assert type(parts) is tuple and len(parts) == count
            rows = [np.asarray(part.label).shape[0] for part in parts]
            assert max(rows) - min(rows) <= 1
            got.append(
                (
                    np.concatenate([np.asarray(part.image) for part in parts]),
                    np.concatenate([np.asarray(part.label) for part in parts]),
                    np.array([key for part in parts for key in part.key]),
                )
            )
        assert equal(got, expected)
        assert train.epoch == 1


def test_several_devices_resume_at_a_batch():
    expected = [copied(batch) for batch in loader()]
    view = loader().dlpack(device=[simulated(1), simulated(2)], depth=3)
    run = iter(view)
    for _ in range(4):
        next(run)
    rest = loader()
    rest.load_state_dict(view.state_dict())
    assert equal([copied(batch) for batch in rest], expected[4:])
