# SPDX-License-Identifier: Apache-2.0
"""Messages between two processes: arrays in shared memory, and a socket that refers to them.

A message is a sequence of parts, each of which is written before the next is made. The memory is a
memfd that is passed over the socket as a descriptor: it has no name, so nothing remains if either
process is killed. A block holds one message at a time and grows to the largest one.
"""

from __future__ import annotations

import fcntl
import io
import mmap
import os
import pickle
import struct
from collections.abc import Iterable
from itertools import accumulate
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import socket

_ALIGNMENT = 64
_GROWTH = 1 << 16  # minimum bytes by which a block grows
_IN_PLACE = 512  # bytes; smaller arrays are not worth a separate entry
_FRAME = struct.Struct(
    "<QQQ"
)  # number of arrays, position of their table, bytes of the pickles after it


class Block:
    """Shared memory for one message; one side writes, the other reads."""

    def __init__(self, descriptor: int | None = None) -> None:
        if descriptor is None:
            descriptor = os.memfd_create("headrace", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            # A block that shrinks under a reader would kill it with a signal.
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        self.descriptor = descriptor
        self._memory = memoryview(b"")

    def memory(self, size: int) -> memoryview:
        """The block's memory, at least this many bytes."""
        if size > len(self._memory):
            extent = os.fstat(self.descriptor).st_size
            if extent < size:
                extent = -(-size // _GROWTH) * _GROWTH
                os.ftruncate(self.descriptor, extent)
            self._memory = memoryview(mmap.mmap(self.descriptor, extent))
        return self._memory

    @property
    def extent(self) -> int:
        return os.fstat(self.descriptor).st_size

    def close(self) -> None:
        self._memory = memoryview(b"")
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self.descriptor = -1

    def write(self, parts: Iterable[Any]) -> bytes:
        """Stores a message; returns the frame to send to the reader."""
        sizes: list[int] = []
        heads: list[bytes] = []
        end = 0

        def apart(buffer: pickle.PickleBuffer) -> bool:
            nonlocal end
            raw = buffer.raw()
            if raw.nbytes < _IN_PLACE:
                return True
            self.memory(end + raw.nbytes)[end : end + raw.nbytes] = raw
            sizes.append(raw.nbytes)
            end += _aligned(raw.nbytes)
            return False

        for part in parts:
            heads.append(pickle.dumps(part, protocol=5, buffer_callback=apart))
        tail = struct.pack(f"<{len(sizes)}Q", *sizes) + b"".join(heads)
        if tail:
            self.memory(end + len(tail))[end : end + len(tail)] = tail
        return _FRAME.pack(len(sizes), end, sum(map(len, heads)))

    def read(self, frame: bytes) -> list[Any]:
        """The parts of a frame; arrays are copies, which may be kept and modified."""
        count, table, extent = _FRAME.unpack(frame)
        begin = table + 8 * count
        memory = self.memory(begin + extent)
        sizes = struct.unpack_from(f"<{count}Q", memory, table)
        places = accumulate(map(_aligned, sizes), initial=0)
        arrays = iter(
            [
                bytearray(memory[place : place + size])
                for place, size in zip(places, sizes, strict=False)
            ]
        )
        heads = io.BytesIO(memory[begin : begin + extent])
        parts = []
        while heads.tell() < extent:
            parts.append(pickle.load(heads, buffers=arrays))
        return parts


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


class Channel:
    """One end of a socket and two blocks: outgoing and incoming."""

    def __init__(self, end: socket.socket, outgoing: Block, incoming: Block) -> None:
        self._socket = end
        self._outgoing = outgoing
        self._incoming = incoming

    def send(self, parts: Iterable[Any]) -> None:
        """Sends a message. Raises ConnectionError if the other side is gone."""
        self._socket.send(self._outgoing.write(parts))

    def receive(self) -> list[Any]:
        """Waits for a message; raises EOFError when the other side has ended."""
        try:
            frame = self._socket.recv(_FRAME.size)
        except ConnectionResetError:
            frame = b""
        if not frame:
            raise EOFError
        return self._incoming.read(frame)

    def end(self) -> None:
        """Ends the other side's receive(), after it has read everything sent so far."""
        from socket import SHUT_WR

        self._socket.shutdown(SHUT_WR)

    @property
    def extent(self) -> int:
        """Size of the shared memory."""
        return self._outgoing.extent + self._incoming.extent

    def close(self) -> None:
        self._socket.close()
        self._outgoing.close()
        self._incoming.close()
