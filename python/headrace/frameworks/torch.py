# SPDX-License-Identifier: Apache-2.0
"""torch tensors that share a batch's memory, or their copies on a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace import _core
from headrace.errors import declare
from headrace.loader.form import Devices, devices_named
from headrace.loader.own_device import own_index

_NO_DEVICE = declare(
    "HR0996",
    "config",
    "device not available to torch",
    '.torch(device) takes what torch.device takes: a name such as "cuda", "cuda:1" or "mps". A '
    "CPU-only torch, or one that finds no GPU, has no CUDA devices; .torch() without a device "
    "gives tensors on the host.",
)


def make_hand_over(device: Any = None) -> Callable[[_core.Array], Any]:
    """``array -> tensor``; on the host without a copy, on a device with one."""
    import torch

    def share(array: _core.Array) -> Any:
        # A capsule of host memory: torch does not query its device, which halves the time.
        return torch.from_dlpack(array.__dlpack__())  # type: ignore[attr-defined]

    if isinstance(device, (list, tuple)):
        return torch.from_dlpack  # type: ignore[attr-defined]
    if device is None:
        return share
    target = _resolved(torch, device)
    if target.type == "cpu":
        return share

    stream_of: Callable[[int], int] | None = None

    def hand_over(array: _core.Array) -> Any:
        nonlocal stream_of
        if array.is_on_host:
            # A copy from pageable memory returns once the bytes are staged: the slot may then be
            # freed.
            return torch.from_dlpack(array).to(target, non_blocking=True)  # type: ignore[attr-defined]
        # Already on the device: copied ahead, or sliced there. Same as torch.from_dlpack(array),
        # which takes twice as long because it creates objects for the device and its stream.
        if stream_of is None:
            stream_of = _streams(torch)
        stream = stream_of(target.index) or 1  # DLPack's name of the default stream
        return torch.from_dlpack(array.__dlpack__(stream=stream))  # type: ignore[attr-defined]

    return hand_over


def _streams(torch: Any) -> Callable[[int], int]:
    """``index of a device -> handle of its current stream``, for a torch that uses CUDA from now
    on.
    """
    torch.cuda.init()
    raw: Callable[[int], int] | None = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return raw or (lambda index: int(torch.cuda.current_stream(index).cuda_stream))


def devices_for(device: Any) -> Devices:
    """The engine's devices if it copies batches ahead; None if torch copies them."""
    if isinstance(device, (list, tuple)):
        return devices_named([_name(one) for one in device])
    if device is None:
        return ()
    import torch

    target = _resolved(torch, device)
    if target.type != "cuda" or _core.cuda_devices()[0] == 0:
        return ()  # the host, or a device that the engine does not know: "mps", "xpu"
    return _core.open_device(str(target))


def _name(device: Any) -> Any:
    return device if isinstance(device, _core.Device) else str(device)


def _resolved(torch: Any, device: Any) -> Any:
    """ "cuda" alone is torch's current device, or that of LOCAL_RANK if none was chosen."""
    try:
        target = torch.device(device)
    except (RuntimeError, TypeError) as reason:
        raise _NO_DEVICE.error(
            f"unknown device {device!r}", hint='such as "cuda", "cuda:1", "mps", "cpu"'
        ) from reason
    if target.type == "cuda" and not torch.cuda.is_available():
        built = torch.version.cuda or torch.version.hip
        raise _NO_DEVICE.error(
            f"{str(device)!r}, and "
            + ("torch finds no GPU" if built else "torch is built for the CPU only"),
            hint=".torch() gives tensors on the host; `headrace explain HR0996` says more",
        )
    if target.type != "cuda" or target.index is not None:
        return target
    current = torch.cuda.current_device()
    return torch.device("cuda", current or own_index(torch.cuda.device_count()))
