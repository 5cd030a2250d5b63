# SPDX-License-Identifier: Apache-2.0
"""Boxes, masks and points are drawn over an image; the image is the one that training gets."""

from __future__ import annotations

import io
import sys
from typing import Any

import numpy as np
import pytest
from headrace.drawing.drawn import LETTERS, Overlay, draw, written
from headrace.drawing.strip import frames_of
from PIL import Image

import headrace as hr
from headrace import transforms as T

GRAY = 128
ORANGE, BLUE = (213, 94, 0), (0, 114, 178)  # of the first two rows


def records(count: int = 2, **fields: Any) -> list[dict[str, Any]]:
    image = np.full((3, 240, 320), GRAY, np.uint8)
    return [{"image": image, **fields} for _ in range(count)]


def shown(kinds: dict[str, str], steps: Any = (), **fields: Any) -> Any:
    source = hr.open(records(**fields), kinds=kinds)
    with hr.Loader(source, steps, batch_size=2, ragged="list") as loader:
        return loader.show(1).pixels


def is_color(pixels: Any, color: tuple[int, int, int]) -> Any:
    return (pixels == np.array(color)[:, None, None]).all(0)


@pytest.mark.parametrize("shape", [(0, 2), (0, 17, 3), (0, 3), (2, 0, 2)])
def test_a_record_without_keypoints_or_boxes_is_shown_unchanged(shape: tuple[int, ...]) -> None:
    fields = {"points": np.zeros(shape, np.float32), "boxes": np.zeros((0, 4), np.float32)}
    source = hr.open(
        records(**fields),
        kinds={"points": "keypoints", "boxes": "boxes:xyxy"},
        shapes={"points": (-1, *shape[1:]), "boxes": (-1, 4)},
    )
    with hr.Loader(source, [T.Resize((20, 30))], batch_size=2, ragged="list") as loader:
        assert (loader.show(1).pixels[:, :20, :30] == GRAY).all()
        assert len(loader.trace(0).images.pixels) == 3


@pytest.mark.parametrize(
    ("box_format", "box"),
    [
        ("xyxy", (40, 60, 140, 200)),
        ("xywh", (40, 60, 100, 140)),
        ("cxcywh", (90, 130, 100, 140)),
        ("cxcywh_normalized", (90 / 320, 130 / 240, 100 / 320, 140 / 240)),
        ("xywhr", (40, 200, 140, 100, 90)),
        ("cxcywhr", (90, 130, 140, 100, 90)),
        ("xyxyxyxy", (40, 200, 40, 60, 140, 60, 140, 200)),
        (
            "xyxyxyxy_normalized",
            (40 / 320, 200 / 240, 40 / 320, 60 / 240, 140 / 320, 60 / 240, 140 / 320, 200 / 240),
        ),
    ],
)
def test_a_box_is_an_outline_at_its_edges(box_format: str, box: tuple[int, ...]) -> None:
    pixels = shown({"boxes": f"boxes:{box_format}"}, boxes=np.float32([box]))
    ys, xs = np.nonzero(is_color(pixels, ORANGE))
    assert abs(xs.min() - 40) <= 1 and abs(xs.max() - 140) <= 1
    assert abs(ys.min() - 60) <= 1 and abs(ys.max() - 200) <= 1
    assert (pixels[:, 80:180, 60:120] == GRAY).all(), "nothing inside"


def test_boxes_are_drawn_at_their_transformed_position() -> None:
    boxes = np.float32([[40, 60, 140, 200]])
    pixels = shown({"boxes": "boxes:xyxy"}, [T.RandomHorizontalFlip(1)], boxes=boxes)
    _, xs = np.nonzero(is_color(pixels, ORANGE))
    assert abs(xs.min() - 180) <= 1 and abs(xs.max() - 280) <= 1


def test_class_names_are_drawn_at_the_boxes_in_their_colors() -> None:
    boxes = np.float32([[40, 60, 140, 200], [180, 60, 300, 200]])
    plain = shown({"boxes": "boxes:xyxy"}, boxes=boxes)
    named = shown({"boxes": "boxes:xyxy"}, boxes=boxes, labels=np.int64([7, 12]))
    changed = (plain != named).any(0)
    ys, xs = np.nonzero(changed)
    assert ys.max() < 62 and xs.min() >= 39, "above the boxes alone"
    assert is_color(named, BLUE)[50:60, 180:200].sum() > is_color(plain, BLUE)[50:60, 180:200].sum()


def test_class_names_come_from_the_source(tmp_path: Any) -> None:
    from test_ragged import coco

    path = coco(tmp_path)
    steps = [T.Resize((240, 320))]
    with hr.Loader(hr.coco(path), steps, batch_size=3, ragged="pad") as loader:
        pixels = loader.show(1).pixels
    letter = written("b", LETTERS, 99)
    assert letter is not None
    height, width = letter.shape
    dark = ~is_color(pixels, (0, 0, 0)) & ~is_color(pixels, BLUE)
    found = [
        (y, x)
        for y in range(dark.shape[0] - height)
        for x in range(dark.shape[1] - width)
        if dark[y : y + height, x : x + width][letter > 64].all()
        and not dark[y : y + height, x : x + width][letter == 0].any()
    ]
    assert found, "the second box is a b"


def test_instance_masks_have_the_color_of_their_row_and_class_ids_leave_background() -> None:
    masks = np.zeros((2, 240, 320), np.uint8)
    masks[0, :100, :100] = masks[1, 150:, 200:] = 1
    pixels = shown({"masks": "masks"}, masks=masks)
    for color, place in ((ORANGE, np.s_[:, :100, :100]), (BLUE, np.s_[:, 150:, 200:])):
        expected = (GRAY * 0.55 + np.array(color) * 0.45).astype(np.uint8)
        assert (pixels[place] == expected[:, None, None]).all()
    assert (pixels[:, 100:150] == GRAY).all()
    ids = np.zeros((1, 240, 320), np.uint8)
    ids[0, :50] = 255
    ids[0, 200:] = 3
    pixels = shown({"mask": "mask"}, mask=ids)
    assert (pixels[:, :200] == GRAY).all() and (pixels[:, 200:] != GRAY).any(0).all()


def test_points_are_dots_and_unlabeled_ones_are_not_drawn() -> None:
    points = np.float32([[[50, 60, 2], [200, 100, 0]], [[300, 220, 1], [np.nan, 5, 1]]])
    pixels = shown({"points": "keypoints"}, points=points)
    assert is_color(pixels, ORANGE)[60, 50] and is_color(pixels, BLUE)[220, 300]
    assert (pixels[:, 90:110, 190:210] == GRAY).all()


def test_a_normalization_is_undone_and_drawing_can_be_disabled() -> None:
    source = hr.open(records(boxes=np.float32([[1, 2, 3, 4]])), kinds={"boxes": "boxes:xyxy"})
    steps = hr.presets.normalized()
    with hr.Loader(source, steps, batch_size=2) as loader:
        assert np.abs(loader.show(1, draw=False).pixels.astype(int) - GRAY).max() <= 1
        assert is_color(loader.show(1).pixels, ORANGE).any()


def test_a_trace_draws_each_stage_at_one_scale() -> None:
    boxes = np.float32([[4, 6, 14, 20]])
    records = [{"image": np.full((3, 24, 32), GRAY, np.uint8), "boxes": boxes}] * 2
    source = hr.open(records, kinds={"boxes": "boxes:xyxy"})
    steps = [T.RandomHorizontalFlip(1), T.CenterCrop((12, 16))]
    with hr.Loader(source, steps, batch_size=2) as loader:
        stages = loader.trace(0)
    assert [stage.image.shape for stage in stages] == [(3, 192, 256)] * 2 + [(3, 96, 128)]
    for stage, left in zip(stages[:2], (4, 18), strict=True):
        _, xs = np.nonzero(is_color(stage.image, ORANGE))
        assert abs(xs.min() - 8 * left) <= 2
    np.testing.assert_array_equal(stages[0].values["image"], records[0]["image"])


def test_small_images_with_drawings_are_enlarged_by_an_integer() -> None:
    image = np.arange(3 * 16 * 20, dtype=np.uint8).reshape(3, 16, 20)
    drawn = draw(image, Overlay(points=[np.zeros((0, 1, 2))]))
    assert drawn.shape == (3, 128, 160)
    np.testing.assert_array_equal(drawn[:, ::8, ::8], image)
    assert draw(image, Overlay()) is image


def test_padded_images_are_shown_in_their_own_size() -> None:
    pictures = [{"image": np.full((3, h, w), GRAY, np.uint8)} for h, w in ((8, 4), (6, 9))]
    with hr.Loader(pictures, batch_size=2, ragged="pad") as loader:
        assert loader.show(1).pixels.shape == (3, 8, 4)
        assert (loader.show(2).pixels[:, 1:7, 13:22] == GRAY).all()


@pytest.mark.parametrize(
    "box",
    [
        (np.nan, 0, 5, 5),
        (-1e9, -1e9, 1e9, 1e9),
        (30, 30, 10, 10),
        (0, 0, 320, 240),
        (0, 0, 0, 0),
        (np.inf, 1, 2, 3),
        (1e30, 1e30, -1e30, 1),
    ],
    ids=str,
)
def test_invalid_boxes_are_drawn_or_skipped_and_never_fail(box: tuple[float, ...]) -> None:
    pixels = shown({"boxes": "boxes:xyxy"}, boxes=np.float32([box]), labels=np.int64([2**40]))
    assert pixels.shape == (3, 240, 320)
    if box == (0, 0, 320, 240):
        edge = is_color(pixels, ORANGE)
        assert edge[-1].all() and edge[:, -1].all() and edge[20:, 0].all()


def test_without_usable_rows_the_image_is_shown_alone() -> None:
    none = shown({"boxes": "boxes:xyxy"}, boxes=np.zeros((0, 4), np.float32))
    unsaid = shown({"boxes": "boxes"}, boxes=np.float32([[1, 2, 3, 4]]))
    other = shown({"masks": "masks"}, masks=np.ones((1, 7, 9), np.uint8))
    for pixels in (none, unsaid, other):
        assert (pixels == GRAY).all()


def test_long_names_are_shortened_and_omitted_without_pillow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    boxes = [np.float32([[(10, 40), (30, 40), (30, 60), (10, 60)]])]
    image = np.full((3, 64, 48), GRAY, np.uint8)
    plain = draw(image, Overlay(boxes=boxes), 1)
    named = draw(image, Overlay(boxes=boxes, names=["a name that is far too long"]), 1)
    assert named.shape == plain.shape and (named != plain).any()
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.warns(hr.Warning, match="pip install pillow"):
        assert (draw(image, Overlay(boxes=boxes, names=["a"]), 1) == plain).all()


def test_the_png_has_the_pixels() -> None:
    source = hr.open(records(boxes=np.float32([[9, 9, 99, 99]])), kinds={"boxes": "boxes:xywh"})
    with hr.Loader(source, batch_size=2) as loader:
        grid = loader.show(2)
    picture = np.asarray(Image.open(io.BytesIO(grid._repr_png_())))
    np.testing.assert_array_equal(picture.transpose(2, 0, 1), grid.pixels)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("frames", [1, 3, 4])
def test_frames_and_channels_are_distinguished_in_any_axis_order(
    frames: int, channels: int
) -> None:
    clip = np.arange(frames * channels * 30, dtype=np.uint8).reshape(frames, channels, 5, 6)
    np.testing.assert_array_equal(frames_of(clip), clip)
    if channels > 1:
        np.testing.assert_array_equal(frames_of(clip.swapaxes(0, 1)), clip)
