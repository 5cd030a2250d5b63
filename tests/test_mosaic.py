# SPDX-License-Identifier: Apache-2.0
"""A mosaic shows four records where its boxes are, on any thread and rank, and after any resume."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace import transforms as T

FIELDS = ("image", "boxes", "labels", "masks", "id")
BOXES = np.float32([[10, 10, 40, 60], [50, 20, 90, 70], [20, 60, 30, 75]])


def tiles(**more: Any) -> Any:
    """Images of one color each; the color is covered by the only box and named by the label."""
    rng = np.random.default_rng(6)
    data = []
    for number in range(24):
        height, width = (int(x) for x in rng.integers(20, 90, 2))
        image = np.full((3, height, width), number + 1, np.uint8)
        boxes = np.float32([[0, 0, width, height]])
        masks = np.ones((1, height, width), bool)
        data.append({"image": image, "boxes": boxes, "labels": np.int64([number]), "masks": masks})
    shapes = {"image": (3, -1, -1), "masks": (1, -1, -1)}
    source = hr.open(data, kinds={"boxes": "boxes:xyxy", "masks": "masks"}, shapes=shapes)
    options = {"batch_size": 6, "ragged": "list", "seed": 2} | more
    chosen = {"mix_within": options.pop("within", None), "p": options.pop("p", 1.0)}
    steps = [T.Mosaic((40, 60), fill=0, **chosen)]
    return hr.Loader(source.with_row_group("boxes", "labels", "masks"), steps, **options)


def test_a_mosaic_shows_four_records_where_its_boxes_are() -> None:
    met = set()
    for batch in tiles():
        for i in range(6):
            image, boxes, labels = batch.image[i], np.rint(batch.boxes[i]), batch.labels[i]
            assert image.shape == (3, 80, 120) and len(boxes) == len(labels) == 4
            expected = np.zeros((80, 120), np.uint8)
            for box, label, mask in zip(boxes.astype(int), labels, batch.masks[i], strict=True):
                part = expected[box[1] : box[3], box[0] : box[2]]
                assert part.size and not part.any(), "they touch, and do not overlap"
                part[:] = label + 1
                inside = np.zeros((80, 120), bool)
                inside[box[1] : box[3], box[0] : box[2]] = True
                np.testing.assert_array_equal(mask, inside)
            for channel in image:
                np.testing.assert_array_equal(channel, expected)
            center = boxes[0][2:]
            assert (center == boxes[3][:2]).all() and (20 <= center[1] < 60)
            assert (center == (boxes[1][0], boxes[1][3])).all() and 30 <= center[0] < 90
            met.update(labels.tolist())
    assert len(met) > 20


@pytest.mark.parametrize("within", [None, 7])
def test_without_a_mosaic_the_image_is_alone_in_the_middle(within: int | None) -> None:
    alone, loader = 0, tiles(within=within, p=0.4, fields=FIELDS)
    for batch in (batch for _ in range(5) for batch in loader):
        for i, number in enumerate(batch.id):
            labels = batch.labels[i].tolist()
            if len(labels) == 4:
                continue
            alone += 1
            assert labels == [number]
            expected = np.zeros((80, 120), np.uint8)
            left, top, right, bottom = np.rint(batch.boxes[i][0]).astype(int)
            assert abs(left + right - 120) <= 1 and abs(top + bottom - 80) <= 1
            assert (right - left == 60) or (bottom - top == 40)
            expected[top:bottom, left:right] = number + 1
            for channel in batch.image[i]:
                np.testing.assert_array_equal(channel, expected)
            np.testing.assert_array_equal(batch.masks[i][0], expected > 0)
    assert 50 < alone < 94, "72 of 120 expected"


def equal_batches(expected: Any, got: Any) -> None:
    for one, two in zip(expected, got, strict=True):
        for name in ("image", "boxes", "labels", "masks"):
            for a, b in zip(one[name], two[name], strict=True):
                np.testing.assert_array_equal(a, b, name)


@pytest.mark.parametrize(
    ("within", "p"), [(None, 1), (1, 1), (7, 1), (24, 1), (None, 0.5), (7, 0.5)]
)
def test_a_mosaic_is_the_same_on_any_thread_and_after_a_resume(
    within: int | None, p: float
) -> None:
    batches = list(tiles(threads=1, within=within, p=p))
    loader = tiles(threads=4, within=within, p=p)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    rest = tiles(threads=2, within=within, p=p)
    rest.load_state_dict(state)
    equal_batches(batches, tiles(threads=4, within=within, p=p))
    equal_batches(batches[1:], rest)


def test_mixing_within_the_whole_epoch_equals_mixing_without_a_bound() -> None:
    # So a record kept for several mosaics is the same as if it were made for each of them.
    equal_batches(tiles(), tiles(within=24))
    equal_batches(tiles(), tiles(within=1000))


@pytest.mark.parametrize("within", [4, 7, 20])
def test_mixed_in_records_are_drawn_uniformly_from_earlier_positions(within: int) -> None:
    records = 40
    image, box = np.zeros((3, 4, 4), np.uint8), np.float32([[0, 0, 4, 4]])
    data = [{"image": image, "boxes": box, "n": np.int64([i])} for i in range(records)]
    source = hr.open(data, kinds={"boxes": "boxes:xyxy"}).with_row_group("boxes", "n")
    steps = [T.Mosaic(4, mix_within=within)]
    loader = hr.Loader(source, steps, batch_size=8, ragged="list", seed=4, threads=3)
    away = np.zeros(within, int)
    for _ in range(60):
        rows = [row for batch in loader for row in batch.n]
        for at, (own, *partners) in enumerate(rows):
            first = max(at + 1 - within, 0)
            assert own == at and len({own, *partners}) == 4, "three others"
            assert all(first <= partner < first + within for partner in partners)
            if at + 1 >= within:
                np.add.at(away, at - np.array(partners), 1)
    mean = away.sum() / (within - 1)
    assert away[0] == 0
    assert ((away[1:] - mean) ** 2 / mean).sum() < within + 5 * (2 * within) ** 0.5


def test_a_record_without_neighbors_is_mixed_with_itself() -> None:
    for batch in tiles(within=1):
        for labels in batch.labels:
            assert len(set(labels.tolist())) == 1


@pytest.mark.parametrize("within", [None, 5])
def test_a_mosaic_is_the_same_on_two_ranks(within: int | None) -> None:
    whole = list(tiles(threads=1, within=within))
    for rank in (0, 1):
        options = {"batch_size": 3, "shard": (rank, 2), "within": within}
        for one, part in zip(whole, tiles(**options), strict=True):
            for name in ("image", "boxes", "labels"):
                for a, b in zip(one[name][rank * 3 : rank * 3 + 3], part[name], strict=True):
                    np.testing.assert_array_equal(a, b, name)


def test_a_mosaic_refuses_fields_that_it_cannot_join() -> None:
    image = np.zeros((3, 20, 20), np.uint8)
    record = {"image": image, "boxes": BOXES, "points": np.zeros((3, 2), "f4")}
    source = hr.open([record] * 4, kinds={"boxes": "boxes:xyxy", "points": "keypoints"})
    with pytest.raises(hr.ConfigError, match=r"HR0185.*not known to belong"):
        hr.Loader(source, [T.Mosaic(16)], batch_size=2, ragged="list")
    plain = hr.open([{"image": image}] * 4)
    with pytest.raises(hr.ConfigError, match="HR0185"):
        hr.Loader(plain, [T.Mosaic(16)], batch_size=2)
    grouped = source.with_row_group("boxes", "points")
    with pytest.raises(hr.ConfigError, match="before ToDtype"):
        hr.Loader(grouped, [T.ToDtype("float32"), T.Mosaic(16)], batch_size=2, ragged="list")
