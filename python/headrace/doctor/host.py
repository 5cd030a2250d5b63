# SPDX-License-Identifier: Apache-2.0
"""What this machine has: cores, memory, shared memory, the disk's kind, a GPU. Reads files only."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from headrace import _core

_CGROUP = Path("/sys/fs/cgroup")


def look(paths: list[str]) -> dict[str, Any]:
    """Facts by name; what could not be found out is None. ``paths``: where the data lies."""
    return {
        "cores": _core.allowed_cores(),
        "cpu_limit": _cpu_limit(),
        "memory_bytes": _meminfo("MemTotal"),
        "memory_available_bytes": _meminfo("MemAvailable"),
        "memory_limit_bytes": _number(_CGROUP / "memory.max"),
        "shm_bytes": _free("/dev/shm"),
        "disk": disk_kind(paths[0]) if paths else None,
        "gpu": _gpu(),
    }


def disk_kind(path: str) -> str | None:
    """ "solid state", "rotating", the name of a file system without a disk, or None."""
    try:
        number = os.stat(path).st_dev
        block = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
        for folder in (block, block.parent):  # a partition has no queue, its disk has
            rotational = folder / "queue" / "rotational"
            if rotational.exists():
                return "rotating" if rotational.read_text().strip() == "1" else "solid state"
        return _file_system(path)
    except OSError:
        return None


def _file_system(path: str) -> str | None:
    """The type of the file system that is mounted nearest above a path."""
    absolute, best, kind = os.path.realpath(path), "", None
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, place, found, *_ = line.split()
        inside = absolute == place or absolute.startswith(place.rstrip("/") + "/")
        if inside and len(place) >= len(best):
            best, kind = place, found
    return kind


def _cpu_limit() -> float | None:
    """Cores' worth of time that the cgroup grants."""
    try:
        quota, period = (_CGROUP / "cpu.max").read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        return None


def _meminfo(name: str) -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return None


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _free(path: str) -> int | None:
    try:
        return shutil.disk_usage(path).free
    except OSError:
        return None


def _gpu() -> str | None:
    """The GPU that torch sees. Torch is asked only where the program has imported it."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return str(torch.cuda.get_device_name())
    try:
        names = sorted(os.listdir("/proc/driver/nvidia/gpus"))
    except OSError:
        return None
    return f"{len(names)} of NVIDIA" if names else None
