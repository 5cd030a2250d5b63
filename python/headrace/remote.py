# SPDX-License-Identifier: Apache-2.0
"""Datasets in object stores and on web servers: options of the process, and credentials.

A remote dataset is given by its URL (``s3://bucket/train``, ``https://host/train.tar``), wherever a
path is accepted. :func:`configure` sets options in addition to the environment's.

>>> import headrace as hr
>>> before = hr.remote.configure(retries=4, stall_seconds=2)
>>> before["retries"], hr.remote.configure()["retries"]
(10, 4)
>>> _ = hr.remote.configure(**before)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headrace import _core, arguments, clouds

__all__ = ["configure"]

Credentials = Callable[[], "Mapping[str, Any] | None"]

_MOST = 10_000  # connections, retries
_MOST_AMOUNT = 1e6  # seconds, bytes per second
_COUNTS = {"connections": 1, "retries": 0}
_SECONDS = ("retry_seconds", "first_pause", "longest_pause", "stall_seconds", "hedge_seconds")
_SWITCHES = ("hedge", "anonymous")
_TEXTS = ("ca_file", "region")


def configure(
    *,
    connections: int | None = None,
    retries: int | None = None,
    retry_seconds: float | None = None,
    first_pause: float | None = None,
    longest_pause: float | None = None,
    stall_seconds: float | None = None,
    least_rate: float | None = None,
    hedge: bool | None = None,
    hedge_seconds: float | None = None,
    redirects: str | None = None,
    ca_file: str | None = None,
    headers: Mapping[str, str] | None = None,
    endpoint: str | Mapping[str, str] | None = None,
    region: str | None = None,
    addressing: str | None = None,
    anonymous: bool | None = None,
    credentials: Credentials | Mapping[str, Credentials] | None = None,
) -> dict[str, Any]:
    """Sets options for later requests of this process; returns the previous ones.

    Args:
        connections: concurrent requests to one server or bucket.
        retries: retries of a request after a transient failure (a reset, 408, 429, 5xx, a truncated
            body, a stall).
        retry_seconds: no retry begins later than this after the first attempt.
        first_pause: minimum seconds before the first retry; pauses grow, with jitter.
        longest_pause: maximum seconds between attempts, unless a server's ``Retry-After`` asks for
            more.
        stall_seconds: a connection without data for this long is dropped.
        least_rate: a connection slower than this many bytes per second over ``stall_seconds`` is
            dropped as well.
        hedge: send the slowest requests a second time, at most 2 % of all. Duplicates count as
            ``connections``: with 1, there are none.
        hedge_seconds: minimum age in seconds before a request is sent again.
        redirects: ``"same-host"`` follows redirects to the same server, and from it to TLS;
            ``"any"`` follows all. ``hf://`` redirects to other hosts as part of its protocol.
            Credentials are never sent to another host.
        ca_file: CA certificates for checking servers; empty: those of the system.
        headers: sent with requests to ``https://`` and ``http://``.
        endpoint: URL of an S3-compatible store, ``"http://127.0.0.1:9000"``, or one per cloud,
            ``{"az": "https://account.blob.core.windows.net"}``; default: the environment's
            (``AWS_ENDPOINT_URL``, ``STORAGE_EMULATOR_HOST``, ``AZURE_STORAGE_ENDPOINT``,
            ``HF_ENDPOINT``), otherwise the cloud's default.
        region: for S3; empty: ``AWS_REGION``, ``AWS_DEFAULT_REGION``, otherwise ``us-east-1``.
        addressing: for S3, ``"path"`` or ``"virtual"`` (the bucket in the host's name); empty: path
            with an endpoint, otherwise virtual.
        anonymous: send no credentials.
        credentials: called for S3 when the environment has no keys, and before they expire: a
            function that returns a dict with ``key``, ``secret`` and optionally ``token`` and
            ``expires`` (seconds since 1970). For other clouds ``{"gs": function}``: ``token`` alone
            is a bearer token, ``sas`` a shared access signature for ``az``. Default: botocore's
            chain, google-auth, azure-identity and huggingface_hub, if installed.

    Raises:
        ConfigError: HR0160 for an invalid value.
    """
    options = _core.remote_options()
    before = _as_dict(options)
    given = {name: value for name, value in locals().items() if name in before}
    for name, value in given.items():
        if value is not None:
            _set(options, name, value)
    if callable(credentials):
        credentials = {"s3": credentials}
    for cloud in credentials or ():
        arguments.one_of("the cloud of credentials", cloud, clouds.NAMES)
    _core.set_remote_options(options)
    for cloud, function in (credentials or {}).items():
        _core.set_key_provider(cloud, lambda function=function: _keys(function()))
    return before


def changed_options() -> dict[str, Any]:
    """Arguments of configure() that give another process the options of this one. They may contain
    secrets: in ``headers``, and in the user part of an endpoint.
    """
    defaults = _as_dict(_core.RemoteOptions())
    return {name: value for name, value in configure().items() if value != defaults[name]}


def _as_dict(options: _core.RemoteOptions) -> dict[str, Any]:
    names = (*_COUNTS, *_SECONDS, "least_rate", *_SWITCHES, *_TEXTS, "addressing")
    out = {name: getattr(options, name) for name in names}
    out["endpoint"] = dict(options.endpoints)
    out["redirects"] = "any" if options.any_redirect else "same-host"
    out["headers"] = dict(line.split(": ", 1) for line in options.headers)
    return out


def _set(options: _core.RemoteOptions, name: str, value: Any) -> None:
    if name == "redirects":
        options.any_redirect = arguments.one_of(name, value, ("same-host", "any")) == "any"
    elif name == "headers":
        options.headers = _lines_of(value)
    elif name == "endpoint":
        options.endpoints = _endpoints(value)
    elif name == "addressing":
        options.addressing = arguments.one_of(name, value, ("", "path", "virtual"))
    elif name in _COUNTS:
        setattr(options, name, arguments.integer(name, value, _COUNTS[name], _MOST))
    elif name in _SECONDS or name == "least_rate":
        setattr(options, name, arguments.amount(name, value, _MOST_AMOUNT))
    elif name in _SWITCHES:
        setattr(options, name, arguments.switch(name, value))
    else:
        setattr(options, name, str(value))


def _lines_of(headers: Mapping[str, str]) -> list[str]:
    lines = [f"{key}: {text}" for key, text in headers.items()]
    if any(set("\r\n\0") & set(line) for line in lines):
        raise arguments.BAD_VALUE.error("headers must not contain line ends")
    return lines


def _endpoints(given: str | Mapping[str, str]) -> dict[str, str]:
    by_cloud = {"s3": given} if isinstance(given, str) else dict(given)
    for cloud in by_cloud:
        arguments.one_of("the cloud of an endpoint", cloud, clouds.NAMES)
    return {cloud: str(address) for cloud, address in by_cloud.items() if address}


def _keys(given: Mapping[str, Any] | None) -> clouds.Keys | None:
    if not given:
        return None
    key, secret, token, sas = (str(given.get(n) or "") for n in ("key", "secret", "token", "sas"))
    return clouds.Keys(key, secret, token, sas, float(given.get("expires") or 0))


clouds.provide()
