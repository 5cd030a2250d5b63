# SPDX-License-Identifier: Apache-2.0
"""Paths of images, audio and video, by their suffixes.

>>> kind_by_suffix("1.JPG"), kind_by_suffix("1.flac"), kind_by_suffix("words")
('image', 'audio', '')
"""

from __future__ import annotations

import functools
import os
from typing import Any

from headrace import _core

MEDIA_KINDS = (*_core.media(), "mask")
# Values of fields with these names are file paths, regardless of the suffix.
FILE_FIELDS = {kind: kind for kind in MEDIA_KINDS} | {"images": "image", "masks": "mask"}


@functools.lru_cache(1)
def _suffixes(records: int) -> dict[str, str]:
    """Maps file suffixes to media kinds. records, the number of registered engine records, is only
    the cache key: it changes when a plug-in adds a codec."""
    return {
        suffix: kind
        for kind, media in reversed(_core.media().items())  # a GIF counts as an image
        for codec in media["formats"].values()
        for suffix in codec["suffixes"]
    }


def kind_by_suffix(path: Any) -> str:
    """image, audio or video; empty for other suffixes."""
    return _suffixes(_core.registered_records()).get(
        os.path.splitext(os.fspath(path))[1].lower(), ""
    )


def is_media_path(value: Any) -> bool:
    """Whether it is a string or path with the suffix of an image, audio or video file."""
    return isinstance(value, (str, os.PathLike)) and kind_by_suffix(value) != ""


def is_stored_image(value: Any) -> bool:
    """Whether it is {"bytes": ..., "path": ...}, as Hugging Face stores images in tables."""
    return isinstance(value, dict) and value.keys() == {"bytes", "path"}
