# SPDX-License-Identifier: Apache-2.0
"""Packing and loader rotate images of rows alike, as Pillow's exif_transpose does."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps
from test_packed_images import IMAGE, STEPS
from test_patches import picture, planes, qwen_patches, qwen_size

import headrace as hr
from headrace import transforms as T

TURNED = 6  # a quarter


def rotated() -> bytes:
    exif = Image.Exif()
    exif[0x0112] = TURNED
    out = io.BytesIO()
    picture(40, 90).save(out, "PNG", exif=exif)
    return out.getvalue()


def records() -> list[dict[str, Any]]:
    return [{"tokens": np.array([1, IMAGE, 2]), "one": rotated()}]


class Datasets:
    """Its images are upright, as those of Hugging Face's library."""

    __module__ = "datasets.of_a_test"

    def __iter__(self) -> Iterator[Any]:
        return iter(records())


def listed(upright: bool) -> hr.Source:
    source = hr.open(records(), kinds={"one": "image"})
    source.upright = upright
    return source


def streamed(upright: bool) -> hr.Source:
    given: Any = Datasets() if upright else lambda: iter(records())
    return hr.stream(given, kinds={"one": "image"})


def patches(upright: bool) -> np.ndarray[Any, Any]:
    image: Image.Image = Image.open(io.BytesIO(rotated()))
    if upright:
        image = ImageOps.exif_transpose(image)
    h, w = qwen_size(image.height, image.width, 28, 28 * 28, 112 * 112)
    return qwen_patches(planes(image.convert("RGB").resize((w, h), 2)), 14, 2)


def packed(source: hr.Source, **given: Any) -> hr.Source:
    return hr.packed(
        source,
        "tokens",
        length=32,
        images="one",
        placeholder=IMAGE,
        image_transforms=STEPS,
        patches_per_token=4,
        **given,
    )


def loader_of(rows: hr.Source, said: bool | None = None, **given: Any) -> hr.Loader:
    return hr.Loader(
        rows, [T.EachImage(STEPS, exif_orientation=said)], batch_size=1, ragged="packed", **given
    )


@pytest.mark.parametrize("source", [listed, streamed])
def test_packing_and_loader_follow_the_same_rule(source: Callable[[bool], hr.Source]) -> None:
    for upright in (True, False):
        for said in (True, False):
            (batch,) = loader_of(packed(source(upright), exif_orientation=said))
            np.testing.assert_array_equal(batch.images, patches(said))
    (batch,) = loader_of(packed(source(True)))
    np.testing.assert_array_equal(batch.images, patches(True))


@pytest.mark.parametrize("source", [listed, streamed])
def test_an_unspecified_orientation_is_a_warning(
    source: Callable[[bool], hr.Source],
) -> None:
    loader = loader_of(packed(source(False)))
    with pytest.warns(match="Exif"):
        (batch,) = loader
    np.testing.assert_array_equal(batch.images, patches(False))


def test_the_loader_and_each_image_may_override_it() -> None:
    rows = packed(listed(False), exif_orientation=True)
    for loader in (loader_of(rows, exif_orientation=False), loader_of(rows, said=False)):
        with pytest.raises(hr.DataError, match="HR1459"):
            list(loader)
    rows = packed(listed(False))
    with pytest.raises(hr.DataError, match="HR1459"):
        list(loader_of(rows, exif_orientation=True))
    rows = packed(listed(True), exif_orientation=False)
    (batch,) = loader_of(rows, said=False, exif_orientation=True)
    np.testing.assert_array_equal(batch.images, patches(False))
