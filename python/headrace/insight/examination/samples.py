# SPDX-License-Identifier: Apache-2.0
"""A few sample records: the slowest ones, and some others, with thumbnails."""

from __future__ import annotations

import copy
import functools
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.insight.probes.sample import Pixels, Sample

if TYPE_CHECKING:
    from headrace.insight.examination.findings import Findings

SIDE = 144  # pixels of a thumbnail's longer side
_OTHERS = 7
_LARGEST = 1 << 28  # thumbnails are only made of images up to this many bytes


def look_at_records(found: Findings, seconds: float) -> None:
    """Adds samples to the report: the slowest records first, then others as time allows."""
    get, key, count = _door(found)
    if get is None:
        return
    stop = time.perf_counter() + seconds
    slow = [item for item in found.report.slowest if "record" in item]
    numbers = [int(item["record"]) for item in slow]
    draw = np.random.default_rng(2)
    others = [int(n) for n in draw.permutation(min(count, 1 << 20)) if int(n) not in numbers]
    for place, number in enumerate(numbers + others[:_OTHERS]):
        is_slow = place < len(slow)
        try:
            record = get(number)
            ms = (
                float(slow[place]["ms"])
                if is_slow
                else _milliseconds(functools.partial(get, number))
            )
            pixels = picture_in(record)
        except Exception:  # bad records are reported elsewhere
            continue
        found.report.samples.append(Sample(key(number), ms, is_slow, pixels))
        if time.perf_counter() > stop and place >= len(slow):
            break


def _milliseconds(call: Callable[[], Any]) -> float:
    """Times a call after making it once, so that its file is cached."""
    begin = time.perf_counter()
    call()
    return round(1000 * (time.perf_counter() - begin), 2)


def _door(found: Findings) -> tuple[Callable[[int], Any] | None, Callable[[int], str], int]:
    """Functions that return a record and its key by number, and the number of records."""
    if found.ours is not None:
        source = found.ours.source
        return source.__getitem__, lambda number: str(source.key(number)), len(source)
    if found.dataloader is not None:
        from headrace.insight.probes.torch_dataloader import key_of

        dataset = found.dataloader.dataset
        plain = _without_transforms(dataset)
        return plain.__getitem__, lambda number: key_of(dataset, number), len(dataset)
    return None, str, 0


def _without_transforms(dataset: Any) -> Any:
    """A copy that returns untransformed records, if the dataset supports it."""
    if not callable(getattr(dataset, "transform", None)):
        return dataset
    made = copy.copy(dataset)
    made.transform = None
    if hasattr(made, "transforms"):
        made.transforms = None  # torchvision's pair with target_transform
    return made


def picture_in(record: Any) -> Pixels | None:
    """A thumbnail of the first image in a record; None without one."""
    parts = record.values() if isinstance(record, Mapping) else record
    for value in parts if isinstance(record, (Mapping, tuple, list)) else [record]:
        pixels = _pixels_of(value)
        if pixels is not None:
            return shrunk(pixels)
    return None


def _pixels_of(value: Any) -> Pixels | None:
    """uint8 (1|3, H, W) of a Pillow image, or of an array with channels first or last."""
    if hasattr(value, "getbands") and hasattr(value, "convert"):
        array = np.asarray(value.convert("RGB"))
    elif hasattr(value, "shape") and hasattr(value, "dtype"):
        array = np.asarray(value)
    else:
        return None
    if array.ndim != 3 or min(array.shape) < 1 or array.nbytes > _LARGEST:
        return None
    if array.shape[0] not in (1, 3, 4):
        if array.shape[2] not in (1, 3, 4):
            return None
        array = array.transpose(2, 0, 1)
    array = array[:3] if array.shape[0] >= 3 else array[:1]
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind != "f":
        return None
    low, high = np.nanmin(array), np.nanmax(array)  # normalized: scaled from darkest to lightest
    if not np.isfinite(high - low) or high <= low:
        return None
    scaled: Pixels = np.nan_to_num(255 * (array - low) / (high - low)).astype(np.uint8)
    return scaled


def shrunk(pixels: Pixels, side: int = SIDE) -> Pixels:
    """Shrinks by averaging areas; small images are unchanged."""
    _, height, width = pixels.shape
    factor = min(1.0, side / max(height, width))
    rows, columns = max(1, round(height * factor)), max(1, round(width * factor))
    ys, xs = (np.linspace(0, n, k + 1).astype(int) for n, k in ((height, rows), (width, columns)))
    sums = np.add.reduceat(np.add.reduceat(pixels, ys[:-1], 1, np.uint32), xs[:-1], 2)
    areas = np.diff(ys)[:, None] * np.diff(xs)[None, :]
    small: Pixels = (sums // areas).astype(np.uint8)
    return small
