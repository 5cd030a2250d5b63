# SPDX-License-Identifier: Apache-2.0
"""A small HTTP server on its own thread: /metrics for Prometheus, a status line at /.

A client that sends nothing for two seconds is disconnected; errors never reach the training loop.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import socketserver
import threading
import weakref
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from headrace import arguments
from headrace.errors import declare

BAD_PORT = declare(
    "HR0911",
    "config",
    "cannot listen on the port",
    "hr.watch(loader, port=...) opens a port on this machine for Prometheus. It may be in use by "
    "another process (another rank of this machine, or an earlier run), or need permissions that "
    "this process lacks. port=0 takes any free port, given by seen.port; with several ranks on a "
    "machine, port=9400 + local_rank gives each a separate one.",
)

_SECONDS = 2.0  # seconds that a client may be silent


class Endpoint:
    """Binds the port immediately, and serves ``metrics()`` and ``line()`` from ``start`` until
    ``close``. ``port`` 0 chooses one.
    """

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
        """Ends the thread; a request in progress may still be answered."""
        _open.discard(self)
        self._server.stop()
        if self._thread.is_alive():
            self._thread.join()
        self._server.server_close()

    def let_go(self) -> None:
        """In a forked child: closes its copy of the parent's port, without waiting."""
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
        why = "the port is in use"
    hint = "port=0 takes any free port"
    rank = os.environ.get("LOCAL_RANK")
    if number == errno.EADDRINUSE and rank is not None:
        hint = "each rank needs its own: port=9400 + int(os.environ['LOCAL_RANK'])"
    return BAD_PORT.error(f"{host}:{port}: {why}", hint=hint)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(
        self, host: str, port: int, metrics: Callable[[], str], line: Callable[[], str]
    ) -> None:
        self.metrics, self.line = metrics, line
        self.stopped = False
        if ":" in host:
            self.address_family = socket.AF_INET6
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        """Without HTTPServer's name lookup, which may be slow."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.socket.getsockname()[:2]

    def serve(self) -> None:
        """Serves until ``stop``. Sleeps until a client connects, unlike serve_forever, which wakes
        periodically and takes the GIL each time."""
        while not self.stopped:
            self.handle_request()

    def stop(self) -> None:
        self.stopped = True
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)  # wakes the thread

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        threading.current_thread().name = "headrace-request"  # a name instead of Thread-12
        super().process_request_thread(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Does nothing: a client's error must not affect the run."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _SECONDS
    server_version = "headrace"
    sys_version = ""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._send(self.server.metrics(), "; version=0.0.4")
        elif path == "/":
            self._send(self.server.line() + "\n")
        else:
            self.send_error(404)

    do_HEAD = do_GET

    def _send(self, text: str, kind: str = "") -> None:
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", f"text/plain{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Does nothing: the terminal belongs to the run."""
