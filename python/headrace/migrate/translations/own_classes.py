# SPDX-License-Identifier: Apache-2.0
"""Classes that training scripts copy from each other: recognized by name, and translated only if
they behave as expected on made-up images.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace import transforms as T
from headrace.migrate.look.guards import reader
from headrace.migrate.originals import pixels_from_value, value_from_pixels
from headrace.migrate.translations.arguments import fill_of, mask_fill_of, numbers_of
from headrace.migrate.translations.registry import Form, Made, NoOperator, image_of, own_class


@own_class("PadIfSmaller")
def pad_if_smaller(transform: Any, form: Form) -> Made:
    """The class from torchvision's segmentation reference, which pads right and bottom."""
    size = getattr(transform, "size", None)
    if type(size) is not int or not 0 < size < 1 << 14:
        raise NoOperator("a callable of your own")
    try:
        fill, mask_fill = fill_of(transform.fill, form), mask_fill_of(transform.fill)
    except AttributeError:
        raise NoOperator("a callable of your own") from None
    for height, width in ((size - 1, size + 2), (size + 3, size), (max(size - 5, 1), size - 1)):
        _prove(transform, form, (height, max(width, 1)), size, fill, mask_fill)
    ours = T.PadIfSmaller(size, fill=numbers_of(fill), mask_fill=mask_fill)
    return [ours], [ours], transform


def _prove(
    transform: Any, form: Form, shape: tuple[int, int], size: int, fill: Any, mask_fill: int
) -> None:
    """Raises NoOperator unless an image and its mask get the expected values, without random
    draws."""
    noise = np.random.default_rng(size)
    channels = len(pixels_from_value(image_of(form.probes[0])))
    given: dict[str, Any] = {
        "image": noise.integers(0, 256, (channels, *shape), np.uint8).astype(form.dtype)
    }
    values = {"image": value_from_pixels(given["image"], form.kind)}
    if isinstance(form.probes[0], dict):
        for name, value in form.probes[0].items():
            if type(value).__name__ == "Mask":
                given[name] = noise.integers(0, 256, (1, *shape), np.uint8)
                values[name] = type(value)(given[name])
    generators = reader()
    before = generators()
    done = transform(values if len(values) > 1 else values["image"])
    done = done if isinstance(done, dict) else {"image": done}
    if generators() != before:
        raise NoOperator("a callable of your own, which draws random numbers")
    missing = [(0, 0), (0, max(0, size - shape[0])), (0, max(0, size - shape[1]))]
    for name, pixels in given.items():
        colors = numbers_of(fill if name == "image" else mask_fill)
        colors *= len(pixels) if len(colors) == 1 else 1
        expected = [
            np.pad(plane, missing[1:], constant_values=color)
            for plane, color in zip(pixels, colors, strict=True)
        ]
        if not np.array_equal(pixels_from_value(done[name]), expected):
            raise NoOperator(
                "a callable of your own that behaves differently from the published one"
            )
