# SPDX-License-Identifier: Apache-2.0
"""Pasting equals torchvision's SimpleCopyPaste, reimplemented in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image

import headrace as hr
from headrace import transforms as T

RECORDS = 40
KINDS = {"boxes": "boxes:xyxy", "masks": "masks", "seg": "mask"}
SHAPES = {"image": (3, -1, -1), "boxes": (-1, 4), "masks": (-1, -1, -1), "labels": (-1,)}
FIELDS = ("image", "seg", "boxes", "masks", "labels")


def made_records(rng: Any, most: int = 4) -> list[dict[str, Any]]:
    """Images of several sizes; labels identify the instance and its record."""
    records = []
    for number in range(RECORDS):
        height, width = [(24, 31), (40, 17), (24, 31), (1, 5)][number % 4]
        rows = int(rng.integers(0, most + 1))
        masks = np.zeros((rows, height, width), np.uint8)
        boxes = np.zeros((rows, 4), np.float32)
        for i in range(rows):
            x, y = int(rng.integers(0, width)), int(rng.integers(0, height))
            w, h = int(rng.integers(1, width - x + 1)), int(rng.integers(1, height - y + 1))
            masks[i, y : y + h, x : x + w] = rng.integers(0, 3, (h, w)) > 0
            boxes[i] = x + 0.25, y, x + w, y + h
        records.append(
            {
                "image": rng.integers(0, 256, (3, height, width), np.uint8),
                "seg": rng.integers(0, 9, (1, height, width), np.uint8),
                "boxes": boxes,
                "masks": masks,
                "labels": number * 100 + np.arange(rows),
            }
        )
    return records


def delivered(records: Any, step: Any, **options: Any) -> list[dict[str, Any]]:
    shapes = SHAPES | {"seg": (1, -1, -1)}
    source = hr.open(records, kinds=KINDS, shapes=shapes).with_row_group("boxes", "masks", "labels")
    common = {"batch_size": 8, "ragged": "list", "seed": 3, "fields": FIELDS}
    loader = hr.Loader(source, [step], **(common | options))
    out = []
    for batch in loader:
        out += [{name: batch[name][i] for name in FIELDS} for i in range(len(batch["labels"]))]
    return out


def resized(record: dict[str, Any], size: tuple[int, int]) -> dict[str, Any]:
    def each(planes: Any, how: Any) -> Any:
        made = [np.asarray(Image.fromarray(plane).resize(size[::-1], how)) for plane in planes]
        return np.array(made).reshape(-1, *size)

    before = record["image"].shape[1:]
    if before == size:
        return dict(record)
    scale = np.float32([size[1] / before[1], size[0] / before[0]] * 2)
    return {
        "image": each(record["image"], Image.Resampling.BILINEAR),
        "seg": each(record["seg"], Image.Resampling.NEAREST),
        "masks": each(record["masks"], Image.Resampling.NEAREST).astype(np.uint8),
        "boxes": record["boxes"] * scale,
        "labels": record["labels"],
    }


def pasted(under: Any, over: Any, chosen: Any, blending: bool, least: float) -> dict[str, Any]:
    """_copy_paste of torchvision's references for detection. Its Gaussian blur of a mask of bools
    gives every pixel that has a pasted one among the 5 x 5 around it."""
    size = under["image"].shape[1:]
    over = resized(
        {k: v[chosen] if k in SHAPES and k != "image" else v for k, v in over.items()}, size
    )
    shows = over["masks"].any((1, 2))
    if not shows.any():
        return dict(under)
    over |= {name: over[name][shows] for name in ("masks", "boxes", "labels")}
    alpha = over["masks"].any(0)
    if blending:
        wide = np.pad(alpha, 2)
        parts = [wide[y : y + size[0], x : x + size[1]] for y in range(5) for x in range(5)]
        alpha = np.any(parts, 0)
    masks = under["masks"] * ~alpha
    area, before = masks.sum((1, 2)), under["masks"].sum((1, 2))
    kept = (area > 0) & (area >= least * before)
    boxes = under["boxes"].copy()
    for i in np.flatnonzero(kept & (area < before)):
        y, x = np.nonzero(masks[i])
        boxes[i] = x.min(), y.min(), x.max() + 1, y.max() + 1
    return {
        "image": np.where(alpha, over["image"], under["image"]),
        "seg": np.where(alpha, over["seg"], under["seg"]),
        "boxes": np.concatenate([boxes[kept], over["boxes"]]),
        "masks": np.concatenate([masks[kept], over["masks"]]),
        "labels": np.concatenate([under["labels"][kept], over["labels"]]),
    }


@pytest.mark.parametrize("how", [{}, {"blending": False}, {"min_visibility": 0.4}, {"p": 0.5}])
def test_copy_paste_equals_the_reference(how: dict[str, Any]) -> None:
    rng = np.random.default_rng(len(how))
    records = made_records(rng)
    acted = 0
    for epoch_seed in range(6):
        found = delivered(records, T.CopyPaste(**how), shuffle=False, seed=epoch_seed)
        for number, record in enumerate(found):
            others = {int(label) // 100 for label in record["labels"]} - {number}
            assert len(others) <= 1
            under = records[number]
            expected = dict(under)
            if not others and record["labels"].tolist() != under["labels"].tolist():
                continue  # a record may be its own partner: then labels do not reveal the draw
            if others:
                other = others.pop()
                chosen = [int(label) % 100 for label in record["labels"] if label // 100 == other]
                acted += 1
                least = how.get("min_visibility", 0.0)
                # Objects that were drawn but are not visible after the resize are not pasted, in
                # either implementation.
                expected = pasted(under, records[other], chosen, how.get("blending", True), least)
            for name in FIELDS:
                np.testing.assert_array_equal(record[name], expected[name], err_msg=name)
    assert acted > (40 if "p" in how else 100)


def test_each_instance_is_drawn_at_most_once() -> None:
    mask = np.ones((4, 3, 3), np.uint8)
    record = {"image": np.zeros((3, 3, 3), np.uint8), "seg": np.zeros((1, 3, 3), np.uint8)}
    record |= {"boxes": np.zeros((4, 4), "f4"), "masks": mask, "labels": np.arange(4)}
    found = delivered([record] * 400, T.CopyPaste())
    counts = np.bincount([len(each["labels"]) for each in found], minlength=5)[1:]
    # Of 4 draws from 4: 1 distinct 4, 2 distinct 84, 3 distinct 144, 4 distinct 24 of 256.
    expected = np.array([4, 84, 144, 24]) / 256 * 400
    assert ((counts - expected) ** 2 / expected).sum() < 16.3  # chi-square, once in a thousand
    assert all((np.diff(each["labels"]) > 0).all() for each in found)


def test_copy_paste_only_depends_on_the_position() -> None:
    records = made_records(np.random.default_rng(9))
    one, two = (
        delivered(records, T.CopyPaste(), shuffle=True, threads=threads) for threads in (1, 3)
    )
    for left, right in zip(one, two, strict=True):
        for name in FIELDS:
            np.testing.assert_array_equal(left[name], right[name])


def test_copy_paste_refuses_records_that_it_cannot_paste() -> None:
    records = made_records(np.random.default_rng(1))
    source = hr.open(records, kinds=KINDS, shapes=SHAPES | {"seg": (1, -1, -1)})
    grouped = source.with_row_group("boxes", "masks", "labels")
    for wrong, steps, fields in (
        (source, [T.CopyPaste()], FIELDS),  # nothing declares that boxes and masks belong together
        (grouped, [T.ToDtype("float32"), T.CopyPaste()], FIELDS),
        (grouped, [T.RandomApply([T.CopyPaste()])], FIELDS),
    ):
        with pytest.raises(hr.ConfigError):
            hr.Loader(wrong, steps, batch_size=2, fields=fields, ragged="list")
    bare = hr.open([{"image": records[0]["image"]}] * 2)
    with pytest.raises(hr.ConfigError, match="masks"):
        hr.Loader(bare, [T.CopyPaste()], batch_size=2)


def test_a_record_whose_masks_do_not_fit_its_image_is_bad() -> None:
    records = made_records(np.random.default_rng(2))
    records[3]["masks"] = np.ones((len(records[3]["labels"]) or 1, 7, 7), np.uint8)
    rows = len(records[3]["masks"])
    records[3] |= {"boxes": np.zeros((rows, 4), "f4"), "labels": 300 + np.arange(rows)}
    with pytest.raises(hr.DataError):
        delivered(records, T.CopyPaste(), shuffle=False, on_error="raise")
