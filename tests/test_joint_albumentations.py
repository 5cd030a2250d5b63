# SPDX-License-Identifier: Apache-2.0
"""A Compose of Albumentations gets image, boxes, masks and points in one call, and labels are
dropped together with their rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from joint_records import CUT, ROWS, opened, through

import headrace as hr
from headrace import transforms as T

pytestmark = pytest.mark.filterwarnings("ignore::headrace.Warning")


def albumentations() -> Any:
    return pytest.importorskip("albumentations")


def composed(A: Any, *steps: Any, **params: Any) -> Any:
    given = {
        "bbox_params": A.BboxParams("pascal_voc", **params),
        "keypoint_params": A.KeypointParams("xy", remove_invisible=False),
    }
    return A.Compose(list(steps), **given)


def test_albumentations_gets_boxes_masks_and_points() -> None:
    A = albumentations()
    source, records = opened()
    step = composed(A, A.HorizontalFlip(p=1))
    for got, each in zip(through(source, [step]), records, strict=True):
        expected = step(
            image=each["image"].transpose(1, 2, 0),
            mask=each["mask"][0],
            bboxes=each["boxes"],
            keypoints=each["points"].reshape(-1, 3)[:, :2],
        )
        np.testing.assert_array_equal(got["image"].transpose(1, 2, 0), expected["image"])
        np.testing.assert_array_equal(got["mask"][0], expected["mask"])
        np.testing.assert_allclose(got["boxes"], expected["bboxes"].reshape(-1, 4), atol=1e-4)
        np.testing.assert_allclose(
            got["points"][..., :2].reshape(-1, 2), expected["keypoints"].reshape(-1, 2), atol=1e-4
        )
        np.testing.assert_array_equal(got["points"][..., 2], each["points"][..., 2])
        np.testing.assert_array_equal(got["masks"], each["masks"][:, :, ::-1])
        np.testing.assert_array_equal(got["labels"], each["labels"])


def test_albumentations_drops_rows_with_their_labels() -> None:
    A = albumentations()
    source, records = opened(("image", "boxes", "labels"))
    step = composed(A, A.CenterCrop(12, 12), label_fields=["labels"], min_visibility=0.3)
    dropped = 0
    for target, each in zip(
        through(source, [T.Python(step, {"image": CUT["image"]})]), records, strict=True
    ):
        plain = A.Compose(
            [A.CenterCrop(12, 12)],
            bbox_params=A.BboxParams("pascal_voc", label_fields=["labels"], min_visibility=0.3),
        )
        expected = plain(
            image=each["image"].transpose(1, 2, 0), bboxes=each["boxes"], labels=each["labels"]
        )
        np.testing.assert_allclose(target["boxes"], expected["bboxes"].reshape(-1, 4), atol=1e-4)
        assert target["labels"].tolist() == [int(label) for label in expected["labels"]]
        assert target["labels"].dtype == np.int64
        dropped += len(each["boxes"]) - len(target["boxes"])
    assert dropped > 0


def test_albumentations_only_drops_rows_of_the_declared_group() -> None:
    A = albumentations()
    source, records = opened(("image", "boxes", "labels", "masks", "points"))
    crop = composed(A, A.CenterCrop(12, 12), min_visibility=0.3)
    step = T.Python(crop, {"image": CUT["image"], "masks": ("uint8", (-1, 12, 12), "masks")})
    with pytest.raises(hr.DataError, match="with_row_group"):
        through(source, [step])
    said = source.with_row_group("boxes", "labels", "masks", "points")
    for target, each in zip(through(said, [step]), records, strict=True):
        kept = [label in target["labels"] for label in each["labels"]]
        np.testing.assert_array_equal(target["labels"], each["labels"][kept])
        np.testing.assert_array_equal(target["masks"], each["masks"][kept][:, 6:18, 10:22])
        np.testing.assert_array_equal(target["points"][..., 2], each["points"][kept][..., 2])


def test_albumentations_drops_rows_of_a_whole_group(tmp_path: Any) -> None:
    A = albumentations()
    from test_ragged import coco

    step = composed(A, A.Crop(0, 0, 4, 8), min_visibility=0.5)
    returns = {"image": ("uint8", (3, 8, 4))}
    names = ("image", "boxes", "labels", "areas", "crowd")
    got = through(hr.coco(coco(tmp_path)), [T.Python(step, returns)], fields=names)
    assert [len(target["boxes"]) for target in got] == [1, 0, 1]
    for target in got:
        assert len({len(target[name]) for name in names[1:]}) == 1
    assert got[0]["labels"].tolist() == [1]


@pytest.mark.parametrize(
    ("params", "kinds", "text"),
    [
        ({"bbox": "coco"}, {}, "pascal_voc"),
        ({"bbox": "pascal_voc", "label_fields": ["label"]}, {}, "is not a field"),
        ({"points": "xya"}, {}, "remove_invisible=False"),
        ({"points": "xy", "remove_invisible": True}, {}, "remove_invisible=False"),
    ],
)
def test_albumentations_is_refused_if_parameters_are_missing(
    params: dict[str, Any], kinds: dict[str, str], text: str
) -> None:
    A = albumentations()
    given: dict[str, Any] = {}
    if "bbox" in params:
        given["bbox_params"] = A.BboxParams(params["bbox"], label_fields=params.get("label_fields"))
    if "points" in params:
        given["keypoint_params"] = A.KeypointParams(
            params["points"], remove_invisible=params.get("remove_invisible", False)
        )
    source, _ = opened()
    with pytest.raises(hr.ConfigError, match=text) as raised:
        hr.Loader(source, [A.Compose([A.HorizontalFlip()], **given)], batch_size=1, ragged="list")
    assert raised.value.code == "HR0680"


def test_albumentations_that_would_not_move_boxes_is_refused() -> None:
    A = albumentations()
    source, _ = opened(("image", "boxes"))
    with pytest.raises(hr.ConfigError, match="HR0180"):
        hr.Loader(source, [A.HorizontalFlip(p=1)], batch_size=1, ragged="list")
    color = A.Compose([A.RandomBrightnessContrast(p=1)])
    assert len(through(source, [color])) == len(ROWS)
