# SPDX-License-Identifier: Apache-2.0
"""Servers that behave like Google Cloud Storage, Azure Blob Storage and the Hugging Face Hub,
following their public documentation: addresses, listings, and accepted authorization."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import urllib.parse
from http.server import BaseHTTPRequestHandler
from typing import Any
from xml.sax.saxutils import escape

from servers.object_server import Fault, Keys, ObjectServer, Request, etag_of, signature_problem

GOOGLE = ("GOOG4", "x-goog-", "storage", "goog4_request")


class GoogleServer(ObjectServer):
    """With the XML interface. Accepts signatures with `keys`, or the bearer token `token`."""

    def __init__(
        self, *, token: str = "", keys: Keys | None = None, bucket: str = "photos"
    ) -> None:
        super().__init__(keys=keys, bucket=bucket)
        self.token = token

    def refusal(self, request: Request, raw: str) -> tuple[int, str] | None:
        if self.token:
            given = request.headers.get("authorization")
            return None if given == f"Bearer {self.token}" else (401, "AuthenticationRequired")
        return super().refusal(request, raw)

    def exists_already(self, request: Request) -> tuple[int, str]:
        assert request.headers.get("x-goog-if-generation-match") == "0", "uploads replace nothing"
        return 412, "PreconditionFailed"


class AzureServer(ObjectServer):
    """Paths are "/ACCOUNT/CONTAINER/BLOB", as those of the storage emulator. Takes the account's
    key, a SAS (`sas`: its query), or a bearer token."""

    stored = 201

    def __init__(self, *, key: str = "", sas: str = "", token: str = "") -> None:
        super().__init__(bucket="account/photos")
        self.key, self.sas, self.token = key, sas, token

    @property
    def endpoint(self) -> str:
        return f"{self.url}/account"

    def refusal(self, request: Request, raw: str) -> tuple[int, str] | None:
        given = request.headers.get("authorization", "")
        assert request.headers.get("x-ms-version", "") >= "2021-12-02"
        if self.key:
            is_right = given == f"SharedKey account:{self.signature(request, raw)}"
            return None if is_right else (403, "AuthenticationFailed")
        if self.token:
            return None if given == f"Bearer {self.token}" else (401, "InvalidAuthenticationInfo")
        wanted = dict(urllib.parse.parse_qsl(self.sas)).items()
        return None if wanted <= request.query.items() else (403, "AuthenticationFailed")

    def signature(self, request: Request, raw: str) -> str:
        """ "Authorize with Shared Key", versions from 2015-02-21 on."""
        headers = request.headers
        length = headers.get("content-length", "0")
        standard = [
            *("content-encoding", "content-language", "content-length", "content-md5"),
            *("content-type", "date", "if-modified-since", "if-match", "if-none-match"),
            *("if-unmodified-since", "range"),
        ]
        values = [headers.get(name, "") for name in standard]
        values[2] = "" if length == "0" else length
        own = sorted(name for name in headers if name.startswith("x-ms-"))
        resource = "/account" + raw.partition("?")[0]
        for name in sorted(request.query):
            resource += f"\n{name.lower()}:{request.query[name]}"
        text = "\n".join(
            [request.method, *values, *(f"{name}:{headers[name]}" for name in own), resource]
        )
        digest = hmac.new(base64.b64decode(self.key), text.encode(), hashlib.sha256).digest()
        return base64.b64encode(digest).decode()

    def exists_already(self, request: Request) -> tuple[int, str]:
        assert request.headers.get("if-none-match") == "*", "uploads replace nothing"
        assert request.headers.get("x-ms-blob-type") == "BlockBlob"
        return 409, "BlobAlreadyExists"

    def answer_else(self, handler: BaseHTTPRequestHandler, request: Request, fault: Fault) -> bool:
        if request.query.get("comp") != "list" or request.query.get("restype") != "container":
            return False
        most = min(int(request.query.get("maxresults", "5000")), self.page)
        query = request.query
        entries = self.entries(
            query.get("prefix", ""), query.get("delimiter", ""), query.get("marker", "")
        )
        out = ['\ufeff<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Blobs>']
        for name, content in entries[:most]:
            encoded = "\ufffe" in name or "\x01" in name  # characters that XML cannot contain
            shown = urllib.parse.quote(name) if encoded else escape(name)
            attribute = ' Encoded="true"' if encoded else ""
            named = f"<Name{attribute}>{shown}</Name>"
            if content is None:
                out.append(f"<BlobPrefix>{named}</BlobPrefix>")
            else:
                tag = etag_of(content).strip('"')
                out.append(
                    f"<Blob>{named}<Properties><Etag>{tag}</Etag>"
                    f"<Content-Length>{len(content)}</Content-Length>"
                    "<BlobType>BlockBlob</BlobType></Properties></Blob>"
                )
        marker = escape(entries[most - 1][0]) if len(entries) > most else ""
        out.append(f"</Blobs><NextMarker>{marker}</NextMarker></EnumerationResults>")
        self.send(handler, fault, 200, {"Content-Type": "application/xml"}, "".join(out).encode())
        return True


class HubServer(ObjectServer):
    """A repository: `objects` are "/datasets/owner/name/resolve/main/PATH". Files of a kilobyte and
    more are delivered by another server, `large`, at addresses that end with `signed`."""

    def __init__(self, *, token: str = "", repo: str = "datasets/owner/name") -> None:
        super().__init__()
        self.token, self.repo = token, repo
        self.large = _LargeFiles(self)
        self.signed = "one"

    def __enter__(self) -> HubServer:
        self.large.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *failure: object) -> None:
        super().__exit__(*failure)
        self.large.__exit__(*failure)

    def put(self, path: str, content: bytes) -> None:
        self.objects[f"/{self.repo}/resolve/main/{path}"] = content

    def refusal(self, request: Request, raw: str) -> tuple[int, str] | None:
        given = request.headers.get("authorization")
        wanted = f"Bearer {self.token}" if self.token else None
        return None if given == wanted else (401, "Unauthorized")

    def answer_else(self, handler: BaseHTTPRequestHandler, request: Request, fault: Fault) -> bool:
        content = self.objects.get(request.path)
        if content is not None and len(content) >= 1024:
            digest = hashlib.sha256(content).hexdigest()
            self.large.objects[f"/{digest}"] = content
            headers = {
                "Location": f"{self.large.url}/{digest}?Signature={self.signed}",
                "X-Linked-ETag": f'"{digest}"',
                "X-Linked-Size": str(len(content)),
                "X-Repo-Commit": "0" * 40,
            }
            self.send(handler, fault, 302, headers, b"")
            return True
        root = f"/api/{self.repo}/tree/main"
        if not request.path.startswith(root):
            return False
        self.bucket = f"{self.repo}/resolve/main"
        folder = request.path.removeprefix(root).strip("/")
        delimiter = "" if request.query.get("recursive") == "true" else "/"
        entries = self.entries(
            folder + "/" if folder else "", delimiter, request.query.get("cursor", "")
        )
        if not entries and folder:
            self.send(handler, fault, 404, {"X-Error-Code": "EntryNotFound"}, b"{}")
            return True
        most = min(int(request.query.get("limit", "1000")), self.page)
        headers = {}
        if len(entries) > most:
            query = urllib.parse.urlencode({**request.query, "cursor": entries[most - 1][0]})
            path = urllib.parse.quote(request.path)
            headers["Link"] = f'<{self.url}{path}?{query}>; rel="next"'
        body = json.dumps([_tree_entry(*entry) for entry in entries[:most]])
        headers["Content-Type"] = "application/json"
        self.send(handler, fault, 200, headers, body.encode())
        return True


def _tree_entry(key: str, content: bytes | None) -> dict[str, Any]:
    if content is None:
        return {"type": "directory", "oid": "0" * 40, "size": 0, "path": key.rstrip("/")}
    # The server's own ETag for a small file, which equals git's.
    out: dict[str, Any] = {"type": "file", "oid": etag_of(content).strip('"'), "path": key}
    out["size"] = len(content)
    if len(content) >= 1024:
        digest = hashlib.sha256(content).hexdigest()
        out["lfs"] = {"oid": digest, "size": len(content), "pointerSize": 134}
    return out


class _LargeFiles(ObjectServer):
    def __init__(self, hub: HubServer) -> None:
        super().__init__()
        self.hub = hub

    def refusal(self, request: Request, raw: str) -> tuple[int, str] | None:
        assert "authorization" not in request.headers, "the token is for the Hub alone"
        assert "if-match" not in request.headers, "its ETags are of another kind"
        is_good = request.query.get("Signature") == self.hub.signed
        return None if is_good else (403, "AccessDenied")


__all__ = ["GOOGLE", "AzureServer", "GoogleServer", "HubServer", "signature_problem"]
