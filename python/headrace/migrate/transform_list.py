# SPDX-License-Identifier: Apache-2.0
"""Translates torchvision's transforms, v1 and v2; transforms without an equivalent remain Python
transforms. Each translation also has a steady form of both sides, without randomness, for
comparisons.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import headrace.migrate.translations  # noqa: F401  (registers them)
from headrace import _core, library_steps
from headrace import transforms as T
from headrace.migrate.generators import generators_in
from headrace.migrate.originals import Originals, Pixels, pixels_from_value, pixels_of
from headrace.migrate.seeding import seeded
from headrace.migrate.through import PassesNot, passed_through
from headrace.migrate.translations.image_and_mask import Pair
from headrace.migrate.translations.registry import (
    Form,
    NoOperator,
    SeveralValues,
    Translated,
    image_of,
    known_name,
    native,
    opened,
    shown,
)


def translate(transform: Any, form: Form) -> list[Translated]:
    """The steps of a dataset's ``transform``; updates ``form`` to describe the result. Transforms
    without an operator become Python transforms. Raises NoOperator if transforms take whole
    records.
    """
    out: list[Translated] = []
    waiting = opened(transform)
    while waiting:
        each = waiting.pop(0)
        try:
            step = native(each, form)
        except NoOperator as reason:
            if (inner := _passed_through(each, form)) is not None:
                waiting[:0] = inner
                continue
            if isinstance(form.probes[0], dict):
                raise NoOperator(f"{shown(each)}: {reason}") from None
            step = Translated([shown(each)], [], [], each, False, str(reason))
        if step is None:  # it has no effect in the engine
            step = Translated([shown(each)], [], [], each, True)
        _advance(form, step, each)
        if not step.native and out and not out[-1].native:
            _join(out[-1], step, form)
        else:
            out.append(step)
    return out


def _passed_through(transform: Any, form: Form) -> list[Any] | None:
    """The object to which a user's object passes its image, if it does nothing else."""
    if known_name(transform) and not isinstance(transform, Pair):
        return None
    try:
        if isinstance(transform, Pair):
            return list(transform.passed_through(form.probes))
        return opened(passed_through(transform, form.probes))
    except PassesNot:
        return None


def _advance(form: Form, step: Translated, transform: Any) -> None:
    """Applies the original to the probes, and makes the step if it runs in Python."""
    before = copy.copy(form)
    with seeded(0, generators_in(transform)):
        form.probes = [transform(value) for value in before.probes]
    value = image_of(form.probes[0])
    if isinstance(value, (list, tuple, dict)):
        raise SeveralValues(f"{shown(transform)} returns a {type(value).__name__}")
    pixels = pixels_from_value(value)
    if hasattr(value, "getbands"):
        form.kind = "pil"
    elif pixels.ndim == 3 and hasattr(value, "detach"):
        form.kind = "image" if type(value).__name__ == "Image" else "tensor"
    else:
        form.kind = "other"
    form.dtype = str(pixels.dtype)
    if not step.native:
        _make_python(step, [transform], before, form)


def _make_python(step: Translated, transforms: list[Any], before: Form, after: Form) -> None:
    arrays = [pixels_of(value, before.kind) for value in before.probes]
    results = [pixels_from_value(value) for value in after.probes]
    returns = None
    of_arrays = before.kind in ("array", "bgr")
    if of_arrays or [(a.shape, a.dtype) for a in arrays] != [(r.shape, r.dtype) for r in results]:
        returns = {before.field: _declared(arrays, results, before.fixed)}
        if of_arrays and after.kind == "other":  # still (H, W, C)
            returns[before.field] = (*returns[before.field][:2], "tensor")
        after.fixed = -1 not in returns[before.field][1]
    steady = Originals(transforms, before.kind, steady=True)
    ours = T.Python(Originals(transforms, before.kind), returns, fields=before.field)
    # fields= only finds the argument here; it does not restrict other fields.
    moves = any(map(library_steps.moves, transforms))
    ours.geometry = _core.PythonGeometry.moves if moves else _core.PythonGeometry.unknown
    step.step = [ours]
    step.steady = [T.Python(steady, returns, fields=before.field)]
    step.original = _steadily(steady)
    step.timed = steady
    step.names = [shown(transform) for transform in transforms]
    step.transforms, step.before = transforms, before


_OF_PICTURES = ("uint8", "uint16", "float16", "float32", "bfloat16")


def _declared(before: list[Pixels], after: list[Pixels], fixed: bool) -> tuple[Any, ...]:
    """(dtype, shape, kind): -1 where records differ, or may differ because the input does."""
    first = after[0].shape
    shape = []
    for axis, extent in enumerate(first):
        alike = all(len(r.shape) == len(first) and r.shape[axis] == extent for r in after)
        follows = all(
            axis < a.ndim and r.shape[axis] == a.shape[axis]
            for a, r in zip(before, after, strict=True)
        )
        channel = axis == 0 and len(first) == 3
        shape.append(extent if alike and (fixed or channel or not follows) else -1)
    dtype = str(after[0].dtype)
    is_picture = len(first) == 3 and dtype in _OF_PICTURES
    return dtype, tuple(shape), "image" if is_picture else "tensor"


def _steadily(originals: Originals) -> Callable[[Any], Any]:
    def call(value: Any) -> Any:
        with originals.seeded(0):
            return originals.apply(value)

    return call


def _join(last: Translated, step: Translated, form: Form) -> None:
    """Two consecutive Python steps become one, so that each record is passed to Python once."""
    assert last.before is not None
    last.note = "; ".join(filter(None, dict.fromkeys([last.note, step.note])))
    _make_python(last, [*last.transforms, *step.transforms], last.before, form)
