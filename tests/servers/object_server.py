# SPDX-License-Identifier: Apache-2.0
"""An object server that misbehaves on demand: ranges, ETags and If-Match as in web servers, the
listings and signatures of S3, and a fault for any request.

It listens on a free port of the loopback interface, and stops at the end of its `with` block.
"""

from __future__ import annotations

import datetime
import hashlib
import hmac
import select
import socket
import ssl
import struct
import threading
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from xml.sax.saxutils import escape


@dataclass
class Fault:
    """Deviations in answering a request; each is off by default."""

    status: int = 0  # sent instead
    body: bytes = b""  # sent with that status
    headers: dict[str, str] = field(default_factory=dict)  # added to the correct ones, or instead
    # of them
    whole: bool = False  # the range is ignored: status 200
    cut: int = -1  # bytes of the body, then the connection is reset
    closes: int = -1  # the same, but the connection is closed normally
    stall: int = -1  # bytes of the body, then nothing until the server stops
    drip: float = 0  # seconds between pieces of the body
    drip_bytes: int = 1024  # length of each
    late: float = 0  # delay in seconds before the answer
    loses: bool = False  # the stored object
    longer: bytes = b""  # sent after the body, and included in the content length
    unsized: bool = False  # in chunks, without a content length
    endless: bool = False  # likewise, and zeros after the body until the client disconnects
    unended: bool = False  # likewise, and nothing after the body: the last chunk is missing


@dataclass
class Request:
    number: int
    method: str
    path: str  # unescaped
    query: dict[str, str]
    headers: dict[str, str]  # header names in lower case
    body: bytes = b""


@dataclass
class Keys:
    """Which signatures are accepted: AWS's, or with other names Google's."""

    key: str = "AKIDEXAMPLE"
    secret: str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
    token: str = ""
    region: str = "us-east-1"
    dialect: tuple[str, str, str, str] = ("AWS4", "x-amz-", "s3", "aws4_request")


def etag_of(content: bytes) -> str:
    return f'"{hashlib.md5(content).hexdigest()}"'


def signature_problem(request: Request, raw_path: str, keys: Keys) -> str:
    """Empty if the request is signed by version 4 (as described by AWS) with these keys."""
    dialect, prefix, wanted_service, wanted_end = keys.dialect
    given = request.headers.get("authorization", "")
    if not given.startswith(f"{dialect}-HMAC-SHA256 "):
        return "AccessDenied"
    parts = dict(part.strip().split("=", 1) for part in given.split(" ", 1)[1].split(","))
    key, day, region, service, end = parts["Credential"].split("/")
    if request.headers.get(f"{prefix}security-token", "") != keys.token:
        return "ExpiredToken"
    if key != keys.key:
        return "InvalidAccessKeyId"
    if (region, service, end) != (keys.region, wanted_service, wanted_end):
        return "AuthorizationHeaderMalformed"
    stamp = request.headers[f"{prefix}date"]
    age = datetime.datetime.now(datetime.timezone.utc) - datetime.datetime.strptime(
        stamp + "+0000", "%Y%m%dT%H%M%SZ%z"
    )
    if abs(age.total_seconds()) > 900:
        return "RequestTimeTooSkewed"
    path, _, query = raw_path.partition("?")
    pairs = sorted(
        tuple(urllib.parse.quote(urllib.parse.unquote(x), safe="-_.~") for x in pair.split("=", 1))
        for pair in query.split("&")
        if pair
    )
    names = parts["SignedHeaders"].split(";")
    content = request.headers[f"{prefix}content-sha256"]
    if content != hashlib.sha256(request.body).hexdigest():
        return "XAmzContentSHA256Mismatch"
    if {"host", *(name for name in request.headers if name.startswith(prefix))} != set(names):
        return "SignatureDoesNotMatch"
    canonical = "\n".join(
        [
            request.method,
            urllib.parse.quote(urllib.parse.unquote_to_bytes(path), safe="/-_.~"),
            "&".join("=".join(pair) for pair in pairs),
            *(f"{name}:{' '.join(request.headers[name].split())}" for name in names),
            "",
            ";".join(names),
            content,
        ]
    )
    scope = f"{day}/{region}/{service}/{end}"
    text = "\n".join(
        [f"{dialect}-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()]
    )
    secret = (dialect + keys.secret).encode()
    for step in (day, region, service, end, text):
        secret = hmac.new(secret, step.encode(), hashlib.sha256).digest()
    return "" if secret.hex() == parts["Signature"] else "SignatureDoesNotMatch"


class ObjectServer:
    """`objects` have the names "/bucket/key", or "/path" on a web server."""

    stored = 200  # the status of an upload

    def __init__(
        self, *, keys: Keys | None = None, bucket: str = "", tls: ssl.SSLContext | None = None
    ) -> None:
        self.objects: dict[str, bytes] = {}
        self.keys = keys  # signatures are required if there are keys
        self.bucket = bucket  # buckets for which "/bucket?list-type=2" returns a listing
        self.page = 1000  # maximum number of entries
        self.twice = ""  # a key that occurs twice in listings
        self.begins = True  # listings begin after `start-after`
        self.repeats = False  # the folder that ends a page of a listing also begins the next one
        self.fault: Callable[[Request], Fault | None] = lambda request: None
        self.requests: list[Request] = []
        # Requests whose client disconnected before their answer was complete (after a stall, or an
        # unended or endless body).
        self.aborted: list[Request] = []
        self.over = threading.Event()
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *arguments: Any) -> None:
                pass

            def do_GET(self) -> None:
                outer.answer(self)

            do_PUT = do_GET

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False
            request_queue_size = 512

            def finish_request(self, request: Any, client_address: Any) -> None:
                if tls:  # on the connection's own thread, because the client may be slow
                    request = tls.wrap_socket(request, server_side=True)
                super().finish_request(request, client_address)

            def handle_error(self, *arguments: Any) -> None:
                pass  # clients that disconnect

        self._scheme = "https" if tls else "http"
        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> ObjectServer:
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def seen(self, path: str) -> list[Request]:
        return [request for request in self.requests if request.path == path]

    def wait_for_aborted(self, count: int) -> None:
        while len(self.aborted) < count:
            assert not self.over.wait(0.005)

    # One request.

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        if self.over.is_set():  # on a reused connection
            handler.close_connection = True
            return None
        raw = handler.path
        path, _, query = raw.partition("?")
        with self._lock:
            request = Request(
                number=len(self.requests),
                method=handler.command,
                path=urllib.parse.unquote(path),
                query=dict(urllib.parse.parse_qsl(query, keep_blank_values=True)),
                headers={name.lower(): value for name, value in handler.headers.items()},
                body=handler.rfile.read(int(handler.headers.get("Content-Length", 0))),
            )
            self.requests.append(request)
        handler.asked = request  # type: ignore[attr-defined]
        fault = self.fault(request) or Fault()
        if fault.late:
            self.over.wait(fault.late)
        if fault.status:
            return self.send(handler, fault, fault.status, {}, fault.body)
        if refused := self.refusal(request, raw):
            return self.refuse(handler, fault, *refused)
        if self.answer_else(handler, request, fault):
            return None
        if request.method == "PUT":
            return self.store(handler, request, fault)
        content = self.objects.get(request.path)
        if content is None:
            return self.refuse(handler, fault, 404, "NoSuchKey")
        tag = etag_of(content)
        headers = {"ETag": tag}
        if request.headers.get("if-match", tag) != tag:
            return self.refuse(handler, fault, 412, "PreconditionFailed")
        asked = request.headers.get("range")
        if not asked or fault.whole:
            return self.send(handler, fault, 200, headers, content)
        first, _, last = asked.removeprefix("bytes=").partition("-")
        begin, end = int(first or 0), min(int(last or len(content)), len(content) - 1)
        if not first:  # its last bytes
            begin, end = max(0, len(content) - int(last)), len(content) - 1
        if begin >= len(content):
            return self.send(handler, fault, 416, {"Content-Range": f"bytes */{len(content)}"}, b"")
        headers["Content-Range"] = f"bytes {begin}-{end}/{len(content)}"
        return self.send(handler, fault, 206, headers, content[begin : end + 1])

    # Requests that clouds answer differently.

    def refusal(self, request: Request, raw: str) -> tuple[int, str] | None:
        problem = self.keys and signature_problem(request, raw, self.keys)
        if not problem:
            return None
        return (
            400 if problem in ("ExpiredToken", "AuthorizationHeaderMalformed") else 403
        ), problem

    def answer_else(self, handler: BaseHTTPRequestHandler, request: Request, fault: Fault) -> bool:
        """Answers requests that are not for an object; otherwise returns False."""
        is_bucket = self.bucket and request.path.strip("/") == self.bucket
        if not is_bucket or "list-type" not in request.query:
            return False
        self.send(handler, fault, 200, {}, self.listing(request.query))
        return True

    def exists_already(self, request: Request) -> tuple[int, str]:
        assert request.headers.get("if-none-match") == "*", "uploads replace nothing"
        return 412, "PreconditionFailed"

    def store(self, handler: BaseHTTPRequestHandler, request: Request, fault: Fault) -> None:
        exists = self.exists_already(request)
        with self._lock:
            is_new = request.path not in self.objects
            if is_new and not fault.loses:
                self.objects[request.path] = request.body
        if not is_new:
            return self.refuse(handler, fault, *exists)
        return self.send(handler, fault, self.stored, {"ETag": etag_of(request.body)}, b"")

    def refuse(self, handler: BaseHTTPRequestHandler, fault: Fault, status: int, code: str) -> None:
        body = f"<Error><Code>{code}</Code><Message>as the test wants it</Message></Error>"
        self.send(handler, fault, status, {"Content-Type": "application/xml"}, body.encode())

    def send(
        self,
        handler: BaseHTTPRequestHandler,
        fault: Fault,
        status: int,
        headers: dict[str, str],
        body: bytes,
    ) -> None:
        body += fault.longer
        in_chunks = fault.unsized or fault.endless or fault.unended
        length = {"Transfer-Encoding": "chunked"} if in_chunks else {}
        headers = {**(length or {"Content-Length": str(len(body))}), **headers, **fault.headers}
        handler.send_response(status)
        for name, value in headers.items():
            if value:
                handler.send_header(name, value)
        handler.end_headers()
        if in_chunks:
            return self.send_chunks(handler, fault, body)
        stop = max(fault.cut, fault.closes, fault.stall)
        body = body[:stop] if stop >= 0 else body
        step = fault.drip_bytes if fault.drip else len(body) or 1
        for at in range(0, len(body), step):
            handler.wfile.write(body[at : at + step])
            if fault.drip and self.over.wait(fault.drip):
                break
        handler.wfile.flush()
        if fault.stall >= 0:
            self.wait_for_end(handler)
        if fault.cut >= 0:  # a reset, not a normal close
            linger = struct.pack("ii", 1, 0)
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        if stop >= 0:
            handler.close_connection = True

    def send_chunks(self, handler: BaseHTTPRequestHandler, fault: Fault, body: bytes) -> None:
        last = b"0\r\n\r\n" if fault.unsized else b""
        handler.wfile.write(b"%x\r\n%s\r\n%s" % (len(body), body, last))
        handler.wfile.flush()
        more = b"100000\r\n%s\r\n" % bytes(1 << 20)
        try:
            while fault.endless and not self.over.is_set():
                handler.wfile.write(more)
        except OSError:
            self.aborted.append(handler.asked)  # type: ignore[attr-defined]
        if fault.unended:
            self.wait_for_end(handler)
        handler.close_connection = not fault.unsized

    def wait_for_end(self, handler: BaseHTTPRequestHandler) -> None:
        """Until the client disconnects, or the server stops."""
        while not self.over.is_set():
            if select.select([handler.connection], [], [], 0.005)[0]:
                self.aborted.append(handler.asked)  # type: ignore[attr-defined]
                return

    def entries(self, prefix: str, delimiter: str, after: str) -> list[tuple[str, bytes | None]]:
        """Keys and their contents, and folders, with names after `after`."""
        out: list[tuple[str, bytes | None]] = []
        root = f"/{self.bucket}/"
        for path in sorted(self.objects):
            key = path.removeprefix(root)
            if not path.startswith(root) or not key.startswith(prefix):
                continue
            rest = key[len(prefix) :]
            if delimiter and delimiter in rest:
                folder = prefix + rest.split(delimiter)[0] + delimiter
                if not out or out[-1][0] != folder:
                    out.append((folder, None))
            else:
                out += [(key, self.objects[path])] * (1 + (key == self.twice))
        again = after if self.repeats else ""
        return [each for each in out if each[0] > after or (each[0] == again and each[1] is None)]

    def listing(self, query: dict[str, str]) -> bytes:
        most = min(int(query.get("max-keys", "1000")), self.page)
        begin = query.get("start-after", "") if self.begins else ""
        after = query.get("continuation-token", begin)
        entries = self.entries(query.get("prefix", ""), query.get("delimiter", ""), after)
        out = ['<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult>']
        out.append(
            f"<EncodingType>url</EncodingType><IsTruncated>{str(len(entries) > most).lower()}"
        )
        out.append("</IsTruncated>")
        for name, content in entries[:most]:
            quoted = urllib.parse.quote(name, safe="/")
            if content is None:
                out.append(f"<CommonPrefixes><Prefix>{quoted}</Prefix></CommonPrefixes>")
            else:
                out.append(
                    f"<Contents><Key>{quoted}</Key><ETag>{escape(etag_of(content))}</ETag>"
                    f"<Size>{len(content)}</Size></Contents>"
                )
        if len(entries) > most:
            token = escape(entries[most - 1][0])
            out.append(f"<NextContinuationToken>{token}</NextContinuationToken>")
        return "".join([*out, "</ListBucketResult>"]).encode()
