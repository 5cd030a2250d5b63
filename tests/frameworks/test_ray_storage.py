# SPDX-License-Identifier: Apache-2.0
"""Ray: actors and tasks read object stores with this process's options, and an actor whose storage
fails does not end training."""

from __future__ import annotations

import importlib.util
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("ray") is None:  # not imported: ray_cluster has the address
    pytest.skip("Ray is not installed", allow_module_level=True)
import ray_steps
from servers.object_server import Fault, Keys, ObjectServer, Request
from test_ray import FAR, GIVEN, PATIENCE, STEPS, hashes, wait_until_gone

import headrace as hr

pytest_plugins = ["ray_fixtures"]
SLOW = [*STEPS, ray_steps.slowly]


def signed(key: str) -> dict[str, str]:
    """Variables of the environment."""
    return {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": Keys.secret}


@pytest.fixture
def bucket(whole_photos: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectServer]:
    """The photos as s3://photos/train; only this process has keys in its environment."""
    with ObjectServer(bucket="photos") as server:
        for file in whole_photos.rglob("*.jpg"):
            server.objects[f"/photos/train/{file.relative_to(whole_photos)}"] = file.read_bytes()
        for name, value in signed(Keys.key).items():
            monkeypatch.setenv(name, value)
        hr.remote.configure(endpoint=server.url)
        yield server


def until(loader: hr.Loader, wanted: list[str], holds: Callable[[dict[str, Any]], bool]) -> None:
    """Repeats epoch 0 until the counters of remote workers have these values."""
    end = time.monotonic() + PATIENCE
    while not holds(loader.stats().remote):
        assert time.monotonic() < end, loader.stats().remote
        loader.set_epoch(0)
        assert list(hashes(loader, 1)) == wanted


def test_actors_use_the_endpoint_of_this_process(
    cluster: Any, whole_photos: Path, bucket: ObjectServer, tmp_path: Path
) -> None:
    with hr.Loader(whole_photos, SLOW, **GIVEN) as alone:
        wanted = list(hashes(alone, 1))
    bucket.keys = Keys()
    variables = {**signed(Keys.key), "HEADRACE_CACHE": str(tmp_path)}
    pool = hr.ray.pool(cpus=1, **FAR, runtime_env={"env_vars": variables})
    with hr.Loader("s3://photos/train", SLOW, **GIVEN, workers=pool) as loader:
        until(loader, wanted, lambda remote: remote["received"] > 0)
    wait_until_gone()


def test_rows_of_actors_whose_storage_fails_are_made_here(
    cluster: Any, whole_photos: Path, bucket: ObjectServer, tmp_path: Path
) -> None:
    """While actors are denied access, training continues; later they are used again."""
    with hr.Loader(whole_photos, SLOW, **GIVEN) as alone:
        wanted = list(hashes(alone, 1))
    denied = threading.Event()

    def fault(request: Request) -> Fault | None:
        is_actor = "Credential=ACTOR/" in request.headers.get("authorization", "")
        return Fault(status=403) if is_actor and denied.is_set() else None

    bucket.fault = fault
    variables = {**signed("ACTOR"), "HEADRACE_CACHE": str(tmp_path)}
    pool = hr.ray.pool(cpus=1, **FAR, runtime_env={"env_vars": variables})
    with hr.Loader("s3://photos/train", SLOW, **GIVEN, workers=pool) as loader:
        until(loader, wanted, lambda remote: remote["received"] > 0)
        denied.set()
        until(loader, wanted, lambda remote: remote["died"] > 0)
        assert loader.stats().remote["returned"] > 0
        denied.clear()
        received = loader.stats().remote["received"]
        until(loader, wanted, lambda remote: remote["received"] > received)
    wait_until_gone()


def test_parts_are_read_with_the_headers_of_this_process(
    cluster: Any, whole_photos: Path, tmp_path: Path
) -> None:
    """Tasks of later jobs have the options of that time, also in the same process."""
    hr.convert(whole_photos, tmp_path / "train.tar", "tar")

    def needs(name: str) -> Callable[[Request], Fault | None]:
        return lambda request: None if request.headers.get(name) == "secret" else Fault(status=403)

    with ObjectServer() as server:
        server.objects["/train.tar"] = (tmp_path / "train.tar").read_bytes()
        for name in ("x-first", "x-second"):
            server.fault = needs(name)
            hr.remote.configure(headers={name: "secret"})
            job = hr.ray.convert(f"{server.url}/train.tar", tmp_path / name, "tar", parts=2)
            assert job["records"] == 94
        hr.remote.configure(headers={})
        with pytest.raises(hr.StorageError, match="HR0231"):
            hr.ray.convert(f"{server.url}/train.tar", tmp_path / "none", "tar", parts=2)
