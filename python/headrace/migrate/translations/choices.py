# SPDX-License-Identifier: Apache-2.0
"""Transforms that choose one of several others, or their order, for each record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace import transforms as T
from headrace.migrate.translations.registry import (
    Form,
    Made,
    NoOperator,
    Translated,
    native,
    opened,
    translation,
)


def _entries(transform: Any, form: Form) -> list[list[Translated]]:
    """Our equivalent of each entry, which may be empty. Sizes are unknown after them."""
    out = []
    for entry in transform.transforms:
        here = Form(form.kind, form.dtype, form.fixed, form.probes)
        made = [native(each, here) for each in opened(entry)]
        if here.kind != form.kind or here.dtype != form.dtype:
            raise NoOperator("some records would differ from others in kind or dtype")
        out.append([part for part in made if part])
    if form.kind != "pil" and any(part.note for parts in out for part in parts):
        raise NoOperator("it resamples tensors")
    return out


def _steps(parts: list[Translated]) -> Any:
    steps = [step for part in parts for step in part.step]
    return steps[0] if len(steps) == 1 else steps


def _in_order(parts: list[Translated]) -> tuple[list[Any], Callable[[Any], Any]]:
    """The forms without randomness: ours, and the originals."""

    def original(value: Any) -> Any:
        for part in parts:
            value = part.original(value)
        return value

    return [step for part in parts for step in part.steady], original


@translation("RandomChoice")
def random_choice(transform: Any, form: Form) -> Made:
    entries = _entries(transform, form)
    p = getattr(transform, "p", None)
    total = sum(float(weight) for weight in p) if p is not None else 1.0
    ours = T.RandomChoice(
        [_steps(parts) for parts in entries],
        p=None if p is None else [float(each) / total for each in p],
    )
    return [ours], *_in_order(entries[0])  # only the first one is compared, on all records


@translation("RandomOrder")
def random_order(transform: Any, form: Form) -> Made:
    entries = _entries(transform, form)
    ours = T.RandomOrder([_steps(parts) for parts in entries])
    return [ours], *_in_order([part for entry in entries for part in entry])
