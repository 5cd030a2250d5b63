# SPDX-License-Identifier: Apache-2.0
"""Predicts the cost of a record whose image is stored at about the needed size.

For a trial, some images are re-encoded, with Pillow if it is installed, in a temporary folder. Only
the user can decide which size is sufficient, so this is never applied automatically.
"""

from __future__ import annotations

import importlib.util
import io
import os
from pathlib import Path
from typing import Any

from headrace.errors import Error
from headrace.insight.model import prediction as remedies
from headrace.insight.model.case import Case
from headrace.insight.model.prediction import Remedy
from headrace.insight.remedies.changes import NOT_HERE, Change, Make
from headrace.loader import Loader
from headrace.sources import Progress, Source, records

_ROOM = 1.15  # stored side over delivered side, to allow for crops
_WORTH = 0.7  # fraction of the area; images that would shrink by less are unchanged
_QUALITY = 90
_READ = (0.6, 0.2)  # remaining fraction of storage waits
_WHAT = "store the images once with a shorter side of {} pixels"


def change_of(loader: Loader) -> Change | None:
    """None if images are not resized to one size, or cannot be encoded on this machine."""
    side = side_of(loader)
    fields = [field for field in loader.source.schema if field.encoded]
    others = [field for field in loader.source.schema if not field.encoded]
    plain = all(field.dtype == "int64" and field.shape == () for field in others)
    if not side or len(fields) != 1 or not plain or not can_encode():
        return None
    name = fields[0].name

    def apply(make: Make, source: Source, folder: str, told: Progress | None) -> Loader:
        numbers = range(len(source))
        paths = [os.path.join(folder, f"{number}.jpg") for number in numbers]
        shrunk = sum(_store(source.engine.read(n)[name], side, paths[n]) for n in numbers)
        if 2 * shrunk < len(source):
            raise NOT_HERE.error("the images are hardly larger than needed")
        columns: dict[str, Any] = {field.name: source.column(field.name) for field in others}
        return make(records(**{name: paths, **columns}))

    return Change("resize once", _WHAT.format(side), apply, read=_READ, prepares=True, disk=0.5)


def guess(loader: Loader, case: Case) -> list[Remedy]:
    """An estimate from the present and the required area, if images cannot be encoded on this
    machine."""
    side = side_of(loader)
    areas = []
    for number in range(0, len(loader.source), max(1, len(loader.source) // 8)) if side else ():
        try:
            height, width = loader.source[number]["image"].shape[1:]
        except (Error, KeyError, AttributeError):
            continue
        areas.append((side / min(height, width)) ** 2)
    ratio = sum(areas) / len(areas) if areas else 1.0
    if ratio > _WORTH:
        return []
    return [remedies.resized_once(case, _WHAT.format(side), (min(1.0, 2 * ratio), ratio / 2))]


def can_encode() -> bool:
    return importlib.util.find_spec("PIL") is not None


def side_of(loader: Loader) -> int:
    """The shorter side that suffices; 0 if unknown."""
    shapes = [out["shape"] for out in loader.assembly.engine().outputs() if out["kind"] == "image"]
    if len(shapes) != 1 or len(shapes[0]) != 3 or min(shapes[0]) <= 0:
        return 0
    return round(_ROOM * float(max(shapes[0][1:])))


def _store(stored: bytes, side: int, path: str) -> bool:
    """Writes the image, resized; if it is small enough already, unchanged, and returns False."""
    from PIL import Image

    with Image.open(io.BytesIO(stored)) as picture:
        scale = side / min(picture.size)
        if scale**2 <= _WORTH:
            size = (max(1, round(scale * picture.width)), max(1, round(scale * picture.height)))
            picture.convert("RGB").resize(size).save(path, "JPEG", quality=_QUALITY)
            return True
    Path(path).write_bytes(stored)
    return False
