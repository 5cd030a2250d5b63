# SPDX-License-Identifier: Apache-2.0
"""If OpenMP binds the main thread, the loader's threads and processes still use all cores."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = """
import json, os, time
import numpy as np
import torch  # whose OpenMP runtime binds the thread that loads it
import headrace as hr
from headrace.insight.measure import machine

def cores(x):
    return np.float32([len(os.sched_getaffinity(0))])

def of_tasks():
    tasks = map(int, os.listdir("/proc/self/task"))
    return {task: len(os.sched_getaffinity(task)) for task in tasks}

if __name__ == "__main__":
    records = [{"x": np.float32([i])} for i in range(32)]
    before = of_tasks()
    with hr.Loader(records, batch_size=4) as loader:
        batches = sum(1 for _ in loader)
        for _ in range(100):  # a thread that was started may yet have to begin
            threads = [cores for task, cores in of_tasks().items() if task not in before]
            if before[os.getpid()] not in threads:
                break
            time.sleep(0.1)
    with hr.Loader(records, [cores], batch_size=4, python_workers=2) as loader:
        workers = [int(count) for batch in loader for count in batch.x.ravel()]
    print(json.dumps({
        "main": before[os.getpid()], "batches": batches, "threads": threads, "workers": workers,
        "machine": sorted(machine.core_numbers()),
    }))
"""


def run(tmp_path: Path, **variables: str) -> dict[str, Any]:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **variables},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("variable", ["OMP_PROC_BIND=true", "GOMP_CPU_AFFINITY"])
def test_a_bound_main_thread_does_not_keep_the_loader_on_its_core(
    tmp_path: Path, variable: str
) -> None:
    pytest.importorskip("torch")
    cores = os.sched_getaffinity(0)
    if len(cores) < 2:
        pytest.skip("there is one core")
    name, _, value = variable.partition("=")
    seen = run(tmp_path, **{name: value or " ".join(map(str, sorted(cores)))})
    if seen["main"] != 1:
        pytest.skip("this torch's OpenMP binds later, or not")
    assert seen["batches"] == 8
    assert seen["threads"] and set(seen["threads"]) == {len(cores)}
    assert set(seen["workers"]) == {len(cores)}
    assert set(seen["machine"]) == cores
