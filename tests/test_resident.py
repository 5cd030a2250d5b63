# SPDX-License-Identifier: Apache-2.0
"""Arrays that stay in memory, on the host or a device, are sliced into the batches of a loader."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from digests import hashes

import headrace as hr
from headrace import _core
from headrace import transforms as T


def arrays(records: int = 50) -> dict[str, Any]:
    random = np.random.default_rng(1)
    return {
        "image": random.integers(0, 256, (records, 3, 8, 8), np.uint8),
        "label": random.integers(0, 10, records),
        "weight": random.random((records, 2, 5), np.float32),
        "flag": random.integers(0, 2, records).astype(bool),
        "half": random.random((records, 3)).astype(np.float16),
        "point": random.random(records),
    }


@pytest.mark.parametrize("last_batch", ["keep", "drop", "pad"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_fields_are_the_rows_drawn_by_a_loader(shuffle: bool, last_batch: str) -> None:
    data = arrays()
    order = hr.Loader(
        [{"label": i} for i in range(50)],
        batch_size=8,
        shuffle=shuffle,
        seed=9,
        last_batch=last_batch,
    )
    batches = hr.resident(data, 8, shuffle, last_batch, seed=9)
    assert len(batches) == len(order)
    for _ in range(3):
        for batch, drawn in zip(batches, order, strict=True):
            assert batch._fields == tuple(data)
            for name, values in data.items():
                np.testing.assert_array_equal(batch[name], values[drawn.label])
                assert batch[name].dtype == values.dtype


def test_each_record_comes_once_per_epoch() -> None:
    for epoch in range(3):
        batches = hr.resident({"x": np.arange(1000)}, 7, shuffle=True, seed=epoch)
        drawn = np.concatenate([batch.x for batch in batches])
        assert sorted(drawn) == list(range(1000))
        assert list(drawn) != list(range(1000))


def test_id_and_valid_are_delivered() -> None:
    data = arrays()
    fields = ("valid", "id", "weight")
    seen = 0
    for batch in hr.resident(data, 16, True, "pad", fields=fields):
        np.testing.assert_array_equal(batch.weight, data["weight"][batch.id])
        seen += int(batch.valid.sum())
        assert len(batch.valid) == 16
    assert seen == 50


def test_batches_are_copies_and_keep_their_values() -> None:
    data = {"x": np.arange(64, dtype=np.int32)}
    batches = hr.resident(data, 4)
    kept = list(batches)
    for number, batch in enumerate(kept):
        np.testing.assert_array_equal(batch.x, np.arange(4 * number, 4 * number + 4))
        batch.x[:] = -1
    np.testing.assert_array_equal(data["x"], np.arange(64))
    assert batches.stats()["copies"] > 0


def test_memory_of_batches_is_reused() -> None:
    batches = hr.resident({"x": np.zeros((1000, 4096), np.uint8)}, 100, shuffle=True)
    places = set()
    for _ in range(50):
        for batch in batches:
            places.add(batch.x.__array_interface__["data"][0])
    assert len(places) <= 4
    assert batches.stats()["copies"] == 0


def test_views_share_the_memory_of_the_data() -> None:
    data = np.arange(40, dtype=np.float32).reshape(20, 2)
    batches = hr.resident({"x": data}, 8, view=True)
    for number, batch in enumerate(batches):
        assert np.shares_memory(batch.x, data)
        np.testing.assert_array_equal(batch.x, data[8 * number : 8 * number + 8])
    next(iter(batches)).x[:] = 7
    assert (data[:8] == 7).all()


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"shuffle": True}, r"the order is shuffled"),
        ({"sampler": [1, 0]}, r"the order is 2 given indices"),
        ({"last_batch": "pad"}, r'last_batch="pad" repeats records'),
        ({"transforms": [T.ToDtype("float32")]}, r"ToDtype\(dtype=float32\) is applied again"),
    ],
    ids=str,
)
def test_impossible_views_are_refused(given: Any, reason: str) -> None:
    with pytest.raises(hr.ConfigError, match=f"HR0892.*{reason}"):
        hr.resident(arrays(), 2, view=True, **given)


def test_transforms_on_arrays_equal_those_of_a_loader() -> None:
    data = {name: arrays()[name] for name in ("image", "label")}
    for transforms in (
        [T.Pad(2), T.RandomCrop(8), T.RandomHorizontalFlip(), T.ToDtype("float32", scale=True)],
        [T.Resize((5, 5))],
        [T.ToDtype("float16", scale=True)],
    ):
        streamed = hashes(
            hr.Loader(hr.records(**data), transforms, batch_size=8, shuffle=True, seed=2)
        )
        assert hashes(hr.resident(data, 8, True, seed=2, transforms=transforms)) == streamed


def test_fields_of_tuples_and_tensor_datasets_are_named_by_content() -> None:
    torch = pytest.importorskip("torch")
    images = torch.arange(6 * 4, dtype=torch.uint8).reshape(6, 1, 2, 2)
    labels, extra = torch.arange(6), torch.ones(6, 3)
    dataset = torch.utils.data.TensorDataset(images, labels, extra)
    for data in ((images, labels, extra), [images, labels, extra], dataset):
        (batch,) = hr.resident(data, 6).torch()
        assert batch._fields == ("image", "label", "data")
        assert torch.equal(batch.image, images)
        assert torch.equal(batch.label, labels)
        assert torch.equal(batch.data, extra)


def test_tensors_are_not_copied() -> None:
    torch = pytest.importorskip("torch")
    data = torch.zeros(4, 3)
    batches = hr.resident(data, 2, view=True).torch()
    assert next(iter(batches)).data.data_ptr() == data.data_ptr()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({}, "no arrays were given"),
        ({"a": np.zeros(3), "b": np.zeros(4)}, "a has 3, b has 4 records"),
        ({"a": np.array(["x"])}, "a is ndarray of <U1"),
        ({"a": np.zeros((0, 3))}, "a has no records"),
        ({"a": 5}, "a is int of object"),
    ],
    ids=str,
)
def test_objects_that_are_not_records_are_refused(data: Any, reason: str) -> None:
    with pytest.raises(hr.ConfigError, match=f"HR0893.*{reason}"):
        hr.resident(data, 2)


def large(records: int = 700) -> dict[str, Any]:
    """Batches of 64 take 480 kB, so that they are made ahead by threads."""
    random = np.random.default_rng(4)
    return {
        "image": random.integers(0, 256, (records, 3, 50, 50), np.uint8),
        "label": np.arange(records),
    }


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_prefetched_batches_have_the_drawn_rows(threads: int) -> None:
    data = large()
    batches = hr.resident(data, 64, True, seed=3, threads=threads)
    kept: list[Any] = []
    for _ in range(3):
        seen = []
        for batch in batches:
            kept = [*kept[-3:], batch]  # some of them while others are made
            for one in kept:
                np.testing.assert_array_equal(one.image, data["image"][one.label])
            seen += batch.label.tolist()
        assert sorted(seen) == list(range(700))


def test_crops_and_flips_equal_those_of_streaming_on_any_number_of_threads() -> None:
    data = large()
    steps = [T.RandomCrop(46, padding=3), T.RandomHorizontalFlip(), *FLOATS]
    for order in ("channels_first", "channels_last"):
        given: dict[str, Any] = {"seed": 2, "memory_format": order}
        streamed = hashes(
            hr.Loader(hr.records(**data), steps, batch_size=64, shuffle=True, **given), 2
        )
        for threads in (1, 2, 3):
            made = hr.resident(data, 64, True, transforms=steps, threads=threads, **given)
            assert hashes(made, 2) == streamed


def test_a_run_can_be_stopped_and_resumed_while_batches_are_prefetched() -> None:
    data = large()
    whole = [batch.label.tolist() for batch in hr.resident(data, 64, True, threads=2)]
    first = hr.resident(data, 64, True, threads=2)
    begun = []
    for batch in first:
        begun.append(batch.label.tolist())
        if len(begun) == 4:
            break
    state = first.state_dict()
    first.close()
    second = hr.resident(data, 64, True, threads=3)
    second.load_state_dict(state)
    assert begun + [batch.label.tolist() for batch in second] == whole
    second.set_epoch(0)
    assert next(iter(second)).label.tolist() == whole[0]


def test_a_forked_child_gets_an_error_instead_of_waiting() -> None:
    program = """
import os, sys
import numpy as np
import headrace as hr
batches = hr.resident({"x": np.zeros((640, 8192), np.uint8)}, 64, threads=2)
for batch in batches:
    break
child = os.fork()
if child == 0:
    try:
        next(iter(batches))
    except hr.ConfigError as error:
        os._exit(7 if "HR0701" in str(error) else 1)
    os._exit(2)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
sys.exit(code if sum(1 for _ in batches) == 10 else 3)
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=300, check=False).returncode == 7


def test_a_function_of_other_fields_still_runs_with_a_device() -> None:
    def doubled(x: Any) -> Any:
        return {"x": x * 2}

    data = {"x": np.arange(40, dtype=np.float32)}
    there = hr.resident(data, 8, transforms=[doubled], device=device())
    got = np.concatenate([np.array(batch.x) for batch in there])
    np.testing.assert_array_equal(got, np.arange(40) * 2)


def test_a_fraction_is_refused_on_the_host() -> None:
    batches = hr.resident({"x": np.arange(40)}, 8, fraction=0.5)
    with pytest.raises(hr.ConfigError, match=r"HR0895.*fraction=0\.5 with batches on"):
        next(iter(batches))
    there = batches.dlpack(device())
    assert np.concatenate([np.array(batch.x) for batch in there]).tolist() == list(range(40))


FLOATS = [T.ToDtype("float32", scale=True), T.Normalize([0.4, 0.5, 0.6], [0.2, 0.25, 0.3])]


# On a simulated device, which does its work as late and as much out of order as allowed.


def device(seed: int = 1, **given: Any) -> Any:
    return _core.simulated_device(seed, **given)


def on_host(batch: Any) -> list[np.ndarray[Any, Any]]:
    return [np.array(value) for value in batch]


@pytest.mark.parametrize("fraction", [1.0, 0.3])
@pytest.mark.parametrize("shuffle", [False, True])
def test_data_on_a_device_gives_the_same_batches(shuffle: bool, fraction: float) -> None:
    data = {name: arrays()[name] for name in ("image", "label")}
    transforms = [T.RandomCrop(8, padding=2), T.RandomHorizontalFlip(), *FLOATS]
    for steps in ((), transforms):
        host = hr.resident(data, 8, shuffle, "pad", transforms=steps)
        there = hr.resident(data, 8, shuffle, "pad", device(), transforms=steps, fraction=fraction)
        for _ in range(2):
            for expected, batch in zip(host, there, strict=True):
                assert isinstance(batch.image, hr.Array)
                for wanted, got in zip(expected, on_host(batch), strict=True):
                    np.testing.assert_array_equal(got, wanted)
        assert there.stats()["copies"] == 0


def test_batches_on_a_device_can_be_kept_changed_and_resumed_individually() -> None:
    """Many are sliced at once on a device, which has no visible effect."""
    data = {"x": np.arange(2000, dtype=np.int32).reshape(200, 10), "label": np.arange(200)}
    whole = [[np.array(v) for v in batch] for batch in hr.resident(data, 4, True)]
    there = hr.resident(data, 4, True, device=device())
    here = hr.resident(data, 4, True)
    kept = []
    for number, batch in enumerate(there):
        if number % 7 == 0:  # only received batches count
            assert there.state_dict()["batch"] == number + 1
            here.load_state_dict(there.state_dict())
            following = next(iter(here), None)
            assert following is None or following.label.tolist() == whole[number + 1][1].tolist()
        assert there.epoch == 0
        kept.append(batch)
        np.asarray(batch.x)[:] += 1
    for batch, expected in zip(kept, whole, strict=True):
        np.testing.assert_array_equal(np.asarray(batch.x), expected[0] + 1)
    for first in (0, 3, 13):  # the ones that were changed, and an arena that is released
        there.set_epoch(0)
        batches = iter(there)
        for number in range(first + 1):
            np.testing.assert_array_equal(np.array(next(batches).x), whole[number][0])
    np.testing.assert_array_equal(np.array(there.peek().x), whole[14][0])
    np.testing.assert_array_equal(np.array(next(batches).x), whole[14][0])


def test_an_undelivered_batch_is_delivered_again_unchanged() -> None:
    data = {"x": np.arange(40)}
    fails = [False, True, False, False, True, True] + [False] * 20

    def convert(array: Any) -> Any:
        np.asarray(array)[:] += 100  # and it no longer has its old contents
        if fails.pop(0):
            raise RuntimeError("no memory there")
        return np.array(array)

    view = hr.resident(data, 4).dlpack(device())
    view.form.convert = convert
    batches = iter(view)
    got: list[int] = []
    while len(got) < 40:
        with contextlib.suppress(RuntimeError):
            got += next(batches).x.tolist()
    assert got == list(range(100, 140))


def test_a_step_that_a_device_sometimes_cannot_do_fails_at_its_batch() -> None:
    data = {"image": np.random.default_rng(2).integers(0, 256, (4000, 1, 4, 4), np.uint8)}
    steps = [T.RandomHorizontalFlip(), T.RandomApply([T.RandomInvert(1.0)], p=0.003)]
    host = [batch.image for batch in hr.Loader(hr.records(**data), steps, batch_size=8)]
    for threads in (1, 3):
        there = hr.resident(data, 8, transforms=steps, device=device(), threads=threads)
        assert "not on simulated" not in repr(there)
        batches = iter(there)
        for number, expected in enumerate(host):
            try:
                batch = next(batches)
            except hr.Error as error:
                failed = re.search(r"HR0894.* at position (\d+) of epoch 0", str(error))
                assert failed and int(failed[1]) // 8 == number == there.state_dict()["batch"]
                break
            np.testing.assert_array_equal(np.array(batch.image), expected)
        else:
            pytest.fail("no record was inverted")
        assert number > 0
        with pytest.raises(hr.Error, match=f"HR0894.* at position {failed[1]} of epoch 0"):
            next(batches)


def test_a_state_goes_from_a_device_to_the_host() -> None:
    data = {"x": np.arange(40)}
    whole = [batch.x.tolist() for batch in hr.resident(data, 8, True)]
    there = hr.resident(data, 8, True, device=device())
    batches = iter(there)
    begun = [np.array(next(batches).x).tolist() for _ in range(2)]
    here = hr.resident(data, 8, True)
    here.load_state_dict(there.state_dict())
    assert begun + [batch.x.tolist() for batch in here] == whole


RESIZED: dict[str, list[Any]] = {
    "a random resized crop": [
        T.RandomResizedCrop(24),
        T.RandomHorizontalFlip(),
        *FLOATS,
        T.RandomErasing(p=0.5),
    ],
    "bicubic": [T.RandomResizedCrop((20, 30), interpolation="bicubic"), T.RandomHorizontalFlip()],
    "nearest": [T.RandomResizedCrop(16, interpolation="nearest"), *FLOATS],
    "a flip, a resize, a crop": [T.RandomVerticalFlip(), T.Resize((30, 41)), T.RandomCrop(25)],
    "a resize now and then": [T.RandomApply([T.RandomCrop(32), T.Resize((40, 36))]), *FLOATS],
    "larger": [T.RandomCrop(20), T.Resize((64, 52)), T.ToDtype("float16", scale=True)],
    "a flip alone": [T.RandomVerticalFlip()],
}


@pytest.mark.parametrize("fraction", [1.0, 0.3])
@pytest.mark.parametrize("name", RESIZED)
def test_images_are_resized_on_the_device(name: str, fraction: float) -> None:
    random = np.random.default_rng(4)
    data = {"image": random.integers(0, 256, (50, 3, 40, 36), np.uint8), "label": np.arange(50)}
    for shuffle, memory_format in ((True, "channels_first"), (False, "channels_last")):
        given = {"transforms": RESIZED[name], "memory_format": memory_format}
        host = hr.resident(data, 8, shuffle, "pad", **given)
        there = hr.resident(data, 8, shuffle, "pad", device(3), fraction=fraction, **given)
        for _ in range(2):
            for expected, batch in zip(host, there, strict=True):
                assert isinstance(batch.image, hr.Array)
                for wanted, got in zip(expected, on_host(batch), strict=True):
                    np.testing.assert_array_equal(got, wanted)
        assert "not on simulated" not in there.stats()["resident"]


def test_gray_images_and_two_views_are_resized_on_the_device() -> None:
    random = np.random.default_rng(4)
    data = {"image": random.integers(0, 256, (30, 1, 33, 27), np.uint8)}
    views = {name: [T.RandomResizedCrop(size)] for name, size in (("a", 16), ("b", 20))}
    for transforms in ([T.RandomResizedCrop(16)], [T.Fork("image", **views)]):
        there = hr.resident(data, 8, True, device=device(2), transforms=transforms)
        host = hr.resident(data, 8, True, transforms=transforms)
        for expected, batch in zip(host, there, strict=True):
            for wanted, got in zip(expected, on_host(batch), strict=True):
                np.testing.assert_array_equal(got, wanted)
        assert "not on simulated" not in repr(there)


@pytest.mark.parametrize(
    ("steps", "named"),
    [
        ([T.ColorJitter(0.4), T.Resize((5, 5))], "ColorJitter("),
        ([T.RandomResizedCrop(8), T.RandomInvert()], "RandomInvert("),
        ([T.RandomResizedCrop(8), T.RandomCrop(6), T.Resize((5, 5))], "Resize("),
    ],
)
def test_a_step_unsupported_on_a_device_is_named_and_runs_on_the_host(
    steps: list[Any], named: str
) -> None:
    data = {name: arrays()[name] for name in ("image", "label")}
    there = hr.resident(data, 8, True, device=device(), transforms=steps)
    host = hr.resident(data, 8, True, transforms=steps)
    for expected, batch in zip(host, there, strict=True):
        np.testing.assert_array_equal(np.array(batch.image), expected.image)
    text = there.stats()["resident"]
    assert f"not on simulated: {named}" in text and "is not supported there" in text


def test_data_too_large_for_a_device_is_refused_with_a_fraction_that_fits() -> None:
    data = {"x": np.zeros((1000, 1000), np.uint8)}
    small = device(memory_limit=600_000)
    with pytest.raises(hr.ResourceLimitError, match=r"HR0891.*1\.0 MiB for 1000 records") as caught:
        next(iter(hr.resident(data, 10, device=small)))
    fraction = float(caught.value.hint.split()[0].removeprefix("fraction="))
    assert sum(1 for _ in hr.resident(data, 10, device=small, fraction=fraction)) == 100
    for wrong in (0, 1.5, -1, True, "half"):
        with pytest.raises(hr.ConfigError, match="fraction must be a number above 0"):
            hr.resident(data, 10, device=small, fraction=wrong)


def test_batches_for_several_devices_are_copied_in_parts_from_host_memory() -> None:
    data = {"x": np.arange(40)}
    whole = [batch.x for batch in hr.resident(data, 8, True)]
    parts = hr.resident(data, 8, True).dlpack([device(1), device(2)])
    for _ in range(2):
        for expected, batches in zip(whole, parts, strict=True):
            both = np.concatenate([np.array(batch.x) for batch in batches])
            np.testing.assert_array_equal(both, expected)
        parts.set_epoch(0)
