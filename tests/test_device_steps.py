# SPDX-License-Identifier: Apache-2.0
"""Steps on a device: tables, mixed rows, and steps after ToDevice()."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_batches import (
    MEAN,
    RECORDS,
    SIZE,
    STD,
    copied,
    devices,
    epoch,
    fields_of,
    loader,
    records,
    train,
)

import headrace as hr
from headrace import _core
from headrace import transforms as T


def negative(image: Any) -> Any:
    return 1 - image


def toned(name: str) -> list[Any]:
    """Tables for the last colors of a recipe, some of which are measured by a thread."""
    return {
        "brightness": [T.AdjustBrightness(1.3)],
        "gamma": [T.AdjustGamma(0.7)],
        "posterize": [T.RandomPosterize(3, p=0.5)],
        "solarize": [T.RandomSolarize(128, p=0.5)],
        "invert": [T.RandomInvert(p=0.5)],
        "equalize": [T.RandomEqualize(p=0.5)],
        "contrast": [T.AdjustContrast(0.6)],
        "jitter": [T.ColorJitter(brightness=0.4, contrast=0.4)],
        "several": [T.RandomPosterize(4), T.RandomInvert(), T.RandomSolarize(100)],
        "after colors": [T.RandomGrayscale(0.5), T.ColorJitter(0.4, 0.4, 0.4, 0.1)],
        "a policy": [T.RandAugment()],
        "none": [],
    }[name]


TONES = ["brightness", "gamma", "posterize", "solarize", "invert", "equalize", "contrast", "jitter"]


@pytest.mark.parametrize("tone", [*TONES, "several", "after colors", "a policy"])
def test_tables_at_the_end_of_a_recipe_are_copied_instead_of_their_results(tone: str) -> None:
    steps = [
        T.RandomResizedCrop(SIZE),
        T.RandomHorizontalFlip(),
        *toned(tone),
        T.ToDtype("float32", scale=True),
        T.Normalize(MEAN, STD),
        T.RandomErasing(p=0.3, value=[0.1, 0.2, 0.3]),
    ]
    expected = epoch(loader(steps).dlpack())
    for device in devices():
        view = loader(steps).dlpack(device)
        assert epoch(view) == expected
        counted = copied(view)
        assert counted["bytes"] < 0.3 * counted["delivered_bytes"]
        assert view.stats()["finished_before_transfer"] == {}


@pytest.mark.parametrize("memory_format", ["channels_first", "channels_last"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "uint8"])
def test_tables_of_every_dtype_and_layout_equal_the_hosts(dtype: str, memory_format: str) -> None:
    steps = [T.RandomResizedCrop(SIZE), *toned("several"), *toned("equalize"), T.ToDtype(dtype)]
    for channels in (1, 3):
        source = records(channels)
        expected = epoch(loader(steps, source, memory_format=memory_format).dlpack())
        view = loader(steps, source, memory_format=memory_format, finish="device").dlpack(
            _core.simulated_device(seed=4)
        )
        assert epoch(view) == expected


@pytest.mark.parametrize("fill", [0, 9, [200, 3, 77]])
def test_the_table_applies_to_a_border(fill: Any) -> None:
    last = [T.ToDtype("float32", scale=True)]
    for steps in (
        [T.Resize((60, 60)), T.Pad(2, fill=fill), *toned("several"), *last],
        [T.Resize((60, 60)), *toned("several"), T.Pad(2, fill=fill), *last],
        [T.Resize((60, 60)), T.RandomPosterize(1, p=1.0), T.Pad(2, fill=fill), *last],
    ):
        expected = epoch(loader(steps).dlpack())
        for device in devices():
            assert epoch(loader(steps).dlpack(device)) == expected


def mixing(name: str) -> list[Any]:
    return {
        "mixup": [T.MixUp(num_classes=RECORDS, group=4)],
        "each its own": [T.MixUp(num_classes=RECORDS, group=4, per_record=True)],
        "cutmix": [T.CutMix(num_classes=RECORDS, group=4)],
        "one of them": [
            T.RandomChoice(
                [
                    [T.MixUp(num_classes=RECORDS, group=4)],
                    [T.CutMix(num_classes=RECORDS, group=4, per_record=True)],
                ]
            )
        ],
        "both, some": [
            T.RandomApply([T.MixUp(num_classes=RECORDS, group=2)], p=0.5),
            T.CutMix(num_classes=RECORDS, group=4),
        ],
    }[name]


MIXES = ["mixup", "each its own", "cutmix", "one of them", "both, some"]


@pytest.mark.parametrize("mix", MIXES)
def test_rows_are_mixed_on_the_device_and_labels_on_the_host(mix: str) -> None:
    steps = [*train(), *mixing(mix)]
    for memory_format in ("channels_first", "channels_last"):
        expected = epoch(loader(steps, memory_format=memory_format).dlpack())
        for device in devices():
            view = loader(steps, memory_format=memory_format).dlpack(device)
            assert epoch(view) == expected
            assert "is copied as uint8" in view.stats()["finish"]
            labels = RECORDS * RECORDS * 4
            pixels = RECORDS * 3 * SIZE * SIZE
            beside = RECORDS * (48 + 56 + 16) + 7 * 3072
            assert copied(view)["bytes"] < pixels + labels + beside


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "uint8"])
def test_rows_of_every_dtype_are_mixed_as_on_the_host(dtype: str) -> None:
    for mix in (T.MixUp, T.CutMix):
        steps = [T.RandomResizedCrop(SIZE), T.ToDtype(dtype, scale=True)]
        steps.append(mix(num_classes=RECORDS, group=8, uint8=True))
        expected = epoch(loader(steps).dlpack())
        assert epoch(loader(steps, finish="device").dlpack(_core.simulated_device(2))) == expected


def test_rows_finished_on_the_host_are_mixed_with_the_others() -> None:
    steps = [*train("float32", T.RandomErasing(p=0.5, value="random")), *mixing("both, some")]
    expected = epoch(loader(steps).dlpack())
    for device in devices():
        assert epoch(loader(steps).dlpack(device)) == expected


def test_mixed_rows_of_ranks_and_of_several_devices_equal_those_of_one() -> None:
    steps = [*train(), *mixing("both, some")]
    whole = epoch(loader(steps, batch_size=16, last_batch="drop").dlpack())
    ranks = [
        epoch(
            loader(steps, batch_size=8, shard=(rank, 2), last_batch="drop").dlpack(
                _core.simulated_device(rank)
            )
        )
        for rank in range(2)
    ]
    for expected, *parts in zip(whole, *ranks, strict=True):
        assert b"".join(part[0][3] for part in parts) == expected[0][3]
    for finish in ("cpu", "device"):
        view = loader(steps, batch_size=16, finish=finish, last_batch="drop").dlpack(
            [_core.simulated_device(seed=n) for n in range(3)]
        )
        for parts, expected in zip(view, whole, strict=True):
            fields = [fields_of(part) for part in parts]
            assert b"".join(field[0][3] for field in fields) == expected[0][3]
            assert b"".join(field[1][3] for field in fields) == expected[1][3]
            assert all(part.label.shape[0] % 4 == 0 for part in parts)  # whole groups


def test_a_mixed_run_resumes_in_the_middle_on_another_device() -> None:
    steps = [*train(), *mixing("one of them")]
    expected = epoch(loader(steps).dlpack())
    view = loader(steps).dlpack(_core.simulated_device(seed=1), depth=4)
    run = iter(view)
    got = [fields_of(next(run)) for _ in range(3)]
    rest = loader(steps)
    rest.load_state_dict(view.state_dict())
    assert got + epoch(rest.dlpack(_core.open_device("cpu"))) == expected


def test_to_device_is_the_explicit_form_with_the_same_numbers() -> None:
    tail = [*toned("several"), T.ToDtype("float32", scale=True), T.Normalize(MEAN, STD)]
    plain = [T.RandomResizedCrop(SIZE), T.RandomHorizontalFlip(), *tail, *mixing("mixup")]
    expected = epoch(loader(plain).dlpack())
    given = [*plain[:2], T.ToDevice(), *plain[2:]]
    assert epoch(loader(given).dlpack()) == expected  # the host does it if batches stay on the host
    for device in devices():
        view = loader(given).dlpack(device)
        assert epoch(view) == expected
        assert "is copied as uint8" in view.stats()["finish"]
        assert epoch(loader(given, finish="cpu").dlpack(device)) == expected
    named = {"image": [*plain[:2], T.ToDevice(), *tail]}
    expected = epoch(loader({"image": [*plain[:2], *tail]}).dlpack())
    assert epoch(loader(named).dlpack(devices()[1])) == expected


def test_to_device_finishes_bytes_too_if_a_step_follows() -> None:
    steps = [T.RandomCrop(40), T.ToDevice(), T.RandomInvert(p=0.5)]
    expected = epoch(loader([steps[0], steps[2]]).dlpack())
    view = loader(steps).dlpack(_core.simulated_device(seed=4))
    assert epoch(view) == expected
    assert "is copied as uint8" in view.stats()["finish"]
    view = loader([T.RandomCrop(40), T.ToDevice()]).dlpack(_core.simulated_device(seed=4))
    assert epoch(view) == epoch(loader([T.RandomCrop(40)]).dlpack())


def test_an_unsupported_step_after_to_device_is_refused_before_a_thread_starts() -> None:
    with pytest.raises(hr.ConfigError, match=r"(?s)HR0138.*GaussianBlur.*ToDtype") as caught:
        loader([T.RandomCrop(64), T.ToDevice(), T.GaussianBlur(3)])
    assert "transform 3 of the list" in str(caught.value)
    with pytest.raises(hr.ConfigError, match=r"(?s)HR0138.*negative"):
        loader([T.RandomCrop(64), T.ToDevice(), negative])


def test_a_later_obstacle_is_an_error_for_to_device() -> None:
    source = [(np.zeros((3, 512, 512), np.uint8), 0)] * 32
    steps = [T.RandomCrop(512), T.ToDevice(), T.ToDtype("float32", scale=True)]
    erased = [*steps[:1], T.ToDtype("float32", scale=True), T.RandomErasing(value="random")]
    given = {"batch_size": 8, "threads": 1, "memory_limit": "72 MiB"}
    view = hr.Loader(source, erased, **given).dlpack(_core.simulated_device(seed=1))
    next(iter(view))
    assert "no room" in view.stats()["finish"]
    view = hr.Loader(source, steps, **given).dlpack(_core.simulated_device(seed=1))
    next(iter(view))
    assert "is copied as uint8" in view.stats()["finish"]
    given["memory_limit"] = "20 MiB"
    with pytest.raises(hr.ConfigError, match="HR0702"):
        next(iter(hr.Loader(source, steps, **given).dlpack(_core.simulated_device(seed=1))))
