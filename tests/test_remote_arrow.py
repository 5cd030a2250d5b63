# SPDX-License-Identifier: Apache-2.0
"""Promise: Arrow files and streams in any storage give the records of local ones: opening downloads
little more than their layout, a record only its own bytes, and no fault yields other values."""

from __future__ import annotations

import contextlib
import io
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from servers.object_server import Fault, ObjectServer
from test_arrow import check, large
from test_remote import bucket, every, quick, server
from test_remote_tables import bytes_of

import headrace as hr

pa: Any = pytest.importorskip("pyarrow")

__all__ = ["bucket", "quick", "server"]


@pytest.mark.parametrize("fault", [None, every(3, Fault(status=503)), every(3, Fault(cut=500))])
@pytest.mark.parametrize("packing", [None, "zstd"])
@pytest.mark.parametrize("stream", [False, True])
def test_remote_arrow_files_equal_local_ones(
    server: ObjectServer, tmp_path: Path, stream: bool, packing: str | None, fault: Any
) -> None:
    options = {"options": pa.ipc.IpcWriteOptions(compression=packing)}
    expected = large(tmp_path / "a.arrow", stream, **options)
    server.objects["/a.arrow"] = (tmp_path / "a.arrow").read_bytes()
    hr.remote.configure(retries=1000)  # another attempt may meet the fault again
    if fault:
        server.fault = fault
    source = hr.open(f"{server.url}/a.arrow")
    check(source, expected)
    assert [record["raw"] for record in source] == expected["raw"].to_pylist()
    assert source.fingerprint == hr.open(tmp_path / "a.arrow").fingerprint


@pytest.mark.parametrize("stream", [False, True])
def test_opening_downloads_only_a_fraction_of_the_values(
    server: ObjectServer, tmp_path: Path, stream: bool
) -> None:
    expected = large(tmp_path / "a.arrow", stream)
    content = server.objects["/a.arrow"] = (tmp_path / "a.arrow").read_bytes()
    source = hr.open(f"{server.url}/a.arrow", fields=["image", "label"])
    # A look, the headers of three batches, the layout of two columns, the images that tell what the
    # columns hold; and the beginnings of all 24, for the fingerprint, together.
    assert len(server.requests) < 16 + len(expected)
    assert sum(bytes_of([each]) for each in server.requests) < len(content) / 4
    opened = len(server.requests)
    with hr.Loader(source, [hr.transforms.Resize((8, 8))], batch_size=4, shuffle=True) as loader:
        labels = [label for batch in loader for label in batch.label.tolist()]
    assert sorted(labels) == sorted(expected["label"].to_pylist())
    images = sum(len(each["bytes"]) for each in expected["image"].to_pylist())
    read = np.zeros(len(content), bool)  # each byte once: the next epoch is read ahead
    for request in server.requests[opened:]:
        first, last = request.headers["range"].removeprefix("bytes=").split("-")
        read[int(first) : int(last) + 1] = True
    assert read.sum() < 1.5 * images, "and not the other columns"


def test_small_batches_are_read_together(server: ObjectServer) -> None:
    out = io.BytesIO()
    rows = pa.table({"x": np.arange(20_000), "text": [f"row {i}" for i in range(20_000)]})
    with pa.ipc.new_stream(out, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=50)
    server.objects["/a.arrow"] = out.getvalue()
    source = hr.open(f"{server.url}/a.arrow")
    assert (len(source), source[19_999]["text"]) == (20_000, "row 19999")
    assert len(server.requests) < 10, "for 400 batches"


def test_a_folder_of_save_to_disk_in_a_bucket_is_read(bucket: ObjectServer) -> None:
    def shard(first: int) -> bytes:
        out = io.BytesIO()
        features = {"label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}
        columns = pa.table({"label": [0, 1, 1], "n": np.arange(first, first + 3)})
        info = json.dumps({"info": {"features": features}})
        columns = columns.replace_schema_metadata({"huggingface": info})
        with pa.ipc.new_stream(out, columns.schema) as writer:
            writer.write_table(columns)
        return out.getvalue()

    names = [f"data-{i:05}-of-00040.arrow" for i in range(40)]
    for i, name in enumerate(names):
        bucket.objects[f"/photos/two/train/{name}"] = shard(3 * i)
    state = {"_data_files": [{"filename": name} for name in names]}
    bucket.objects["/photos/two/train/state.json"] = json.dumps(state).encode()
    bucket.objects["/photos/two/dataset_dict.json"] = b'{"splits": ["train"]}'
    source = hr.open("s3://photos/two", split="train")
    assert source.column("n").tolist() == list(range(120)) and source.classes == ["cat", "dog"]
    assert len(bucket.requests) < 4 * len(names)


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Fault(status=403), "HR0231"),
        (Fault(status=404), "HR0201"),
        (Fault(whole=True), "HR0222"),
        (Fault(headers={"Content-Range": "bytes 0-99/5000"}), "HR0223"),
    ],
)
def test_a_server_that_fails_later_is_an_error_of_the_record(
    server: ObjectServer, tmp_path: Path, fault: Fault, code: str
) -> None:
    large(tmp_path / "a.arrow", stream=False)
    server.objects["/a.arrow"] = (tmp_path / "a.arrow").read_bytes()
    hr.remote.configure(retries=1)
    source = hr.open(f"{server.url}/a.arrow")
    server.fault = lambda request: fault
    with pytest.raises(hr.Error) as raised:
        source[15]
    assert raised.value.code == code
    server.fault = lambda request: None
    server.objects["/a.arrow"] += b"more"
    with pytest.raises(hr.DataError, match="HR0208"):
        source[15]


def test_a_failed_request_for_a_header_does_not_fetch_the_whole_file(
    server: ObjectServer, tmp_path: Path
) -> None:
    large(tmp_path / "a.arrow", stream=False)
    content = server.objects["/a.arrow"] = (tmp_path / "a.arrow").read_bytes()
    hr.remote.configure(retries=1)
    hr.open(f"{server.url}/a.arrow", fields=["label"])
    opened = len(server.requests)
    seen = 0

    def once(request: Any) -> Fault | None:
        nonlocal seen
        seen += 1
        return Fault(status=403) if seen == 4 else None

    server.fault = once
    server.objects["/b.arrow"] = content
    with pytest.raises(hr.StorageError, match="HR0231"):
        hr.open(f"{server.url}/b.arrow", fields=["label"])
    assert bytes_of(server.requests[opened:]) < len(content) / 4


def test_truncated_remote_streams_are_reported(server: ObjectServer) -> None:
    out = io.BytesIO()
    rows = pa.table({"x": np.arange(1000)})
    with pa.ipc.new_stream(out, rows.schema) as writer:
        writer.write_table(rows)
    sound = out.getvalue()
    for number, count in enumerate((4, 8, 12, 100, 300, len(sound) // 2, len(sound) - 12)):
        server.objects[f"/{number}.arrow"] = sound[:count]
        with pytest.raises(hr.Error) as raised:
            hr.open(f"{server.url}/{number}.arrow", format="arrow")
        assert "arguments" not in str(raised.value)


def test_damaged_remote_arrow_files_are_errors(server: ObjectServer) -> None:
    out = io.BytesIO()
    columns = pa.table({"x": [1.5, 2.5], "näme": ["a", "bé"], "label": ["ä", "b"]})
    with pa.ipc.new_file(out, columns.schema) as writer:
        writer.write_table(columns)
    sound = out.getvalue()
    draws = random.Random(0)
    for number in range(100):
        damaged = bytearray(sound)
        for _ in range(draws.randrange(1, 4)):
            damaged[draws.randrange(len(sound))] = draws.randrange(256)
        if number % 10 == 9:
            del damaged[draws.randrange(len(damaged)) :]
        server.objects[f"/{number}.arrow"] = bytes(damaged)
        with contextlib.suppress(hr.Error):
            hr.open(f"{server.url}/{number}.arrow", format="arrow")[0]
