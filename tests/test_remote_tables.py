# SPDX-License-Identifier: Apache-2.0
"""Promise: Parquet files in buckets, on web servers and on the Hugging Face Hub give the records of
local ones; only the footers and the chosen columns are read, each row group with few requests; and
no fault of a server yields other values."""

from __future__ import annotations

import io
import json
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from servers.clouds import HubServer
from servers.object_server import Fault, ObjectServer, Request
from test_remote import bucket, every, quick, same, server
from timing import with_longer_limits

import headrace as hr
from headrace import _core
from headrace import transforms as T

pa: Any = pytest.importorskip("pyarrow")
pq: Any = pytest.importorskip("pyarrow.parquet")

__all__ = ["bucket", "quick", "server"]

PICTURES = sorted((Path(__file__).parent.parent / "examples" / "images").glob("*.jpg"))[:4]
ROWS, SHARDS, GROUP = 40, 3, 10
END = 64 << 10  # bytes of a file's end that are requested first
Where = Callable[[ObjectServer, Path], str]


def table(seed: int) -> Any:
    """A shard as `datasets` writes it, with images inside."""
    draws = np.random.default_rng(seed)
    images = [
        {"bytes": PICTURES[i % 4].read_bytes() + draws.bytes(20_000), "path": None}
        for i in range(ROWS)
    ]
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    columns = {
        "image": pa.array(images, kind),
        "label": pa.array(draws.integers(3, size=ROWS), pa.int64()),
        "noise": [draws.bytes(3_000) for _ in range(ROWS)],
    }
    features = {
        "image": {"_type": "Image"},
        "label": {"names": ["ant", "bee", "cat"], "_type": "ClassLabel"},
        "noise": {"dtype": "binary", "_type": "Value"},
    }
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    return pa.table(columns).replace_schema_metadata(metadata)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shards of four row groups, as a repository of the Hub has them."""
    data = tmp_path_factory.mktemp("tables") / "data"
    data.mkdir()
    for i in range(SHARDS):
        name = f"train-{i:05}-of-{SHARDS:05}.parquet"
        pq.write_table(table(i), data / name, row_group_size=GROUP)
    return data.parent


def put(server: ObjectServer, folder: Path, under: str) -> None:
    for file in folder.rglob("*.parquet"):
        server.objects[f"{under}/{file.relative_to(folder)}"] = file.read_bytes()


def epoch_of(source: hr.Source, shuffle: Any = "blocks") -> list[np.ndarray[Any, Any]]:
    steps = [T.RandomResizedCrop(16), T.RandomHorizontalFlip()]
    with hr.Loader(source, steps, batch_size=8, shuffle=shuffle, seed=5, threads=2) as loader:
        return [np.array(batch["image"]) for batch in loader]


def bytes_of(requests: list[Request]) -> int:
    sizes = 0
    for request in requests:
        first, last = request.headers["range"].removeprefix("bytes=").split("-")
        sizes += int(last) - int(first) + 1
    return sizes


@pytest.mark.parametrize("memory", [None, 0])
@pytest.mark.parametrize("place", ["http", "s3", "hf"])
def test_remote_tables_equal_local_ones(
    folder: Path,
    bucket: ObjectServer,
    server: ObjectServer,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    memory: int | None,
) -> None:
    fields = ["image", "label"]
    local = hr.open(folder, memory=memory, fields=fields)
    with HubServer() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        put(bucket, folder, "/photos/a")
        put(server, folder, "/a")
        put(hub, folder, "/datasets/owner/name/resolve/main")
        path = {
            "http": f"{server.url}/a/data/train-{{00000..00002}}-of-00003.parquet",
            "s3": "s3://photos/a",
            "hf": "hf://datasets/owner/name",
        }[place]
        far = hr.open(path, memory=memory, fields=fields)
        assert len(far) == len(local) == ROWS * SHARDS
        assert far.classes == local.classes == ["ant", "bee", "cat"]
        assert far.fingerprint == local.fingerprint
        assert far.column("label").tolist() == local.column("label").tolist()
        assert np.array_equal(far[77]["image"], local[77]["image"])
        for shuffle in ("blocks", False, True):
            assert same(epoch_of(far, shuffle), epoch_of(local, shuffle))


def test_many_shards_are_opened_with_one_request_each(bucket: ObjectServer, folder: Path) -> None:
    put(bucket, folder, "/photos/a")
    source = hr.parquet("s3://photos/a", memory=0, fields=["image", "label"])
    listings = [request for request in bucket.requests if "list-type" in request.query]
    reads = [request for request in bucket.requests if request.path.endswith(".parquet")]
    assert len(listings) <= 3, "the folder, and data/ in it"
    sizes = {path: len(content) for path, content in bucket.objects.items()}
    ends = [
        request
        for request in reads
        if request.headers["range"].endswith(f"-{sizes[request.path] - 1}")
    ]
    assert len(ends) == SHARDS and bytes_of(ends) == SHARDS * END
    # Its fingerprint has a few bytes of the row groups; the Hub's features tell the kinds.
    assert len(reads) - SHARDS <= 2 * SHARDS * ROWS // GROUP
    assert bytes_of(reads) < SHARDS * (END + ROWS // GROUP * 40_000)
    assert source.schema[0].kind == "image"


def test_a_row_group_is_one_request_and_other_columns_are_not_read(
    bucket: ObjectServer, folder: Path
) -> None:
    put(bucket, folder, "/photos/a")
    source = hr.parquet("s3://photos/a", memory=12_000_000, fields=["image", "label"])
    assert "on demand" in repr(source)
    opened = len(bucket.requests)
    groups = SHARDS * ROWS // GROUP
    for i in range(len(source)):
        source.engine.read(i, "label")
    reads = bucket.requests[opened:]
    assert len(reads) == groups
    wanted = 0
    for file in folder.rglob("*.parquet"):
        footer = pq.ParquetFile(file).metadata
        for g in range(footer.num_row_groups):
            chunks = [footer.row_group(g).column(i) for i in range(footer.num_columns)]
            wanted += sum(
                chunk.total_compressed_size
                for chunk in chunks
                if chunk.path_in_schema.split(".")[0] in ("image", "label")
            )
    assert wanted == bytes_of(reads)


def test_columns_that_fit_into_memory_are_read_once(server: ObjectServer, folder: Path) -> None:
    put(server, folder, "")
    path = f"{server.url}/data/train-00000-of-00003.parquet"
    source = hr.parquet(path, fields=["label"])
    opened = len(server.requests)
    whole = len(server.objects["/data/train-00000-of-00003.parquet"])
    assert [source[i]["label"] for i in range(ROWS)] == table(0)["label"].to_pylist()
    assert len(server.requests) == opened
    assert bytes_of(server.requests[2:]) < whole / 10, "after both of its ends"


@pytest.mark.parametrize(
    "fault",
    [
        every(3, Fault(status=503, headers={"Retry-After": "0"})),
        every(3, Fault(status=500)),
        every(3, Fault(status=429)),
        every(2, Fault(cut=1000)),
        every(2, Fault(closes=100)),
        every(5, Fault(late=0.05)),
    ],
)
@pytest.mark.parametrize("memory", [None, 0])
def test_temporary_faults_change_nothing(
    server: ObjectServer, folder: Path, fault: Any, memory: int | None
) -> None:
    put(server, folder, "")
    hr.remote.configure(retries=1000)  # another attempt may meet the fault again
    server.fault = fault
    path = "data/train-00001-of-00003.parquet"
    far = hr.parquet(f"{server.url}/{path}", memory=memory)
    assert same(epoch_of(far), epoch_of(hr.parquet(folder / path, memory=memory)))


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Fault(status=403), "HR0231"),
        (Fault(status=503), "HR0221"),
        (Fault(status=404), "HR0201"),
        (Fault(whole=True), "HR0222"),
        (Fault(headers={"Content-Range": "bytes 0-99/5000"}), "HR0223"),
        (Fault(status=302, headers={"Location": "http://localhost:9/a"}), "HR0221"),
        (Fault(status=302, headers={"Location": "file:///etc/passwd"}), "HR0221"),
        (Fault(status=412), "HR0208"),
        (Fault(longer=b"more"), "HR0223"),
    ],
)
def test_a_server_that_fails_later_is_an_error_of_the_record(
    server: ObjectServer, folder: Path, fault: Fault, code: str
) -> None:
    put(server, folder, "")
    hr.remote.configure(retries=1)
    source = hr.parquet(f"{server.url}/data/train-00001-of-00003.parquet", memory=0)
    server.fault = lambda request: fault
    with pytest.raises(hr.Error) as raised:
        source[15]
    assert raised.value.code == code and raised.value.where.record == 15
    assert "train-00001" in str(raised.value)
    server.fault = lambda request: None
    assert source[15]["label"] == table(1)["label"][15].as_py(), "the next read tries again"


def test_a_replaced_file_is_never_mixed_with_the_one_that_was_opened(
    server: ObjectServer, folder: Path
) -> None:
    put(server, folder, "")
    path = "/data/train-00001-of-00003.parquet"
    source, unread = (hr.parquet(server.url + path, memory=0) for _ in range(2))
    wanted = table(1)["label"].to_pylist()
    assert source[0]["label"] == wanted[0]
    server.objects[path] = server.objects["/data/train-00002-of-00003.parquet"]
    for i in range(ROWS):
        try:
            assert source[i]["label"] == wanted[i], "requested before"
        except hr.DataError as error:
            assert error.code == "HR0208"
    with pytest.raises(hr.DataError, match="HR0208"):
        unread[0]


def test_a_hanging_row_group_affects_only_its_records(server: ObjectServer, folder: Path) -> None:
    put(server, folder, "")
    every = table(1)["label"].to_pylist()

    def check(limit: float) -> None:
        hr.remote.configure(stall_seconds=5 * limit, retries=1000)
        server.fault = lambda request: None
        source = hr.parquet(f"{server.url}/data/train-00001-of-00003.parquet", memory=0)
        first = threading.Lock()  # never released
        server.fault = lambda request: Fault(stall=100) if first.acquire(blocking=False) else None
        with hr.Loader(
            source, batch_size=5, fields="label", on_error="skip", record_timeout=limit
        ) as loader:
            labels = [int(each) for batch in loader for each in batch.label]
        lost = ROWS - len(labels)  # the rows of one group; threads decide which is requested first
        assert 0 < lost < ROWS
        assert any(labels == every[:i] + every[i + lost :] for i in range(len(labels) + 1))

    with_longer_limits(check)


def test_record_timeout_is_for_each_record_of_an_object_that_reads_remote_files(
    server: ObjectServer,
) -> None:
    out = io.BytesIO()
    pq.write_table(pa.table({"x": np.arange(64)}), out, row_group_size=2)
    server.objects["/a.parquet"] = out.getvalue()
    remote = hr.parquet(f"{server.url}/a.parquet", memory=0)

    class Records:
        def __len__(self) -> int:
            return 32  # read by one call, and each by a request of its own

        def __getitem__(self, i: int) -> dict[str, Any]:
            return {"x": remote[2 * i]["x"]}

    def check(limit: float) -> None:
        server.fault = lambda request: Fault(late=limit / 10)
        with hr.Loader(Records(), batch_size=8, on_error="skip", record_timeout=limit) as loader:
            assert [int(x) for batch in loader for x in batch["x"]] == list(range(0, 64, 2))

    with_longer_limits(check)


def test_hub_addresses_that_expire_during_an_epoch_are_renewed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with HubServer() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        put(hub, folder, "/datasets/owner/name/resolve/main")
        source = hr.parquet("hf://datasets/owner/name", memory=0)
        wanted = [each for i in range(SHARDS) for each in table(i)["label"].to_pylist()]
        assert source[0]["label"] == wanted[0]
        hub.signed = "two"
        for i in range(ROWS * SHARDS - 1, 0, -GROUP):
            assert source[i]["label"] == wanted[i]


def test_options_that_require_local_files_suggest_a_workaround(server: ObjectServer) -> None:
    h5py = pytest.importorskip("h5py")
    out = io.BytesIO()
    with h5py.File(out, "w") as file:
        scaled = np.arange(60).reshape(6, 10)
        file.create_dataset("scaled", data=scaled, chunks=(2, 10), scaleoffset=0)
    server.objects["/a.h5"] = out.getvalue()
    with pytest.raises(hr.UnsupportedError, match=r"HR0214 .*h5py") as raised:
        hr.hdf5(f"{server.url}/a.h5", trusted=True)
    assert "copy it" in raised.value.hint and "pack it" in raised.value.hint


def test_the_second_epoch_is_read_from_the_disk_cache(
    server: ObjectServer, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(server, folder, "")
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path))
    source = hr.parquet(f"{server.url}/data/train-{{00000..00002}}-of-00003.parquet", memory=0)
    with hr.Loader(source, fields="label", batch_size=8, disk_cache="64 MiB") as loader:
        first = [batch.label.tolist() for batch in loader]
        asked = len(server.requests)
        assert [batch.label.tolist() for batch in loader] == first
        assert len(server.requests) == asked
        assert loader.stats()["disk_cache"]["hits"] > 0


def footer_of(content: bytes) -> int:
    return len(content) - 8 - int.from_bytes(content[-8:-4], "little")


@pytest.mark.parametrize("memory", [None, 0])
def test_damaged_remote_files_are_errors(
    server: ObjectServer, quick: None, memory: int | None
) -> None:
    """The same damage as for local files: footers, pages, lengths, truncated files."""
    out = io.BytesIO()
    columns = {"x": [1.5, 2.5, 3.5, 4.5], "näme": ["a", "bé"] * 2, "label": [0, 1, 0, 1]}
    pq.write_table(pa.table(columns), out, row_group_size=2)
    sound = out.getvalue()
    draws = random.Random(0)
    for round_ in range(120):
        damaged = bytearray(sound)
        begin = footer_of(sound) if round_ % 2 else 0
        for _ in range(draws.randrange(1, 4)):
            damaged[draws.randrange(begin, len(sound))] = draws.randrange(256)
        if round_ % 10 == 9:
            del damaged[draws.randrange(len(damaged)) :]
        name = f"/{round_}.parquet"
        server.objects[name] = bytes(damaged)
        try:
            source = hr.parquet(server.url + name, memory=memory)
            [source[i] for i in range(len(source))]
        except hr.Error:
            pass


@pytest.mark.parametrize("size", [0xFFFFFFFF, 0x7FFFFFFF, 300 << 20, 70_000])
def test_a_footer_that_claims_to_be_longer_than_the_file_is_refused(
    server: ObjectServer, folder: Path, size: int
) -> None:
    content = bytearray((folder / "data/train-00000-of-00003.parquet").read_bytes())
    content[-8:-4] = size.to_bytes(4, "little")
    server.objects["/a.parquet"] = bytes(content)
    with pytest.raises(hr.UnsupportedError, match="HR0427"):
        hr.open(f"{server.url}/a.parquet")
    assert bytes_of(server.requests[2:]) <= 2 * size, "no more than it claims"


def test_a_footer_of_many_columns_is_read_completely(server: ObjectServer) -> None:
    out = io.BytesIO()
    pq.write_table(pa.table({f"column_{i}": [i, i + 1] for i in range(2000)}), out)
    content = out.getvalue()
    assert len(content) - footer_of(content) > 256 << 10
    server.objects["/a.parquet"] = content
    source = hr.open(f"{server.url}/a.parquet", fields=["column_7"])
    assert [record["column_7"] for record in source] == [7, 8]


def test_images_next_to_a_remote_table_are_read(server: ObjectServer) -> None:
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    images = [{"bytes": None, "path": f"p/{i}.jpg"} for i in range(4)]
    out = io.BytesIO()
    pq.write_table(pa.table({"image": pa.array(images, kind)}), out)
    server.objects["/set/a.parquet"] = out.getvalue()
    for i, picture in enumerate(PICTURES):
        server.objects[f"/set/p/{i}.jpg"] = picture.read_bytes()
    for memory in (None, 0):
        source = hr.parquet(f"{server.url}/set/a.parquet", memory=memory)
        for i, picture in enumerate(PICTURES):
            expected = np.asarray(_core.decode_field(picture.read_bytes()))
            assert np.array_equal(source[i]["image"], expected)
