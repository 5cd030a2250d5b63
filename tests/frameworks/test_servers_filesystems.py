# SPDX-License-Identifier: Apache-2.0
"""Promise: stores of obstore and clients of multi-storage-client (``filesystem=``) give the records
that the local folder gives, for separate files and for a container that is read by range."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr

Client = Callable[[Path], Any]


def local_store(folder: Path) -> Any:
    store = pytest.importorskip("obstore.store")
    return store.LocalStore(folder)


def memory_store(folder: Path) -> Any:
    obstore = pytest.importorskip("obstore")
    store = pytest.importorskip("obstore.store").MemoryStore()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            obstore.put(store, str(path.relative_to(folder)), path.read_bytes())
    return store


def storage_client(folder: Path) -> Any:
    client = pytest.importorskip("multistorageclient")
    provider = {"type": "file", "options": {"base_path": str(folder)}}
    config = {"profiles": {"train": {"storage_provider": provider}}}
    return client.StorageClient(client.StorageClientConfig.from_dict(config, profile="train"))


CLIENTS = [local_store, memory_store, storage_client]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a tar shard, a JSON Lines file, and classes of arrays."""
    rng = np.random.default_rng(3)
    for label in ("cat", "dog"):
        (tmp_path / "classes" / label).mkdir(parents=True)
        for number in range(5):
            values = rng.integers(0, 255, (4, 6), np.uint8)
            np.save(tmp_path / "classes" / label / f"{number}.npy", values)
    rows = [json.dumps({"n": number}) for number in range(200)]
    (tmp_path / "rows.jsonl").write_text("\n".join(rows) + "\n")
    with tarfile.open(tmp_path / "shard.tar", "w") as shard:
        for path in sorted((tmp_path / "classes").rglob("*.npy")):
            shard.add(path, f"{path.parent.name}-{path.stem}.npy")
    return tmp_path


@pytest.mark.parametrize("client", CLIENTS)
def test_records_equal_those_of_the_local_folder(folder: Path, client: Client) -> None:
    fs = client(folder)
    for name in ("classes", "rows.jsonl", "shard.tar"):
        local, far = hr.open(folder / name), hr.open(name, filesystem=fs)
        assert (len(far), far.classes) == (len(local), local.classes)
        assert "filesystem://" in repr(far)
        for number in range(len(local)):
            expected, found = local[number], far[number]
            assert expected.keys() == found.keys()
            for field in expected.keys() - {"key"}:  # the key has the path
                np.testing.assert_array_equal(found[field], expected[field])


@pytest.mark.parametrize("client", CLIENTS)
def test_a_loader_reads_as_from_the_local_folder(folder: Path, client: Client) -> None:
    fs = client(folder)
    batches = [
        list(hr.Loader(source, batch_size=4, shuffle=True, seed=7))
        for source in (hr.open(folder / "shard.tar"), hr.open("shard.tar", filesystem=fs))
    ]
    assert len(batches[0]) == len(batches[1]) == 3
    for expected, found in zip(*batches, strict=True):
        np.testing.assert_array_equal(found["npy"], expected["npy"])


@pytest.mark.parametrize("client", CLIENTS)
def test_an_absent_path_is_an_error_that_names_it(folder: Path, client: Client) -> None:
    with pytest.raises(hr.Error, match="absent"):
        hr.open("absent/train.tar", filesystem=client(folder))
