# SPDX-License-Identifier: Apache-2.0
"""The last operations on images run on the device: bytes are copied, and the batches equal the
host's."""

from __future__ import annotations

import json
from pathlib import Path
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
from PIL import Image
from processes import run_command

import headrace as hr
from headrace import _core
from headrace import transforms as T


@pytest.mark.parametrize("memory_format", ["channels_first", "channels_last"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_batches_equal_those_finished_on_the_host_in_a_fraction_of_the_bytes(
    dtype: str, memory_format: str
) -> None:
    erasing = T.RandomErasing(p=0.5, value=[0.1, 0.2, 0.3])
    expected = epoch(loader(train(dtype, erasing), memory_format=memory_format).dlpack())
    item = 4 if dtype == "float32" else 2
    for device in devices():
        for finish in ("auto", "device", "cpu"):
            view = loader(train(dtype, erasing), memory_format=memory_format, finish=finish).dlpack(
                device
            )
            assert epoch(view) == expected
            counted = copied(view)
            labels, pixels = RECORDS * 8, RECORDS * 3 * SIZE * SIZE
            assert counted["delivered_bytes"] == pixels * item + labels
            if finish == "cpu":
                assert counted["bytes"] == counted["delivered_bytes"]
                assert counted["scratch_bytes"] == 0
            else:  # in addition, some numbers per record, and a table per batch
                tables = 7 * 3 * 256 * item
                assert counted["bytes"] == pixels + labels + RECORDS * 48 + tables


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_bytes_can_be_finished_on_the_device_on_request(channels: int) -> None:
    steps = [T.RandomCrop(40), T.RandomHorizontalFlip(), T.RandomErasing(p=0.5, value=7)]
    source = records(channels)
    for memory_format in ("channels_first", "channels_last"):
        expected = epoch(loader(steps, source, memory_format=memory_format).dlpack())
        view = loader(steps, source, memory_format=memory_format, finish="device").dlpack(
            _core.simulated_device(seed=4)
        )
        assert epoch(view) == expected
        assert "is copied as uint8" in view.stats()["finish"]
    view = loader(steps, source).dlpack(_core.simulated_device(seed=4))
    next(iter(view))
    assert "delivered as bytes" in view.stats()["finish"]


@pytest.mark.parametrize(
    "more",
    [
        [T.RandomErasing(p=0.6, value="random")],
        [T.RandomErasing(p=0.6), T.RandomErasing(p=0.6, value=1.0)],
        [T.RandomApply([T.Resize(SIZE, antialias=True), T.Pad(0)], p=0.5)],
        [T.RandomHorizontalFlip(), T.RandomVerticalFlip(), T.RandomErasing(p=1.0)],
        [T.RandomApply([T.ColorJitter(brightness=0.5)], p=0.3)],
        [T.RandomApply([T.Normalize([0.1], [0.7])], p=0.5)],
    ],
    ids=["noise", "two rectangles", "nothing", "flips", "colors of floats", "several maps"],
)
def test_fields_that_a_device_cannot_finish_are_copied_as_delivered(more: list[Any]) -> None:
    expected = epoch(loader(train("float32", *more)).dlpack())
    for device in devices():
        for finish in ("auto", "cpu"):
            assert epoch(loader(train("float32", *more), finish=finish).dlpack(device)) == expected


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ([T.RandomErasing(p=1.0, value="random")], "a rectangle of noise"),
        ([T.RandomErasing(p=1.0), T.RandomErasing(p=1.0)], "several rectangles"),
    ],
)
def test_rows_copied_as_delivered_are_counted_by_reason(more: list[Any], why: str) -> None:
    erased = loader(train("float32", *more), batch_size=RECORDS)
    view = erased.dlpack(_core.simulated_device(seed=1))
    epoch(view)
    assert view.stats()["finished_before_transfer"] == {why: RECORDS}
    view = loader(train()).dlpack(_core.simulated_device(seed=1))
    epoch(view)
    assert view.stats()["finished_before_transfer"] == {}


def test_a_random_step_may_decide_whether_the_device_has_a_map() -> None:
    steps = [T.RandomResizedCrop(SIZE), T.ToDtype("float32", scale=True)]
    mixed = [*steps, T.RandomChoice([[T.Normalize(MEAN, STD)], [T.Normalize(STD, MEAN)]])]
    expected = epoch(loader(mixed).dlpack())
    assert epoch(loader(mixed).dlpack(_core.simulated_device(seed=5))) == expected


@pytest.mark.parametrize("last_batch", ["keep", "drop", "pad"])
def test_a_short_last_batch_is_finished_like_any_other(last_batch: str) -> None:
    fields = ["image", "label", "valid", "id", "key"]
    expected = epoch(loader(train(), last_batch=last_batch, fields=fields).dlpack())
    for device in devices():
        view = loader(train(), last_batch=last_batch, fields=fields).dlpack(device)
        assert epoch(view) == expected


def test_several_devices_get_their_rows_of_a_batch() -> None:
    expected = epoch(loader(train()).dlpack())
    view = loader(train()).dlpack([_core.simulated_device(seed=n) for n in range(3)])
    for parts, whole in zip(view, expected, strict=True):
        pixels = b"".join(fields_of(part)[0][3] for part in parts)
        labels = b"".join(fields_of(part)[1][3] for part in parts)
        assert (pixels, labels) == (whole[0][3], whole[1][3])


def test_ranks_get_their_rows_of_the_same_epoch() -> None:
    whole = epoch(loader(train(), batch_size=16).dlpack())
    ranks = [
        epoch(loader(train(), batch_size=8, shard=(rank, 2)).dlpack(_core.simulated_device(rank)))
        for rank in range(2)
    ]
    for expected, *parts in zip(whole, *ranks, strict=True):
        assert b"".join(part[0][3] for part in parts) == expected[0][3]


def test_a_run_resumes_in_the_middle_on_another_device() -> None:
    expected = epoch(loader(train()).dlpack())
    view = loader(train()).dlpack(_core.simulated_device(seed=1), depth=4)
    run = iter(view)
    got = [fields_of(next(run)) for _ in range(3)]
    rest = loader(train(), finish="cpu")
    rest.load_state_dict(view.state_dict())
    assert got + epoch(rest.dlpack(_core.open_device("cpu"))) == expected
    again = loader(train())
    again.load_state_dict(view.state_dict())
    assert got + epoch(again.dlpack(_core.simulated_device(seed=9))) == expected


def test_host_batches_of_such_a_loader_are_finished_on_the_host() -> None:
    both = loader(train())
    expected = epoch(loader(train()).dlpack())
    view = both.dlpack(_core.simulated_device(seed=1))
    run = iter(view)
    next(run)
    assert fields_of(view.peek())[0] == expected[1][0]
    assert fields_of(view.batch(0, 4))[0] == expected[4][0]
    both.set_epoch(0)
    assert epoch(both.dlpack()) == expected
    assert both.stats()["finish"] == "cpu: batches stay on the host"


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    for number in range(40):
        pixels = rng.integers(0, 256, (70, 60 + number, 3), dtype=np.uint8)
        path = tmp_path / "abc"[number % 3] / f"{number:02}.jpg"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(pixels).save(path, quality=90)
        if number % 11 == 5:
            path.write_bytes(path.read_bytes()[:90])
    return tmp_path


@pytest.mark.parametrize("policy", ["substitute", "skip"])
def test_bad_records_are_left_out_or_replaced_as_on_the_host(damaged: Path, policy: str) -> None:
    options = {"on_error": policy, "error_budget": 1.0}
    expected = epoch(loader(train(), damaged, **options).dlpack())
    for device in devices():
        assert epoch(loader(train(), damaged, **options).dlpack(device)) == expected


def test_a_bad_record_ends_a_run_at_its_batch(damaged: Path) -> None:
    view = loader(train(), damaged, shuffle=False, batch_size=3).dlpack(_core.simulated_device(1))
    with pytest.raises(hr.DataError):
        list(view)
    assert view.state_dict()["batch"] == 3  # a/27.jpg is the tenth of its folder


def test_ragged_labels_are_copied_alongside() -> None:
    rng = np.random.default_rng(2)
    source = [
        {
            "image": rng.integers(0, 256, (3, 50, 50), dtype=np.uint8),
            "words": rng.integers(0, 9, (rng.integers(1, 6),)),
        }
        for _ in range(21)
    ]
    opened = hr.open(source, shapes={"words": (-1,)})
    steps = {"image": [T.RandomCrop(32), T.ToDtype("float16", scale=True)]}
    for ragged in ("list", "pad", "packed"):
        given = {"batch_size": 4, "ragged": ragged}
        expected = epoch(hr.Loader(opened, steps, **given).dlpack())
        view = hr.Loader(opened, steps, **given).dlpack(_core.simulated_device(seed=3))
        assert epoch(view) == expected


def test_a_python_step_before_the_map_does_not_matter() -> None:
    def darker(image: Any) -> Any:
        return image // 2

    steps = [T.RandomCrop(SIZE), darker, T.ToDtype("float32", scale=True)]
    expected = epoch(loader(steps).dlpack())
    view = loader(steps).dlpack(_core.simulated_device(seed=1))
    assert epoch(view) == expected
    assert "is copied as uint8" in view.stats()["finish"]


def negative(image: Any) -> Any:
    return 1 - image


@pytest.mark.parametrize(
    ("transforms", "why"),
    [
        ([T.Resize((64, 64)), T.ToDtype("float32", scale=True), T.ColorJitter(0.5)], "ColorJitter"),
        ([T.ToDtype("float32", scale=True), T.Resize((64, 64))], "Resize"),
        ([T.RandomCrop(64), T.ToDtype("float32", scale=True), negative], "negative"),
    ],
    ids=["colors", "resize", "python"],
)
def test_obstacles_to_finishing_on_the_device_are_named(transforms: list[Any], why: str) -> None:
    view = loader(transforms).dlpack(_core.simulated_device(seed=1))
    expected = epoch(loader(transforms).dlpack())
    assert epoch(view) == expected
    assert view.stats()["finish"].startswith("cpu: ") and why in view.stats()["finish"]
    assert why in repr(view)
    with pytest.raises(hr.ConfigError, match=f"(?s)HR0716.*{why}"):
        iter(loader(transforms, finish="device").dlpack(_core.simulated_device(seed=1)))


def test_a_small_memory_limit_leaves_finishing_to_the_host() -> None:
    source = [(np.zeros((3, 512, 512), np.uint8), 0)] * 32
    noise = T.RandomErasing(value="random")  # for which a thread finishes the record
    steps = [T.RandomCrop(512), T.ToDtype("float32", scale=True), noise]
    given = {"batch_size": 8, "threads": 1, "memory_limit": "72 MiB"}
    view = hr.Loader(source, steps, **given).dlpack(_core.simulated_device(seed=1))
    next(iter(view))
    assert view.stats()["finish"] == "cpu: memory_limit has no room for both forms of a batch"
    given["memory_limit"] = "128 MiB"
    view = hr.Loader(source, steps, **given).dlpack(_core.simulated_device(seed=1))
    next(iter(view))
    assert "is copied as uint8" in view.stats()["finish"]
    assert view.stats()["memory_peak"] <= view.stats()["memory_limit"]


@pytest.mark.parametrize("fails_at", [1, 5, 20, 45, 80])
def test_a_loader_continues_on_the_cpu_if_its_device_is_lost(fails_at: int) -> None:
    expected = epoch(loader(train()).dlpack())
    train_loader = loader(train())
    got = []
    lost = r"(?s)HR0883.*batch \d+ of epoch 0, on its way to simulated"
    with pytest.raises(hr.UnsupportedError, match=lost):
        for batch in train_loader.dlpack(_core.simulated_device(seed=1, fails_at=fails_at)):
            got.append(len(batch.image.shape))  # its bytes are lost together with the device
    assert train_loader.state_dict()["batch"] == len(got)
    train_loader.load_state_dict(train_loader.state_dict())  # the rest of this epoch
    assert epoch(train_loader.dlpack()) == expected[len(got) :]


@pytest.mark.filterwarnings("ignore:the consumer keeps")
def test_bytes_lost_with_their_device_are_an_error() -> None:
    for fails_at in range(20, 80, 7):
        batches: list[Any] = []
        with pytest.raises(hr.UnsupportedError, match="HR0883"):
            for batch in loader(train()).dlpack(_core.simulated_device(1, fails_at=fails_at)):
                batches.append(batch)
        for batch in batches:
            with pytest.raises(hr.UnsupportedError, match="HR0883"):
                memoryview(batch.image)


def test_resident_records_are_finished_as_usual() -> None:
    expected = epoch(loader(train()).dlpack())
    for device in devices():
        assert epoch(loader(train(), resident=True).dlpack(device)) == expected


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8"])
def test_bench_has_the_same_hash_on_every_device(damaged: Path, dtype: str) -> None:
    def bench(*options: str) -> Any:
        common = ("--size", "48", "--batch-size", "4", "--epochs", "1", "--dtype", dtype, "--json")
        done = run_command("bench", damaged, *common, *options)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    plain = bench()
    assert (plain["device"], plain["copied_bytes_per_record"]) == (None, 0)
    item = {"float32": 4, "float16": 2, "uint8": 1}[dtype]
    for device in ("host", "simulated"):
        for finish in ("auto", "cpu"):
            result = bench("--device", device, "--finish", finish)
            assert result["batch_hash"] == plain["batch_hash"]
            pixels = 3 * 48 * 48 * (item if finish == "cpu" else 1)
            beside = 8 if finish == "cpu" or item == 1 else 8 + 48 + 3 * 256 * item / 4
            assert result["copied_bytes_per_record"] == pytest.approx(pixels + beside, abs=60)
    done = run_command("bench", damaged, "--preset", "raw", "--device", "host")
    assert done.returncode == 2 and "--device" in done.stderr
