# SPDX-License-Identifier: Apache-2.0
"""JPEG files of all kinds against Pillow, which decodes with libjpeg-turbo: decoded, cropped and
resized."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from built import ROOT
from PIL import Image, UnidentifiedImageError, features
from trial import Attempt, Trial

import headrace as hr

GIVEN = 0.5  # the fraction of files from HEADRACE_TEST_DATA, if it has so many
LARGEST = 1 / 255  # difference after resizing


def run(attempt: Attempt) -> None:
    turbo = features.version("libjpeg_turbo")
    if not turbo:
        attempt.fails("this Pillow does not decode with libjpeg-turbo")
        return
    attempt.figures["libjpeg-turbo"] = turbo
    cameras = 0
    largest = 0.0
    for name, data in files(attempt):
        if not attempt.goes_on():
            break
        try:
            with Image.open(io.BytesIO(data)) as image:
                expected = np.asarray(image.convert("RGB"))
        except (OSError, UnidentifiedImageError):  # a damaged one
            continue
        attempt.inputs += 1
        cameras += not name.startswith("made")
        try:
            is_equal = np.array_equal(decoded(data), expected)
            difference = resized(attempt, data, expected)
        except hr.Error as problem:
            attempt.fails(f"{name}: {problem.code}")
            continue
        attempt.expect(is_equal, f"{name}: other pixels")
        largest = max(largest, difference)
        attempt.expect(difference <= LARGEST, f"{name}: resized, {difference:.4f} apart")
    attempt.figures["largest_difference_after_resizing"] = largest
    attempt.figures["short_of_the_target"] = (
        f"{cameras:,} are photos of cameras, the others were made from those in examples/images; "
        "no GPU"
    )


def resized(attempt: Attempt, data: bytes, expected: Any) -> float:
    """The largest difference to Pillow, of values up to 1, after a crop and a resize."""
    draws = attempt.random
    full_height, full_width, _ = expected.shape
    height, width = draws.randint(1, full_height), draws.randint(1, full_width)
    top, left = draws.randint(0, full_height - height), draws.randint(0, full_width - width)
    size = (draws.randint(1, 256), draws.randint(1, 256))
    window = Image.fromarray(expected[top : top + height, left : left + width])
    wanted = np.asarray(window.resize(size[::-1], Image.Resampling.BILINEAR), np.int16)
    found = decoded(data, window=(top, left, height, width), size=size)
    return float(np.abs(found - wanted).max() / 255)


def decoded(data: bytes, **more: Any) -> Any:
    return hr.decode(data, mode="RGB", exif_orientation=False, **more)


def files(attempt: Attempt) -> Iterator[tuple[str, bytes]]:
    """The names and bytes of photos as cameras and programs wrote them, then others made here."""
    given = os.environ.get("HEADRACE_TEST_DATA")
    found = sorted(Path(given).glob("photos*/**/*.jpg")) if given else []
    attempt.random.shuffle(found)
    for file in found[: int(attempt.target * GIVEN)]:
        yield file.name, file.read_bytes()
    photos = [Image.open(file) for file in sorted((ROOT / "examples" / "images").glob("*.jpg"))]
    number = 0
    while True:
        number += 1
        yield f"made {number}", made(attempt, attempt.random.choice(photos))


def made(attempt: Attempt, photo: Image.Image) -> bytes:
    """A part of the photo at a new size, encoded in any of the ways that Pillow offers."""
    draws = attempt.random
    box = sorted(draws.sample(range(photo.width), 2)), sorted(draws.sample(range(photo.height), 2))
    part = photo.crop((box[0][0], box[1][0], box[0][1] + 1, box[1][1] + 1))
    part = part.resize((draws.randint(1, 500), draws.randint(1, 500)))
    out = io.BytesIO()
    part.convert(draws.choice(("RGB", "RGB", "RGB", "L"))).save(
        out,
        "JPEG",
        quality=draws.randint(5, 100),
        subsampling=draws.randrange(3),
        progressive=draws.random() < 0.3,
        optimize=draws.random() < 0.3,
        restart_marker_blocks=draws.choice((0, 0, 1, 7)),
    )
    return out.getvalue()


TRIAL = Trial(
    "pixels",
    "A JPEG file has the pixels that libjpeg-turbo decodes; cropped and resized, none is more than "
    "1/255 from Pillow's",
    2_000,
    "files",
    run,
    targets=("R22",),
)
