# SPDX-License-Identifier: Apache-2.0
"""Datasets in object stores and on web servers: options of the process, and credentials.

A path says where a dataset lies (``s3://bucket/train``, ``https://host/train.tar``); everything
that opens one takes it. What the environment does not say, :func:`configure` does.

>>> import headrace as hr
>>> before = hr.remote.configure(retries=4, stall_seconds=2)
>>> before["retries"], hr.remote.configure()["retries"]
(10, 4)
>>> _ = hr.remote.configure(**before)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headrace import _core
from headrace.errors import Error, declare

__all__ = ["configure"]

Credentials = Callable[[], "Mapping[str, Any] | None"]

_BAD_OPTION = declare(
    "HR0226",
    "config",
    "invalid remote storage option",
    "hr.remote.configure takes counts and seconds that are not negative, addressing='path' or "
    "'virtual', redirects='any' or 'safe', and headers as a dict of strings.",
)

_MOST = 65_536  # connections, retries
_COUNTS = {"connections": 1, "retries": 0}
_SECONDS = ("retry_seconds", "first_pause", "longest_pause", "stall_seconds", "hedge_seconds")
_RATES = ("least_rate",)
_TEXTS = ("ca_file", "endpoint", "region", "addressing")


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
    endpoint: str | None = None,
    region: str | None = None,
    addressing: str | None = None,
    anonymous: bool | None = None,
    credentials: Credentials | None = None,
) -> dict[str, Any]:
    """Sets options of this process's requests from now on; returns what they were.

    Args:
        connections: requests at once to one server or bucket.
        retries: further tries of a request whose failure may pass (a reset, 408, 429, 5xx, a
            body that is cut, no byte for a while).
        retry_seconds: no try begins later than this after the first.
        first_pause: seconds before the second try, at least; pauses grow and scatter.
        longest_pause: seconds between tries, at most, unless ``Retry-After`` of a server asks
            for more.
        stall_seconds: a connection without a byte for so long is given up.
        least_rate: likewise one with fewer bytes a second over ``stall_seconds``.
        hedge: send the slowest requests a second time, 2 % of all at most.
        hedge_seconds: but none before it is so old.
        redirects: ``"safe"`` follows those to TLS or the same host, ``"any"`` all of them. What
            authorizes a request is never sent to another host.
        ca_file: certificates that servers are checked with; empty: those of the system.
        headers: sent with requests to ``https://`` and ``http://``.
        endpoint: of S3-compatible stores: ``"http://127.0.0.1:9000"``; empty:
            ``AWS_ENDPOINT_URL_S3``, ``AWS_ENDPOINT_URL``, else AWS.
        region: empty: ``AWS_REGION``, ``AWS_DEFAULT_REGION``, else ``us-east-1``.
        addressing: ``"path"`` or ``"virtual"`` (the bucket in the host's name); empty: path with
            an endpoint, else virtual.
        anonymous: send no credentials.
        credentials: called for keys of S3 when the environment has none, and before they expire:
            a dict with ``key``, ``secret`` and perhaps ``token`` and ``expires`` (seconds since
            1970). Without it: botocore's chain, where it is installed.

    Raises:
        ConfigError: HR0226.
    """
    options = _core.remote_options()
    before = _as_dict(options)
    given = {name: value for name, value in locals().items() if name in before}
    for name, value in given.items():
        if value is not None:
            _set(options, name, value)
    _core.set_remote_options(options)
    if credentials is not None:
        _core.set_key_provider(lambda: _keys(credentials()))
    return before


def _as_dict(options: _core.RemoteOptions) -> dict[str, Any]:
    out = {name: getattr(options, name) for name in (*_COUNTS, *_SECONDS, *_RATES, *_TEXTS)}
    out |= {name: getattr(options, name) for name in ("hedge", "anonymous")}
    out["redirects"] = "any" if options.any_redirect else "safe"
    out["headers"] = dict(line.split(": ", 1) for line in options.headers)
    return out


def _set(options: _core.RemoteOptions, name: str, value: Any) -> None:
    if name == "redirects":
        options.any_redirect = _one_of(name, value, ("any", "safe")) == "any"
    elif name == "headers":
        lines = [f"{key}: {text}" for key, text in value.items()]
        if any(set("\r\n\0") & set(line) for line in lines):
            raise _bad("a header with a line end in it")
        options.headers = lines
    elif name in _COUNTS:
        if not isinstance(value, int) or not _COUNTS[name] <= value <= _MOST:
            raise _bad(f"{name} must be a count from {_COUNTS[name]} to {_MOST} (got {value!r})")
        setattr(options, name, min(value, 10_000))
    elif name in _SECONDS:
        if not 0 <= value <= 1e6:
            raise _bad(f"{name} must be seconds (got {value!r})")
        setattr(options, name, float(value))
    elif name in _RATES:
        if not 0 <= value <= 1e12:
            raise _bad(f"{name} must be bytes a second (got {value!r})")
        setattr(options, name, float(value))
    elif name == "addressing":
        options.addressing = _one_of(name, value, ("", "path", "virtual"))
    else:
        setattr(options, name, value)


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise _bad(f"{name} must be one of {', '.join(map(repr, allowed))} (got {value!r})")
    return str(value)


def _bad(what: str) -> Error:
    return _BAD_OPTION.error(what)


def _keys(given: Mapping[str, Any] | None) -> tuple[str, str, str, float] | None:
    if not given:
        return None
    token, expires = given.get("token") or "", given.get("expires") or 0
    return str(given["key"]), str(given["secret"]), str(token), float(expires)


def _keys_of_botocore() -> tuple[str, str, str, float] | None:
    """What its chain finds: profiles, roles, single sign-on, metadata of the machine."""
    try:
        from botocore.session import get_session
    except ImportError:
        return None
    found = get_session().get_credentials()
    if found is None:
        return None
    frozen = found.get_frozen_credentials()
    expires = getattr(found, "_expiry_time", None)
    seconds = expires.timestamp() if expires else 0.0
    return frozen.access_key, frozen.secret_key, frozen.token or "", seconds


_core.set_key_provider(_keys_of_botocore)
