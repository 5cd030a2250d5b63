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
    '"cuda" is the device of this process: the one whose number LOCAL_RANK is, which torchrun sets '
    "in each process that it starts. CUDA_VISIBLE_DEVICES says which devices a process sees, and "
    "numbers them again; a process that sees one alone has it, whatever its LOCAL_RANK is, since "
    "that is how SLURM and others bind processes. A LOCAL_RANK beyond several visible devices "
    "means that more processes were started than there are devices for, or that their list is not "
    "the one that was meant.",
)


def own_index(count: int, environment: Mapping[str, str] | None = None) -> int:
    """The number of this process's device among the ``count`` that it sees.

    Raises ConfigError HR0897 where LOCAL_RANK is beyond them.
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
        f"LOCAL_RANK is {rank}, and this process sees {devices}{seen}",
        hint=f'one process a device: torchrun --nproc-per-node {count}; or name it: "cuda:0"',
    )


def open_device(name: str) -> _core.Device:
    """The engine's device of that name; "cuda" is this process's own."""
    if name == "cuda":
        name = f"cuda:{own_index(_core.cuda_devices()[0])}"
    return _core.open_device(name)
