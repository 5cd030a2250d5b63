# SPDX-License-Identifier: Apache-2.0
"""Transforms of torchvision v2 get all fields of an image, in one call, and their results go back
to the fields; results that do not belong together are rejected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from joint_records import CUT, HEIGHT, WIDTH, opened, record, through

import headrace as hr
from headrace import transforms as T

v2 = pytest.importorskip("torchvision.transforms.v2", exc_type=Exception)
tv_tensors = pytest.importorskip("torchvision.tv_tensors", exc_type=Exception)


pytestmark = pytest.mark.filterwarnings("ignore::headrace.Warning")

OPEN = {"image": ("uint8", (3, -1, -1)), "mask": ("uint8", (1, -1, -1))}


def as_tv(each: dict[str, Any], box_format: str = "xyxy") -> dict[str, Any]:
    size = (HEIGHT, WIDTH)
    out: dict[str, Any] = {name: torch.from_numpy(value) for name, value in each.items()}
    out["image"] = tv_tensors.Image(out["image"])
    for name in ("mask", "masks"):
        if name in out:
            out[name] = tv_tensors.Mask(out[name])
    if "boxes" in out:
        out["boxes"] = tv_tensors.BoundingBoxes(
            out["boxes"], format=box_format.upper(), canvas_size=size
        )
    if "points" in out:
        out["visible"] = out["points"][..., 2:]
        out["points"] = tv_tensors.KeyPoints(out["points"][..., :2].clone(), canvas_size=size)
    return out


def assert_same(got: dict[str, Any], expected: dict[str, Any]) -> None:
    for name, value in got.items():
        wanted = expected[name]
        if name == "points":
            wanted = torch.cat([wanted, expected["visible"]], -1)
        np.testing.assert_array_equal(value, wanted, name)


STEADY = [
    v2.RandomHorizontalFlip(1),
    v2.Compose([v2.RandomVerticalFlip(1), v2.Pad((1, 2, 3, 4)), v2.CenterCrop((20, 25))]),
    v2.Resize((30, 20)),
    v2.RandomAffine((30, 30)),
    v2.RandomApply([v2.RandomRotation((90, 90), expand=True)], p=1),
]


@pytest.mark.parametrize("box_format", ["xyxy", "xywh", "cxcywh"])
@pytest.mark.parametrize("step", STEADY, ids=lambda step: type(step).__name__)
def test_a_transform_gets_all_fields_as_tv_tensors(step: Any, box_format: str) -> None:
    torch.manual_seed(0)
    source, records = opened(box_format=box_format)
    steps = [T.Python(step, returns=_masks(OPEN))]
    for got, each in zip(through(source, steps), records, strict=True):
        assert list(got) == list(each)
        assert_same(got, step(as_tv(each, box_format)))


def _masks(returns: dict[str, Any]) -> dict[str, Any]:
    return returns | {"masks": ("uint8", (-1, -1, -1), "masks")}


def test_one_draw_per_record_moves_all_fields() -> None:
    source, _ = opened()
    step = T.Python(v2.RandomCrop((16, 16)), returns=_masks({
        "image": ("uint8", (3, 16, 16)), "mask": ("uint8", (1, 16, 16))}))  # fmt: skip
    same = [{**each, "masks": np.repeat(each["image"][:1], len(each["boxes"]), 0),
             "mask": each["image"][:1]} for each in opened()[1]]  # fmt: skip
    kinds = {"mask": "mask", "boxes": "boxes:xyxy", "masks": "masks", "points": "keypoints"}
    shapes = {n: (-1, *same[0][n].shape[1:]) for n in ("boxes", "labels", "masks", "points")}
    source = hr.open(same, kinds=kinds, shapes=shapes)
    first = through(source, [step], threads=1)
    for target in first:
        np.testing.assert_array_equal(target["mask"], target["image"][:1])
        for plane in target["masks"]:
            np.testing.assert_array_equal(plane, target["image"][0])
    for a, b in zip(first, through(source, [step], threads=3), strict=True):
        for name, value in a.items():
            np.testing.assert_array_equal(value, b[name])


def test_a_color_transform_only_gets_the_image() -> None:
    source, records = opened()
    for got, each in zip(through(source, [v2.RandomInvert(1)]), records, strict=True):
        np.testing.assert_array_equal(got["image"], 255 - each["image"])
        np.testing.assert_array_equal(got["mask"], each["mask"])


SMALL = v2.Compose([v2.CenterCrop((12, 12)), v2.SanitizeBoundingBoxes(min_size=2.5)])


def test_dropped_rows_take_their_labels_with_them() -> None:
    source, records = opened(("image", "boxes", "labels", "masks"))
    returns = {"image": CUT["image"], "masks": ("uint8", (-1, 12, 12), "masks")}
    got = through(source, [T.Python(SMALL, returns=returns)])
    dropped = 0
    for target, each in zip(got, records, strict=True):
        expected = SMALL(as_tv(each))
        assert_same(target, expected)
        dropped += len(each["boxes"]) - len(target["boxes"])
        assert len(target["boxes"]) == len(target["labels"]) == len(target["masks"])
    assert dropped > 0


def test_rows_that_would_lose_their_boxes_are_detected() -> None:
    records = [each | {"areas": np.ones(len(each["boxes"]), np.float32)} for each in opened()[1]]
    names = ("image", "boxes", "labels", "areas")
    records = [{name: each[name] for name in names} for each in records]
    shapes = {"boxes": (-1, 4), "labels": (-1,), "areas": (-1,)}
    source = hr.open(records, kinds={"boxes": "boxes:xyxy"}, shapes=shapes)
    steps = [T.Python(SMALL, returns={"image": CUT["image"]})]
    gave = r'returned . of . rows of "boxes" and . of "areas"'
    with pytest.raises(hr.DataError, match=gave + r".*\(record\['labels'\], record\['areas'\],\)"):
        through(source, steps)
    both = v2.SanitizeBoundingBoxes(2.5, labels_getter=lambda r: (r["labels"], r["areas"]))
    steps = [T.Python(v2.Compose([v2.CenterCrop((12, 12)), both]), returns={"image": CUT["image"]})]
    for target in through(source, steps):
        assert len(target["boxes"]) == len(target["labels"]) == len(target["areas"])


def test_boxes_that_are_not_clamped_stay_beyond_the_image() -> None:
    source, records = opened(("image", "boxes"))
    steps = [T.SetClampingMode("none"), T.Python(v2.CenterCrop((12, 12)), {"image": CUT["image"]})]
    for target, each in zip(through(source, steps), records, strict=True):
        expected = each["boxes"] - np.float32([10, 6, 10, 6])
        np.testing.assert_allclose(target["boxes"], expected, atol=1e-5)


class Mirror(v2.Transform):
    """A transform of a user's."""

    def __init__(self, keeps: str = "") -> None:
        super().__init__()
        self.keeps = keeps

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if type(inpt).__name__ == self.keeps:
            return inpt
        return v2.functional.horizontal_flip(inpt)


def test_a_users_transform_is_called_like_torchvisions() -> None:
    source, records = opened()
    for got, each in zip(through(source, [Mirror()]), records, strict=True):
        assert_same(got, v2.RandomHorizontalFlip(1)(as_tv(each)))


def test_torchvisions_lambda_is_called_with_all_fields_of_the_image() -> None:
    """As in torchvision: it cannot be known that a user's function only changes colors."""
    source, records = opened()
    mirror = v2.Lambda(v2.functional.horizontal_flip)
    for got, each in zip(through(source, [mirror]), records, strict=True):
        assert_same(got, v2.RandomHorizontalFlip(1)(as_tv(each)))
    invert = v2.Lambda(v2.functional.invert, tv_tensors.Image)
    for got, each in zip(through(source, [invert]), records, strict=True):
        assert_same(got, {**as_tv(each), "image": torch.from_numpy(255 - each["image"])})


class Widen(v2.Transform):
    """Moves the image without passing the boxes."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        is_image = isinstance(inpt, tv_tensors.Image)
        return v2.functional.pad(inpt, [2, 0, 2, 0]) if is_image else inpt


def test_boxes_of_another_canvas_or_format_are_detected() -> None:
    source, _ = opened(("image", "boxes"))
    step = T.Python(Widen(), returns={"image": OPEN["image"]})
    with pytest.raises(hr.DataError, match=r"was returned for an image of \(24, 32\), but the"):
        through(source, [step])
    with pytest.raises(hr.ConfigError, match="would be returned as xywh") as raised:
        hr.Loader(source, [v2.ConvertBoundingBoxFormat("XYWH")], batch_size=1, ragged="list")
    assert raised.value.code == "HR0680"
    there_and_back = [v2.ConvertBoundingBoxFormat("XYWH"), v2.ConvertBoundingBoxFormat("XYXY")]
    through(source, [v2.Compose(there_and_back)])


@pytest.mark.parametrize(
    ("fields", "kinds", "text"),
    [
        (("image", "boxes"), {"boxes": "boxes"}, "format of .boxes. is unknown"),
        (("boxes",), {"boxes": "boxes:xyxy"}, "boxes and points have no image"),
        (("mask", "boxes", "labels"), {"boxes": "boxes:xyxy"}, "first tensor as one"),
        (("image", "name"), {}, ".name. is not a number"),
    ],
)
def test_unsupported_fields_are_refused_before_a_thread_starts(
    fields: tuple[str, ...], kinds: dict[str, str], text: str
) -> None:
    each = record(0, 2) | {"name": "an image"}
    data = [{name: each[name] for name in ("image", "mask", "boxes", "labels", "name")}]
    source = hr.open(data, kinds={"mask": "mask", **kinds})
    step = T.Python(v2.RandomHorizontalFlip(1), fields=fields)
    with pytest.raises(hr.ConfigError, match=text) as raised:
        hr.Loader(source, [step], batch_size=1, fields=("image", "mask"))
    assert raised.value.code == "HR0680"


def test_boxes_without_a_format_are_refused() -> None:
    data = [{"image": each["image"], "boxes": each["boxes"][:1]} for each in opened()[1][2:]]
    with pytest.raises(hr.ConfigError, match="HR0180"):
        hr.Loader(data, [v2.RandomHorizontalFlip(1)], batch_size=1)


def test_single_boxes_and_integers_keep_their_form() -> None:
    data = [{"image": np.zeros((3, 8, 10), np.uint8), "box": np.int64([1, 2, 4, 6])}]
    source = hr.open(data, kinds={"box": "boxes:xyxy"})
    (target,) = through(source, [v2.RandomHorizontalFlip(1)])
    assert target["box"].dtype == np.int64 and target["box"].tolist() == [6, 2, 9, 6]


def test_the_iou_crop_of_torchvision_sees_the_boxes() -> None:
    records = opened(("image", "boxes", "labels"))[1]
    crop = v2.Compose([v2.RandomIoUCrop(), v2.SanitizeBoundingBoxes()])
    step = T.Python(crop, returns={"image": OPEN["image"]})
    with_boxes = hr.open(
        [each for each in records if len(each["boxes"])],
        kinds={"boxes": "boxes:xyxy"},
        shapes={"boxes": (-1, 4), "labels": (-1,)},
    )
    for seed in range(4):
        for target in through(with_boxes, [step], seed=seed):
            height, width = target["image"].shape[1:]
            assert (target["boxes"] <= (width, height, width, height)).all()
            assert len(target["boxes"]) == len(target["labels"])


def test_masks_of_another_size_and_nan_boxes_only_affect_one_record() -> None:
    records = opened(("image", "boxes", "masks"))[1][2:]
    records[0]["masks"] = np.ones((1, 5, 6), np.uint8)
    records[1]["boxes"][0] = np.nan
    source = hr.open(
        records,
        kinds={"boxes": "boxes:xyxy", "masks": "masks"},
        shapes={"boxes": (-1, 4), "masks": (-1, -1, -1)},
    )
    with pytest.raises(hr.DataError, match="HR0612"):
        through(source, [v2.RandomHorizontalFlip(1)])
    (target,) = through(source, [v2.RandomHorizontalFlip(1)], on_error="skip", error_budget=9)
    assert np.isnan(target["boxes"][0]).all() and np.isfinite(target["boxes"][1:]).all()
    np.testing.assert_array_equal(target["masks"], records[1]["masks"][:, :, ::-1])


def test_the_plan_and_a_trace_show_its_inputs() -> None:
    source, records = opened(("image", "boxes", "labels"))
    with hr.Loader(source, [v2.RandomHorizontalFlip(1)], batch_size=2, ragged="list") as loader:
        assert "RandomHorizontalFlip(image, boxes, labels)" in str(loader.plan())
        stages = loader.trace(0)
    np.testing.assert_array_equal(stages[0].values["boxes"], records[0]["boxes"])
    assert stages[1].label == "RandomHorizontalFlip()"
    assert (stages[1].values["boxes"] != records[0]["boxes"]).any()


def test_forks_and_field_lists_pass_their_visible_fields() -> None:
    source, records = opened(("image", "mask"))
    views = T.Fork("image", a=[v2.RandomHorizontalFlip(1)], b=[])
    got = through(source, [views], fields=("a", "b"))
    np.testing.assert_array_equal(got[0]["a"], records[0]["image"][:, :, ::-1])
    np.testing.assert_array_equal(got[0]["b"], records[0]["image"])
