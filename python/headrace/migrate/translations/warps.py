# SPDX-License-Identifier: Apache-2.0
"""Rotations, affine maps, perspectives and elastic fields."""

from __future__ import annotations

from typing import Any

from headrace import transforms as T
from headrace.migrate.translations.arguments import (
    arithmetic_of,
    fill_or_none,
    mask_fill_of,
    numbers_of,
    refuse_floats,
    with_chance,
)
from headrace.migrate.translations.registry import Form, Made, NoOperator, translation


def _shared(transform: Any, form: Form) -> dict[str, Any]:
    """Arguments in common: interpolation, and the fill outside the image."""
    refuse_floats(form)
    arithmetic = arithmetic_of(transform, form)
    mode = str(getattr(transform.interpolation, "value", transform.interpolation))
    smooth = {"torch": ("nearest", "bilinear"), "pillow": ("nearest", "bilinear", "bicubic")}
    if mode not in smooth[arithmetic]:
        raise NoOperator(f"interpolation={mode!r}, but Headrace warps with {smooth[arithmetic]}")
    fill = fill_or_none(transform.fill, form)
    if fill is not None:
        given = numbers_of(fill)
        fill = [int(value) for value in given]
        if fill != given:
            raise NoOperator("its fill is not a whole number")
    masks = mask_fill_of(transform.fill)
    return {"interpolation": mode, "fill": fill, "mask_fill": masks, "arithmetic": arithmetic}


def _center(transform: Any) -> list[float] | None:
    return None if transform.center is None else numbers_of(transform.center)


def _still(values: Any) -> float | None:
    """The value that is drawn, if only one is possible."""
    low, high = numbers_of(values)
    return low if low == high else None


@translation("RandomRotation")
def random_rotation(transform: Any, form: Form) -> Made:
    degrees = numbers_of(transform.degrees)
    more: dict[str, Any] = {"expand": bool(transform.expand), "center": _center(transform)}
    ours = T.RandomRotation(degrees, **more, **_shared(transform, form))
    form.fixed = form.fixed and (not transform.expand or _still(degrees) is not None)
    if _still(degrees) is None:
        return [ours], [], lambda value: value  # without randomness, it does nothing
    return [ours], [ours], transform


@translation("RandomAffine")
def random_affine(transform: Any, form: Form) -> Made:
    degrees = numbers_of(transform.degrees)
    drawn: dict[str, Any] = {
        name: numbers_of(value)
        for name in ("translate", "scale", "shear")
        if (value := getattr(transform, name)) is not None
    }
    ours = T.RandomAffine(degrees, **drawn, center=_center(transform), **_shared(transform, form))
    return [ours], [], lambda value: value


@translation("RandomPerspective")
def random_perspective(transform: Any, form: Form) -> Made:
    shared = _shared(transform, form)
    scale = float(transform.distortion_scale)
    made = with_chance(transform, lambda p: T.RandomPerspective(scale, p, **shared), form)
    return made[0], [], lambda value: value


@translation("ElasticTransform")
def elastic_transform(transform: Any, form: Form) -> Made:
    shared = _shared(transform, form)
    ours = T.ElasticTransform(numbers_of(transform.alpha), numbers_of(transform.sigma), **shared)
    return [ours], [], lambda value: value
