# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, forks, exits: nothing hangs and nothing leaks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from processes import run_code

LIMIT = 300  # seconds; only reached if something hangs


STUCK = """
import sys, time, threading
import headrace as hr

class Stuck:
    def __len__(self): return 8
    def __getitem__(self, i):
        if i == 5:
            print("stuck", flush=True)
            while not released.wait(0.01): pass
        return {"x": i}

released = threading.Event()
loader = hr.Loader(Stuck(), batch_size=1)
try:
    for _ in loader: pass
except KeyboardInterrupt:
    print("interrupted", flush=True)
    released.set()
assert [b.x[0] for b in hr.Loader([{"x": 7}], batch_size=1)] == [7]
print("works again")
"""


def test_ctrl_c_ends_a_wait_for_a_batch() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STUCK], stdout=subprocess.PIPE, text=True, stderr=subprocess.PIPE
    )
    assert process.stdout
    assert process.stdout.readline() == "stuck\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "interrupted\n"
    out, err = process.communicate(timeout=LIMIT)
    assert (out, process.returncode) == ("works again\n", 0), err


HANGING = """
import sys, time
import headrace as hr

def step(x):
    print("hangs", flush=True)
    time.sleep(1000)

{use}
"""


@pytest.mark.parametrize(
    "use",
    [
        "list(hr.Loader([{'x': 1}], [step], batch_size=1))",
        "with hr.Loader([{'x': 1}], [step], batch_size=1) as loader: list(loader)",
        "loader = hr.Loader([{'x': 1}], [step], batch_size=1); iter(loader); loader.batch(0, 0)",
    ],
    ids=["list", "with", "batch"],
)
def test_ctrl_c_ends_a_process_whose_step_hangs(use: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HANGING.format(use=use)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "hangs\n"
    for _ in range(LIMIT // 15):
        process.send_signal(signal.SIGINT)
        try:  # again: Python drops an interrupt that it raises in a destructor
            _, err = process.communicate(timeout=15)
            break
        except subprocess.TimeoutExpired:
            continue
    else:
        process.kill()
        pytest.fail("it does not end")
    assert process.returncode in (130, -signal.SIGINT) and "KeyboardInterrupt" in err


THREADS = """
import os, signal, subprocess, sys, time
import headrace as hr

def blocked():  # SIGINT, by thread
    for thread in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{thread}/status") as status:
            mask = next(line for line in status if line.startswith("SigBlk"))
        yield int(thread), bool(int(mask.split()[1], 16) >> (signal.SIGINT - 1) & 1)

def step(x):  # its processes may be ended as ever
    code = "import signal; print(len(signal.pthread_sigmask(signal.SIG_BLOCK, [])))"
    return int(subprocess.check_output([sys.executable, "-c", code]))

before = dict(blocked())
loader = hr.Loader([{"x": i} for i in range(8)], [step], batch_size=4, threads=3)
print([batch["x"].tolist() for batch in loader])
for _ in range(3000):  # the step may still run for the next epoch
    started = [is_blocked for thread, is_blocked in blocked() if thread not in before]
    if all(started):
        break
    time.sleep(0.1)
print(len(started) >= 2, all(started), dict(blocked())[os.getpid()])
"""


def test_the_engines_threads_receive_no_signals() -> None:
    """A Ctrl-C that another thread receives may be noticed late: Python's main thread is not woken
    by it."""
    assert run_code(THREADS).stdout == "[[0, 0, 0, 0], [0, 0, 0, 0]]\nTrue True False\n"


def test_ctrl_c_waits_half_a_second_in_total_for_everything_that_hangs() -> None:
    """All of them wait within the time that remains for the whole exit, not a second each."""
    done = run_code(
        "from headrace import _core\n"
        "first = _core.closing_patience()\n"
        "try:\n"
        "    raise KeyboardInterrupt\n"
        "except KeyboardInterrupt:\n"
        "    hurried = _core.closing_patience()\n"
        "_core.begin_exit(patient=False)\n"
        "one, other = _core.closing_patience(), _core.closing_patience()\n"
        "import time; time.sleep(0.6)\n"
        "print(first, hurried, other <= one < 0.5, _core.closing_patience())\n"
    )
    assert done.stdout == "1.0 0.25 True 0.01\n", done.stderr


@pytest.mark.parametrize(
    ("end", "steps"),
    [
        ("", "[]"),
        ("", "[lambda image: image]"),
        ("sys.exit(3)", "[]"),
        ("raise ValueError", "[lambda image: image]"),
        ("os._exit(0)", "[lambda image: image]"),
    ],
)
def test_the_process_exits_cleanly_with_a_live_iterator(
    pictures: Path, end: str, steps: str
) -> None:
    done = run_code(
        "import sys, os, headrace as hr\n"
        "from headrace import transforms as T\n"
        f"steps = [T.Resize((8, 8)), *{steps}]\n"
        "loaders = [hr.Loader(sys.argv[1], steps, batch_size=2).torch() for _ in range(3)]\n"
        "iterations = [iter(loader) for loader in loaders]\n"
        "kept = [next(iteration) for iteration in iterations]\n"
        f"{end}\n",
        pictures,
    )
    expected = {"": 0, "sys.exit(3)": 3, "raise ValueError": 1, "os._exit(0)": 0}[end]
    assert done.returncode == expected, done.stderr


FORK = """
import os, sys, headrace as hr
loader = hr.Loader(sys.argv[1], [hr.transforms.Resize((8, 8))], batch_size=2)
iteration = iter(loader)
next(iteration)
child = os.fork()
if child == 0:
    {touch}
    os._exit(0)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0, status
assert sum(1 for _ in iteration) == 11
"""


def test_a_fork_that_does_not_touch_headrace_works(pictures: Path) -> None:
    done = run_code(FORK.format(touch="del loader, iteration"), pictures)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "use",
    [
        "next(iteration)",
        "iter(loader)",
        "next(iter(hr.Loader(sys.argv[1], [hr.transforms.Resize((8, 8))], batch_size=2)))",
    ],
)
def test_a_fork_that_uses_headrace_gets_a_clear_error(pictures: Path, use: str) -> None:
    touch = (
        "\n    try:\n"
        f"        {use}\n"
        "        os._exit(1)\n"
        "    except hr.ConfigError as error:\n"
        "        assert error.code == 'HR0701' and 'fork' in str(error)"
    )
    done = run_code(FORK.format(touch=touch), pictures)
    assert done.returncode == 0, done.stderr


def test_a_child_that_exits_normally_does_not_hang(pictures: Path) -> None:
    done = run_code(FORK.format(touch="sys.exit(0)"), pictures)
    assert done.returncode == 0, done.stderr


def test_spawned_processes_work(pictures: Path) -> None:
    done = run_code(
        "import sys, multiprocessing as mp, headrace as hr\n"
        "assert len(list(hr.Loader(sys.argv[1], ragged='list', batch_size=4))) == 6\n"
        "with mp.get_context('spawn').Pool(1) as pool:\n"
        "    print(pool.apply(len, ([1, 2],)))\n",
        pictures,
    )
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr


def test_loaders_leave_no_threads_after_close(pictures: Path) -> None:
    done = run_code(
        "import os, sys, headrace as hr\n"
        "from headrace import _core\n"
        "before = len(os.listdir('/proc/self/task'))  # NumPy brings threads of its own\n"
        "for _ in range(20):\n"
        "    loader = hr.Loader(sys.argv[1], [hr.transforms.Resize((8, 8))], batch_size=2)\n"
        "    next(iter(loader)); loader.close()\n"
        "_core.shutdown(patient=True)\n"
        "print(len(os.listdir('/proc/self/task')) - before, len(os.listdir('/dev/shm')))\n",
        pictures,
    )
    assert done.stdout == f"0 {len(os.listdir('/dev/shm'))}\n", done.stderr


def test_python_objects_alive_at_exit_print_no_error() -> None:
    code = (
        "import headrace as hr\n"
        "source = hr.open([{'x': 1}, {'x': 2}])\n"
        "loader = hr.Loader(source, batch_size=1)\n"
        "view = hr.prefetch([1], 'cpu')\n"
        "batches = iter(loader), iter(view)\n"
        "next(batches[0])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_a_loader_over_a_class_of_the_script_prints_no_error_at_exit(tmp_path: Path) -> None:
    """Its methods refer to the script's globals, including the loader: a cycle through the
    engine."""
    script = tmp_path / "train.py"
    script.write_text(
        """
import headrace as hr
import numpy as np

class Squares:
    def __len__(self):
        return 8
    def __getitem__(self, number):
        return {"x": np.full(3, number**2)}

loader = hr.Loader(Squares(), batch_size=2)
for batch in loader:
    pass
"""
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stderr == ""


# Each is referenced by the script's globals, which the class references through its methods: cycles
# through the engine, which the collector cannot see.
HELD = {
    "source": "held = hr.open(Squares())",
    "record": "held = hr.open(Squares())[0]",
    "subset": "held = hr.subset(hr.open(Squares()), [0, 2])",
    "concat": "held = hr.concat(hr.open(Squares()), hr.open(Squares()))",
    "mix": "held = hr.mix(hr.open(Squares()), hr.open(Squares()), weights=[1, 1])",
    "loader": "held = hr.Loader(Squares(), batch_size=2)",
    "iterator": "held = iter(hr.Loader(Squares(), batch_size=2))",
    "batch": "held = next(iter(hr.Loader(Squares(), batch_size=2)))",
    "step": "held = hr.Loader([{'x': 1}] * 4, [Squares().step], batch_size=2); list(held)",
    "prefetcher": "held = hr.prefetch(hr.Loader(Squares(), batch_size=2), 'cpu')",
    "prefetched": "held = iter(hr.prefetch(hr.Loader(Squares(), batch_size=2), 'cpu')); next(held)",
    "trace": "held = hr.Loader(Squares(), batch_size=2).trace()",
    "stats": "loader = hr.Loader(Squares(), batch_size=2); list(loader); held = loader.stats()",
    "error": """
try:
    hr.Loader(Squares(), [T.Resize(-1)], batch_size=2)
except Exception as failure:
    held = failure
""",
}


@pytest.mark.parametrize("kind", HELD)
def test_engine_objects_alive_at_exit_print_no_error(tmp_path: Path, kind: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import headrace as hr, numpy as np\n"
        "from headrace import transforms as T\n"
        "class Squares:\n"
        "    def __len__(self): return 8\n"
        "    def __getitem__(self, number): return {'x': np.full(3, number**2)}\n"
        "    def step(self, x): return x\n"
        f"{HELD[kind]}\n"
        "Squares.held = held\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_closing_a_loader_again_at_exit_prints_nothing() -> None:
    done = run_code(
        "import atexit\n"
        "atexit.register(lambda: loader.close())\n"  # called after Headrace's own
        "import headrace as hr\n"
        "loader = hr.Loader([(0, 1)] * 8, batch_size=4)\n"
        "next(iter(loader))\n"
    )
    assert (done.returncode, done.stderr) == (0, "")
