# SPDX-License-Identifier: Apache-2.0
"""CPU time of this process together with the processes that it has begun: those that decode videos,
those of steps in Python.
"""

from __future__ import annotations

import os
import resource
import time


def cpu_seconds() -> float:
    """Of this process, its children that have ended, and those that live.

    Children that live are found where the kernel lists them (CONFIG_PROC_CHILDREN).

    >>> cpu_seconds() > 0
    True
    """
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime + _of_living()


def children() -> list[str]:
    """Ids of the processes that this one has begun and that live, where the kernel lists them."""
    threads = os.listdir("/proc/self/task")
    lists = (read_proc(f"/proc/self/task/{thread}/children") for thread in threads)
    return [child for each in lists for child in each.split()]


def _of_living() -> float:
    total = 0
    for child in children():
        fields = read_proc(f"/proc/{child}/stat").rpartition(")")[2].split()
        total += sum(map(int, fields[11:13]))  # utime, stime: proc(5)
    return total / os.sysconf("SC_CLK_TCK")


def read_proc(path: str) -> str:
    """Empty where the thread or process has ended, or the kernel does not have it."""
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""
