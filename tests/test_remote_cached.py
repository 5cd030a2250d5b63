# SPDX-License-Identifier: Apache-2.0
"""Promise: records that are separate files in object stores are kept in the disk cache, each in one
version, and nothing that happens to the cache or to the files changes or mixes their bytes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import run_code
from servers.object_server import Fault, ObjectServer, Request
from test_remote import STEPS, bucket, put_folder, quick, same, server

import headrace as hr
from headrace import transforms as T

__all__ = ["bucket", "quick", "server"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "cache"))
    yield tmp_path / "cache"


def reader(source: Any, **given: Any) -> hr.Loader:
    return hr.Loader(
        source, STEPS, batch_size=4, shuffle=True, seed=5, disk_cache="64 MiB", **given
    )


def batches_of(loader: hr.Loader) -> list[np.ndarray[Any, Any]]:
    return [np.array(batch["image"]) for batch in loader]


def images(server: ObjectServer) -> list[Request]:
    return [request for request in server.requests if request.path.endswith(".png")]


def later_run() -> None:
    """Drops what is known about objects."""
    before = hr.remote.configure(retries=5)
    hr.remote.configure(**before)


def blocks(cache: Path) -> list[Path]:
    return list((cache / "blocks").glob("*.block"))


def test_separate_files_are_read_from_the_server_once(
    bucket: ObjectServer, pictures: Path, cache: Path
) -> None:
    put_folder(bucket, pictures, "/photos/train")
    near = hr.Loader(str(pictures), STEPS, batch_size=4, shuffle=True, seed=5)
    expected = [batches_of(near) for _ in range(3)]
    with reader("s3://photos/train") as loader:
        assert same(batches_of(loader), expected[0])
        assert same(batches_of(loader), expected[1])
        assert same(batches_of(loader), expected[2])
        stats = loader.stats()["disk_cache"]
    assert len(images(bucket)) == 23
    assert stats["misses"] >= 23 and stats["hits"] >= 23
    assert stats["remote_bytes"] == sum(map(len, bucket.objects.values()))
    assert stats["hit_bytes"] > 0 and stats["failed"] == stats["bypassed"] == 0
    assert len(blocks(cache)) == 23
    later_run()
    with reader("s3://photos/train") as loader:
        assert same(batches_of(loader), expected[0])
    assert len(images(bucket)) == 23, "the listing states their versions"


def test_a_replaced_file_is_read_in_one_version(
    bucket: ObjectServer, pictures: Path, cache: Path
) -> None:
    put_folder(bucket, pictures, "/photos/train")
    source = hr.open("s3://photos/train")
    with reader(source) as loader:
        batches_of(loader)
        batches_of(loader)
        old = [source[i]["image"] for i in range(23)]
        first, second = sorted(bucket.objects)[:2]
        bucket.objects[first] = bucket.objects[second]
        asked = len(images(bucket))
        assert all(np.array_equal(source[i]["image"], old[i]) for i in range(23))
        assert len(images(bucket)) == asked, "in the version that was opened"
        later_run()
        again = hr.open("s3://photos/train")
        assert np.array_equal(again[0]["image"], old[1])
        assert all(np.array_equal(again[i]["image"], old[i]) for i in range(1, 23))
        assert len(images(bucket)) == asked + 1
    assert len(blocks(cache)) == 24


@pytest.mark.parametrize("has_etags", [True, False])
def test_files_of_web_servers_are_kept_by_the_version_of_their_response(
    server: ObjectServer, pictures: Path, cache: Path, has_etags: bool
) -> None:
    files = sorted(pictures.rglob("*.png"))
    for number, file in enumerate(files):
        server.objects[f"/{number}.png"] = file.read_bytes()
    lines = [f"{number}.png,0" for number in range(len(files))]
    server.objects["/list.csv"] = "\n".join(["path,label", *lines]).encode()
    if not has_etags:
        server.fault = lambda request: Fault(headers={"ETag": ""})
    with reader(f"{server.url}/list.csv") as loader:
        first = batches_of(loader)
        batches_of(loader)
        assert len(first) == len(batches_of(loader))
        stats = loader.stats()["disk_cache"]
    if has_etags:
        assert len(images(server)) == 23 and stats["hits"] >= 23
    else:
        assert len(images(server)) >= 2 * 23 and stats["hits"] == 0
        assert stats["bypassed"] >= 2 * 23 and not blocks(cache)


def test_an_unusable_folder_is_reported_and_not_used(
    bucket: ObjectServer, pictures: Path, cache: Path
) -> None:
    put_folder(bucket, pictures, "/photos/train")
    cache.mkdir()
    (cache / "blocks").write_text("a file")
    warned = pytest.warns(UserWarning, match="blocks cannot be stored")
    with warned, reader("s3://photos/train") as loader:
        assert len(batches_of(loader)) == len(batches_of(loader)) == 6
    assert len(images(bucket)) >= 46


READS = """
import sys, warnings
import numpy as np
import headrace as hr
from headrace import transforms as T

caught = warnings.catch_warnings(record=True)
with caught as warned:
    warnings.simplefilter("always")
    hr.remote.configure(credentials=lambda: None)
    loader = hr.Loader("s3://photos/train", [T.CenterCrop(8)], batch_size=23, disk_cache="64 MiB")
    (batch,) = loader
    np.save(sys.argv[1], batch.image)
    stats = loader.stats()["disk_cache"]
print(stats["hits"], stats["failed"], *(each.message for each in warned))
"""


def test_blocks_on_a_read_only_file_system_are_used_and_none_is_added(
    bucket: ObjectServer, pictures: Path, cache: Path, tmp_path: Path
) -> None:
    mount = ["unshare", "--mount", "--map-root-user", "sh", "-ec"]
    script = f'mount --bind {cache} {cache}; mount -o remount,ro,bind {cache}; exec "$@"'
    cache.mkdir()
    if subprocess.run([*mount, script, "sh", "true"], capture_output=True).returncode:
        pytest.skip("this system lets no process make a read-only mount")
    put_folder(bucket, pictures, "/photos/train")
    near = hr.Loader(str(pictures), [T.CenterCrop(8)], batch_size=23)
    (expected,) = [np.array(batch["image"]) for batch in near]
    assert run_code(READS, tmp_path / "all.npy").returncode == 0
    assert len(blocks(cache)) == len(images(bucket)) == 23
    for block in sorted(blocks(cache))[:5]:
        block.unlink()
    before = sorted(cache.rglob("*"))
    bucket.requests.clear()
    command = [*mount, script, "sh", sys.executable, "-c", READS, str(tmp_path / "again.npy")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert np.array_equal(np.load(tmp_path / "all.npy"), expected)
    assert np.array_equal(np.load(tmp_path / "again.npy"), expected)
    assert len({request.path for request in images(bucket)}) == 5
    assert sorted(cache.rglob("*")) == before
    hits, failed, warning = done.stdout.split(maxsplit=2)
    assert int(hits) >= 18 and failed == "0" and "which is read-only" in warning
