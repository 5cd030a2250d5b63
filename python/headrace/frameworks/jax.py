# SPDX-License-Identifier: Apache-2.0
"""JAX arrays over a batch's memory, or placed on the devices of a sharding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace import _core
from headrace.errors import declare

_TOO_WIDE = declare(
    "HR0803",
    "config",
    "64-bit integer with 32-bit JAX",
    "JAX has no 64-bit types unless jax_enable_x64 is set, so int64 fields (labels, ids) are "
    "delivered as int32. A value that does not fit would change silently. Set "
    'jax.config.update("jax_enable_x64", True) before anything else, or omit the field with '
    "fields=.",
)
_UNEVEN = declare(
    "HR0802",
    "config",
    "devices do not divide the batch",
    "With sharding= the rows of a batch are divided evenly over devices. Choose a batch_size "
    'that is a multiple of the number of devices, and last_batch="drop" or "pad".',
)

_NARROW = {"int64": "int32", "uint64": "uint32", "float64": "float32"}


def make_hand_over(sharding: Any = None) -> Callable[[_core.Array], Any]:
    """``array -> jax.Array``; without a copy if JAX's default device is the host."""
    import jax

    if sharding is None and _default_device_is_the_host(jax):
        return _on_host
    if not isinstance(sharding, jax.sharding.Sharding):  # a device, or None: JAX's default
        return lambda array: jax.device_put(np.asarray(_on_host(array)), sharding)

    def on_devices(array: _core.Array) -> Any:
        local = np.asarray(_on_host(array))
        try:
            return jax.make_array_from_process_local_data(sharding, local)
        except ValueError as error:
            rows = f"a field of shape {local.shape} over {sharding}"
            raise _UNEVEN.error(rows, note=str(error), hint='last_batch="drop"') from error

    return on_devices


def _default_device_is_the_host(jax: Any) -> bool:
    (device,) = jax.numpy.zeros(()).devices()
    return bool(device == jax.local_devices(backend="cpu")[0])


def _on_host(array: _core.Array) -> Any:
    """Puts axes in memory order: XLA would copy a strided array to transpose it."""
    import jax

    array = array.in_memory_order()
    if array.dtype in _NARROW and not jax.config.jax_enable_x64:
        return jax.device_put(_narrowed(np.asarray(array)), jax.local_devices(backend="cpu")[0])
    return jax.dlpack.from_dlpack(array)


def _narrowed(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    narrow = values.astype(_NARROW[values.dtype.name])
    if values.dtype.kind in "iu" and not np.array_equal(narrow, values):
        worst = values[narrow != values].flat[0]
        raise _TOO_WIDE.error(
            f"{worst} as {narrow.dtype}", hint='jax.config.update("jax_enable_x64", True)'
        )
    return narrow
