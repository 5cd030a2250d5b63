# SPDX-License-Identifier: Apache-2.0
"""Promise: a response that never ends does not end a program's memory or patience, and requests
which no record needs any more are canceled: the server sees their connections end."""

from __future__ import annotations

import contextlib
import io
import tarfile
import threading
from pathlib import Path

import numpy as np
import pytest
from servers.object_server import Fault, Keys, ObjectServer, Request, etag_of
from test_remote import STEPS, bucket, epoch_of, put_folder, quick, same, server, tar

import headrace as hr

__all__ = ["bucket", "quick", "server", "tar"]


@pytest.fixture
def patient(quick: None) -> None:
    """No request is given up."""
    hr.remote.configure(stall_seconds=600)


def test_an_endless_body_without_a_length_is_refused(
    server: ObjectServer, tar: Path, patient: None
) -> None:
    server.objects["/train.tar"] = tar.read_bytes()
    server.fault = lambda request: Fault(whole=True, endless=True)
    with pytest.raises(hr.Error) as raised:
        hr.open(f"{server.url}/train.tar")
    assert raised.value.code == "HR0206"
    for part in ("1073741824 bytes", "without stating a length", "Content-Length", "local folder"):
        assert part in str(raised.value), raised.value
    assert len(server.requests) == 1, "it is not asked for again"


def test_images_without_a_length_are_read(server: ObjectServer, pictures: Path) -> None:
    files = sorted(pictures.rglob("*.png"))
    for number, file in enumerate(files):
        server.objects[f"/{number}.png"] = file.read_bytes()
    lines = [f"{number}.png,0" for number in range(len(files))]
    server.objects["/list.csv"] = "\n".join(["path,label", *lines]).encode()
    server.fault = lambda request: Fault(whole=True, unsized=True)
    source = hr.open(f"{server.url}/list.csv")
    assert len(source) == len(files)
    for number, file in enumerate(files):
        image = hr.decode(file.read_bytes()).transpose(2, 0, 1)
        assert np.array_equal(source[number]["image"], image)


def test_an_epoch_of_ranges_whose_last_chunk_never_comes(
    server: ObjectServer, tar: Path, patient: None
) -> None:
    server.objects["/train.tar"] = tar.read_bytes()
    server.fault = lambda request: Fault(unended=request.path in server.objects)
    assert same(epoch_of(f"{server.url}/train.tar"), epoch_of(tar))


@pytest.mark.parametrize("on_error", ["skip", "substitute"])
def test_a_record_that_is_too_late_cancels_its_requests(
    bucket: ObjectServer, pictures: Path, patient: None, on_error: str
) -> None:
    put_folder(bucket, pictures, "/photos/train")
    late = "/photos/train/eel/05.png"
    bucket.fault = lambda request: Fault(stall=10) if request.path == late else None
    with hr.Loader(
        "s3://photos/train",
        STEPS,
        batch_size=4,
        on_error=on_error,
        error_budget=5,
        record_timeout=0.4,
    ) as loader:
        count = sum(len(batch["image"]) for batch in loader)
        assert count == (22 if on_error == "skip" else 23)
        asked = [request for request in bucket.requests if request.path == late]
        bucket.wait_for_aborted(1)
        assert {request.path for request in bucket.aborted} == {late}
    bucket.wait_for_aborted(len(asked))


def test_closing_cancels_what_was_read_ahead(
    bucket: ObjectServer, pictures: Path, patient: None
) -> None:
    put_folder(bucket, pictures, "/photos/train")
    source = hr.open("s3://photos/train")
    stalls = threading.Event()

    def fault(request: Request) -> Fault | None:
        return Fault(stall=10) if stalls.is_set() else None

    bucket.fault = fault
    loader = hr.Loader(source, STEPS, batch_size=23, shuffle=True, record_timeout=0.5)
    batches = iter(loader)
    stalls.set()
    begun = len(bucket.requests)
    try:
        for _ in range(3):
            next(batches)
            batches = iter(loader)
    except hr.Error as error:
        assert error.code == "HR0228"
    loader.close()
    bucket.wait_for_aborted(1)
    assert len(bucket.requests) > begun


def test_a_late_answer_of_an_earlier_endpoint_is_not_used(
    bucket: ObjectServer, tar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    content = tar.read_bytes()
    other = io.BytesIO()
    with tarfile.open(tar) as near, tarfile.open(fileobj=other, mode="w") as renamed:
        for member in near.getmembers()[4:]:
            member.name = "x" + member.name
            renamed.addfile(member, near.extractfile(member))
    bucket.objects["/photos/train.tar"] = content
    asked, answers = threading.Event(), threading.Event()

    def late(request: Request) -> Fault | None:
        asked.set()
        assert answers.wait(60)
        return None

    def open_early() -> None:
        with contextlib.suppress(hr.Error):  # the object is another one in the meantime
            hr.open("s3://photos/train.tar")

    with ObjectServer(keys=Keys(), bucket="photos") as second:
        second.objects["/photos/train.tar"] = other.getvalue()
        hr.remote.configure(endpoint=bucket.url)
        bucket.fault = late
        opened = threading.Thread(target=open_early)
        opened.start()
        assert asked.wait(60)
        hr.remote.configure(endpoint=second.url)
        assert len(hr.open("s3://photos/train.tar")) == 21
        held, proceeds = threading.Event(), threading.Event()

        def hold_reads_of_the_other_version(request: Request) -> Fault | None:
            if request.headers.get("if-match") == etag_of(content):
                held.set()
                assert proceeds.wait(60)
            return None

        second.fault = hold_reads_of_the_other_version
        answers.set()
        while opened.is_alive() and not held.wait(0.005):
            pass
        source = hr.open("s3://photos/train.tar")
        assert len(source) == 21 and "x002" in source.key(0)
        assert source[0]["image"] is not None
        proceeds.set()
        opened.join()
        hr.remote.configure(endpoint="")


# Listings.


def hostile(count: int) -> list[str]:
    kinds = ("\x01\x1b[31m", "%2e%2e", "%00", "very" * 200, "a b+c&d", "\u202e", "\n", "~" * 64)
    return [f"{kinds[number % len(kinds)]}{number:06}" for number in range(count)]


@pytest.mark.parametrize("folders", [False, True])
def test_the_work_of_a_hostile_listing_is_proportional_to_its_size(
    bucket: ObjectServer, pictures: Path, folders: bool
) -> None:
    content = next(pictures.rglob("*.png")).read_bytes()
    bucket.page = 100
    work = {}
    for count in (300, 600):
        bucket.objects.clear()
        for name in hostile(count):
            key = f"{name}/0.png" if folders else f"all/{name}.png"
            bucket.objects[f"/photos/h{count}/{key}"] = content
        bucket.requests.clear()
        assert len(hr.open(f"s3://photos/h{count}")) == count
        work[count] = len(bucket.requests)
    assert work[600] <= 2 * work[300], work


def test_a_hostile_listing_with_a_key_that_is_no_path_is_refused(
    bucket: ObjectServer, pictures: Path
) -> None:
    bucket.page = 100
    for name in hostile(2000):
        bucket.objects[f"/photos/h/all/{name}.png"] = b""
    bucket.objects["/photos/h/all/../\x1bx.png"] = b""
    bucket.objects["/photos/h/all//" + "long" * 200] = b""
    with pytest.raises(hr.StorageError, match="HR0227") as raised:
        hr.open("s3://photos/h")
    assert len(bucket.requests) <= 2000 / 100 + 8
    assert "\x1b" not in str(raised.value)
