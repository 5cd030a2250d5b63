# SPDX-License-Identifier: Apache-2.0
"""Boxes, keypoints and instance masks follow their image, number for number as torchvision v2 moves
them, for every form of pipeline and every source."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import headrace as hr
from headrace import transforms as T

HEIGHT, WIDTH = 37, 52
RECORDS, ROWS = 3, 6
LIST: dict[str, Any] = {"batch_size": 2, "ragged": "list"}
FORMATS = ("xyxy", "xywh", "cxcywh")


def library() -> Any:
    """torchvision's (functionals, tv_tensors, torch)."""
    functional = pytest.importorskip("torchvision.transforms.v2.functional", exc_type=Exception)
    import torch
    from torchvision import tv_tensors

    return functional, tv_tensors, torch


def coordinates() -> np.ndarray[Any, np.dtype[np.uint8]]:
    """An image whose pixels encode their original position, and that they are not border."""
    rows, columns = np.indices((HEIGHT, WIDTH), np.uint8)
    return np.stack([columns, rows, np.full_like(rows, 255)])


def random_boxes(rng: np.random.Generator, form: str, dtype: str) -> np.ndarray[Any, Any]:
    """Some across the edge, some without area."""
    corners = rng.uniform(-0.2, 1.2, (ROWS, 2, 2)) * (WIDTH, HEIGHT)
    low, high = corners.min(1), corners.max(1)
    high[-1] = low[-1]
    if form == "xyxy":
        return np.concatenate([low, high], 1).astype(dtype)
    first = low if form == "xywh" else (low + high) / 2
    return np.concatenate([first, high - low], 1).astype(dtype)


def random_pipeline(choose: random.Random) -> list[Any]:
    """Resizing only ever makes images smaller, so that each step's draw is visible in the
    pixels."""
    steps: list[Any] = []
    for _ in range(choose.randint(1, 5)):
        step = choose.choice(
            [
                T.RandomHorizontalFlip(),
                T.RandomVerticalFlip(0.7),
                T.RandomCrop((20, 24), padding=(2, 0, 5, 3), pad_if_needed=True),
                T.RandomCrop((choose.randint(9, 30), choose.randint(9, 30)), pad_if_needed=True),
                T.CenterCrop((choose.choice((16, 30, 60)), choose.choice((20, 33, 58)))),
                T.Pad([choose.randint(0, 6) for _ in range(4)]),
                T.Resize((choose.randint(12, 16), choose.randint(11, 18)), interpolation="nearest"),
                T.RandomResizedCrop(13, scale=(1, 1), ratio=(1, 1), interpolation="nearest"),
            ]
        )
        steps.append(T.RandomApply([step], p=0.6) if choose.random() < 0.3 else step)
    return steps


def window_of(before: Any, after: Any) -> tuple[int, int] | None:
    """Where `after` was cropped from; None if several positions are possible."""
    height, width = after.shape[1:]
    places = [
        (top, left)
        for top in range(before.shape[1] - height + 1)
        for left in range(before.shape[2] - width + 1)
        if np.array_equal(before[:, top : top + height, left : left + width], after)
    ]
    return places[0] if len(places) == 1 else None


def resized(rows: Any, height: int, width: int) -> Any:
    """Masks as resized by Pillow with "nearest", whose ties differ from torch's."""
    functional, tv_tensors, torch = library()
    if not isinstance(rows, tv_tensors.Mask):
        return functional.resize(rows, [height, width])
    size, filter = (width, height), Image.Resampling.NEAREST
    planes = [np.asarray(Image.fromarray(plane).resize(size, filter)) for plane in rows.numpy()]
    return tv_tensors.Mask(torch.from_numpy(np.stack(planes)))


def moved_by_torchvision(step: Any, before: Any, after: Any, rows: Any) -> Any:
    """The rows (tv_tensors) after the step, whose draw is inferred from the images."""
    functional, *_ = library()
    if step.name == "RandomApply":
        (inner,) = step.arguments["transforms"]
        untouched = before.shape == after.shape and np.array_equal(before, after)
        return rows if untouched else moved_by_torchvision(inner, before, after, rows)
    height, width = before.shape[1:]
    match step.name:
        case "RandomHorizontalFlip":
            return rows if np.array_equal(before, after) else functional.horizontal_flip(rows)
        case "RandomVerticalFlip":
            return rows if np.array_equal(before, after) else functional.vertical_flip(rows)
        case "Pad":
            return functional.pad(rows, step.arguments["padding"])
        case "Resize":
            return resized(rows, *after.shape[1:])
        case "RandomResizedCrop":
            side = min(height, width)
            place = ((height - side) // 2, (width - side) // 2, side, side)
            return resized(functional.crop(rows, *place), *after.shape[1:])
        case "CenterCrop":  # for a small picture: padded and cropped as F.center_crop does with
            # pictures
            high, wide = max(0, after.shape[1] - height), max(0, after.shape[2] - width)
            if after.shape[1] >= height and after.shape[2] >= width and high % 2 == wide % 2 == 0:
                return functional.center_crop(rows, list(after.shape[1:]))
            if high or wide:
                borders = [wide // 2, high // 2, (wide + 1) // 2, (high + 1) // 2]
                rows = functional.pad(rows, borders)
                if after.shape[1] >= height and after.shape[2] >= width:
                    return rows
            return functional.center_crop(rows, list(after.shape[1:]))
    assert step.name == "RandomCrop"
    left, top, right, bottom = step.arguments.get("padding", (0, 0, 0, 0))
    high = max(0, after.shape[1] - height - top - bottom)
    wide = max(0, after.shape[2] - width - left - right)
    borders = [left + wide, top + high, right + wide, bottom + high]
    if any(borders):
        rows = functional.pad(rows, borders)
        left, top, right, bottom = borders
        before = np.pad(before, ((0, 0), (top, bottom), (left, right)))
    place = window_of(before, after)
    if place is None:
        pytest.skip("the window shows borders alone")
    return rows if before.shape == after.shape else functional.crop(rows, *place, *after.shape[1:])


@pytest.mark.parametrize("seed", range(40))
def test_random_pipelines_move_rows_as_torchvision_does(seed: int) -> None:
    _, tv_tensors, torch = library()
    rng, choose = np.random.default_rng(seed), random.Random(seed)
    form, dtype = choose.choice(FORMATS), choose.choice(["float32", "float64", "int64", "int32"])
    points = rng.uniform(-5, 60, (RECORDS, ROWS, 3)).astype(choose.choice(["float32", "float64"]))
    planes = rng.integers(0, 2, (RECORDS, ROWS, HEIGHT, WIDTH)).astype("uint8")
    data = [
        {
            "boxes": random_boxes(rng, form, dtype),
            "image": coordinates(),
            "keypoints": points[i],
            "masks": planes[i],
            "label": i,
        }
        for i in range(RECORDS)
    ]
    steps = random_pipeline(choose)
    source = hr.open(data, kinds={"boxes": f"boxes:{form}", "masks": "masks"})
    assert source.schema[0].box_format == form
    loader = hr.Loader(source, steps, seed=seed, **LIST)
    for position in range(RECORDS):
        stages = [stage.values for stage in loader.trace(position)]
        canvas = (HEIGHT, WIDTH)
        boxes = tv_tensors.BoundingBoxes(
            torch.from_numpy(stages[0]["boxes"]), format=form.upper(), canvas_size=canvas
        )
        points = tv_tensors.KeyPoints(
            torch.from_numpy(stages[0]["keypoints"][:, :2].copy()), canvas_size=canvas
        )
        masks = tv_tensors.Mask(torch.from_numpy(stages[0]["masks"]))
        for step, before, after in zip(steps, stages, stages[1:], strict=False):
            move = (step, before["image"], after["image"])
            boxes, points, masks = (moved_by_torchvision(*move, r) for r in (boxes, points, masks))
            context = f"{step} of {steps}"
            np.testing.assert_array_equal(after["boxes"], boxes.numpy(), context)
            np.testing.assert_array_equal(after["keypoints"][:, :2], points.numpy(), context)
            np.testing.assert_array_equal(after["keypoints"][:, 2], before["keypoints"][:, 2])
            np.testing.assert_array_equal(after["masks"], masks.numpy(), context)
            assert after["boxes"].dtype == dtype and tuple(boxes.canvas_size) == move[2].shape[1:]
    assert_same(source, steps, seed)


def assert_same(source: Any, steps: list[Any], seed: int) -> None:
    """The batches of a loader, on one thread, on many, and with resident records."""
    runs = [
        list(hr.Loader(source, steps, seed=seed, **LIST, **more))
        for more in ({}, {"threads": 1}, {"resident": True})
    ]
    for first, *others in zip(*runs, strict=True):
        for other in others:
            for name in ("image", "boxes", "keypoints", "masks"):
                for one, two in zip(getattr(first, name), getattr(other, name), strict=True):
                    np.testing.assert_array_equal(one, two, name)


@pytest.fixture
def coco(tmp_path: Path) -> Path:
    """Four images of differing sizes, with none to three white rectangles each."""
    rng = np.random.default_rng(3)
    images, annotations = [], []
    for number in range(4):
        height, width = 24 + 7 * number, 40 - 3 * number
        pixels = np.zeros((height, width, 3), np.uint8)
        for row in range(number):
            w, h = int(rng.integers(3, 9)), int(rng.integers(3, 9))
            x, y = 12 * row, int(rng.integers(0, height - h))
            pixels[y : y + h, x : x + w] = 100 + row
            annotation = {"id": 10 * number + row, "image_id": number, "category_id": 1}
            outline = [x, y, x + w, y, x + w, y + h, x, y + h]
            annotations.append(annotation | {"bbox": [x, y, w, h], "segmentation": [outline]})
        Image.fromarray(pixels).save(tmp_path / f"{number}.png")
        images.append(
            {"id": number, "file_name": f"{number}.png", "width": width, "height": height}
        )
    path = tmp_path / "instances.json"
    categories = [{"id": 1, "name": "box"}]
    path.write_text(
        json.dumps({"images": images, "annotations": annotations, "categories": categories})
    )
    return path


STEPS = [T.RandomCrop(20, pad_if_needed=True), T.RandomHorizontalFlip(), T.Pad(2)]


def corners(boxes: Any, form: str) -> Any:
    x, y, right, bottom = np.asarray(boxes).reshape(-1, 4).T
    if form == "cxcywh":
        x, y = x - right / 2, y - bottom / 2
    if form != "xyxy":
        right, bottom = x + right, y + bottom
    return np.stack([x, y, right, bottom], 1)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("way", ["streamed", "resident", "packed", "packed resident"])
def test_boxes_are_where_the_pixels_of_their_objects_are(
    coco: Path, form: str, way: str, tmp_path: Path
) -> None:
    source = hr.coco(str(coco), boxes=form, masks=True)
    assert [f.row_group for f in source.schema] == [0, 1, 1, 1, 1, 0, 1]
    if "packed" in way:
        hr.pack(source, str(tmp_path / "packed"))
        source = hr.open(str(tmp_path / "packed"))
        assert source.schema[1].box_format == form and source.schema[1].row_group == 1
    compared = 0
    for epoch in range(6):
        loader = hr.Loader(source, STEPS, seed=5 + epoch, resident="resident" in way, **LIST)
        for batch in loader:
            for image, boxes, masks in zip(batch.image, batch.boxes, batch.masks, strict=True):
                assert len(boxes) == len(masks)
                for row, (box, mask) in enumerate(
                    zip(corners(boxes, form), np.asarray(masks), strict=True)
                ):
                    shown = np.asarray(image)[0] == 100 + row
                    np.testing.assert_array_equal(mask == 1, shown)
                    if not shown.any():
                        assert (box[2] - box[0]) * (box[3] - box[1]) == 0
                        continue
                    ys, xs = np.nonzero(shown)
                    np.testing.assert_array_equal(
                        box, [xs.min(), ys.min(), xs.max() + 1, ys.max() + 1]
                    )
                    compared += 1
    assert compared > 10


def test_boxes_alone_move_as_they_do_with_their_image(coco: Path) -> None:
    both = list(hr.Loader(str(coco), STEPS, seed=1, fields=("image", "boxes"), **LIST))
    alone = list(hr.Loader(str(coco), STEPS, seed=1, fields=("boxes",), **LIST))
    for one, two in zip(both, alone, strict=True):
        for with_picture, without in zip(one.boxes, two.boxes, strict=True):
            np.testing.assert_array_equal(with_picture, without)


def test_fields_lets_an_image_move_alone_in_later_steps_too(coco: Path) -> None:
    word = [T.RandomHorizontalFlip(1, fields="image")]
    for stored, moved in zip(
        hr.Loader(str(coco), [], **LIST), hr.Loader(str(coco), word, **LIST), strict=True
    ):
        for before, after in zip(stored.boxes, moved.boxes, strict=True):
            np.testing.assert_array_equal(before, after)
    with pytest.raises(hr.ConfigError, match=r"HR0180.*would leave .boxes[\s\S]*moved without it"):
        hr.Loader(str(coco), [*word, T.RandomVerticalFlip()], **LIST)
    said = T.RandomVerticalFlip(1, fields=("image", "boxes"))
    hr.Loader(str(coco), [*word, said], **LIST).close()


def test_boxes_without_a_declared_format_are_refused_if_the_image_moves(coco: Path) -> None:
    data = [{"image": coordinates(), "boxes": np.zeros((2, 4), np.float32)}] * 4
    with pytest.raises(hr.ConfigError, match=r'HR0180[\s\S]*kinds={"boxes": "boxes:xyxy"}'):
        hr.Loader(data, [T.RandomHorizontalFlip()], batch_size=2)
    with pytest.raises(hr.ConfigError, match=r"HR0511[\s\S]*boxes:xyxy"):
        hr.Loader(data, [T.CenterCrop(8, fields=("image", "boxes"))], batch_size=2)
    with pytest.raises(hr.ConfigError, match=r"HR0181.*boxes:xyz"):
        hr.open(data, kinds={"boxes": "boxes:xyz"})
    with pytest.raises(hr.ConfigError, match=r"HR0181"):
        hr.open([{"image": coordinates(), "ids": np.zeros(3)}], kinds={"ids": "boxes:xywh"})
    with pytest.raises(hr.ConfigError, match=r"HR0113.*no image here that boxes"):
        hr.Loader(str(coco), {"boxes": [T.RandomHorizontalFlip()]}, **LIST)


def test_a_fork_shares_the_geometry_of_its_record_or_is_refused() -> None:
    data = [{"image": coordinates(), "boxes": np.float32([[1, 2, 11, 7]])} for _ in range(8)]
    source = hr.open(data, kinds={"boxes": "boxes:xyxy"})
    apart = T.Fork("image", one=[T.RandomHorizontalFlip()], two=[])
    with pytest.raises(hr.ConfigError, match=r"HR0180.*would leave .boxes"):
        hr.Loader(source, [apart], batch_size=8)
    shared = [T.Fork("image", one=[], two=[]), T.RandomHorizontalFlip()]
    (batch,) = hr.Loader(source, shared, batch_size=8)
    np.testing.assert_array_equal(batch.one, batch.two)
    mirrored = batch.one[:, 0, 0, 0] > 0
    assert 0 < mirrored.sum() < 8
    wanted = np.where(mirrored[:, None], [WIDTH - 11, 2, WIDTH - 1, 7], [1, 2, 11, 7])
    np.testing.assert_array_equal(batch.boxes[:, 0], wanted)


def test_boxes_with_images_of_two_sizes_are_an_error_of_the_record() -> None:
    data = [
        {
            "left": np.zeros((3, 8, 8), np.uint8),
            "right": np.zeros((3, 8, 8 + i), np.uint8),
            "boxes": np.zeros((1, 4), np.float32),
        }
        for i in range(2)
    ]
    kinds = {"left": "image", "right": "image", "boxes": "boxes:xyxy"}
    source = hr.open(data, kinds=kinds, shapes={"right": (3, 8, -1)})
    steps = [T.Resize((6, 6))]
    with pytest.raises(hr.DataError, match=r"HR0501.*8 x 8.*8 x 9"):
        list(hr.Loader(source, steps, batch_size=1))
    loader = hr.Loader(source, steps, batch_size=1, on_error="skip")
    assert sum(len(batch.boxes) for batch in loader) == 1 and len(loader.quarantine) == 1


def test_sets_of_boxes_of_different_formats_are_not_merged(coco: Path) -> None:
    with pytest.raises(hr.ConfigError, match=r"HR0\d+.*is in xywh, of source 0 in xyxy"):
        hr.concat(hr.coco(str(coco)), hr.coco(str(coco), boxes="xywh"))


def test_objects_of_joined_sets_stay_separate(coco: Path) -> None:
    left, right = hr.coco(str(coco)), hr.coco(str(coco), boxes="xywh")
    names = {f.name: f"other_{f.name}" for f in right.schema if f.name != "image_id"}
    joined = hr.join(left, right, on="image_id", rename=names)
    of = {field.name: (field.row_group, field.box_format) for field in joined.schema}
    assert of["boxes"] == (1, "xyxy") and of["other_boxes"] == (2, "xywh")
    assert of["areas"][0] == 1 and of["other_labels"][0] == 2


def test_a_python_step_between_geometric_ones_changes_nothing(coco: Path) -> None:
    def right_half(image: Any, boxes: Any) -> dict[str, Any]:
        half = image.shape[2] // 2
        moved = np.clip(boxes - [half, 0, half, 0], 0, None).astype(np.float32)
        return {"image": image[:, :, half:], "boxes": moved}

    fields = ("image", "boxes")
    flip, resize = T.RandomHorizontalFlip(1), T.Resize((30, 20))
    plain = hr.Loader(str(coco), [flip, resize], fields=fields, **LIST)
    half = T.Python(right_half, returns={"image": ("uint8", (3, 30, 10))})
    cut = hr.Loader(str(coco), [flip, resize, half, flip], fields=fields, **LIST)
    for one, two in zip(plain, cut, strict=True):
        for before, after in zip(one.boxes, two.boxes, strict=True):
            x = np.clip(np.asarray(before)[:, [0, 2]] - 10, 0, None)
            np.testing.assert_array_equal(np.asarray(after)[:, [0, 2]], 10 - x[:, ::-1])


def test_planes_that_grow_beyond_the_memory_limit_are_a_bad_record(tmp_path: Path) -> None:
    """They are never materialized: 400 of 32 x 32 would be 400 MiB after the step."""
    images, annotations = [], []
    for number, count in enumerate((3, 400, 2)):
        Image.new("RGB", (32, 32)).save(tmp_path / f"{number}.png")
        images.append({"id": number, "file_name": f"{number}.png", "width": 32, "height": 32})
        for _ in range(count):
            corners = {"bbox": [1, 1, 9, 9], "segmentation": [[1, 1, 9, 1, 9, 9, 1, 9]]}
            common = {"image_id": number, "category_id": 1, "area": 64, "iscrowd": 0}
            annotations.append({"id": len(annotations), **common, **corners})
    instances = {"images": images, "annotations": annotations, "categories": [{"id": 1}]}
    instances["categories"][0]["name"] = "square"
    (tmp_path / "instances.json").write_text(json.dumps(instances))
    source = hr.coco(tmp_path / "instances.json", masks=True)
    keywords = {**LIST, "memory_limit": "256 MiB", "on_error": "skip", "error_budget": 1}
    with hr.Loader(source, [T.Resize((1024, 1024))], **keywords) as loader:
        planes = [len(masks) for batch in loader for masks in batch.masks]
        assert planes == [3, 2]
        assert [bad["code"] for bad in loader.quarantine] == ["HR0124"]
