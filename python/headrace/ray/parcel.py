# SPDX-License-Identifier: Apache-2.0
"""Sends sources and transforms to other processes through Ray's object store: arrays once per
machine, where they are read in place. Pickled here, because Ray would turn an error of unpickling,
such as that of a source whose records differ there, into text. Options of remote storages are sent
along, without functions that give credentials."""

from __future__ import annotations

import functools
import pickle
from typing import Any, NamedTuple

import numpy as np

from headrace import remote
from headrace.sources.recipe import carrying_arrays


class Parcel(NamedTuple):
    """Pickled bytes, with their arrays kept separately. options: of hr.remote.configure, those that
    are not the defaults.
    """

    data: bytes
    arrays: list[Any]
    options: dict[str, Any]

    def __repr__(self) -> str:  # without values: headers may contain a password
        return f"Parcel of {self.nbytes:,} bytes, and the options {[*self.options]}"

    @property
    def nbytes(self) -> int:
        return len(self.data) + sum(int(array.nbytes) for array in self.arrays)

    def opened(self) -> Any:
        remote.configure(**{**_own_options(), **self.options})
        return pickle.loads(self.data, buffers=self.arrays)


@functools.cache
def _own_options() -> dict[str, Any]:
    """This process's, before it opened a parcel: it may open others, with other options."""
    return remote.configure()


def packed(value: Any) -> Parcel:
    """Pickles functions by value if they are not in a module. Raises ConfigError HR0171 if a source
    has no recipe, or one that is too large.
    """
    import ray.cloudpickle

    buffers: list[pickle.PickleBuffer] = []
    with carrying_arrays():
        data = ray.cloudpickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    arrays = [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers]
    return Parcel(data, arrays, remote.changed_options())
