# SPDX-License-Identifier: Apache-2.0
"""A wait that ends when its warning is given, so that tests do not depend on timing."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def ended_by_warning(words: str, end: Callable[[], None]) -> Iterator[None]:
    """The first warning with ``words`` in it calls ``end``; without one the test fails."""
    seen: list[str] = []

    def show(message: Warning | str, *args: object) -> None:
        seen.append(str(message))
        if words in seen[-1]:
            end()

    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("always")
        patch.setattr(warnings, "showwarning", show)
        yield
    assert any(words in text for text in seen), f"no warning has {words!r}: {seen}"
