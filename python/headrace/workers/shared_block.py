# SPDX-License-Identifier: Apache-2.0
"""Messages between two processes: arrays in shared memory, and a socket that says where.

The memory is a memfd that crosses the socket as a descriptor: it has no name, so nothing is left
over whoever is killed. A block holds one message at a time and grows to the largest one.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import pickle
import socket
import struct
from itertools import accumulate
from typing import Any

_ALIGNMENT = 64
_GROWTH = 1 << 16  # bytes that a block grows by at least
_IN_PLACE = 512  # bytes; smaller arrays are not worth an entry of their own
_FRAME = struct.Struct("<QQQ")  # arrays, where their table stands, bytes of the pickle after it


class Block:
    """Shared memory for one message; one side writes, the other reads."""

    def __init__(self, descriptor: int | None = None) -> None:
        if descriptor is None:
            descriptor = os.memfd_create("headrace", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            # A block that shrinks under a reader would end it with a signal.
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        self.descriptor = descriptor
        self._memory = memoryview(b"")

    def memory(self, size: int) -> memoryview:
        """Its memory, of at least so many bytes."""
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

    def write(self, message: Any) -> bytes:
        """Puts a message in; returns the frame that tells the reader."""
        arrays: list[memoryview] = []

        def apart(buffer: pickle.PickleBuffer) -> bool:
            raw = buffer.raw()
            if raw.nbytes < _IN_PLACE:
                return True
            arrays.append(raw)
            return False

        head = pickle.dumps(message, protocol=5, buffer_callback=apart)
        sizes = [array.nbytes for array in arrays]
        places = _places(sizes)
        table = struct.pack(f"<{len(sizes)}Q", *sizes)
        memory = self.memory(places[-1] + len(table) + len(head))
        for place, array in zip(places, arrays, strict=False):
            memory[place : place + array.nbytes] = array
        end = places[-1] + len(table)
        memory[places[-1] : end] = table
        memory[end : end + len(head)] = head
        return _FRAME.pack(len(sizes), places[-1], len(head))

    def read(self, frame: bytes) -> Any:
        """The message of a frame; its arrays are copies, which may be kept and written to."""
        count, table, head = _FRAME.unpack(frame)
        begin = table + 8 * count
        memory = self.memory(begin + head)
        sizes = struct.unpack_from(f"<{count}Q", memory, table)
        arrays = [
            bytearray(memory[place : place + size])
            for place, size in zip(_places(sizes), sizes, strict=False)
        ]
        return pickle.loads(memory[begin : begin + head], buffers=arrays)


def _places(sizes: Any) -> list[int]:
    """Where arrays of these sizes begin, and where the last one ends, aligned."""
    rounded = (-(-size // _ALIGNMENT) * _ALIGNMENT for size in sizes)
    return list(accumulate(rounded, initial=0))


class Channel:
    """One end of a socket and two blocks: what goes out, and what comes in."""

    def __init__(self, end: socket.socket, outgoing: Block, incoming: Block) -> None:
        self._socket = end
        self._outgoing = outgoing
        self._incoming = incoming

    def send(self, message: Any) -> None:
        """Raises ConnectionError when nobody is there any more."""
        self._socket.send(self._outgoing.write(message))

    def receive(self) -> Any:
        """Waits; raises EOFError when the other side has ended."""
        try:
            frame = self._socket.recv(_FRAME.size)
        except ConnectionResetError:
            frame = b""
        if not frame:
            raise EOFError
        return self._incoming.read(frame)

    def end(self) -> None:
        """The other side's receive() ends, now or when it has taken what was sent."""
        self._socket.shutdown(socket.SHUT_WR)

    @property
    def extent(self) -> int:
        """Of shared memory."""
        return self._outgoing.extent + self._incoming.extent

    def close(self) -> None:
        self._socket.close()
        self._outgoing.close()
        self._incoming.close()
