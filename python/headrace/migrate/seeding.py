# SPDX-License-Identifier: Apache-2.0
"""Makes random draws a function of a seed: seeds the global generators of torch, NumPy and Python,
and other generators.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from headrace import global_draws
from headrace.migrate.generators import seed_all


@contextmanager
def seeded(seed: int, more: Sequence[Any] = ()) -> Iterator[None]:
    """Seeds global and other generators with ``seed`` inside the context, and restores them
    afterwards. One thread at a time.
    """
    with global_draws.seeded(seed):
        put_back = seed_all(more, seed)
        try:
            yield
        finally:
            put_back()
