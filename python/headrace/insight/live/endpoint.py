# SPDX-License-Identifier: Apache-2.0
"""A small HTTP server on a thread of its own: /metrics for Prometheus, a line at /.

A client has two seconds to say what is wanted, in at most 8 KiB; a few may do so at a time,
and the rest is turned away. What goes wrong there never reaches the training loop.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import socket
import threading
import time
import weakref
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from headrace import arguments
from headrace.errors import declare
from headrace.insight.live.exposition import CONTENT_TYPE

BAD_PORT = declare(
    "HR0911",
    "config",
    "a port that cannot be listened on",
    "hr.watch(loader, port=...) opens a port on this machine for Prometheus. It may be taken by "
    "another process (another rank of this machine, or an earlier run), or need rights that this "
    "process lacks. port=0 takes any free one, which seen.port names; with several ranks on a "
    "machine, port=9400 + local_rank gives each its own.",
)

_SECONDS = 2.0  # that a client has, in all
_LONGEST = 8 << 10  # bytes of a request
_AT_ONCE = 8  # connections


class Endpoint:
    """Has the port from the first, and serves ``metrics()`` and ``line()`` from ``start`` until
    ``close``. ``port`` 0 chooses one."""

    def __init__(
        self, host: str, port: int, metrics: Callable[[], str], line: Callable[[], str]
    ) -> None:
        port = arguments.integer("port", port)
        try:
            self._server = _Server(host, port, metrics, line)
        except (OSError, OverflowError) as error:
            raise _refusal(host, port, error) from None
        self.host, self.port = host, int(self._server.server_address[1])
        self._thread = threading.Thread(
            target=self._server.serve, name="headrace-metrics", daemon=True
        )
        _open.add(self)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Ends the thread, and the connections that are left."""
        _open.discard(self)
        self._server.stop()
        if self._thread.is_alive():
            self._thread.join()
        self._server.server_close()

    def let_go(self) -> None:
        """In a forked child: the port is the parent's; nothing may wait on it here."""
        with contextlib.suppress(OSError):
            self._server.socket.close()


_open: weakref.WeakSet[Endpoint] = weakref.WeakSet()


def _after_fork() -> None:
    for endpoint in list(_open):
        endpoint.let_go()
    _open.clear()


os.register_at_fork(after_in_child=_after_fork)


def _refusal(host: str, port: int, error: Exception) -> Exception:
    number = error.errno if isinstance(error, OSError) else None
    why = getattr(error, "strerror", None) or str(error)
    if number == errno.EADDRINUSE:
        why = "somebody else listens there"
    hint = "port=0 takes any free one"
    rank = os.environ.get("LOCAL_RANK")
    if number == errno.EADDRINUSE and rank is not None:
        hint = "each rank needs its own: port=9400 + int(os.environ['LOCAL_RANK'])"
    return BAD_PORT.error(f"{host}:{port}: {why}", hint=hint)


class _Server(HTTPServer):
    address_family = socket.AF_INET

    def __init__(
        self, host: str, port: int, metrics: Callable[[], str], line: Callable[[], str]
    ) -> None:
        self.metrics, self.line = metrics, line
        self._stopped = False
        self._room = threading.BoundedSemaphore(_AT_ONCE)
        self._lock = threading.Lock()
        self._under_way: dict[threading.Thread, socket.socket] = {}
        if ":" in host:
            self.address_family = socket.AF_INET6
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        """Without HTTPServer's question to the name service, which may take long."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = self.socket.getsockname()[:2]

    def serve(self) -> None:
        """Until ``stop``. It sleeps until somebody connects, where serve_forever wakes by the clock
        and asks for the GIL each time."""
        while not self._stopped:
            try:
                request, address = self.socket.accept()
            except OSError:
                time.sleep(0 if self._stopped else 0.1)  # too many files are open, say
                continue
            self.process_request(request, address)

    def stop(self) -> None:
        self._stopped = True
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)  # wakes accept()

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        thread = threading.Thread(
            target=self._answer, args=(request, client_address), name="headrace-client", daemon=True
        )
        with self._lock:
            self._under_way[thread] = request
        thread.start()

    def _answer(self, request: Any, client_address: Any) -> None:
        try:
            with contextlib.suppress(Exception):  # a client that is gone, or never was one
                self.finish_request(request, client_address)
            self.shutdown_request(request)
        finally:
            with self._lock:
                self._under_way.pop(threading.current_thread(), None)
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing: a client's trouble is none of the run's."""

    def server_close(self) -> None:
        super().server_close()
        with self._lock:
            left = dict(self._under_way)
        for thread, client in left.items():
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)  # wakes whoever reads from it
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "headrace"
    sys_version = ""

    def setup(self) -> None:
        super().setup()
        self.rfile = io.BytesIO(_head_of(self.connection))
        self.connection.settimeout(_SECONDS)

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._send(self.server.metrics(), CONTENT_TYPE)
        elif path == "/":
            self._send(self.server.line() + "\n", "text/plain; charset=utf-8")
        else:
            self.send_error(404)

    do_HEAD = do_GET

    def _send(self, text: str, kind: str) -> None:
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged: the terminal belongs to the run."""


def _head_of(client: socket.socket) -> bytes:
    """A request up to its empty line, or as much as came within the time and the size allowed."""
    head, until = b"", time.monotonic() + _SECONDS
    while b"\r\n\r\n" not in head and b"\n\n" not in head and len(head) < _LONGEST:
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        client.settimeout(left)
        part = client.recv(_LONGEST - len(head))
        if not part:
            break
        head += part
    return head
