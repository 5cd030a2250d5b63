# SPDX-License-Identifier: Apache-2.0
"""Sends sources and transforms to other processes through Ray's object store: arrays once per
machine, where they are read in place. Pickled here, because Ray would turn an error of unpickling,
such as that of a source whose records differ there, into text."""

from __future__ import annotations

import pickle
from typing import Any, NamedTuple

import numpy as np

from headrace.sources.recipe import carrying_arrays


class Parcel(NamedTuple):
    """Pickled bytes, with their arrays kept separately."""

    data: bytes
    arrays: list[Any]

    @property
    def nbytes(self) -> int:
        return len(self.data) + sum(int(array.nbytes) for array in self.arrays)

    def opened(self) -> Any:
        return pickle.loads(self.data, buffers=self.arrays)


def packed(value: Any) -> Parcel:
    """Pickles functions by value if they are not in a module. Raises ConfigError HR0171 if a source
    has no recipe, or one that is too large.
    """
    import ray.cloudpickle

    buffers: list[pickle.PickleBuffer] = []
    with carrying_arrays():
        data = ray.cloudpickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return Parcel(data, [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers])
