# SPDX-License-Identifier: Apache-2.0
"""Nested lists multiply: absurdly large plans are rejected at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace import transforms as T

DATA = hr.records(image=np.zeros((4, 3, 8, 8), np.uint8))


def some_of_some_of() -> Any:
    step: Any = T.RandomInvert()
    for _ in range(3):
        step = T.SomeOf([step, T.RandomVerticalFlip()], n=64, replace=True)
    return step


def many_at_once() -> Any:
    return T.SomeOf([T.RandomInvert()] * 64, n=64, replace=True)


def sizes_that_change() -> Any:
    """Each level is planned three times, because its lists change the size."""
    step: Any = T.RandomCrop(4)
    for _ in range(14):
        step = T.SomeOf([step, T.RandomCrop(4)], n=2)
    return step


def deep() -> Any:
    step: Any = T.RandomInvert()
    for _ in range(100):
        step = T.RandomApply([step])
    return step


@pytest.mark.parametrize("make", [some_of_some_of, many_at_once, sizes_that_change, deep])
def test_lists_that_multiply_are_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(hr.ConfigError, match="HR0128"):
        hr.Loader(DATA, [make()], batch_size=2, ragged="list")


def test_lists_that_contain_each_other_are_refused_where_written() -> None:
    step: Any = T.RandomInvert()
    with pytest.raises(hr.ConfigError, match=r"HR0151.*transforms"):
        for _ in range(60):
            step = T.RandomChoice([step, step])


def test_typical_plans_are_far_below_the_limit() -> None:
    steps = [
        T.SomeOf([T.RandomInvert(), T.RandomVerticalFlip()] * 5, n=20, replace=True),
        T.RandAugment(num_ops=8),
        T.AutoAugment(),
        T.RandomOrder([T.RandomInvert(), T.RandomApply([T.RandomChoice([T.RandomInvert()] * 4)])]),
    ]
    assert len(list(hr.Loader(DATA, steps, batch_size=2))) == 2
