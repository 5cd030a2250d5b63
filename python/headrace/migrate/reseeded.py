# SPDX-License-Identifier: Apache-2.0
"""Seeds a Compose of Albumentations like its ``set_random_seed``, but in its existing generators.

set_random_seed creates two generators for each of its transforms, all from the same seed, at 12 us
each; here the states are created once and copied.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace import twisters

_OWN = ("albumentations.core.composition", "albumentations.core.transforms_interface")


class Reseeded:
    """Seeds the generators of ``transform``."""

    def __init__(self, transform: Any) -> None:
        self._transform = transform
        self._owners: list[_Owner] = []

    def __call__(self, seed: int) -> None:
        if self._owners and all(owner.is_as_it_was() for owner in self._owners):
            first, *others = self._owners
            first.python.seed(seed)
            python = first.take()
            numpy = np.random.default_rng(seed).bit_generator.state
            first.bits.state = numpy
            first.holder.seed = seed
            for owner in others:
                owner.put(python)
                owner.bits.state = numpy
                owner.holder.seed = seed
            return
        self._transform.set_random_seed(seed)
        self._owners = _owners_in(self._transform)

    def __getstate__(self) -> dict[str, Any]:
        """Pickled for a worker process without generators, which it creates itself."""
        return {**vars(self), "_owners": []}


class _Owner:
    """One of its parts with a Python generator and a NumPy generator."""

    def __init__(self, holder: Any) -> None:
        self.holder = holder
        self.python, self._numpy = holder.py_random, holder.random_generator
        self.bits = self._numpy.bit_generator
        self.take, self.put = twisters.of_python(self.python)

    def is_as_it_was(self) -> bool:
        holder = self.holder
        return holder.py_random is self.python and holder.random_generator is self._numpy


def _owners_in(transform: Any) -> list[_Owner]:
    """The parts that set_random_seed() reaches; none if one of them overrides it."""
    out, waiting = [], [transform]
    while waiting:
        part = waiting.pop()
        method = getattr(part, "set_random_seed", None)
        if method is None:  # a user-defined entry, which set_random_seed() skips
            continue
        generators = [getattr(part, name, None) for name in ("py_random", "random_generator")]
        kinds = [type(each).__name__ for each in generators]
        if getattr(method, "__module__", "") not in _OWN or kinds != ["Random", "Generator"]:
            return []
        out.append(_Owner(part))
        waiting += getattr(part, "transforms", ())
    distinct = {id(owner.python) for owner in out}, {id(owner.bits) for owner in out}
    return out if all(len(each) == len(out) for each in distinct) else []
