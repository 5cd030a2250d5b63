# SPDX-License-Identifier: Apache-2.0
"""Windows, canvases and sizes are drawn as by torchvision; resized pixels are Pillow's exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image

import headrace as hr
from headrace import transforms as T

HEIGHT, WIDTH, DRAWS = 80, 100, 1500


BOXES = np.float32([[10, 10, 40, 60], [50, 20, 90, 70], [20, 60, 30, 75]])

PROBE = np.float64([[0, 0], [1000, 1000]])


def distance(one: Any, two: Any) -> float:
    """The Kolmogorov-Smirnov statistic, in units that chance alone exceeds once in a thousand
    times."""
    one, two = np.sort(one), np.sort(two)
    at = np.concatenate([one, two])
    apart = np.abs(
        np.searchsorted(one, at, "right") / len(one) - np.searchsorted(two, at, "right") / len(two)
    ).max()
    return float(apart / (1.95 * np.sqrt((len(one) + len(two)) / (len(one) * len(two)))))


def ours(step: Any) -> list[dict[str, Any]]:
    """The step's output for many identical records."""
    image = np.zeros((1, HEIGHT, WIDTH), np.uint8)
    data = [{"image": image, "boxes": BOXES, "probe": PROBE}] * DRAWS
    source = hr.open(data, kinds={"boxes": "boxes:xyxy", "probe": "keypoints"})
    names = ("image", "boxes", "probe")
    options = {"batch_size": 100, "ragged": "list", "seed": 11, "fields": names}
    return [
        {name: batch[name][i] for name in names}
        for batch in hr.Loader(source.with_row_group("boxes"), [step], **options)
        for i in range(100)
    ]


def theirs(transform: Any) -> list[dict[str, Any]]:
    import torch
    from torchvision import tv_tensors

    image = tv_tensors.Image(torch.zeros(1, HEIGHT, WIDTH, dtype=torch.uint8))
    boxes = tv_tensors.BoundingBoxes(
        torch.from_numpy(BOXES), format="XYXY", canvas_size=(HEIGHT, WIDTH)
    )
    torch.manual_seed(3)
    return [transform.make_params([image, boxes]) for _ in range(DRAWS)]


@pytest.fixture(scope="module")
def v2() -> Any:
    return pytest.importorskip("torchvision.transforms.v2", exc_type=Exception)


def test_iou_windows_have_torchvisions_distribution(v2: Any) -> None:
    found = ours(T.RandomIoUCrop(outside="zero"))
    window = [(*record["probe"][0], *record["image"].shape[1:]) for record in found]
    drawn = theirs(v2.RandomIoUCrop())
    names = ("left", "top", "height", "width")
    whole = {"left": 0, "top": 0, "height": HEIGHT, "width": WIDTH}
    for i, name in enumerate(names):
        sign = -1 if i < 2 else 1
        expected = [(each or whole)[name] for each in drawn]
        assert distance([sign * w[i] for w in window], expected) < 1, name
    kept = [int((record["boxes"].any(1)).sum()) for record in found]
    expected = [int(each["is_within_crop_area"].sum()) if each else len(BOXES) for each in drawn]
    assert distance(kept, expected) < 1


def test_canvases_and_sizes_have_torchvisions_distribution(v2: Any) -> None:
    zoomed = [r for r in ours(T.RandomZoomOut()) if r["image"].shape[2] > WIDTH]
    paddings = [params["padding"] for params in theirs(v2.RandomZoomOut(p=1))]
    assert 0.42 < len(zoomed) / DRAWS < 0.58
    assert distance([r["probe"][0][0] for r in zoomed], [p[0] for p in paddings]) < 1
    assert distance([r["probe"][0][1] for r in zoomed], [p[1] for p in paddings]) < 1
    widths = [p[0] + p[2] + WIDTH for p in paddings]
    assert distance([r["image"].shape[2] for r in zoomed], widths) < 1
    for step, transform in (
        (T.RandomShortestSize([20, 50, 61], 70), v2.RandomShortestSize([20, 50, 61], 70)),
        (T.ScaleJitter((60, 90)), v2.ScaleJitter((60, 90))),
    ):
        found = ours(step)
        sizes = {tuple(r["image"].shape[1:]) for r in found}
        drawn = [params["size"] for params in theirs(transform)]
        if len(sizes) == 3:
            assert sizes == set(drawn)
        for axis in (0, 1):
            got = [r["image"].shape[1 + axis] for r in found]
            assert distance(got, [size[axis] for size in drawn]) < 1, step
    sizes = [min(r["image"].shape[1:]) for r in ours(T.RandomResize(20, 25))]
    assert set(sizes) == {20, 21, 22, 23, 24}
    assert distance(sizes, [p["size"][0] for p in theirs(v2.RandomResize(20, 25))]) < 1


def dali_windows(rng: Any, how: dict[str, Any]) -> list[tuple[float, ...]]:
    """Left, top, width, height in pixels and the boxes kept, following DALI's documented rules."""
    boxes = BOXES.astype("f8") / [WIDTH, HEIGHT, WIDTH, HEIGHT]
    area = (boxes[:, 2:] - boxes[:, :2]).prod(1)
    drawn = []
    while len(drawn) < DRAWS:
        options = [*how["thresholds"], *([None] if how.get("allow_no_crop", True) else [])]
        best: Any = (-1.0, None)
        tried, most, done = 0, how.get("total_num_attempts", 10**9), False
        while not done and tried < most:
            threshold = options[rng.integers(len(options))]
            if threshold is None:
                best, done = (1.0, (0, 0, WIDTH, HEIGHT, len(boxes))), True
            for _ in range(0 if done else min(how["num_attempts"], most - tried)):
                tried += 1
                size = rng.uniform(*how["scaling"], 2)
                low, high = how.get("aspect_ratio", (1, 1))
                if low == high:
                    size = size.max() * np.array([min(low, 1), min(1 / low, 1)])
                elif not low <= size[0] / size[1] <= high:
                    continue
                at = rng.uniform(0, 1 - size)
                common = np.minimum(boxes[:, 2:], at + size) - np.maximum(boxes[:, :2], at)
                common = common.clip(0).prod(1)
                by_iou = how.get("threshold_type", "iou") == "iou"
                overlap = common / (area + size.prod() - common if by_iou else area)
                center = (boxes[:, :2] + boxes[:, 2:]) / 2
                kept = ((center >= at) & (center < at + size)).all(1)
                if "bbox_prune_threshold" in how:
                    kept = (common > 0) & (common >= how["bbox_prune_threshold"] * area)
                if not kept.any():
                    continue
                every = how.get("all_boxes_above_threshold", True)
                metric = overlap.min() if every else overlap.max()
                scale = (WIDTH, HEIGHT)
                begin, end = np.rint(at * scale), np.rint((at + size) * scale)
                if metric > best[0]:
                    best = (metric, (*begin, *(end - begin), kept.sum()))
                if metric >= threshold:
                    best, done = (metric, (*begin, *(end - begin), kept.sum())), True
                    break
        drawn.append(best[1])
    return drawn


@pytest.mark.parametrize(
    "how",
    [
        {"thresholds": [0.1, 0.3, 0.5], "num_attempts": 20, "all_boxes_above_threshold": False},
        {"thresholds": [0.0, 0.05], "num_attempts": 5, "allow_no_crop": False},
        {"thresholds": [0.1], "num_attempts": 5, "aspect_ratio": (0.8, 0.8)},
        {"thresholds": [0.3], "threshold_type": "overlap", "bbox_prune_threshold": 0.4}
        | {"num_attempts": 5, "all_boxes_above_threshold": False, "allow_no_crop": False},
        {"thresholds": [0.99], "num_attempts": 3, "total_num_attempts": 6, "allow_no_crop": False}
        | {"all_boxes_above_threshold": False, "scaling": (0.3, 0.6)},
    ],
)
def test_bbox_crops_are_drawn_by_dalis_rules(how: dict[str, Any]) -> None:
    how = {"aspect_ratio": (0.5, 2.0), "scaling": (0.3, 1.0)} | how
    found = ours(T.RandomBBoxCrop(**how))
    expected = dali_windows(np.random.default_rng(5), how)
    for i in range(2):
        assert distance([-r["probe"][0][i] for r in found], [w[i] for w in expected]) < 1
        assert distance([r["image"].shape[2 - i] for r in found], [w[2 + i] for w in expected]) < 1
    assert distance([len(r["boxes"]) for r in found], [w[4] for w in expected]) < 1


def test_a_bbox_crop_that_finds_no_window_keeps_the_whole_image() -> None:
    whole = (1, HEIGHT, WIDTH)
    never = T.RandomBBoxCrop([1.0], num_attempts=7, allow_no_crop=False, scaling=(0.1, 0.2))
    assert all(r["image"].shape == whole and len(r["boxes"]) == 3 for r in ours(never)[:200])
    image = np.zeros(whole, np.uint8)
    odd = [np.zeros((0, 4), "f4"), np.float32([[np.nan, 0, 4, 4]]), np.float32([[9, 9, 2, 2]])]
    data = [{"image": image, "boxes": boxes} for boxes in odd]
    source = hr.open(data, kinds={"boxes": "boxes:xyxy"}, shapes={"boxes": (-1, 4)})
    batch = next(iter(hr.Loader(source, [never], batch_size=3, ragged="list")))
    assert [i.shape for i in batch.image] == [whole] * 3
    assert [len(b) for b in batch.boxes] == [0, 1, 1]
    for wrong in ({"thresholds": [1.5]}, {"aspect_ratio": (2, 1)}, {"scaling": (0, 1)}):
        with pytest.raises(hr.ConfigError):
            hr.Loader(source, [T.RandomBBoxCrop(**wrong)], batch_size=1)


def test_a_safe_crop_contains_all_boxes() -> None:
    for record in ours(T.RandomSizedBBoxSafeCrop((40, 50))):
        (left, top), (right, bottom) = record["probe"]
        scale = np.float64([right - left, bottom - top]) / 1000
        before = (record["boxes"].reshape(-1, 2) - (left, top)) / scale
        np.testing.assert_allclose(before.reshape(-1, 4), BOXES, atol=1e-3)
        assert record["image"].shape == (1, 40, 50)


@pytest.mark.parametrize("size", [(64, 96), (96, 64), (33, 40), (200, 150)])
@pytest.mark.parametrize("how", [{}, {"stride": 32}, {"scaleup": False}, {"center": False}])
def test_a_letterbox_equals_pillows_resize_on_a_canvas(size: Any, how: dict[str, Any]) -> None:
    rng = np.random.default_rng(size[0])
    pixels = rng.integers(0, 256, (*size, 3), np.uint8)
    mask = rng.integers(0, 5, size, np.uint8)
    data = [
        {"image": pixels.transpose(2, 0, 1), "mask": mask, "boxes": np.float32([[4, 6, 20, 30]])}
    ]
    source = hr.open(data, kinds={"boxes": "boxes:xyxy", "mask": "mask"})
    step = T.Letterbox((128, 160), mask_fill=255, **how)
    batch = next(iter(hr.Loader(source, [step], batch_size=1, ragged="list")))
    # Ultralytics' LetterBox.
    scale = min(128 / size[0], 160 / size[1])
    scale = min(scale, 1.0) if how.get("scaleup") is False else scale
    high, wide = round(size[0] * scale), round(size[1] * scale)
    free_x, free_y = 160 - wide, 128 - high
    if "stride" in how:
        free_x, free_y = free_x % 32, free_y % 32
    half_x, half_y = (free_x / 2, free_y / 2) if how.get("center", True) else (0, 0)
    left, top = (round(half_x - 0.1), round(half_y - 0.1)) if how.get("center", True) else (0, 0)
    expected = np.full((high + free_y, wide + free_x, 3), 114, np.uint8)
    resized = Image.fromarray(pixels).resize((wide, high), Image.Resampling.BILINEAR)
    expected[top : top + high, left : left + wide] = np.asarray(resized)
    np.testing.assert_array_equal(batch.image[0].transpose(1, 2, 0), expected)
    classes = np.full((high + free_y, wide + free_x), 255, np.uint8)
    nearest = Image.fromarray(mask).resize((wide, high), Image.Resampling.NEAREST)
    classes[top : top + high, left : left + wide] = np.asarray(nearest)
    np.testing.assert_array_equal(batch.mask[0][0], classes)
    factor = np.float32([wide / size[1], high / size[0]])
    corners = np.float32([[4, 6], [20, 30]]) * factor + np.float32([left, top])
    np.testing.assert_allclose(batch.boxes[0].reshape(2, 2), corners, rtol=1e-6)


def test_the_shape_is_unknown_if_a_random_size_may_come_last() -> None:
    data = [{"image": np.zeros((3, 40 + i, 50), np.uint8)} for i in range(4)]
    source = hr.open(data, shapes={"image": (3, -1, -1)})
    crop = T.CenterCrop((56, 36))
    with pytest.raises(hr.ConfigError, match="HR0114"):
        hr.Loader(source, [T.RandomOrder([T.RandomResize(12, 60), crop])], batch_size=2)
    steps = [T.RandomOrder([T.RandomHorizontalFlip(), crop])]
    assert next(iter(hr.Loader(source, steps, batch_size=2))).image.shape == (2, 3, 56, 36)


def test_an_image_without_boxes_is_unchanged() -> None:
    image = np.zeros((1, 40, 60), np.uint8)
    nothing = np.float32([[np.nan, 0, 9, 9], [-90, -90, -10, -10], [0, np.inf, 5, np.inf]])
    boxes = {"boxes": np.repeat(nothing, 20000, 0)}
    source = hr.open([{"image": image} | boxes] * 4, kinds={"boxes": "boxes:xyxy"})
    source = source.with_row_group("boxes")
    for options in ([0.0, 0.5], None):
        step = T.RandomIoUCrop(**({"sampler_options": options} if options else {}))
        for batch in hr.Loader(source, [step], batch_size=4, ragged="list"):
            assert all(each.shape == (1, 40, 60) for each in batch.image)
    # An infinite box does not make others unsafe.
    mixed = np.float32([[-np.inf, 5, np.inf, 9], [20, 0, 59, 39], [np.nan] * 4])
    source = hr.open([{"image": image, "boxes": mixed}] * 50, kinds={"boxes": "boxes:xyxy"})
    for batch in hr.Loader(source, [T.RandomSizedBBoxSafeCrop((40, 60))], batch_size=5, seed=3):
        assert (batch.boxes[:, 0, [0, 2]] == [0, 60]).all()
        inner = batch.boxes[:, 1]
        assert (inner[:, 2] - inner[:, 0] >= 38.9).all() and (
            inner[:, 3] - inner[:, 1] >= 38.9
        ).all()


def test_only_the_window_is_decoded(tmp_path: Any) -> None:
    """For a JPEG whose lower half is missing, windows in the upper half give no error."""
    rng = np.random.default_rng(1)
    pixels = rng.integers(0, 256, (320, 320, 3), np.uint8)
    path = tmp_path / "a.jpg"
    Image.fromarray(pixels).save(path, quality=90)
    data = path.read_bytes()
    cut = data[: int(len(data) * 0.7)]
    boxes = np.float32([[10, 10, 90, 90]])
    kinds = {"boxes": "boxes:xyxy"}
    options = dict(max_scale=0.4, sampler_options=[0.0])
    results = []
    for each in (data, cut):
        source = hr.open([{"image": each, "boxes": boxes}] * 4, kinds=kinds | {"image": "image"})
        steps = [T.RandomIoUCrop(**options), T.Resize((32, 32))]
        grouped = source.with_row_group("boxes")
        loader = hr.Loader(grouped, steps, batch_size=4, ragged="list")
        results.append(next(iter(loader)).image)
    np.testing.assert_array_equal(*results)
