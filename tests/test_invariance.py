# SPDX-License-Identifier: Apache-2.0
"""One hash for every way to run the loader: threads, instruction set, ranks, resume, memory, how
images are read, and whether steps are fused."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import headrace as hr
from headrace import _core
from headrace import transforms as T

CLASSES, RECORDS, BATCH = ("ant", "bee", "cow"), 36, 12


def write_photos(root: Path) -> None:
    """JPEG of every kind and PNG, of differing sizes; two of them are bad."""
    rng = np.random.default_rng(7)
    for number in range(RECORDS):
        folder = root / CLASSES[number % 3]
        folder.mkdir(parents=True, exist_ok=True)
        height, width = rng.integers(30, 90, 2)
        y, x = np.mgrid[:height, :width]
        waves = np.stack([128 + 80 * np.sin(x / 6 + c) * np.cos(y / 5) for c in range(3)], 2)
        pixels = (waves + rng.normal(0, 15, waves.shape)).clip(0, 255).astype(np.uint8)
        picture = Image.fromarray(pixels)
        if number % 5 == 4:
            picture.save(folder / f"{number:02}.png")
            continue
        if number % 7 == 3:
            picture = picture.convert("L")
        picture.save(
            folder / f"{number:02}.jpg",
            quality=60 + number,
            subsampling=number % 3,
            progressive=number % 4 == 1,
            restart_marker_blocks=number % 2 * 3,
        )
    for number in (8, 21):
        path = next(root.rglob(f"{number:02}.*"))
        path.write_bytes(path.read_bytes()[:50])


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("photos")
    write_photos(root)
    return root


def speckle(image: Any, rng: Any) -> Any:
    return {"image": image ^ rng.integers(0, 32, image.shape, dtype=np.uint8)}


PIPELINES: dict[str, Callable[[], list[Any]]] = {
    "fused": lambda: [
        T.RandomResizedCrop(24),
        T.RandomHorizontalFlip(),
        T.ToDtype("float32", scale=True),
        T.Normalize(hr.IMAGENET_MEAN, hr.IMAGENET_STD),
    ],
    "materialized": lambda: [
        T.Resize(48, interpolation="bicubic"),
        T.RandomApply([T.RandomCrop(40, padding=5, fill=9)], p=0.5),
        T.Resize((20, 28)),
        T.RandomVerticalFlip(),
    ],
    "python": lambda: [T.RandomCrop(28, pad_if_needed=True), speckle, T.RandomHorizontalFlip()],
    "gray": lambda: [
        T.RandomResizedCrop(24),
        T.Pad(2, fill=90),
        T.Grayscale(3),
        T.RandomCrop(23),
        T.ToDtype("float32", scale=True),
    ],
    "half": lambda: [T.CenterCrop(30), T.ToDtype("float16", scale=True)],
}
FIELDS = ("image", "label", "id")


def make(source: Any, pipeline: str = "fused", **options: Any) -> hr.Loader:
    given: dict[str, Any] = {
        "batch_size": BATCH,
        "shuffle": True,
        "seed": 3,
        "fields": FIELDS,
        "on_error": "substitute",
        "error_budget": 50,
        **options,
    }
    return hr.Loader(source, PIPELINES[pipeline](), **given)


def digest(batch: Iterable[Any]) -> str:
    made = hashlib.sha256()
    for values in batch:
        for value in values:
            made.update(np.ascontiguousarray(value).tobytes())
    return made.hexdigest()


def run(source: Any, pipeline: str = "fused", epochs: int = 2, **options: Any) -> list[str]:
    with make(source, pipeline, **options) as loader:
        return [digest(batch) for _ in range(epochs) for batch in loader]


@pytest.fixture(scope="module")
def expected(photos: Path) -> dict[str, list[str]]:
    hashes = {name: run(photos, name, threads=1) for name in PIPELINES}
    assert len({value for values in hashes.values() for value in values}) == len(PIPELINES) * 2 * 3
    return hashes


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_any_number_of_threads_gives_the_same_hash(
    pipeline: str, photos: Path, expected: dict[str, list[str]]
) -> None:
    for threads in range(1, 9):
        assert run(photos, pipeline, threads=threads) == expected[pipeline], threads


def test_all_instruction_sets_give_the_same_hash(
    photos: Path, expected: dict[str, list[str]]
) -> None:
    for level in _core.simd_levels():
        done = subprocess.run(
            [sys.executable, __file__, str(photos)],
            env={**os.environ, "HEADRACE_SIMD": level},
            capture_output=True,
            text=True,
            check=True,
        )
        found = json.loads(done.stdout)
        assert found.pop("level") == level
        assert found == expected, level


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("world", [1, 2, 3, 4])
def test_any_number_of_ranks_gives_the_same_hash(pipeline: str, world: int, photos: Path) -> None:
    whole = make(photos, pipeline)
    parts = [
        make(photos, pipeline, batch_size=None, global_batch_size=BATCH, shard=(rank, world))
        for rank in range(world)
    ]
    for _ in range(2):
        for batch, *pieces in zip(whole, *parts, strict=True):
            for name in FIELDS:
                joined = np.concatenate([piece[name] for piece in pieces])
                np.testing.assert_array_equal(joined, batch[name])


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_resuming_at_every_step_gives_the_same_hash(
    pipeline: str, photos: Path, expected: dict[str, list[str]]
) -> None:
    loader = make(photos, pipeline)
    states = [loader.state_dict()]
    for _ in range(2):
        for _ in loader:
            states.append(loader.state_dict())
    assert len(states) == len(expected[pipeline]) + 1
    for step, state in enumerate(states):
        resumed = make(photos, pipeline, threads=1 + step % 3)
        resumed.load_state_dict(json.loads(json.dumps(state)))
        got = []
        while resumed.epoch < 2:
            got += [digest(batch) for batch in resumed]
        assert got == expected[pipeline][step:]


def test_any_memory_limit_gives_the_same_hash(photos: Path, expected: dict[str, list[str]]) -> None:
    """How far the engine may run ahead, and how many batches the consumer keeps."""
    for limit in ("20 MiB", "64 MiB", "2 GiB"):
        assert run(photos, "fused", threads=1, memory_limit=limit) == expected["fused"]
        assert (
            run(photos, "materialized", threads=1, memory_limit=limit) == expected["materialized"]
        )
    kept: list[Any] = []
    loader = make(photos)
    for _ in range(2):
        kept += loader
    assert [digest(batch) for batch in kept] == expected["fused"]


class Objects:
    """The folder's records as a Python object."""

    def __init__(self, source: hr.Source, read: Callable[[str], Any]) -> None:
        self.keys = [source.key(i) for i in range(len(source))]
        self.labels = source.column("label").tolist()
        self.read = read

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"image": self.read(self.keys[index]), "label": self.labels[index]}


def test_all_read_options_give_the_same_hash(photos: Path, expected: dict[str, list[str]]) -> None:
    folder = hr.open(photos)
    keys = [folder.key(i) for i in range(len(folder))]
    labels = folder.column("label")
    ways = {
        "folder": folder,
        "paths": hr.records(image=keys, label=labels),
        "subset": hr.subset(folder, range(len(folder))),
        "bytes": Objects(folder, lambda key: Path(key).read_bytes()),
        "encoded in memory": [
            {"image": Path(key).read_bytes(), "label": int(label)}
            for key, label in zip(keys, labels, strict=True)
        ],
    }
    for name, source in ways.items():
        for threads in (1, 4):
            assert run(source, threads=threads) == expected["fused"], name


def test_decoded_images_give_the_same_hash_as_encoded_ones(photos: Path) -> None:
    folder = hr.open(photos)
    sound = [i for i in range(len(folder)) if Path(folder.key(i)).stat().st_size > 50]
    assert len(sound) == RECORDS - 2
    encoded = hr.subset(folder, sound)
    decoded = [encoded[i] for i in range(len(encoded))]
    for pipeline in PIPELINES:
        assert run(decoded, pipeline) == run(encoded, pipeline), pipeline


# Fused = step by step: each transform in a separate loader, with arrays in between.


def random_pipeline(chance: random.Random) -> list[T.Transform]:
    """Random transforms occur at most once each, so that they draw the same values when alone."""
    size = lambda: chance.randint(8, 70)  # noqa: E731
    filters = ["nearest", "bilinear", "bicubic"]
    choices: list[Callable[[], T.Transform]] = [
        lambda: T.Resize((size(), size()), interpolation=chance.choice(filters)),
        lambda: T.Resize(size(), interpolation=chance.choice(filters)),
        lambda: T.CenterCrop((size(), size())),
        lambda: T.Pad([chance.randint(0, 9) for _ in range(4)], fill=chance.randint(0, 255)),
    ]
    once: list[Callable[[], T.Transform]] = [
        lambda: T.RandomHorizontalFlip(),
        lambda: T.RandomVerticalFlip(),
        lambda: T.RandomCrop((size(), size()), pad_if_needed=True, fill=7),
        lambda: T.RandomResizedCrop((size(), size()), interpolation=chance.choice(filters)),
    ]
    steps = [chance.choice(choices)() for _ in range(chance.randint(0, 3))]
    steps += [step() for step in chance.sample(once, chance.randint(1, 3))]
    chance.shuffle(steps)
    return steps


def lists(source: Any, steps: list[Any]) -> list[np.ndarray[Any, Any]]:
    loader = hr.Loader(source, steps, batch_size=8, seed=11, fields="image", ragged="list")
    return [image for batch in loader for image in batch.image]


@pytest.mark.parametrize("seed", range(40))
def test_fused_steps_equal_single_steps(seed: int, photos: Path) -> None:
    folder = hr.open(photos)
    sound = [i for i in range(len(folder)) if Path(folder.key(i)).stat().st_size > 50]
    source = hr.subset(folder, sound[seed % 3 :: 3])
    steps = random_pipeline(random.Random(seed))
    tail = [T.ToDtype("float32", scale=True), T.Normalize((0.4,) * 3, (0.3,) * 3)][: seed % 3]
    images = lists(source, [])
    for step in steps:
        images = lists([{"image": image} for image in images], [step])
    if tail:
        images = lists([{"image": image} for image in images], tail)
    for got, wanted in zip(lists(source, steps + tail), images, strict=True):
        np.testing.assert_array_equal(got, wanted, err_msg=repr(steps))


if __name__ == "__main__":
    report: dict[str, Any] = {name: run(sys.argv[1], name) for name in PIPELINES}
    report["level"] = _core.simd_level()
    print(json.dumps(report))
