# SPDX-License-Identifier: Apache-2.0
"""Cloud credentials from the providers' own libraries: the engine requests credentials if no
environment variable sets them, and again before they expire.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timezone
from pathlib import Path
from typing import NamedTuple

from headrace import _core
from headrace.errors import declare

_NO_LIBRARY = declare(
    "HR0226",
    "config",
    "missing credentials library",
    "The environment refers to credentials that need a Python library, which is not installed. "
    "Without it, requests would be sent without credentials, which is never done silently.",
)


class Keys(NamedTuple):
    """Credentials, one of: a key for signing (with a session token), a bearer token, a SAS."""

    key: str = ""
    secret: str = ""
    token: str = ""
    sas: str = ""
    expires: float = 0  # seconds since 1970; 0: never


def of_s3() -> Keys | None:
    """botocore's chain: profiles, roles, single sign-on, instance metadata."""
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
    return Keys(frozen.access_key, frozen.secret_key, frozen.token or "", expires=seconds)


def of_google() -> Keys | None:
    """google-auth's application default: a service account's file, gcloud's login, metadata."""
    try:
        import google.auth
        from google.auth.exceptions import DefaultCredentialsError
        from google.auth.transport.requests import Request
    except ImportError:
        if os.environ.get("GOOGLE_APPLICATION_CREDENTIALS"):
            raise _NO_LIBRARY.error(
                "GOOGLE_APPLICATION_CREDENTIALS is set, but google-auth is not installed",
                hint="pip install google-auth requests",
            ) from None
        return None
    try:
        found, _ = google.auth.default(
            scopes=["https://www.googleapis.com/auth/devstorage.read_write"]
        )
    except DefaultCredentialsError:
        if os.environ.get("GOOGLE_APPLICATION_CREDENTIALS"):
            raise
        return None
    found.refresh(Request())
    expires = found.expiry.replace(tzinfo=timezone.utc).timestamp() if found.expiry else 0.0
    return Keys(token=found.token, expires=expires)


def of_azure() -> Keys | None:
    """azure-identity's chain: a service principal, workload and managed identities, the login of
    az.
    """
    try:
        from azure.identity import CredentialUnavailableError, DefaultAzureCredential
    except ImportError:
        if os.environ.get("AZURE_CLIENT_ID"):
            raise _NO_LIBRARY.error(
                "AZURE_CLIENT_ID is set, but azure-identity is not installed",
                hint="pip install azure-identity",
            ) from None
        return None
    try:
        with DefaultAzureCredential() as chain:
            token = chain.get_token("https://storage.azure.com/.default")
    except CredentialUnavailableError:
        return None
    return Keys(token=token.token, expires=float(token.expires_on))


def of_hub() -> Keys | None:
    """The login of huggingface_hub, stored in a file."""
    try:
        from huggingface_hub import get_token
    except ImportError:
        home = os.environ.get("HF_HOME", "~/.cache/huggingface")
        file = Path(os.environ.get("HF_TOKEN_PATH", f"{home}/token")).expanduser()
        token = file.read_text().strip() if file.is_file() else None
    else:
        token = get_token()
    return Keys(token=token) if token else None


_PROVIDERS: dict[str, Callable[[], Keys | None]] = {
    "s3": of_s3,
    "gs": of_google,
    "az": of_azure,
    "hf": of_hub,
}
NAMES = tuple(_PROVIDERS)  # schemes of paths


def provide() -> None:
    """Registers these functions with the engine."""
    for cloud, function in _PROVIDERS.items():
        _core.set_key_provider(cloud, function)
