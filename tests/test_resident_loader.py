# SPDX-License-Identifier: Apache-2.0
"""Records that stay in memory give the batches that streaming gives, bit for bit."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from digests import digest, hashes
from PIL import Image

import headrace as hr
from headrace import _core
from headrace import transforms as T

RECORDS, BATCH = 40, 12
MIB = 1 << 20


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """JPEG and PNG of differing sizes in two classes; two of them are bad."""
    root = tmp_path_factory.mktemp("photos")
    random = np.random.default_rng(3)
    for number in range(RECORDS):
        folder = root / ("cat", "dog")[number % 2]
        folder.mkdir(exist_ok=True)
        height, width = random.integers(33, 60, 2)
        pixels = random.integers(0, 256, (height, width, 3), np.uint8)
        name = folder / f"{number:02}.{'png' if number % 3 else 'jpg'}"
        Image.fromarray(pixels).save(name)
        if number in (7, 22):
            name.write_bytes(name.read_bytes()[:60])
    return root


def to_float() -> list[Any]:
    return [T.ToDtype("float32", scale=True), T.Normalize(hr.IMAGENET_MEAN, hr.IMAGENET_STD)]


def speckle(image: Any, rng: Any) -> Any:
    return {"image": image ^ rng.integers(0, 32, image.shape, dtype=np.uint8)}


PIPELINES: dict[str, Callable[[], Any]] = {
    "crop and flip after a resize": lambda: [
        T.Resize(40),
        T.CenterCrop(32),
        T.RandomCrop(32, padding=4),
        T.RandomHorizontalFlip(),
        *to_float(),
    ],
    "the same operator before and after a random one": lambda: [
        T.CenterCrop(40),
        T.RandomCrop(36),
        T.CenterCrop(30),
        T.RandomCrop(24),
        T.Resize(12),
    ],
    "nothing random": lambda: [T.Resize((32, 32))],
    "floats at the end": lambda: [T.Resize((20, 24)), *to_float()],
    "random first": lambda: [T.RandomResizedCrop(24), T.RandomHorizontalFlip(), *to_float()],
    "a list in the list": lambda: [
        T.Compose([T.Resize(36), T.RandomCrop(24)]),
        T.RandomErasing(p=0.7, value=9),
    ],
    "sometimes": lambda: [
        T.RandomApply([T.RandomCrop(28)], p=0.5),
        T.Resize((16, 16)),
        T.RandomVerticalFlip(),
    ],
    "two views": lambda: [
        T.Resize(34),
        T.Fork("image", a=[T.RandomCrop(20)], b=[T.RandomCrop(20), T.RandomHorizontalFlip()]),
    ],
    "by field": lambda: {"image": [T.Resize((30, 30)), T.RandomCrop(25)], "label": []},
    "a function": lambda: [T.Resize((18, 18)), speckle],
}


def make(source: Any, transforms: Any, **given: Any) -> hr.Loader:
    chosen: dict[str, Any] = {
        "batch_size": BATCH,
        "shuffle": True,
        "seed": 5,
        "on_error": "substitute",
        "error_budget": 1000,
        **given,
    }
    return hr.Loader(source, transforms, **chosen)


@pytest.mark.parametrize("name", PIPELINES)
def test_batches_equal_those_of_streaming(photos: Path, name: str) -> None:
    streamed = hashes(make(photos, PIPELINES[name]()))
    assert len(set(streamed)) == len(streamed)
    for use in (True, "auto"):
        assert hashes(make(photos, PIPELINES[name](), resident=use)) == streamed


@pytest.mark.parametrize(
    "given",
    [
        {"shuffle": False},
        {"shuffle": "blocks", "shuffle_window": 2},
        {"last_batch": "drop"},
        {"last_batch": "pad", "fields": ("valid", "image", "id")},
        {"on_error": "skip"},
        {"fields": ("key", "label", "image")},
        {"sampler": hr.sampling.balanced("label"), "shuffle": False},
        {"memory_format": "channels_last"},
        {"threads": 3},
        {"batch_size": None, "global_batch_size": 12, "shard": (1, 3)},
        {"cache": MIB},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["crop and flip after a resize", "nothing random"])
def test_batches_equal_streaming_with_options(photos: Path, name: str, given: Any) -> None:
    streamed = hashes(make(photos, PIPELINES[name](), **given))
    assert hashes(make(photos, PIPELINES[name](), resident=True, **given)) == streamed


def test_records_of_differing_shape_come_as_lists(photos: Path) -> None:
    streamed = hashes(make(photos, [], ragged="list"))
    assert hashes(make(photos, [], ragged="list", resident=True)) == streamed


def test_bad_records_are_treated_by_the_same_policy(photos: Path) -> None:
    def run(**given: Any) -> tuple[list[Any], str]:
        loader = make(photos, PIPELINES["nothing random"](), **given)
        try:
            for _ in range(2):
                list(loader)
        except hr.DataError as error:
            return loader.quarantine, str(error)
        return loader.quarantine, ""

    for policy in ("substitute", "skip", "raise"):
        assert run(on_error=policy, resident=True) == run(on_error=policy), policy
    spent = run(error_budget=1)
    assert "HR0731" in spent[1]
    assert run(error_budget=1, resident=True) == spent


def test_an_error_after_the_precomputed_steps_names_the_same_step(photos: Path) -> None:
    messages = []
    for use in (False, True):
        loader = make(photos, [T.Resize(20), T.RandomCrop(30)], on_error="raise", resident=use)
        with pytest.raises(hr.DataError) as caught:
            next(iter(loader))
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert "transform 2" in messages[0] or "HR03" in messages[0]


@pytest.mark.parametrize("name", ["crop and flip after a resize", "nothing random"])
def test_a_state_goes_from_streaming_to_resident_and_back(photos: Path, name: str) -> None:
    whole = hashes(make(photos, PIPELINES[name]()))
    for first, second in ((False, True), (True, False), (True, True)):
        with make(photos, PIPELINES[name](), resident=first) as loader:
            batches = iter(loader)
            begun = [digest(next(batches)) for _ in range(2)]
            state = loader.state_dict()
        with make(photos, PIPELINES[name](), resident=second) as loader:
            loader.load_state_dict(state)
            rest = [digest(batch) for _ in range(3) for batch in loader]
        assert begun + rest == whole


def test_epochs_can_be_ended_early_and_set(photos: Path) -> None:
    with make(photos, PIPELINES["nothing random"](), resident=True) as loader:
        whole = [[digest(batch) for batch in loader] for _ in range(3)]
        loader.set_epoch(1)
        assert [digest(batch) for batch in loader] == whole[1]
        for batch in loader:
            assert digest(batch) == whole[2][0]
            break
        loader.set_epoch(2)
        assert [digest(batch) for batch in loader] == whole[2]
        assert digest(loader.batch(1, 2)) == whole[1][2]
        assert len(loader) == len(whole[0])


def test_resident_memory_is_counted_and_shown(photos: Path) -> None:
    with make(photos, [T.Resize((32, 32))], resident=True, memory_limit="200 MiB") as loader:
        list(loader)
        kept = loader.stats()["resident_bytes"]
        assert kept == RECORDS * (3 * 32 * 32 + 8)
        assert kept <= loader.stats()["memory_used"] <= 200 * MIB
        assert "0.1 MiB after Resize" in repr(loader)
    with make(photos, [T.Resize((32, 32))]) as loader:
        list(loader)
        assert loader.stats()["resident_bytes"] == 0
        assert "resident        off" in repr(loader)


def test_data_that_does_not_fit_is_refused_with_the_sizes_or_streamed(photos: Path) -> None:
    transforms = [T.Resize((1200, 1200)), T.RandomCrop(32)]
    with pytest.raises(hr.ConfigError, match=r"HR0890.*164\.8 MiB after Resize.*120\.0 MiB"):
        make(photos, transforms, resident=True, memory_limit="120 MiB")
    loader = make(photos, transforms, resident="auto", memory_limit="120 MiB")
    assert "streamed: the records take 164.8 MiB after Resize(size=[1200, 1200])" in repr(loader)
    assert "60.0 MiB is half of memory_limit" in repr(loader)
    assert hashes(loader, 1) == hashes(make(photos, transforms, memory_limit="120 MiB"), 1)


def test_records_larger_than_the_sampled_ones_respect_the_limit(tmp_path: Path) -> None:
    for number in range(33):  # every second one is sampled
        size = 8 if number % 2 == 0 else 2000
        Image.new("RGB", (size, size)).save(tmp_path / f"{number:02}.png")
    streamed = hr.Loader(tmp_path, [T.RandomCrop(8)], batch_size=4, memory_limit="240 MiB")
    auto = hr.Loader(
        tmp_path, [T.RandomCrop(8)], batch_size=4, memory_limit="240 MiB", resident="auto"
    )
    assert hashes(auto, 1) == hashes(streamed, 1)
    refused = hr.Loader(
        tmp_path, [T.RandomCrop(8)], batch_size=4, memory_limit="120 MiB", resident=True
    )
    with pytest.raises(hr.ConfigError, match="HR0890"):
        next(iter(refused))


def test_an_invalid_value_of_resident_is_refused(photos: Path) -> None:
    for value in ("yes", 1, None, 0.5):
        with pytest.raises(hr.ConfigError, match="resident must be 'auto' or True or False"):
            make(photos, [], resident=value)


def test_a_folder_is_accepted_too(photos: Path) -> None:
    given = {"on_error": "skip", "error_budget": 100}
    transforms = [T.Resize((8, 8)), T.RandomHorizontalFlip()]
    streamed = hashes(hr.Loader(photos, transforms, batch_size=6, shuffle=True, **given))
    assert hashes(hr.resident(photos, 6, True, transforms=transforms, **given)) == streamed


def on_host(batch: Any) -> list[np.ndarray[Any, Any]]:
    return [np.array(value) for value in batch]


DIFFERING: dict[str, Callable[[], Any]] = {
    "a random resized crop": PIPELINES["random first"],
    "kept smaller": lambda: [T.Resize(40), T.RandomResizedCrop(24), T.RandomErasing()],
    "cut": lambda: [T.RandomCrop(30), T.RandomVerticalFlip(), *to_float()],
    "two views": lambda: [
        T.Fork("image", a=[T.RandomResizedCrop(20)], b=[T.RandomCrop(30), T.Resize((16, 12))])
    ],
}


@pytest.mark.parametrize("name", DIFFERING)
def test_images_that_differ_in_size_stay_on_the_device(photos: Path, name: str) -> None:
    good = hr.subset(photos, [number for number in range(RECORDS) if number not in (11, 23)])
    for given in ({}, {"shuffle": False, "memory_format": "channels_last"}):
        streamed = make(good, DIFFERING[name](), **given)
        loader = make(good, DIFFERING[name](), resident=True, **given)
        batches = loader.dlpack(_core.simulated_device(4))
        for _ in range(2):
            for expected, batch in zip(streamed, batches, strict=True):
                for wanted, got in zip(expected, on_host(batch), strict=True):
                    np.testing.assert_array_equal(got, wanted)
        assert "not on simulated" not in loader.stats()["resident"]


def test_obstacles_to_images_of_different_sizes_on_the_device_are_named(photos: Path) -> None:
    bad = make(photos, [T.RandomResizedCrop(24)], resident=True)
    next(iter(bad.dlpack(_core.simulated_device(4))))
    assert "not on simulated" in bad.stats()["resident"]
    good = hr.subset(photos, range(7))
    small = _core.simulated_device(4, memory_limit=30_000)
    kept = make(good, [T.RandomResizedCrop(8)], resident="auto", batch_size=2)
    expected = hashes(make(good, [T.RandomResizedCrop(8)], batch_size=2), 1)
    assert [digest(tuple(on_host(batch))) for batch in kept.dlpack(small)] == expected
    assert "HR0891" in kept.stats()["resident"] or "MiB for 7 records" in kept.stats()["resident"]


def test_resident_records_are_on_the_device_of_the_batches(photos: Path) -> None:
    steps = PIPELINES["crop and flip after a resize"]
    good = {"on_error": "skip", "sampler": [0, 1, 2, 3, 4, 5, 6], "shuffle": False}
    streamed = [on_host(batch) for batch in make(photos, steps(), **good)]
    loader = make(hr.subset(photos, range(7)), steps(), resident=True, shuffle=False)
    for _ in range(2):
        batches = loader.dlpack(_core.simulated_device(2))
        for expected, batch in zip(streamed, batches, strict=True):
            for wanted, got in zip(expected, on_host(batch), strict=True):
                assert got.shape == wanted.shape
        loader.set_epoch(0)
        for expected, batch in zip(streamed, batches, strict=True):
            for wanted, got in zip(expected, on_host(batch), strict=True):
                np.testing.assert_array_equal(got, wanted)
        loader.set_epoch(0)
        for expected, batch in zip(streamed, loader, strict=True):  # and on the host again
            for wanted, got in zip(expected, batch, strict=True):
                np.testing.assert_array_equal(got, wanted)
        loader.set_epoch(0)


@pytest.mark.parametrize("kind", ["folder", "shard"])
def test_rewritten_files_cause_a_warning(kind: str, tmp_path: Path) -> None:
    def write(value: int) -> None:
        for number in range(6):
            (tmp_path / "a").mkdir(exist_ok=True)
            Image.new("RGB", (8, 8), (value, number, 0)).save(tmp_path / "a" / f"{number}.png")
        if kind == "shard":
            with tarfile.open(tmp_path / "x.tar", "w") as shard:
                for number in range(6):
                    shard.add(tmp_path / "a" / f"{number}.png", f"{number}.png")

    write(1)
    source = (
        hr.open(tmp_path / "x.tar")
        if kind == "shard"
        else hr.records(image=[str(tmp_path / "a" / f"{number}.png") for number in range(6)])
    )
    loader = hr.Loader(source, [T.CenterCrop(8)], batch_size=3, resident=True)
    assert [batch.image[0, 0, 0, 0] for batch in loader] == [1, 1]
    assert [batch.image[0, 0, 0, 0] for batch in loader] == [1, 1]
    write(2)
    name = "x.tar" if kind == "shard" else "0.png"
    with pytest.warns(match=rf"{name} has changed since it was read") as warned:
        assert [batch.image[0, 0, 0, 0] for batch in loader] == [1, 1]
        assert [batch.image[0, 0, 0, 0] for batch in loader] == [1, 1]
    assert len(warned) == 1
