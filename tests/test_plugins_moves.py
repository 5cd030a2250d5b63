# SPDX-License-Identifier: Apache-2.0
"""Plug-ins that move images: which fields move with them, and which are unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from built_plugins import case, darkened, needs_compiler, scene, scenes

import headrace as hr
from headrace import transforms as T

pytest_plugins = ["plugin_fixtures"]
pytestmark = needs_compiler


def test_fields_of_the_image_move_with_it(transpose: Any) -> None:
    batch = next(iter(hr.Loader(scenes(), [transpose.RandomTranspose(1.0)], batch_size=1)))
    before = scene()
    np.testing.assert_array_equal(batch.image[0], before["image"].transpose(0, 2, 1))
    np.testing.assert_array_equal(batch.mask[0], before["mask"].transpose(0, 2, 1))
    np.testing.assert_array_equal(batch.masks[0], before["masks"].transpose(0, 2, 1))
    np.testing.assert_array_equal(batch.boxes[0], before["boxes"][:, [1, 0, 3, 2]])
    np.testing.assert_array_equal(batch.keypoints[0], before["keypoints"][:, :, [1, 0, 2]])


def test_all_fields_of_a_record_share_one_draw(transpose: Any) -> None:
    steps = [transpose.RandomTranspose(0.5)]
    loader = hr.Loader(scenes(40), steps, batch_size=1, ragged="list")
    swapped = 0
    for number, batch in enumerate(loader):
        before = scene(number)
        here = batch.image[0].shape == (3, 9, 6)
        swapped += here
        axes = (0, 2, 1) if here else (0, 1, 2)
        np.testing.assert_array_equal(batch.mask[0], before["mask"].transpose(axes))
        np.testing.assert_array_equal(batch.masks[0], before["masks"].transpose(axes))
        order = [1, 0, 3, 2] if here else [0, 1, 2, 3]
        np.testing.assert_array_equal(batch.boxes[0], before["boxes"][:, order])
    assert 8 < swapped < 32


def test_a_plugin_that_does_not_move_every_field_is_refused(tmp_path: Path) -> None:
    library, name = case(tmp_path, FLAGS="HEADRACE_MOVES")
    mover = getattr(hr.load_plugin(library), name)
    with pytest.raises(hr.ConfigError, match=r'HR0180.*would leave "mask"'):
        hr.Loader(scenes(), [mover()], batch_size=1)
    for field in ("boxes", "masks", "keypoints"):
        with pytest.raises(hr.ConfigError, match=f'would leave "{field}"') as caught:
            hr.Loader(scenes(), [mover()], batch_size=1, fields=("image", field))
        assert "the plug-in does not specify how" in str(caught.value)
    alone = next(iter(hr.Loader(scenes(), [mover(fields="image")], batch_size=1)))
    np.testing.assert_array_equal(alone.image[0], 255 - scene()["image"])
    np.testing.assert_array_equal(alone.boxes[0], scene()["boxes"])
    unwanted = hr.Loader(scenes(), [mover()], batch_size=1, fields=("image",))
    np.testing.assert_array_equal(next(iter(unwanted)).image[0], 255 - scene()["image"])


@pytest.mark.parametrize("size", [(3, 4), (60, 90)])
def test_planes_that_do_not_cover_the_image_are_a_bad_record(
    transpose: Any, size: tuple[int, int]
) -> None:
    record = {"image": scene()["image"], "masks": np.ones((2, *size), np.uint8)}
    source = hr.open([record], kinds={"masks": "masks"})
    message = f"HR0122.*planes are {size[0]} x {size[1]} .*, but the image is 6 x 9"
    with pytest.raises(hr.DataError, match=message):
        next(iter(hr.Loader(source, [transpose.RandomTranspose(1.0)], batch_size=1)))


@pytest.mark.parametrize("before", [(2,), (2, 3)])
def test_planes_of_any_number_of_axes_move(transpose: Any, before: tuple[int, ...]) -> None:
    planes = np.random.default_rng(7).integers(0, 256, (*before, 6, 9), dtype=np.uint8)
    source = hr.open([{"image": scene()["image"], "depth": planes}], kinds={"depth": "masks"})
    batch = next(iter(hr.Loader(source, [transpose.RandomTranspose(1.0)], batch_size=1)))
    np.testing.assert_array_equal(batch.depth[0], planes.swapaxes(-1, -2), strict=True)


def test_planes_of_another_size_are_unchanged_if_nothing_moves(tmp_path: Path) -> None:
    library, name = case(tmp_path, KINDS="HEADRACE_IMAGE|HEADRACE_MASKS", DTYPES=0)
    step = getattr(hr.load_plugin(library), name)()
    planes = np.random.default_rng(1).integers(0, 256, (2, 3, 4), dtype=np.uint8)
    record = {"image": scene()["image"], "masks": planes}
    batch = next(iter(hr.Loader(hr.open([record], kinds={"masks": "masks"}), [step], batch_size=1)))
    np.testing.assert_array_equal(batch.masks[0], 255 - planes)
    np.testing.assert_array_equal(batch.image[0], 255 - record["image"])


def test_the_remaining_area_of_cropped_boxes_is_recorded(transpose: Any) -> None:
    """Of 10 x 2 pixels, 4 x 2 of the first box remain after the crop, and all of the second."""
    record = {
        "image": np.zeros((3, 20, 20), np.uint8),
        "boxes": np.float32([[2, 9, 12, 11], [9, 9, 11, 11]]),
    }
    source = hr.open([record], kinds={"boxes": "boxes:xyxy"})
    for least, rows in [(0.3, [[1, 0, 3, 4], [1, 1, 3, 3]]), (0.5, [[1, 1, 3, 3]])]:
        steps = [
            T.CenterCrop((4, 4)),
            transpose.RandomTranspose(1.0),
            T.SanitizeBoundingBoxes(min_visibility=least),
        ]
        batch = next(iter(hr.Loader(source, steps, batch_size=1, ragged="list")))
        np.testing.assert_array_equal(batch.boxes[0], rows)


def test_a_plugin_that_moves_images_gets_their_label(tmp_path: Path) -> None:
    """A mirrored "left" is a "right"."""
    library, name = case(
        tmp_path, RUN="mirror", FLAGS="HEADRACE_MOVES", KINDS="HEADRACE_IMAGE|HEADRACE_LABEL"
    )
    mirror = getattr(hr.load_plugin(library), name)
    record = {"label": 0, "image": scene()["image"], "other": scene()["image"][:, :5, :4].copy()}
    source = hr.open([record], kinds={"other": "image"})
    batch = next(iter(hr.Loader(source, [mirror()], batch_size=1)))
    assert batch.label.tolist() == [1]
    np.testing.assert_array_equal(batch.image[0], record["image"][:, :, ::-1])
    np.testing.assert_array_equal(batch.other[0], record["other"][:, :, ::-1])
    alone = hr.Loader(source, [mirror()], batch_size=1, fields=("label",))
    assert next(iter(alone)).label.tolist() == [1]
    assert "label" in alone.plan()
    for steps in ({"label": [mirror()]}, [mirror(fields="label")]):
        with pytest.raises(hr.ConfigError, match=r"HR0113.*no image here that .*label.* follow"):
            hr.Loader(source, steps, batch_size=1)


def test_planes_follow_the_images_in_any_field_order(tmp_path: Path) -> None:
    library, name = case(
        tmp_path,
        FLAGS="HEADRACE_MOVES",
        KINDS="HEADRACE_IMAGE|HEADRACE_LABEL|HEADRACE_MASKS",
        DTYPES=0,
    )
    step = getattr(hr.load_plugin(library), name)()
    record = {"label": 3, "masks": scene()["masks"], "image": scene()["image"]}
    source = hr.open([record], kinds={"masks": "masks"})
    batch = next(iter(hr.Loader(source, [step], batch_size=1)))
    assert batch.label.tolist() == [~3], "255 minus each byte"
    np.testing.assert_array_equal(batch.masks[0], 255 - record["masks"])


def test_the_canvas_of_boxes_is_the_image_size_or_unknown(tmp_path: Path) -> None:
    """The batch's size, and -1 if the images differ in size."""
    library, name = case(
        tmp_path, RUN="say_canvas", KINDS="HEADRACE_IMAGE|HEADRACE_BOXES", DTYPES=0
    )
    step = getattr(hr.load_plugin(library), name)()
    record = {"image": scene()["image"], "boxes": scene()["boxes"]}

    def canvas(record: dict[str, Any], *fields: str) -> list[float]:
        kinds = {"boxes": "boxes:xyxy", **({"other": "image"} if "other" in record else {})}
        source = hr.open([record], kinds=kinds)
        loader = hr.Loader(source, [step], batch_size=1, fields=fields or None)
        row: list[float] = next(iter(loader)).boxes[0, 0].tolist()
        return row

    assert canvas(record) == canvas(record, "boxes") == [6, 9, 6, 9]
    two = {**record, "other": scene()["image"][:, :5, :4].copy()}
    assert canvas(two) == canvas(two, "boxes") == canvas(two, "boxes", "image") == [-1] * 4
    assert canvas({"boxes": record["boxes"]}) == [-1] * 4


def test_boxes_without_a_format_are_not_moved(transpose: Any) -> None:
    source = [{"image": scene()["image"], "boxes": scene()["boxes"]}]
    with pytest.raises(hr.ConfigError, match="HR0180"):
        hr.Loader(source, [transpose.RandomTranspose(1.0)], batch_size=1)


def test_a_plugin_that_changes_values_leaves_other_fields_unchanged(vignette: Any) -> None:
    batch = next(iter(hr.Loader(scenes(), [vignette.Vignette()], batch_size=1)))
    for field in ("mask", "masks", "boxes", "keypoints"):
        np.testing.assert_array_equal(getattr(batch, field)[0], scene()[field])
    np.testing.assert_array_equal(batch.image[0], darkened(scene()["image"], 0.5))


def test_an_unsupported_kind_is_refused(vignette: Any) -> None:
    with pytest.raises(hr.ConfigError, match=r'HR0510.*"mask" is a mask field'):
        hr.Loader(scenes(), [vignette.Vignette(fields="mask")], batch_size=1)
    sixteen = [{"image": np.zeros((3, 4, 4), np.uint16)}]
    with pytest.raises(hr.ConfigError, match="is uint16 here, but it supports uint8, float32"):
        hr.Loader(sixteen, [vignette.Vignette()], batch_size=1)
