# SPDX-License-Identifier: Apache-2.0
"""hr.stream over streaming datasets of Hugging Face, torchdata and WebDataset: their records, and
resuming at each step from the state that they return."""

from __future__ import annotations

import copy
import io
import json
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from forked import joined
from PIL import Image

import headrace as hr

torch = pytest.importorskip("torch")
datasets = pytest.importorskip("datasets")
nodes = pytest.importorskip("torchdata.nodes")
webdataset = pytest.importorskip("webdataset")
from torchdata.stateful_dataloader import StatefulDataLoader  # noqa: E402

COUNT, BATCH = 24, 4
pytestmark = pytest.mark.filterwarnings("ignore:.*set_vital", "ignore:unclosed file")


def jpeg(number: int) -> bytes:
    pixels = np.random.default_rng(number).integers(0, 256, (20 + number % 3, 24, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG")
    return file.getvalue()


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Three files of each format, with eight images each."""
    root = tmp_path_factory.mktemp("shards")
    features = datasets.Features({"image": datasets.Image(), "n": datasets.Value("int64")})
    paths: dict[str, list[str]] = {"parquet": [], "tar": []}
    for first in range(0, COUNT, 8):
        rows = [
            {"image": {"bytes": jpeg(n), "path": None}, "n": n} for n in range(first, first + 8)
        ]
        paths["parquet"].append(str(root / f"{first:02}.parquet"))
        datasets.Dataset.from_list(rows, features=features).to_parquet(paths["parquet"][-1])
        paths["tar"].append(str(root / f"{first:02}.tar"))
        with webdataset.TarWriter(paths["tar"][-1]) as tar:
            for row in rows:
                tar.write(
                    {"__key__": f"{row['n']:04}", "jpg": row["image"]["bytes"], "cls": row["n"]}
                )
    return paths


class Numbers:
    """A map-style dataset, and an iterable."""

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"n": np.int64(index)}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[index] for index in range(COUNT))


def hugging_face(shards: dict[str, list[str]]) -> Any:
    files = {"train": shards["parquet"]}
    dataset = datasets.load_dataset("parquet", data_files=files, split="train", streaming=True)
    return dataset.decode(False)


def seeded() -> Any:
    return torch.Generator().manual_seed(5)


def identity(record: Any) -> Any:
    return record


STATEFUL: dict[str, Callable[[Any], Any]] = {
    "datasets": hugging_face,
    "datasets, mapped": lambda s: hugging_face(s).map(lambda row: {"n": row["n"] + 1}),
    "datasets, images decoded by it": lambda s: hugging_face(s).decode(True),
    "StatefulDataLoader": lambda _: StatefulDataLoader(
        Numbers(), batch_size=None, shuffle=True, generator=seeded()
    ),
    "StatefulDataLoader, workers": lambda _: StatefulDataLoader(
        Numbers(), batch_size=None, num_workers=2
    ),
    "nodes": lambda _: nodes.Loader(nodes.IterableWrapper(Numbers())),
    "nodes, threads": lambda _: nodes.Loader(
        nodes.ParallelMapper(
            nodes.IterableWrapper(Numbers()), identity, num_workers=2, method="thread"
        )
    ),
}


def numbers(loader: hr.Loader) -> list[list[int]]:
    return [batch.n.tolist() for batch in loader]


@pytest.mark.parametrize("buffer", [0, 3])
@pytest.mark.parametrize("name", STATEFUL)
def test_a_resume_continues_from_their_state(
    shards: dict[str, list[str]], name: str, buffer: int
) -> None:
    def new(**options: Any) -> hr.Loader:
        stream = hr.stream(STATEFUL[name](shards), shuffle_buffer=buffer)
        return hr.Loader(stream, global_batch_size=BATCH, seed=3, ragged="list", **options)

    whole = new()
    epochs = [numbers(whole), numbers(whole)]
    steps = COUNT // BATCH
    assert [len(epoch) for epoch in epochs] == [steps, steps]
    assert [len(set(joined(epoch))) for epoch in epochs] == [COUNT, COUNT]
    run, states = new(), []
    for _ in range(2):
        for _ in run:
            states.append(copy.deepcopy(run.state_dict()))
    for step in (4, steps - 1, steps, steps + 4):
        epoch, batch = divmod(step - 1, steps)
        resumed = new()
        resumed.load_state_dict(states[step - 1])
        with warnings.catch_warnings():
            warnings.simplefilter("error", hr.Warning)  # nothing is replayed from the start
            assert numbers(resumed) == epochs[epoch][batch + 1 :]
        if name.startswith("datasets"):
            json.dumps(states[step - 1])
    halves = []
    for rank in range(2):
        resumed = new(shard=(rank, 2))
        resumed.load_state_dict(states[3])
        halves.append(numbers(resumed))
    assert [a + b for a, b in zip(*halves, strict=True)] == epochs[0][4:]


@pytest.mark.parametrize("form", ["hugging face", "webdataset"])
def test_images_are_decoded_by_the_engine(shards: dict[str, list[str]], form: str) -> None:
    if form == "webdataset":
        pipeline = webdataset.WebDataset(shards["tar"], shardshuffle=False).map(
            lambda sample: {"image": sample["jpg"], "n": int(sample["cls"])}
        )
        stream = hr.stream(pipeline, kinds={"image": "image"})
    else:
        stream = hr.stream(hugging_face(shards))
    for _ in range(2):
        seen = 0
        for batch in hr.Loader(stream, batch_size=BATCH, ragged="list"):
            for image, number in zip(batch.image, batch.n.tolist(), strict=True):
                expected = np.asarray(Image.open(io.BytesIO(jpeg(number)))).transpose(2, 0, 1)
                np.testing.assert_array_equal(image, expected)
                seen += 1
        assert seen == COUNT


def test_a_webdataset_is_replayed_up_to_the_position(shards: dict[str, list[str]]) -> None:
    def new() -> hr.Loader:
        pipeline = webdataset.WebDataset(shards["tar"], shardshuffle=False)
        stream = hr.stream(pipeline.map(lambda sample: {"n": int(sample["cls"])}))
        return hr.Loader(stream, batch_size=BATCH)

    loader = new()
    batches = iter(loader)
    next(batches), next(batches)
    resumed = new()
    resumed.load_state_dict(loader.state_dict())
    with pytest.warns(hr.Warning, match="8 records of epoch 0 are read again"):
        assert numbers(resumed) == [batch.n.tolist() for batch in batches]


def test_a_torchdata_node_without_a_loader_works_for_one_epoch() -> None:
    loader = hr.Loader(hr.stream(nodes.IterableWrapper(Numbers())), batch_size=BATCH)
    assert len(numbers(loader)) == COUNT // BATCH
    with pytest.raises(hr.ConfigError, match="HR0693"):
        numbers(loader)


def test_from_dataloader_takes_a_stateful_dataloader() -> None:
    class Squares(Numbers):
        def __getitem__(self, index: int) -> dict[str, Any]:
            return {"n": torch.tensor(index * index)}

    loader = hr.from_dataloader(StatefulDataLoader(Squares(), batch_size=BATCH), verbose=False)
    theirs = [batch["n"].tolist() for batch in StatefulDataLoader(Squares(), batch_size=BATCH)]
    assert [batch["n"].tolist() for batch in loader.torch()] == theirs
    with pytest.raises(hr.ConfigError, match=r"(?s)HR0834.*hr\.stream"):
        hr.from_dataloader(StatefulDataLoader(Iterated(), batch_size=BATCH))


class Iterated(torch.utils.data.IterableDataset):  # type: ignore[misc]
    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(Numbers())
