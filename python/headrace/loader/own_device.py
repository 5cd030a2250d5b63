# SPDX-License-Identifier: Apache-2.0
"""The meaning of "cuda" without a number: this process's own device."""

from __future__ import annotations

import os
from collections.abc import Mapping

from headrace import _core
from headrace.errors import declare

_NONE_LEFT = declare(
    "HR0897",
    "config",
    "more processes than devices",
    '"cuda" means the device of this process: number LOCAL_RANK, which torchrun sets for each '
    "process. CUDA_VISIBLE_DEVICES limits the devices that a process sees, and renumbers them; a "
    "process that sees a single device uses it whatever its LOCAL_RANK is, because SLURM and "
    "others bind processes this way. If several devices are visible and LOCAL_RANK is not below "
    "their number, more processes than devices were started, or CUDA_VISIBLE_DEVICES is wrong.",
)


def own_index(count: int, environment: Mapping[str, str] | None = None) -> int:
    """The index of this process's device among the ``count`` visible ones. Raises ConfigError
    HR0897 if LOCAL_RANK is too large.
    """
    given = os.environ if environment is None else environment
    rank = given.get("LOCAL_RANK", "")
    if not rank.isdecimal() or count == 0:
        return 0
    visible = given.get("CUDA_VISIBLE_DEVICES", "")
    if int(rank) < count:
        return int(rank)
    if count == 1 and visible:
        return 0
    seen = f" of CUDA_VISIBLE_DEVICES={visible}" if visible else ""
    devices = "1 CUDA device" if count == 1 else f"{count} CUDA devices"
    raise _NONE_LEFT.error(
        f"LOCAL_RANK is {rank}, but this process sees {devices}{seen}",
        hint=f"start one process per device: torchrun --nproc-per-node {count}; or name a device: "
        '"cuda:0"',
    )


def open_device(name: str) -> _core.Device:
    """The engine's device of that name; "cuda" is this process's own."""
    if name == "cuda":
        name = f"cuda:{own_index(_core.cuda_devices()[0])}"
    return _core.open_device(name)
