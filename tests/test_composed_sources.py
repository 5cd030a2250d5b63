# SPDX-License-Identifier: Apache-2.0
"""Promise: sources that are combined to any depth deliver the records of their parts, whatever the
loader's order, threads and cache: each value belongs to the record whose number is beside it.
"""

from __future__ import annotations

import io
import json
import random
import tarfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from servers.object_server import ObjectServer

import headrace as hr

RECORDS = 42
Values = np.ndarray[Any, np.dtype[Any]]


# The value of a field in the record of a number.


def image_of(number: int) -> Values:
    return np.random.default_rng(number).integers(0, 256, (3, 6, 7), np.uint8)


def npy_of(number: int) -> Values:
    return np.random.default_rng(1000 + number).integers(0, 256, (3, 5), np.uint8)


def text_of(number: int) -> Values:
    return np.asarray(f"text {number}" * (number % 5 + 1))


def half_of(number: int) -> Values:
    return np.asarray(number / 2)


FIELDS: Mapping[str, Callable[[int], Values]] = {
    "image": image_of,
    "npy": npy_of,
    "text": text_of,
    "half": half_of,
    "added": lambda number: np.asarray(number * 3),
    "row": lambda number: npy_of(number)[0],
}


def tar_of(suffix: str, encode: Callable[[io.BytesIO, int], None]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as shard:
        for number in range(RECORDS):
            encode(encoded := io.BytesIO(), number)
            info = tarfile.TarInfo(f"{number:04}.{suffix}")
            info.size = encoded.tell()
            encoded.seek(0)
            shard.addfile(info, encoded)
    return out.getvalue()


def write_png(out: io.BytesIO, number: int) -> None:
    Image.fromarray(image_of(number).transpose(1, 2, 0)).save(out, "png")


def write_npy(out: io.BytesIO, number: int) -> None:
    np.save(out, npy_of(number))


def parquet() -> bytes:
    numbers = range(RECORDS)
    columns = {"uid": list(numbers), "half": [n / 2 for n in numbers]}
    pq.write_table(pa.table(columns), out := io.BytesIO(), row_group_size=7)
    return out.getvalue()


def jsonl() -> bytes:
    rows = ({"uid": n, "text": str(text_of(n))} for n in range(RECORDS))
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("parts")
    for name, data in {
        "images.tar": tar_of("png", write_png),
        "arrays.tar": tar_of("npy", write_npy),
        "halves.parquet": parquet(),
        "texts.jsonl": jsonl(),
    }.items():
        (out / name).write_bytes(data)
    return out


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with ObjectServer() as server:
        for path in folder.iterdir():
            server.objects[f"/{path.name}"] = path.read_bytes()
        yield server.url


class Composer:
    """Random sources, each a function of the seed. Records are joined by their number, `uid`."""

    def __init__(self, seed: int, places: list[str]) -> None:
        self.random = random.Random(seed)
        self.places = places
        self.renamed = 0

    def part(self, name: str) -> Any:
        if name == "rows":
            rows = np.stack([npy_of(number)[0] for number in range(RECORDS)])
            return hr.records(uid=np.arange(RECORDS), row=rows)
        source = hr.open(f"{self.random.choice(self.places)}/{name}")
        if name.endswith(".tar"):
            source = source.with_columns(uid=np.arange(RECORDS))
        return source

    def source(self, parts: list[str]) -> Any:
        self.random.shuffle(parts)
        if len(parts) == 1:
            source = self.part(parts[0])
        else:
            cut = self.random.randint(1, len(parts) - 1)
            left, right = self.source(parts[:cut]), self.source(parts[cut:])
            both = (set(left[0]) & set(right[0])) - {"key", "uid"}
            source = hr.join(left, right, on="uid", rename={name: self.new(name) for name in both})
        for _ in range(self.random.randint(0, 3)):
            source = self.changed(source)
        return source

    def new(self, name: str) -> str:
        self.renamed += 1
        return f"{name.partition('_')[0]}_{self.renamed}"

    def changed(self, source: Any) -> Any:
        numbers = range(len(source))
        how = self.random.choice(["part", "order", "filter", "sort", "split", "turn", "column"])
        if how == "part":
            return hr.subset(source, sorted(self.random.sample(numbers, len(numbers) * 4 // 5)))
        if how == "order":
            return hr.subset(source, self.random.sample(numbers, len(numbers)))
        if how == "filter":
            return source.filter(f"uid % {self.random.randint(3, 6)} != 1")
        if how == "sort":
            return source.sort_by("uid")
        if how == "split":
            return hr.concat(hr.split(source, 0.5, 0.5, seed=self.random.randint(0, 9)))
        if how == "turn":
            half = len(numbers) // 2
            return hr.concat(hr.subset(source, numbers[half:]), hr.subset(source, numbers[:half]))
        added = [int(source[number]["uid"]) * 3 for number in numbers]
        return source.with_columns(**{self.new("added"): np.array(added)})


def expect_values(record: Mapping[str, Any]) -> int:
    """The record's number."""
    number = int(record["uid"])
    for name, value in record.items():
        kind = name.partition("_")[0]
        if kind in FIELDS:
            np.testing.assert_array_equal(value, FIELDS[kind](number), f"{name} of {number}")
    return number


def expect_records(seed: int, places: list[str]) -> None:
    composer = Composer(seed, places)
    draw = composer.random
    names = ["images.tar", "arrays.tar", "halves.parquet", "texts.jsonl", "rows"]
    source = composer.source(draw.sample(names, draw.randint(2, 5)))
    expected = [expect_values(source[number]) for number in range(len(source))]
    fields = [name for name in source[0] if name != "key"]
    if draw.random() < 0.5:
        fields = ["uid", *draw.sample(fields, 2)]
    shuffle = draw.choice([False, True, "blocks", "streams"])
    loader = hr.Loader(
        source,
        fields=list(dict.fromkeys(fields)),
        batch_size=draw.choice([1, 4, 7, 16]),
        shuffle=shuffle,
        seed=seed,
        threads=draw.choice([1, 2, 3]),
        cache=draw.choice([None, "64 MiB"]),
        ragged="list",
    )
    with loader:
        for _epoch in range(2):
            found = [
                expect_values({name: batch[name][row] for name in fields})
                for batch in loader
                for row in range(len(batch.uid))
            ]
            assert (sorted(found) if shuffle else found) == (
                sorted(expected) if shuffle else expected
            )


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_local_sources(folder: Path, first: int) -> None:
    for seed in range(first, first + 10):
        expect_records(seed, [str(folder)])


@pytest.mark.parametrize("first", range(100, 140, 10))
def test_local_and_remote_sources(folder: Path, address: str, first: int) -> None:
    for seed in range(first, first + 10):
        expect_records(seed, [str(folder), address])
