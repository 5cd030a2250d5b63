# SPDX-License-Identifier: Apache-2.0
"""A signal at any time, a fork, or the interpreter's exit never makes anything hang."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from gates import LIMIT, outcome_of
from PIL import Image
from processes import run_code

STUCK = """
import os, signal, sys, threading, time
import headrace as hr

def step(x):
    reached.set()
    time.sleep(1000)

reached = threading.Event()
loader = hr.Loader([{{"x": i}} for i in range(4)], [step], batch_size=1)
state = loader.state_dict()
iterator = iter(loader)
threading.Thread(target=lambda: next(iterator), daemon=True).start()
assert reached.wait(300)
threading.excepthook = lambda _: None  # the thread's iteration is ended by what follows
try:
    print("stuck", flush=True)
    {call}
except KeyboardInterrupt:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print("interrupted", flush=True)
    os._exit(7)  # an end in good order would wait for the step
"""


@pytest.mark.parametrize(
    "call",
    [
        "iter(loader)",
        "loader.set_epoch(3)",
        "loader.load_state_dict(state)",
        "next(iter(loader))",
    ],
)
def test_ctrl_c_ends_a_call_that_waits_for_a_stuck_step(call: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STUCK.format(call=call)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout and process.stdout.readline() == "stuck\n"
    line: list[str] = []
    reader, _ = outcome_of(lambda: line.append(process.stdout.readline()))
    for doubled in range(9):  # the signal may come before the call waits
        process.send_signal(signal.SIGINT)
        reader.join(2**doubled)
        if line:
            break
    assert line == ["interrupted\n"]
    process.communicate(timeout=LIMIT)
    assert process.returncode in (7, 130)


DAEMON = """
import threading, time
import headrace as hr

def step(x):
    time.sleep(0.01)
    return x

class Slow:
    def __len__(self): return 10**6
    def __getitem__(self, i):
        waits.set()
        time.sleep({pause})
        return {{"x": i}}

waits = threading.Event()
loader = {loader}
def consume():
    for _ in loader: pass
thread = threading.Thread(target=consume, daemon=True)
thread.start()
assert waits.wait(300)
time.sleep(0.2)
"""


@pytest.mark.parametrize(
    "loader",
    [
        "hr.Loader(Slow(), [step], batch_size=64)",
        "hr.Loader(Slow(), batch_size=64).dlpack(hr._core.simulated_device(1))",
        "hr.prefetch(Slow(), 'cpu')",
    ],
    ids=["loader", "device", "prefetch"],
)
def test_a_daemon_thread_in_next_does_not_abort_the_interpreters_exit(loader: str) -> None:
    code = DAEMON.format(loader=loader, pause=0.01)
    done = run_code(code)
    assert (done.returncode, done.stderr) == (0, "")


INNER = """
import sys, threading
import headrace as hr

class Nested:
    def __init__(self): self.inner = hr.open(sys.argv[1])
    def __len__(self): return 10**6
    def __getitem__(self, i):
        inside.set()
        for j in range(20): self.inner[j % 2]
        return {"x": i}

inside = threading.Event()
iterator = iter(hr.Loader(Nested(), batch_size=8))
next(iterator)
inside.clear()
assert inside.wait(300)
"""


def test_a_dataset_that_reads_with_headrace_does_not_hang_the_exit(tmp_path: Path) -> None:
    """It returned from a call without the GIL, and then slept like daemon threads."""
    for name in "ab":
        (tmp_path / name).mkdir()
        Image.new("RGB", (64, 64)).save(tmp_path / name / "0.jpg")
    done = run_code(INNER, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


STOPPED = """
import time
import headrace as hr

class Slow:
    def __len__(self): return 10**6
    def __getitem__(self, i):
        time.sleep(0.002)
        return {"x": i}

def step(x):
    time.sleep(0.002)
    return x

loader = hr.Loader(Slow(), [step], batch_size=8)
for epoch in range(30):
    next(iter(loader))
    loader.set_epoch(epoch + 2)
"""


def test_an_iteration_stopped_between_two_stages_of_a_record_ends() -> None:
    """Its run was set aside, as if memory were short, and no thread resumed it."""
    done = run_code(STOPPED)
    assert done.returncode == 0, done.stderr


HANDLER = """
import os, signal, threading, time
import headrace as hr

def step(x):
    reached.set()
    released.wait(300)
    return x

reached, released = threading.Event(), threading.Event()
loader = hr.Loader([{"x": i} for i in range(4)], [step], batch_size=1)
seen = []

def handler(*_):
    seen.append(loader.state_dict()["batch"])
    loader.close()
    released.set()

signal.signal(signal.SIGTERM, handler)
def send():
    reached.wait(300)
    os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=send).start()
try:
    next(iter(loader))
except hr.ConfigError as error:
    print(error.code, seen)
"""


def test_a_signal_handler_may_read_the_state_and_close_the_loader() -> None:
    done = run_code(HANDLER)
    assert done.stdout == "HR0161 [0]\n", done.stderr


FORK = """
import os, sys, time, threading, headrace as hr

class Slow:
    def __len__(self): return 1000
    def __getitem__(self, i):
        time.sleep(0.001)
        return {"x": i}

loader = hr.Loader(Slow(), batch_size=8)  # with a thread that reads ahead
view = hr.prefetch(iter(range(1000)), "cpu")
iterators = iter(loader), iter(view)
kept = [next(iterator) for iterator in iterators]
for _ in range(20):
    child = os.fork()
    if child == 0:
        del iterators, kept, loader, view
        import gc
        gc.collect()
        sys.exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, status
assert sum(1 for _ in iterators[0]) == 124
"""


def test_a_forked_child_that_drops_a_loader_does_not_hang() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK], capture_output=True, text=True, timeout=LIMIT
    )
    assert done.returncode == 0, done.stderr


DROPPED = """
import time
from headrace.finalizers import on_drop

class Owner: pass

def close():
    calls.append(1)
    if len(calls) == 1:
        raise KeyboardInterrupt  # as a Ctrl-C that arrives here does
    time.sleep(SECONDS)

calls, owner = [], Owner()
on_drop(owner, close)
try:
    del owner
    time.sleep(60)
    print("lost")
except KeyboardInterrupt:
    print("interrupted", len(calls))
"""


@pytest.mark.parametrize("seconds", [0, 0.3])
def test_ctrl_c_while_a_dropped_loader_is_closed_is_not_lost(seconds: float) -> None:
    code = DROPPED.replace("SECONDS", str(seconds))
    assert run_code(code).stdout == "interrupted 2\n"
