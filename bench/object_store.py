#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Serves a folder as a remote bucket: `with ObjectStore(folder, latency=0.05) as store`.

    python bench/object_store.py FOLDER [--latency 0.05] [--rate 90e6] [--hang-every 200]

A separate process serves ranges and listings like S3, with a lognormal latency, a limited rate per
connection, and a hang of several seconds for every Nth request. Bodies go from the page cache to
the socket (sendfile), so it uses little CPU time. Signatures are not checked. "/-/counts" returns
the statistics so far.
"""

from __future__ import annotations

import argparse
import bisect
import email.utils
import hashlib
import heapq
import json
import math
import os
import random
import re
import select
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path
from types import TracebackType
from xml.sax.saxutils import escape

SLICE = 512 << 10  # bytes sent at once, when the rate allows the last of them
SMALL = 32 << 10  # bodies that are sent together with their headers
RANGE = re.compile(rb"\r\nrange: *bytes=([0-9]*)-([0-9]*)", re.IGNORECASE)
CLOSES = re.compile(rb"\r\n(?:connection: *close|expect:)", re.IGNORECASE)
BUCKET = "data"  # any other bucket name refers to the same folder
COUNTS = "/-/counts"


class Connection:
    def __init__(self, accepted: socket.socket) -> None:
        self.socket = accepted
        self.asked = b""
        self.head = b""  # bytes still to send
        self.file = -1
        self.place = self.left = 0
        self.allowed = 0  # part of `left` that the rate allows now
        self.given = 0  # bytes that have been scheduled
        self.begun = 0.0
        self.answering = self.blocked = False
        self.ends = False


class Server:
    """A single event loop: pending work is in a heap."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.folder = options.folder.resolve()
        self.files: dict[str, tuple[int, int, str, str]] = {}  # descriptor, bytes, tag, time
        self.random = random.Random(1)
        self.due: list[tuple[float, int, Connection]] = []
        self.order = 0
        self.counts = {"requests": 0, "bytes": 0, "hung": 0}
        self.listener = socket.create_server(("127.0.0.1", options.port), backlog=1024)
        self.listener.setblocking(False)
        self.epoll = select.epoll()
        self.epoll.register(self.listener, select.EPOLLIN)
        self.epoll.register(0, select.EPOLLIN | select.EPOLLHUP)  # closing it ends the server
        self.connections: dict[int, Connection] = {}
        self.known_keys: list[str] = []  # when it is listed for the first time

    def run(self) -> None:
        print(self.listener.getsockname()[1], flush=True)
        while True:
            wait = max(0.0, self.due[0][0] - time.monotonic()) if self.due else -1
            for descriptor, event in self.epoll.poll(-1 if wait < 0 else wait):
                if descriptor == 0:
                    return
                if descriptor == self.listener.fileno():
                    self.accept()
                elif connection := self.connections.get(descriptor):
                    try:
                        self.act(connection, event)
                    except OSError:
                        self.drop(connection)
            now = time.monotonic()
            while self.due and self.due[0][0] <= now:
                connection = heapq.heappop(self.due)[2]
                if connection.socket.fileno() < 0:
                    continue
                try:
                    self.advance(connection)
                except OSError:
                    self.drop(connection)

    def accept(self) -> None:
        while True:
            try:
                accepted, _ = self.listener.accept()
            except BlockingIOError:
                return
            accepted.setblocking(False)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections[accepted.fileno()] = Connection(accepted)
            self.epoll.register(accepted, select.EPOLLIN)

    def drop(self, connection: Connection) -> None:
        if connection.socket.fileno() >= 0:
            self.connections.pop(connection.socket.fileno(), None)
            connection.socket.close()

    def at(self, moment: float, connection: Connection) -> None:
        self.order += 1
        heapq.heappush(self.due, (moment, self.order, connection))

    def act(self, connection: Connection, event: int) -> None:
        if event & select.EPOLLOUT:
            connection.blocked = False
            self.epoll.modify(connection.socket, select.EPOLLIN)
            self.send(connection)
            return
        data = connection.socket.recv(65536)
        if not data:
            return self.drop(connection)
        connection.asked += data
        if not connection.answering:
            self.take_request(connection)

    def take_request(self, connection: Connection) -> None:
        head, found, rest = connection.asked.partition(b"\r\n\r\n")
        if not found:
            return
        connection.asked = rest
        connection.answering, connection.given = True, 0
        method, target, _ = head[: head.find(b"\r\n")].decode("latin-1").split(" ", 2)
        connection.ends = CLOSES.search(head) is not None
        now = time.monotonic()
        if target == COUNTS:
            body = json.dumps(self.counts).encode()
            self.answer(connection, 200, {"Content-Length": str(len(body))}, body)
            connection.begun = now
            return self.slice_at(connection)
        self.counts["requests"] += 1
        delay = 0.0
        if self.options.latency:
            mu, sigma = math.log(self.options.latency), self.options.sigma
            delay = self.random.lognormvariate(mu, sigma)
        if self.options.hang_every and self.counts["requests"] % self.options.hang_every == 0:
            self.counts["hung"] += 1
            delay = self.options.hang_seconds
        self.prepare(connection, method, target, RANGE.search(head))
        connection.begun = now + delay
        self.slice_at(connection)

    def answer(
        self, connection: Connection, status: int, headers: dict[str, str], body: bytes = b""
    ) -> None:
        lines = [f"HTTP/1.1 {status} Answer", *(f"{n}: {v}" for n, v in headers.items()), "", ""]
        connection.head = "\r\n".join(lines).encode("latin-1") + body
        connection.left = connection.allowed = 0

    def prepare(
        self, connection: Connection, method: str, target: str, span: re.Match[bytes] | None
    ) -> None:
        path, _, query = target.partition("?")
        if "%" in path:
            path = urllib.parse.unquote(path)
        key = path.lstrip("/").partition("/")[2]
        if not key:
            asked = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
            body = b"" if method == "HEAD" else self.listing(asked)
            found = {"Content-Type": "application/xml", "Content-Length": str(len(body))}
            return self.answer(connection, 200, found, body)
        known = self.file(key)
        if not known:
            body = b"<Error><Code>NoSuchKey</Code><Message>none</Message></Error>"
            body = b"" if method == "HEAD" else body
            return self.answer(connection, 404, {"Content-Length": str(len(body))}, body)
        file, size, tag, changed = known
        first, last, status, place = 0, size - 1, 200, ""
        if span:
            begin, end = span.groups()
            first = int(begin) if begin else max(0, size - int(end))
            last = min(int(end), size - 1) if begin and end else size - 1
            if first >= size:
                wrong = {"Content-Range": f"bytes */{size}", "Content-Length": "0"}
                return self.answer(connection, 416, wrong)
            status, place = 206, f"Content-Range: bytes {first}-{last}/{size}\r\n"
        count = last - first + 1
        connection.head = (
            f"HTTP/1.1 {status} Answer\r\nETag: {tag}\r\nLast-Modified: {changed}\r\n"
            "Accept-Ranges: bytes\r\nContent-Type: application/octet-stream\r\n"
            f"{place}Content-Length: {count}\r\n\r\n"
        ).encode("latin-1")
        connection.left = connection.allowed = 0
        if method != "GET":
            return
        if count <= SMALL:  # a single call sends both
            connection.head += os.pread(file, count, first)
            self.counts["bytes"] += count
            connection.given = count
            return
        connection.file, connection.place, connection.left = file, first, count

    def file(self, key: str) -> tuple[int, int, str, str] | None:
        known = self.files.get(key)
        if known:
            return known
        path = (self.folder / key).resolve()
        if self.folder not in path.parents or not path.is_file():
            return None
        file = os.open(path, os.O_RDONLY)
        status = os.fstat(file)
        stamp = f"{key}:{status.st_size}:{status.st_mtime_ns}"
        tag = f'"{hashlib.md5(stamp.encode()).hexdigest()}"'
        changed = email.utils.formatdate(status.st_mtime, usegmt=True)
        self.files[key] = file, status.st_size, tag, changed
        return self.files[key]

    def advance(self, connection: Connection) -> None:
        """Schedules the next slice according to the rate, or the first one after the latency."""
        connection.allowed += min(SLICE, connection.left - connection.allowed)
        if connection.allowed < connection.left:
            self.slice_at(connection)
        self.send(connection)

    def slice_at(self, connection: Connection) -> None:
        """When the last byte of the next slice is due."""
        step = min(SLICE, connection.left - connection.allowed)
        connection.given += step
        rate = self.options.rate or math.inf
        self.at(connection.begun + connection.given / rate, connection)

    def send(self, connection: Connection) -> None:
        if connection.blocked:
            return
        try:
            while connection.head:
                sent = connection.socket.send(
                    connection.head, socket.MSG_MORE if connection.left else 0
                )
                connection.head = connection.head[sent:]
            while connection.allowed:
                sent = os.sendfile(
                    connection.socket.fileno(),
                    connection.file,
                    connection.place,
                    connection.allowed,
                )
                self.counts["bytes"] += sent
                connection.place += sent
                connection.allowed -= sent
                connection.left -= sent
        except BlockingIOError:
            connection.blocked = True
            self.epoll.modify(connection.socket, select.EPOLLIN | select.EPOLLOUT)
            return
        if connection.left:
            return
        if connection.ends:
            return self.drop(connection)
        connection.answering = False
        if connection.asked:
            self.take_request(connection)

    def listing(self, asked: dict[str, str]) -> bytes:
        prefix, delimiter = asked.get("prefix", ""), asked.get("delimiter", "")
        after = asked.get("continuation-token") or asked.get("start-after", "")
        entries: dict[str, Path | None] = {}
        keys = self.keys()
        at = bisect.bisect_left(keys, prefix)
        while at < len(keys) and keys[at].startswith(prefix) and len(entries) <= 1000:
            path = keys[at]
            rest = path[len(prefix) :]
            if delimiter and delimiter in rest:  # rejects anything outside the folder
                folder = prefix + rest.split(delimiter)[0] + delimiter
                at = bisect.bisect_left(keys, folder[:-1] + chr(ord(delimiter) + 1), at)
                name, entry = folder, None
            elif path <= after:
                at = bisect.bisect_right(keys, after, at)
                continue
            else:
                at += 1
                name, entry = path, self.folder / path
            if name > after:
                entries[name] = entry
        names = list(entries)
        page, more = names[:1000], len(names) > 1000
        out = [
            '<?xml version="1.0" encoding="UTF-8"?>',
            '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">',
            f"<Name>{BUCKET}</Name><Prefix>{escape(prefix)}</Prefix>",
            f"<KeyCount>{len(page)}</KeyCount><MaxKeys>1000</MaxKeys>",
            f"<IsTruncated>{str(more).lower()}</IsTruncated>",
        ]
        if more:
            out.append(f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>")
        quoted = asked.get("encoding-type") == "url"
        if quoted:
            out.append("<EncodingType>url</EncodingType>")
        for name in page:
            shown = urllib.parse.quote(name, safe="/") if quoted else escape(name)
            if entries[name] is None:
                out.append(f"<CommonPrefixes><Prefix>{shown}</Prefix></CommonPrefixes>")
                continue
            _, size, tag, _ = self.file(name) or (0, 0, "", "")
            out.append(
                f"<Contents><Key>{shown}</Key><LastModified>2026-11-27T10:00:00.000Z</LastModified>"
                f"<ETag>{escape(tag)}</ETag><Size>{size}</Size><StorageClass>STANDARD</StorageClass>"
                "</Contents>"
            )
        return "".join([*out, "</ListBucketResult>"]).encode()

    def keys(self) -> list[str]:
        if not self.known_keys:
            found = (path for path in self.folder.rglob("*") if path.is_file())
            self.known_keys = sorted(str(path.relative_to(self.folder)) for path in found)
        return self.known_keys


class ObjectStore:
    """Runs the server in a separate process during a `with` block."""

    def __init__(self, folder: Path, **options: float) -> None:
        self.command = [sys.executable, __file__, str(folder)]
        for name, value in options.items():
            self.command += [f"--{name.replace('_', '-')}", str(value)]

    def __enter__(self) -> ObjectStore:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(self.command, stdin=pipe, stdout=pipe, text=True)
        assert self.process.stdout
        self.url = f"http://127.0.0.1:{int(self.process.stdout.readline())}"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()

    def counts(self) -> dict[str, int]:
        """Requests, bytes of bodies, and requests that hung, so far."""
        with urllib.request.urlopen(self.url + COUNTS) as answer:
            counts: dict[str, int] = json.load(answer)
            return counts

    def environment(self) -> dict[str, str]:
        """What S3 clients need to connect."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument(
        "--latency", type=float, default=0.0, metavar="SECONDS", help="median latency"
    )
    parser.add_argument("--sigma", type=float, default=0.3, help="sigma of the lognormal latency")
    parser.add_argument("--rate", type=float, default=0.0, help="bytes per second per connection")
    parser.add_argument(
        "--hang-every", type=int, default=0, metavar="N", help="let one of N requests hang"
    )
    parser.add_argument("--hang-seconds", type=float, default=5.0)
    Server(parser.parse_args()).run()


if __name__ == "__main__":
    main()
