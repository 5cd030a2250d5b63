# SPDX-License-Identifier: Apache-2.0
"""torchvision's Compose, or torch's Sequential, in the place of a loader's list of transforms.

It is read as torchvision reads it: what goes in is a picture of Pillow, as its datasets give it,
and a callable in it gets what the transform before it gives. What has an operator runs natively.
"""

from __future__ import annotations

from typing import Any

from headrace.errors import Error, warn
from headrace.migrate.originals import value_from_pixels
from headrace.migrate.transform_list import translate
from headrace.migrate.translations.registry import Form, opened
from headrace.sources import Source

_TRIED = 8  # records that are looked at for a picture
_LYING = ("mask", "masks", "boxes", "keypoints", "video")


def native_steps(source: Source, transforms: Any) -> Any:
    """``transforms`` as a list of ours where it is such a composition, else as it is.

    So it stays over records in which more than one picture would have to move: there a step in
    Python gets all of them at once (headrace.library_steps).
    """
    if isinstance(transforms, (list, tuple)) or opened(transforms) in ([], [transforms]):
        return transforms
    pictures = [field for field in source.schema if field.is_picture]
    alone = [field.name for field in pictures] == ["image"]
    if not alone or any(str(field.kind) in _LYING for field in source.schema):
        return transforms
    probe = _first_picture(source)
    if probe is None:
        return transforms
    fixed = -1 not in tuple(pictures[0].shape or (-1,))
    steps = []
    for part in translate(transforms, Form("pil", "uint8", fixed, [probe])):
        if not part.native:
            names = ", ".join(part.names)
            warn(f"[{names}] runs in Python, one record at a time: {part.note}")
        steps += part.step
    return steps


def _first_picture(source: Source) -> Any:
    """As Pillow has it; None where there is none of bytes."""
    for number in range(min(len(source), _TRIED)):
        try:
            pixels = source[number]["image"]
        except Error:
            continue  # bad records are for on_error
        if pixels.dtype == "uint8" and pixels.ndim == 3 and pixels.shape[0] in (1, 3, 4):
            return value_from_pixels(pixels, "pil")
    return None
