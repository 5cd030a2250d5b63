# SPDX-License-Identifier: Apache-2.0
"""Rows that belong together are dropped together: boxes, labels, points and masks through random
pipelines equal torchvision v2's number for number, if its transforms use the same draws."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace import transforms as T

FORMATS = ("xyxy", "xywh", "cxcywh")
RECORDS = 10
LIST: dict[str, Any] = {"batch_size": 2, "ragged": "list"}
GROUP = ("boxes", "labels", "keypoints", "masks")
SHAPES = {
    "boxes": (-1, 4),
    "image": (1, -1, -1),
    "keypoints": (-1, 2, 3),
    "labels": (-1,),
    "masks": (-1, -1, -1),
}
# Two points that move with the picture and are never clamped reveal a step's draw.
PROBE = np.float64([[0, 0], [1000, 1000]])


def library() -> Any:
    """torchvision's (functionals, tv_tensors, torch)."""
    functional = pytest.importorskip("torchvision.transforms.v2.functional", exc_type=Exception)
    import torch
    from torchvision import tv_tensors

    return functional, tv_tensors, torch


def random_record(rng: np.random.Generator, form: str, dtype: str) -> dict[str, Any]:
    """Up to seven boxes: some across the edge, inverted, without area, NaN or infinite."""
    height, width, rows = rng.integers(20, 70), rng.integers(20, 70), rng.integers(0, 8)
    corners = rng.uniform(-0.2, 1.2, (rows, 2, 2)) * (width, height)
    low, high = corners.min(1), corners.max(1)
    if rows > 5:
        high[5] = low[5]
        low[4], high[4] = high[4].copy(), low[4].copy()
    first = {"xyxy": low, "xywh": low, "cxcywh": (low + high) / 2}[form]
    boxes = np.concatenate([first, high if form == "xyxy" else high - low], 1)
    if rows == 7 and dtype.startswith("float"):
        boxes[6, rng.integers(4)] = rng.choice([np.nan, np.inf, -np.inf])
    return {
        "boxes": boxes.astype(dtype),
        "image": rng.integers(0, 256, (1, height, width), np.uint8),
        "keypoints": rng.uniform(-5, 75, (rows, 2, 3)).astype(dtype.replace("int", "float")),
        "labels": np.arange(rows),
        "masks": np.ones((rows, height, width), bool) * np.arange(rows)[:, None, None],
        "probe": PROBE,
    }


def random_step(choose: random.Random) -> Any:
    side = choose.randint
    return choose.choice(
        [
            lambda: T.RandomHorizontalFlip(),
            lambda: T.RandomVerticalFlip(),
            lambda: T.CenterCrop((side(10, 60), side(10, 60))),
            lambda: T.RandomCrop((side(10, 70), side(10, 70)), pad_if_needed=True),
            lambda: T.Pad([side(0, 9) for _ in range(4)]),
            lambda: T.Resize((side(10, 70), side(10, 70)), interpolation="nearest"),
            lambda: T.RandomResizedCrop((side(10, 70), side(10, 70))),
            lambda: T.RandomResize(12, 60),
            lambda: T.RandomShortestSize([15, 31, 44], 61),
            lambda: T.ScaleJitter((40, 50), (0.5, 1.5)),
            lambda: T.RandomZoomOut(side_range=(1, 2)),
            lambda: T.RandomIoUCrop(outside=choose.choice(["zero", "drop"])),
            lambda: T.Letterbox((side(1, 4) * 16, side(1, 4) * 16), stride=choose.choice([0, 8])),
            lambda: T.RandomSizedBBoxSafeCrop((side(10, 70), side(10, 70)), choose.random() / 2),
            lambda: T.ClampBoundingBoxes(choose.choice(["auto", "hard", "soft", "none"])),
            lambda: T.ClampKeyPoints(fields="keypoints"),
            lambda: T.SetClampingMode(choose.choice(["soft", "hard", "none"])),
            lambda: T.ConvertBoundingBoxFormat(choose.choice(FORMATS)),
            lambda: T.SanitizeBoundingBoxes(choose.uniform(1, 6), choose.uniform(1, 40)),
            lambda: T.SanitizeKeyPoints(fields=GROUP),
        ]
    )()


def random_warp(choose: random.Random) -> Any:
    """With a known angle."""
    angle = choose.uniform(-60, 60)
    if choose.random() < 0.5:
        return T.RandomRotation((angle, angle))
    factor, shear = choose.uniform(0.6, 1.6), choose.uniform(-20, 20)
    return T.RandomAffine((angle, angle), scale=(factor, factor), shear=(shear, shear))


class Replayed:
    """One record's rows as torchvision's tv_tensors."""

    def __init__(self, first: dict[str, Any], form: str) -> None:
        self.F, self.tv, self.torch = library()
        canvas = first["image"].shape[1:]
        self.boxes = self.tv.BoundingBoxes(
            self.torch.from_numpy(first["boxes"]), format=form.upper(), canvas_size=canvas
        )
        points = self.torch.from_numpy(first["keypoints"][..., :2].copy())
        self.points = self.tv.KeyPoints(points, canvas_size=canvas)
        self.labels = first["labels"]

    def all(self, function: Any, *arguments: Any) -> None:
        self.boxes = function(self.boxes, *arguments)
        self.points = function(self.points, *arguments)

    def keep(self, kept: Any) -> None:
        self.boxes = self.tv.wrap(self.boxes[kept], like=self.boxes)
        self.points = self.tv.wrap(self.points[kept], like=self.points)
        self.labels = self.labels[kept.numpy()]

    def step(self, step: Any, before: dict[str, Any], after: dict[str, Any]) -> None:
        old, new = before["image"].shape[1:], after["image"].shape[1:]
        low, high = before["probe"]
        to_low, to_high = after["probe"]
        scale = (to_high - to_low) / (high - low)
        with np.errstate(all="ignore"):
            # Where a crop begins, and its extent, in pixels before a resize.
            begin = np.rint(low - to_low / scale).astype(int)
            extent = np.rint(np.array(new[::-1]) / np.abs(scale)).astype(int)
        window = (int(begin[1]), int(begin[0]), int(extent[1]), int(extent[0]))
        arguments, same = step.arguments, np.array_equal(before["probe"], after["probe"])
        match step.name:
            case "RandomHorizontalFlip" | "RandomVerticalFlip":
                across = step.name == "RandomHorizontalFlip"
                if not same:
                    self.all(self.F.horizontal_flip if across else self.F.vertical_flip)
            case "Pad":
                self.all(self.F.pad, arguments["padding"])
            case "RandomZoomOut":
                left, top = np.rint(to_low - low).astype(int)
                boxes = before["boxes"]
                untouched = np.array_equal(boxes, after["boxes"], equal_nan=boxes.dtype.kind == "f")
                if not (same and old == new and untouched):  # otherwise a border of 0, or no step
                    right, bottom = new[1] - old[1] - left, new[0] - old[0] - top
                    self.all(self.F.pad, [int(x) for x in (left, top, right, bottom)])
            case "Resize" | "RandomResize" | "RandomShortestSize" | "ScaleJitter":
                self.all(self.F.resize, list(new))
            case "RandomResizedCrop" | "RandomSizedBBoxSafeCrop":
                self.all(self.F.crop, *window)
                self.all(self.F.resize, list(new))
            case "CenterCrop" | "RandomCrop":
                self.fixed_crop(step, old, new, np.rint(low - to_low).astype(int))
            case "Letterbox":
                self.letterbox(step, old, new)
            case "RandomIoUCrop":
                if not (same and old == new and len(self.labels) == len(after["labels"])):
                    self.iou_crop(window, arguments["outside"] == "drop")
            case "RandomRotation":
                self.all(self.F.rotate, arguments["degrees"][0])
            case "RandomAffine":
                shear = [arguments["shear"][0], 0.0]
                self.all(
                    lambda rows: self.F.affine(
                        rows, arguments["degrees"][0], [0, 0], arguments["scale"][0], shear
                    )
                )
            case "ClampBoundingBoxes":
                mode = arguments["clamping_mode"]
                self.boxes = self.F.clamp_bounding_boxes(
                    self.boxes, clamping_mode=None if mode == "none" else mode
                )
            case "ClampKeyPoints":
                self.points = self.F.clamp_keypoints(self.points)
            case "SetClampingMode":
                mode = arguments["clamping_mode"]
                self.boxes = self.boxes.clone()
                self.boxes.clamping_mode = None if mode == "none" else mode
            case "ConvertBoundingBoxFormat":
                form = arguments["format"].upper()
                self.boxes = self.F.convert_bounding_box_format(self.boxes, new_format=form)
            case "SanitizeBoundingBoxes":
                least = arguments["min_size"], arguments["min_area"]
                _, kept = self.F.sanitize_bounding_boxes(self.boxes, None, None, *least)
                self.keep(kept)
            case "SanitizeKeyPoints":
                self.keep(self.F.sanitize_keypoints(self.points)[1])
            case _:
                raise AssertionError(step.name)

    def fixed_crop(self, step: Any, old: Any, new: Any, begin: Any) -> None:
        high, wide = max(0, new[0] - old[0]), max(0, new[1] - old[1])
        center = step.name == "CenterCrop"
        only_pads = center and new[0] >= old[0] and new[1] >= old[1]
        if only_pads and high % 2 == wide % 2 == 0:
            self.all(self.F.center_crop, list(new))
            return
        if high or wide:
            more = (wide + 1) // 2, (high + 1) // 2
            borders = [wide // 2, high // 2, *more] if center else [wide, high, wide, high]
            self.all(self.F.pad, borders)
            begin = begin + borders[:2]
        if center and not (only_pads and (high or wide)):
            self.all(self.F.center_crop, list(new))
        elif tuple(self.boxes.canvas_size) != tuple(new):
            self.all(self.F.crop, int(begin[1]), int(begin[0]), *new)

    def letterbox(self, step: Any, old: Any, new: Any) -> None:
        size = step.arguments["size"]
        scale = min(size[0] / old[0], size[1] / old[1])
        inner = max(1, round(old[0] * scale)), max(1, round(old[1] * scale))
        self.all(self.F.resize, list(inner))
        high, wide = new[0] - inner[0], new[1] - inner[1]
        if high or wide:
            borders = [wide // 2, high // 2, wide - wide // 2, high - high // 2]
            self.all(self.F.pad, borders)

    def iou_crop(self, window: tuple[int, int, int, int], drops: bool) -> None:
        """As RandomIoUCrop.transform, with the same window."""
        top, left, height, width = window
        as_tensor = self.boxes.as_subclass(self.torch.Tensor)
        corners = self.F.convert_bounding_box_format(
            as_tensor, old_format=self.boxes.format, new_format="XYXY"
        )
        x = 0.5 * (corners[..., 0] + corners[..., 2])
        y = 0.5 * (corners[..., 1] + corners[..., 3])
        inside = (left < x) & (x < left + width) & (top < y) & (y < top + height)
        self.all(self.F.crop, *window)
        if drops:
            self.keep(inside)
        else:
            self.boxes[~inside] = 0


def stage_after(source: Any, steps: list[Any], seed: int) -> list[dict[str, Any]]:
    """All records after the first steps of a pipeline: draws do not depend on later steps."""
    options = {"batch_size": RECORDS, "shuffle": False, "threads": 1, "ragged": "list"}
    batch = next(iter(hr.Loader(source, steps, seed=seed, **options)))
    return [{name: batch[name][i] for name in (*GROUP, "image", "probe")} for i in range(RECORDS)]


def run(seed: int, warps: bool = False) -> int:
    rng, choose = np.random.default_rng(seed), random.Random(seed)
    form = choose.choice(FORMATS)
    dtype = choose.choice(["float32", "float32", "float64", "int64", "int32"])
    dtype = "float64" if warps else dtype
    data = [random_record(rng, form, dtype) for _ in range(RECORDS)]
    steps = [random_step(choose) for _ in range(choose.randint(1, 6))]
    # torch sums products of few points in a different order: warped rows are nearly its own.
    compare: Any = np.testing.assert_array_equal
    if warps:
        steps[choose.randrange(len(steps))] = random_warp(choose)

        def compare(one: Any, two: Any, context: str) -> None:
            np.testing.assert_allclose(one, two, 1e-9, 1e-7, err_msg=context)

    kinds = {"boxes": f"boxes:{form}", "masks": "masks", "probe": "keypoints"}
    source = hr.open(data, kinds=kinds, shapes=SHAPES).with_row_group(*GROUP)
    stages = [stage_after(source, steps[:count], seed) for count in range(len(steps) + 1)]
    for position in range(RECORDS):
        of_record = [stage[position] for stage in stages]
        theirs = Replayed(of_record[0], form)
        for step, before, after in zip(steps, of_record, of_record[1:], strict=False):
            context = f"{seed}: {step} of {steps}, record {position}, {dtype} {form}"
            theirs.step(step, before, after)
            compare(after["boxes"], theirs.boxes.numpy(), context)
            compare(after["keypoints"][..., :2], theirs.points.numpy(), context)
            np.testing.assert_array_equal(after["labels"], theirs.labels, context)
            assert after["image"].shape[1:] == tuple(theirs.boxes.canvas_size), context
            assert len(after["masks"]) == len(theirs.labels), context
            for plane, label in zip(after["masks"], theirs.labels, strict=True):
                assert set(np.unique(plane)) <= {0, label}, context
    return RECORDS


@pytest.mark.parametrize("seed", range(0, 100, 25))
def test_random_pipelines_give_torchvisions_rows(seed: int) -> None:
    assert sum(run(seed + i) for i in range(25)) == 25 * RECORDS


@pytest.mark.parametrize("seed", range(1000, 1040, 20))
def test_random_pipelines_with_warps_give_torchvisions_rows(seed: int) -> None:
    assert sum(run(seed + i, warps=True) for i in range(20)) == 20 * RECORDS


def records(count: int = 4, rows: int = 3) -> list[dict[str, Any]]:
    """Images of 40 x 60 with boxes; the second is too small and the third is truncated."""
    boxes = np.float32([[1, 2, 30, 35], [5, 5, 5.5, 9], [50, 30, 80, 50]])[:rows]
    image = np.zeros((3, 40, 60), np.uint8)
    return [{"image": image, "boxes": boxes, "labels": np.arange(rows)} for _ in range(count)]


def opened(**more: Any) -> Any:
    return hr.open(records(**more), kinds={"boxes": "boxes:xyxy"})


def refused(source: Any, steps: list[Any], **more: Any) -> str:
    with pytest.raises(hr.ConfigError) as error:
        hr.Loader(source, steps, **(LIST | more))
    return f"{error.value.code} {error.value}"


def test_rows_that_would_not_move_are_refused_before_a_thread_starts() -> None:
    source = opened()
    for step in (T.SanitizeBoundingBoxes(), T.RandomIoUCrop()):
        text = refused(source, [step])
        assert text.startswith("HR0183") and "labels" in text and "with_row_group" in text
    grouped = source.with_row_group("boxes", "labels")
    assert [field.row_group for field in grouped.schema] == [0, 1, 1]
    text = refused(grouped, [T.SanitizeBoundingBoxes(fields="boxes")])
    assert text.startswith("HR0183") and "describe the same objects" in text
    # They are not delivered, or all were declared.
    hr.Loader(source, [T.SanitizeBoundingBoxes()], fields=("image", "boxes"), **LIST)
    hr.Loader(source, [T.SanitizeBoundingBoxes(fields="boxes")], **LIST)
    hr.Loader(source, [T.RandomApply([T.RandomIoUCrop()])], fields=("image",), **LIST)


def test_a_step_that_needs_boxes_reads_them_even_if_not_delivered() -> None:
    source = opened().with_row_group("boxes", "labels")
    steps = [T.ClampBoundingBoxes(), T.SanitizeBoundingBoxes(2)]
    batch = next(iter(hr.Loader(source, steps, fields=("labels",), **LIST)))
    assert batch.labels[0].tolist() == [0, 2]
    images = [
        np.concatenate([i.ravel() for i in next(iter(loader)).image])
        for names in (("image",), ("image", "boxes", "labels"))
        for loader in [hr.Loader(source, [T.RandomIoUCrop()], fields=names, seed=4, **LIST)]
    ]
    np.testing.assert_array_equal(*images)


def test_impossible_row_steps_are_refused_with_a_hint() -> None:
    plain = hr.open(records(), kinds={"boxes": "boxes"})
    assert "boxes:xyxy" in refused(plain, [T.SanitizeBoundingBoxes()])
    assert "boxes:xyxy" in refused(plain, [T.RandomIoUCrop()])
    two = [record | {"other": record["boxes"]} for record in records()]
    kinds = {"boxes": "boxes:xyxy", "other": "boxes:xyxy"}
    assert refused(hr.open(two, kinds=kinds), [T.SanitizeBoundingBoxes()]).startswith("HR0185")
    no_picture = hr.open([{"boxes": r["boxes"]} for r in records()], kinds={"boxes": "boxes:xyxy"})
    assert refused(no_picture, [T.SanitizeBoundingBoxes()]).startswith("HR0184")
    alone = [T.CenterCrop(9, fields="image"), T.ClampBoundingBoxes()]
    assert "moved without" in refused(opened(), alone)
    wrong = [record | {"boxes": record["boxes"][0]} for record in records()]
    source = hr.open(wrong, kinds={"boxes": "boxes:xyxy"})
    assert refused(source, [T.SanitizeBoundingBoxes()]).startswith("HR0185")
    sometimes = [T.RandomApply([T.ConvertBoundingBoxFormat("xywh")])]
    assert refused(opened(), sometimes).startswith("HR0115")
    sometimes = [T.RandomApply([T.SetClampingMode("none")])]
    assert refused(opened(), sometimes).startswith("HR0115")
    with pytest.raises(hr.ConfigError, match=r"(?s)HR0187.*did you mean"):
        opened().with_row_group("boxes", "label")
    with pytest.raises(hr.ConfigError, match=r"(?s)HR0187.*no rows"):
        opened().with_row_group("boxes", "image")
    with pytest.raises(hr.ConfigError, match=r"(?s)HR0187.*already"):
        opened().with_row_group("boxes", "labels").with_row_group("labels")


def test_a_record_with_unequal_row_counts_is_bad_and_not_delivered() -> None:
    data = records()
    data[2]["labels"] = np.arange(2)
    shapes = {"labels": (-1,)}
    source = hr.open(data, kinds={"boxes": "boxes:xyxy"}, shapes=shapes)
    steps = [T.SanitizeBoundingBoxes(fields=("boxes", "labels"))]
    with pytest.raises(hr.DataError, match="HR0123"):
        list(hr.Loader(source, steps, **LIST))
    seen = list(hr.Loader(source, steps, on_error="skip", shuffle=False, **LIST))
    assert sum(len(batch.labels) for batch in seen) == 3

    def loses_a_box(boxes: Any) -> Any:
        return boxes[1:]

    python = T.Python(loses_a_box, returns={"boxes": ("float32", (-1, 4))}, fields="boxes")
    with pytest.raises(hr.DataError, match="HR0123"):
        list(hr.Loader(opened(), [python, *steps], **LIST))


def test_boxes_that_are_mostly_cropped_are_dropped_by_min_visibility() -> None:
    source = opened().with_row_group("boxes", "labels")
    crop = T.CenterCrop((40, 20))  # x from 20 to 40: 10 of 29 of the first box remain
    for least, labels in ((0.3, [0]), (0.36, [])):
        steps = [crop, T.SanitizeBoundingBoxes(min_visibility=least)]
        for more in ({}, {"resident": True}):
            batch = next(iter(hr.Loader(source, steps, **LIST, **more)))
            assert batch.labels[0].tolist() == labels, (least, more)
    # Cuts multiply, also for the part that was outside the picture from the start; nothing is
    # dropped without the option.
    two = [T.ClampBoundingBoxes(), T.CenterCrop((40, 60)), T.Resize((80, 120))]
    for least, labels in ((0.15, [0, 2]), (0.26, [0]), (0.0, [0, 2])):
        steps = [*two, T.SanitizeBoundingBoxes(4, min_visibility=least)]
        batch = next(iter(hr.Loader(source, steps, **LIST)))
        assert batch.labels[0].tolist() == labels, least


@pytest.mark.parametrize("form", FORMATS)
def test_relative_boxes_convert_to_pixels_and_back(form: str) -> None:
    rng = np.random.default_rng(5)
    boxes = rng.uniform(0, 1, (5, 4)).astype("float32")
    data = [{"image": np.zeros((3, 40, 60), np.uint8), "boxes": boxes}]
    source = hr.open(data, kinds={"boxes": f"boxes:{form}_normalized"})
    assert source.schema[1].box_format == f"{form}_normalized"
    assert "ConvertBoundingBoxFormat" in refused(source, [T.RandomHorizontalFlip()])
    size = np.float32([60, 40, 60, 40])
    for steps, expected in (
        ([T.ConvertBoundingBoxFormat(form)], boxes * size),
        (
            [T.ConvertBoundingBoxFormat(form), T.ConvertBoundingBoxFormat(f"{form}_normalized")],
            boxes * size / size,
        ),
    ):
        batch = next(iter(hr.Loader(source, steps, batch_size=1)))
        np.testing.assert_array_equal(batch.boxes[0], expected)
    whole = [record | {"boxes": np.int64([[1, 2, 3, 4]])} for record in data]
    integers = hr.open(whole, kinds={"boxes": f"boxes:{form}"})
    assert "fractions" in refused(integers, [T.ConvertBoundingBoxFormat(f"{form}_normalized")])


def test_rows_do_not_depend_on_threads_batches_or_residency() -> None:
    rng = np.random.default_rng(8)
    data = [random_record(rng, "xyxy", "float32") for _ in range(40)]
    kinds = {"boxes": "boxes:xyxy", "masks": "masks", "probe": "keypoints"}
    source = hr.open(data, kinds=kinds, shapes=SHAPES).with_row_group(*GROUP)
    steps = [
        T.ConvertBoundingBoxFormat("xywh"),
        T.ClampBoundingBoxes(),
        T.SanitizeBoundingBoxes(2),
        T.RandomZoomOut(side_range=(1, 2)),
        T.RandomIoUCrop(),
        T.Resize((32, 32)),
        T.SanitizeBoundingBoxes(2, min_visibility=0.2),
    ]
    runs = [
        list(hr.Loader(source, steps, seed=3, batch_size=8, ragged="list", **more))
        for more in ({"threads": 1}, {"threads": 4}, {"resident": True})
    ]
    for first, *others in zip(*runs, strict=True):
        for other in others:
            for name in (*GROUP, "image"):
                for one, two in zip(getattr(first, name), getattr(other, name), strict=True):
                    np.testing.assert_array_equal(one, two, name)
