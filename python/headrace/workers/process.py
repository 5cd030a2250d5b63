# SPDX-License-Identifier: Apache-2.0
"""The process that runs Python transforms for a loader with ``python_workers=``.

It is started by the pool, unpickles the steps once, then answers each message of records with their
new values, until its loader releases it.
"""

from __future__ import annotations

import faulthandler
import fcntl
import multiprocessing.process
import multiprocessing.spawn
import os
import pickle
import signal
import socket
import sys
from typing import Any

from headrace.readable import is_readable
from headrace.steps import Step, describe
from headrace.workers.shared_block import Block, Channel

# While the parent's main script is imported here, to find the steps that it defines.
importing_main = False


def main(end: int, lifeline: int) -> None:
    """Serves on the socket with this descriptor; ends when the pipe's other side is closed."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C is handled by the parent, which ends this process
    faulthandler.enable()
    _end_with(lifeline)
    connection = socket.socket(fileno=end)
    _, descriptors, _, _ = socket.recv_fds(connection, 1, 3)
    setup, incoming, outgoing = map(Block, descriptors)
    channel = Channel(connection, outgoing, incoming)
    try:
        steps = _prepared(setup)
    except BaseException as failure:
        channel.send([describe(failure)])
        return
    setup.close()
    channel.send([])
    while True:
        try:
            ((number, records, kinds),) = channel.receive()
        except EOFError:
            return
        channel.send(steps[number].run(records, kinds))


def _prepared(setup: Block) -> list[Step]:
    """Unpickles the steps, after setting up imports as in the parent."""
    global importing_main
    main_module, pickled = pickle.loads(setup.memory(setup.extent))
    importing_main = True
    # Makes multiprocessing refuse to start processes from a main script that is being imported.
    current: Any = multiprocessing.process.current_process()
    current._inheriting = True
    try:
        multiprocessing.spawn.prepare(main_module)
    finally:
        importing_main = False
        del current._inheriting
    return [pickle.loads(step) for step in pickled]


def _end_with(lifeline: int) -> None:
    """Ends this process when the parent's end of the pipe closes, even in the middle of a step that
    never releases the GIL: the kernel then sends SIGIO, which ends the process."""
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    flags = fcntl.fcntl(lifeline, fcntl.F_GETFL)
    fcntl.fcntl(lifeline, fcntl.F_SETFL, flags | os.O_ASYNC)
    if is_readable(lifeline):
        sys.exit("headrace: the loader's process has ended")
