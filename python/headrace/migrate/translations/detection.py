# SPDX-License-Identifier: Apache-2.0
"""Random sizes and canvases, and transforms that depend on boxes."""

from __future__ import annotations

import copy
from typing import Any

from headrace import transforms as T
from headrace.migrate.translations.arguments import antialias_of, fill_of, sibling
from headrace.migrate.translations.registry import Form, Made, NoOperator, translation


@translation("RandomResize", resamples=True)
def random_resize(transform: Any, form: Form) -> Made:
    how = {"interpolation": transform.interpolation, "antialias": antialias_of(transform, form)}
    form.fixed = False
    ours = T.RandomResize(transform.min_size, transform.max_size, **how)
    steady = T.Resize(transform.min_size, **how)
    original = sibling(transform, "Resize")(transform.min_size, **how)
    return [ours], [steady], original


@translation("RandomShortestSize", resamples=True)
def random_shortest_size(transform: Any, form: Form) -> Made:
    how = {"interpolation": transform.interpolation, "antialias": antialias_of(transform, form)}
    form.fixed = False
    first = copy.copy(transform)
    first.min_size = list(transform.min_size[:1])
    ours, steady = (
        T.RandomShortestSize(list(each.min_size), each.max_size, **how)
        for each in (transform, first)
    )
    return [ours], [steady], first


@translation("ScaleJitter", resamples=True)
def scale_jitter(transform: Any, form: Form) -> Made:
    how = {"interpolation": transform.interpolation, "antialias": antialias_of(transform, form)}
    form.fixed = False
    as_it_fits = copy.copy(transform)
    as_it_fits.scale_range = (1.0, 1.0)
    ours, steady = (
        T.ScaleJitter(list(each.target_size), list(each.scale_range), **how)
        for each in (transform, as_it_fits)
    )
    return [ours], [steady], as_it_fits


@translation("RandomZoomOut")
def random_zoom_out(transform: Any, form: Form) -> Made:
    fill = fill_of(transform.fill, form)
    form.fixed = False
    as_it_is = copy.copy(transform)
    as_it_is.side_range, as_it_is.p = (1.0, 1.0), 1.0
    ours, steady = (
        T.RandomZoomOut(fill, side_range=list(each.side_range), p=float(each.p))
        for each in (transform, as_it_is)
    )
    return [ours], [steady], as_it_is


@translation("RandomIoUCrop")
def random_iou_crop(transform: Any, form: Form) -> Made:
    _refuse_images_alone(form)
    form.fixed = False
    ours = T.RandomIoUCrop(
        min_scale=float(transform.min_scale),
        max_scale=float(transform.max_scale),
        min_aspect_ratio=float(transform.min_aspect_ratio),
        max_aspect_ratio=float(transform.max_aspect_ratio),
        sampler_options=[float(option) for option in transform.options],
        trials=int(transform.trials),
        outside="zero",
    )
    return [ours], [], lambda value: value  # without randomness, it does nothing


@translation("SanitizeBoundingBoxes")
def sanitize_bounding_boxes(transform: Any, form: Form) -> Made:
    _refuse_images_alone(form)
    if transform.labels_getter != "default":
        raise NoOperator("its labels_getter is a callable of your own")
    ours = T.SanitizeBoundingBoxes(float(transform.min_size), float(transform.min_area))
    return [ours], [ours], transform


@translation("ClampBoundingBoxes")
def clamp_bounding_boxes(transform: Any, form: Form) -> Made:
    _refuse_images_alone(form)
    mode = getattr(transform, "clamping_mode", "auto")
    ours = T.ClampBoundingBoxes("none" if mode is None else str(mode))
    return [ours], [ours], transform


@translation("ConvertBoundingBoxFormat")
def convert_bounding_box_format(transform: Any, form: Form) -> Made:
    _refuse_images_alone(form)
    given = transform.format
    ours = T.ConvertBoundingBoxFormat(str(getattr(given, "value", given)).lower())
    return [ours], [ours], transform


def _refuse_images_alone(form: Form) -> None:
    if not isinstance(form.probes[0], dict):
        raise NoOperator("it is for boxes, but this dataset transforms only images")
