# SPDX-License-Identifier: Apache-2.0
"""Promise: a folder or a shard in Google Cloud Storage, Azure Blob Storage or a Hugging Face Hub
repository gives the same records as from a disk, with any authorization that the cloud accepts; and
credentials are never exposed."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from servers.clouds import GOOGLE, AzureServer, GoogleServer, HubServer
from servers.object_server import Fault, Keys
from test_remote import epoch_of, put_folder, quick, same, tar

import headrace as hr

__all__ = ["quick", "tar"]

HMAC = Keys(key="GOOG1EEXAMPLE", secret="a+secret", region="auto", dialect=GOOGLE)
AZURE_KEY = base64.b64encode(b"the key of an account, 64 bytes long or nearly").decode()
SAS = "sv=2021-12-02&sr=c&sp=rl&sig=very%2Fsecret%3D"


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in (
        *("GS_ACCESS_KEY_ID", "GS_SECRET_ACCESS_KEY", "CLOUDSDK_AUTH_ACCESS_TOKEN"),
        *("GOOGLE_OAUTH_ACCESS_TOKEN", "STORAGE_EMULATOR_HOST", "GOOGLE_APPLICATION_CREDENTIALS"),
        *("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN"),
        *("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ENDPOINT"),
        *("AZURE_STORAGE_CONNECTION_STRING", "AZURE_CLIENT_ID"),
        *("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_ENDPOINT"),
    ):
        monkeypatch.delenv(name, raising=False)
    nothing = lambda: None  # noqa: E731
    hr.remote.configure(credentials={"gs": nothing, "az": nothing, "hf": nothing})
    yield
    hr.remote.configure(credentials={"gs": nothing, "az": nothing, "hf": nothing})


@pytest.mark.parametrize("by", ["hmac", "token", "provider", "nothing"])
def test_google_cloud_storage_equals_the_disk(
    pictures: Path, tar: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    token = "ya29.secret" if by in ("token", "provider") else ""
    with GoogleServer(keys=HMAC if by == "hmac" else None, token=token) as server:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url.removeprefix("http://"))
        if by == "hmac":
            monkeypatch.setenv("GS_ACCESS_KEY_ID", HMAC.key)
            monkeypatch.setenv("GS_SECRET_ACCESS_KEY", HMAC.secret)
        elif by == "token":
            monkeypatch.setenv("CLOUDSDK_AUTH_ACCESS_TOKEN", token)
        elif by == "provider":
            hr.remote.configure(credentials={"gs": lambda: {"token": token}})
        server.page = 5
        put_folder(server, pictures, "/photos/set 1/train+é")
        server.objects["/photos/train.tar"] = tar.read_bytes()
        assert same(epoch_of("gs://photos/set 1/train+é"), epoch_of(pictures))
        assert same(epoch_of("gs://photos/train.tar"), epoch_of(tar))
        if by == "nothing":
            assert all("authorization" not in request.headers for request in server.requests)


def test_an_expired_google_token_is_renewed(tar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with GoogleServer(token="token-1") as server:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
        server.objects["/photos/train.tar"] = tar.read_bytes()
        given = 0

        def credentials() -> dict[str, Any]:
            nonlocal given
            given += 1
            return {"token": f"token-{given}", "expires": time.time() + 3600}

        hr.remote.configure(credentials={"gs": credentials})
        source = hr.open("gs://photos/train.tar")
        server.token = "token-2"
        assert source[20]["label"] is not None
        assert given == 2
        server.token = "never"
        with pytest.raises(hr.StorageError, match=r"HR0232.*401"):
            source[21]


@pytest.mark.parametrize("by", ["key", "sas", "token", "connection", "nothing"])
def test_azure_equals_the_disk(
    pictures: Path, tar: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    server = AzureServer(
        key=AZURE_KEY if by in ("key", "connection") else "",
        sas=SAS if by == "sas" else "",
        token="eyJ.secret" if by == "token" else "",
    )
    with server:
        if by == "connection":
            monkeypatch.setenv(
                "AZURE_STORAGE_CONNECTION_STRING",
                f"DefaultEndpointsProtocol=http;AccountName=account;AccountKey={AZURE_KEY};"
                f"BlobEndpoint={server.endpoint};",
            )
        else:
            monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", server.endpoint)
            monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
        if by == "key":
            monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", AZURE_KEY)
        elif by == "sas":
            monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", f"?{SAS}")
        elif by == "token":
            hr.remote.configure(credentials={"az": lambda: {"token": server.token}})
        server.page = 5
        put_folder(server, pictures, "/account/photos/set 1/train+é")
        server.objects["/account/photos/train.tar"] = tar.read_bytes()
        assert same(epoch_of("az://photos/set 1/train+é"), epoch_of(pictures))
        assert same(epoch_of("az://photos/train.tar"), epoch_of(tar))


def test_azure_errors_name_the_cause_without_the_signature(
    tar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(hr.ConfigError, match=r"HR0225(.|\n)*AZURE_STORAGE_ACCOUNT_NAME"):
        hr.open("az://photos/train.tar")
    with AzureServer(sas=SAS) as server:
        monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", server.endpoint)
        monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", SAS.replace("secret", "other"))
        server.objects["/account/photos/train.tar"] = tar.read_bytes()
        with pytest.raises(hr.StorageError, match=r"HR0231.*403 \(AuthenticationFailed") as raised:
            hr.open("az://photos/train.tar")
        assert "other" not in str(raised.value)


def test_a_name_that_xml_cannot_hold_is_decoded(
    pictures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with AzureServer() as server:
        monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", server.endpoint)
        server.objects["/account/photos/odd/a\x01%41.png"] = next(
            pictures.rglob("*.png")
        ).read_bytes()
        source = hr.open("az://photos/odd")
        assert len(source) == 1 and source[0]["image"] is not None


@pytest.mark.parametrize("by", ["variable", "provider", "nothing"])
def test_the_hub_equals_the_disk(
    pictures: Path, tar: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    token = "" if by == "nothing" else "hf_secret"
    with HubServer(token=token) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        if by == "variable":
            monkeypatch.setenv("HF_TOKEN", token)
        elif by == "provider":
            hr.remote.configure(credentials={"hf": lambda: {"token": token}})
        server.page = 5
        for file in pictures.rglob("*.png"):
            server.put(f"set 1/train+é/{file.relative_to(pictures)}", file.read_bytes())
        server.put("data/train.tar", tar.read_bytes())
        assert same(epoch_of("hf://datasets/owner/name/set 1/train+é"), epoch_of(pictures))
        assert same(epoch_of("hf://datasets/owner/name@main/data/train.tar"), epoch_of(tar))
        assert len(hr.open("hf://datasets/owner/name/data")) == 23
        assert server.large.requests, "large files are delivered by another host"


def test_the_location_of_a_hub_file_is_requested_once(
    tar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with HubServer() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        server.put("train.tar", tar.read_bytes())
        source = hr.open("hf://datasets/owner/name/train.tar")
        for index in range(23):
            assert source[index]["label"] is not None
        resolved = server.seen("/datasets/owner/name/resolve/main/train.tar")
        assert len(resolved) == 1 and len(server.large.requests) >= 23
        server.signed = "two"  # the address has expired
        assert source[3]["label"] is not None
        assert len(server.seen("/datasets/owner/name/resolve/main/train.tar")) == 2


def test_a_file_of_the_hub_that_is_replaced_is_found(
    tar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with HubServer() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        server.put("train.tar", tar.read_bytes())
        source = hr.open("hf://datasets/owner/name/train.tar")
        server.put("train.tar", tar.read_bytes()[:-1] + b"x")
        server.signed = "two"
        with pytest.raises(hr.DataError, match="HR0208"):
            source[20]


def test_only_the_hub_may_redirect_to_another_host(
    tar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with GoogleServer() as server:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
        elsewhere = server.url.replace("127.0.0.1", "localhost")
        server.objects["/photos/train.tar"] = tar.read_bytes()
        server.fault = lambda request: Fault(status=302, headers={"Location": f"{elsewhere}/a"})
        with pytest.raises(hr.StorageError, match="redirects to another server"):
            hr.open("gs://photos/train.tar")


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from headrace import clouds

    monkeypatch.setitem(sys.modules, "google.auth", None)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/key.json")
    hr.remote.configure(credentials={"gs": lambda: clouds.of_google()._asdict()})  # type: ignore[union-attr]
    with pytest.raises(hr.Error, match=r"HR0226(.|\n)*pip install google-auth"):
        hr.open("gs://photos/train.tar")


def test_credentials_and_endpoints_of_unknown_clouds_are_refused() -> None:
    for bad in (
        {"credentials": {"ftp": lambda: None}},
        {"endpoint": {"ftp": "http://127.0.0.1"}},
        {"redirects": "safe"},
    ):
        with pytest.raises(hr.ConfigError, match="HR0160"):
            hr.remote.configure(**bad)  # type: ignore[arg-type]
    before = hr.remote.configure(endpoint={"az": "http://127.0.0.1:1/account"})
    assert hr.remote.configure(**before)["endpoint"] == {"az": "http://127.0.0.1:1/account"}
    assert hr.remote.configure()["endpoint"] == before["endpoint"]
    assert np.isfinite(hr.remote.configure()["least_rate"])
