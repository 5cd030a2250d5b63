# SPDX-License-Identifier: Apache-2.0
"""Colors, and neighborhood filters."""

from __future__ import annotations

import copy
from typing import Any

from headrace import transforms as T
from headrace.migrate.originals import pixels_from_value
from headrace.migrate.translations.arguments import (
    arithmetic_of,
    numbers_of,
    refuse_other_floats,
    with_chance,
)
from headrace.migrate.translations.registry import Form, Made, translation


@translation("Grayscale")
def grayscale(transform: Any, form: Form) -> Made:
    arithmetic = arithmetic_of(transform, form)
    ours = T.Grayscale(int(transform.num_output_channels), arithmetic=arithmetic)
    return [ours], [ours], transform


@translation("headrace.Gray")
def gray(transform: Any, form: Form) -> Made:
    ours = T.Grayscale(1, arithmetic="pillow")
    return [ours], [ours], transform


@translation("RGB")
def rgb(transform: Any, form: Form) -> Made:
    channels = {pixels_from_value(value).shape[0] for value in form.probes}
    ours = [T.Grayscale(3)] if channels == {1} else []  # three equal channels
    return ours, ours, transform


@translation("RandomGrayscale")
def random_grayscale(transform: Any, form: Form) -> Made:
    arithmetic = arithmetic_of(transform, form)
    return with_chance(
        transform, lambda p: T.RandomGrayscale(p, arithmetic=arithmetic), form, floats=True
    )


@translation("ColorJitter")
def color_jitter(transform: Any, form: Form) -> Made:
    refuse_other_floats(transform, form)
    arithmetic = arithmetic_of(transform, form)
    factors: dict[str, Any] = {}
    for name in ("brightness", "contrast", "saturation", "hue"):
        value = getattr(transform, name)
        if value is not None:
            factors[name] = numbers_of(value)
    ours = T.ColorJitter(**factors, arithmetic=arithmetic)
    return [ours], [], lambda value: value  # without randomness, it does nothing


@translation("RandomPhotometricDistort")
def photometric_distort(transform: Any, form: Form) -> Made:
    refuse_other_floats(transform, form)
    arithmetic = arithmetic_of(transform, form)
    ours = T.RandomPhotometricDistort(
        brightness=numbers_of(transform.brightness),
        contrast=numbers_of(transform.contrast),
        saturation=numbers_of(transform.saturation),
        hue=numbers_of(transform.hue),
        p=float(transform.p),
        arithmetic=arithmetic,
    )
    return [ours], [], lambda value: value


@translation("RandomChannelPermutation")
def channel_permutation(transform: Any, form: Form) -> Made:
    return [T.RandomChannelPermutation()], [], lambda value: value


@translation("RandomPosterize")
def posterize(transform: Any, form: Form) -> Made:
    return with_chance(
        transform, lambda p: T.RandomPosterize(int(transform.bits), p=p), form, floats=True
    )


@translation("RandomSolarize")
def solarize(transform: Any, form: Form) -> Made:
    threshold = float(transform.threshold)
    return with_chance(transform, lambda p: T.RandomSolarize(threshold, p=p), form, floats=True)


@translation("RandomInvert")
def invert(transform: Any, form: Form) -> Made:
    return with_chance(transform, T.RandomInvert, form, floats=True)


@translation("GaussianBlur")
def blur(transform: Any, form: Form) -> Made:
    refuse_other_floats(transform, form)
    size = [int(extent) for extent in transform.kernel_size]
    sigma = numbers_of(transform.sigma)
    ours = T.GaussianBlur(size, sigma)
    if sigma[0] == sigma[-1]:
        return [ours], [ours], transform
    middle = (sigma[0] + sigma[-1]) / 2
    fixed = copy.copy(transform)
    fixed.sigma = (middle, middle)
    return [ours], [T.GaussianBlur(size, middle)], fixed


@translation("RandomAdjustSharpness")
def sharpness(transform: Any, form: Form) -> Made:
    arithmetic = arithmetic_of(transform, form)
    factor = float(transform.sharpness_factor)
    return with_chance(
        transform,
        lambda p: T.RandomAdjustSharpness(factor, p, arithmetic=arithmetic),
        form,
        floats=True,
    )


@translation("RandomEqualize")
def equalize(transform: Any, form: Form) -> Made:
    return with_chance(transform, T.RandomEqualize, form, floats=True)


@translation("RandomAutocontrast")
def autocontrast(transform: Any, form: Form) -> Made:
    arithmetic = arithmetic_of(transform, form)
    return with_chance(
        transform, lambda p: T.RandomAutocontrast(p, arithmetic=arithmetic), form, floats=True
    )
