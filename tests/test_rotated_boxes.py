# SPDX-License-Identifier: Apache-2.0
"""Rotated boxes follow their image as torchvision v2 moves them, in each of its formats and
clamping modes."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace import transforms as T

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")
from test_warps import corners_of, displacement_of, perspective_of  # noqa: E402
from torchvision import tv_tensors  # noqa: E402
from torchvision.transforms import v2  # noqa: E402
from torchvision.transforms.v2 import functional as F  # noqa: E402

torch.set_num_threads(1)  # its threads spin if there is little work
Array = np.ndarray[Any, Any]
FORMATS = {"xywhr": 5, "cxcywhr": 5, "xyxyxyxy": 8}
HEIGHT, WIDTH, ROWS = 61, 84, 24


def random_boxes(rng: np.random.Generator, form: str, dtype: str) -> Array:
    """Some across the edge, some beyond it, some upright."""
    centers = rng.uniform(-0.2, 1.2, (ROWS, 2)) * (WIDTH, HEIGHT)
    extents = rng.uniform(1, 40, (ROWS, 2))
    degrees = rng.uniform(-360, 360, (ROWS, 1))
    degrees[:4, 0] = rng.choice([0, 90, 180, -90, 45, 30], 4)
    boxes = torch.from_numpy(np.concatenate([centers, extents, degrees], 1))
    return converted(boxes, "cxcywhr", form).numpy().astype(dtype)


def converted(boxes: Any, form: str, to: str) -> Any:
    return F.convert_bounding_box_format(boxes, form.upper(), to.upper())


def random_step(choose: random.Random, form: str) -> tuple[Any, Any]:
    """One of our operators, and torchvision's functions for boxes and images."""
    angle = choose.choice([choose.uniform(-200, 200), 90.0, 180.0, -90.0])
    size = [choose.randint(30, 90), choose.randint(30, 90)]
    borders = [choose.randint(0, 20) for _ in range(4)]
    scale, shear = choose.uniform(0.5, 1.5), [choose.uniform(-20, 20), choose.uniform(-20, 20)]
    expand = choose.random() < 0.3
    mode = choose.choice(["soft", "hard"])
    affine: dict[str, Any] = {
        "scale": (scale, scale),
        "shear": (shear[0], shear[0], shear[1], shear[1]),
    }
    return choose.choice(
        [
            (T.RandomHorizontalFlip(1), F.horizontal_flip),
            (T.RandomVerticalFlip(1), F.vertical_flip),
            (T.CenterCrop((30, 24)), lambda x: F.center_crop(x, [30, 24])),
            (T.Pad(borders), lambda x: F.pad(x, borders)),
            (T.Resize(size, interpolation="nearest"), lambda x: F.resize(x, size, interpolation=0)),
            (T.RandomRotation((angle, angle), expand), lambda x: turned(x, angle, expand)),
            (
                T.RandomAffine((angle, angle), **affine),
                lambda x: F.affine(x, angle, [0, 0], scale, shear),
            ),
            (T.ClampBoundingBoxes(mode), lambda x: clamped(x, mode)),
            (T.ConvertBoundingBoxFormat(form), v2.ConvertBoundingBoxFormat(form.upper())),
        ]
    )


def turned(value: Any, angle: float, expand: bool) -> Any:
    """Boxes end at our image's edge; torchvision's canvas for them can be 1 off."""
    if not expand or not isinstance(value, tv_tensors.BoundingBoxes):
        return F.rotate(value, angle, expand=expand)
    mode, canvas = value.clamping_mode, value.canvas_size
    made = F.rotate(tv_tensors.wrap(value, like=value, clamping_mode=None), angle, expand=True)
    picture = F.rotate(torch.zeros(1, *canvas, dtype=torch.uint8), angle, expand=True)
    made.canvas_size, made.clamping_mode = tuple(picture.shape[-2:]), mode
    return F.clamp_bounding_boxes(made)


def clamped(value: Any, mode: str) -> Any:
    boxes = isinstance(value, tv_tensors.BoundingBoxes)
    return F.clamp_bounding_boxes(value, clamping_mode=mode) if boxes else value


def rows_apart(ours: Array, theirs: Array, form: str, within: float, context: str) -> int:
    """The number of differences. Angles that differ by whole turns are equal; so are NaNs."""
    assert ours.shape == theirs.shape, context
    apart = np.abs(ours.astype("float64") - theirs)
    if form != "xyxyxyxy":
        apart[:, 4] = np.minimum(apart[:, 4] % 360, 360 - apart[:, 4] % 360)
    apart[np.isnan(ours) & np.isnan(theirs)] = 0
    size = 1 + np.abs(theirs)
    return int((~(apart <= within * size).all(1)).sum())


def expect_near(ours: Array, theirs: Array, form: str, within: float = 1e-7) -> None:
    assert rows_apart(ours, theirs, form, within, "") == 0, f"\n{ours}\n{theirs}"


def moved(boxes: Array, form: str, steps: list[Any], **more: Any) -> tuple[Array, Array]:
    image = np.zeros((1, HEIGHT, WIDTH), np.uint8)
    shapes = {"boxes": (-1, boxes.shape[1])}
    kinds = {"boxes": f"boxes:{form}"}
    source = hr.open([{"image": image, "boxes": boxes}], kinds=kinds, shapes=shapes)
    batch = next(iter(hr.Loader(source, steps, batch_size=1, threads=1, ragged="list", **more)))
    return np.asarray(batch.image[0]), np.asarray(batch.boxes[0])


@pytest.mark.parametrize("part", range(4))
def test_random_pipelines_move_rotated_boxes_as_torchvision_does(part: int) -> None:
    apart = 0
    for seed in range(part * 260, part * 260 + 260):
        rng, choose = np.random.default_rng(seed), random.Random(seed)
        form = choose.choice(list(FORMATS))
        dtype, within = choose.choice([("float64", 1e-7), ("float64", 1e-7), ("float32", 2e-2)])
        mode = choose.choice(["soft", "soft", "hard", "none"])
        boxes = random_boxes(rng, form, dtype)
        theirs = tv_tensors.BoundingBoxes(
            torch.from_numpy(boxes),
            format=form.upper(),
            canvas_size=(HEIGHT, WIDTH),
            clamping_mode=None if mode == "none" else mode,
        )
        picture = torch.zeros(1, HEIGHT, WIDTH, dtype=torch.uint8)
        steps: list[Any] = [T.SetClampingMode(mode)]
        for _ in range(choose.randint(1, 6)):
            step, call = random_step(choose, choose.choice(list(FORMATS)))
            steps.append(step)
            theirs, picture = call(theirs), call(picture)
        image, ours = moved(boxes, form, steps)
        assert image.shape == picture.shape
        form = theirs.format.value.lower()
        apart += rows_apart(ours, theirs.numpy(), form, within, f"{seed}: {steps}")
    # Out of 6,240: where a corner lies on an edge, or a side is upright, up to the last bit of a
    # sine.
    assert apart <= 2


def with_clamping(boxes: Array, form: str, canvas: tuple[int, int], mode: str | None) -> Any:
    given: dict[str, Any] = {"format": form.upper(), "canvas_size": canvas}
    return tv_tensors.BoundingBoxes(torch.from_numpy(boxes), clamping_mode=mode, **given)


@pytest.mark.parametrize("form", FORMATS)
def test_perspective_and_elastic_transforms_move_them_as_torchvision_does(form: str) -> None:
    canvas = (HEIGHT, WIDTH)
    rows, columns = np.indices(canvas)
    points = np.stack([columns, rows], -1).reshape(-1, 2).astype("float64")
    image = np.zeros((1, *canvas), np.uint8)
    for seed in range(25):
        boxes = random_boxes(np.random.default_rng(seed), form, "float64")
        record = {"image": image, "boxes": boxes, "keypoints": points}
        source = hr.open([record], kinds={"boxes": f"boxes:{form}"})
        theirs = with_clamping(boxes, form, canvas, "soft")
        for step in (T.RandomPerspective(0.5, 1.0), T.ElasticTransform(60.0)):
            batch = next(iter(hr.Loader(source, [step], batch_size=1, seed=seed)))
            ours, at = np.asarray(batch.boxes[0]), np.asarray(batch.keypoints[0])
            if step.name == "ElasticTransform":
                wanted = F.elastic(theirs, displacement_of(at, *canvas))
            else:
                corners = corners_of(*canvas)
                ends = [np.rint(at[y * WIDTH + x]).astype(int).tolist() for x, y in corners]
                numbers = perspective_of(corners, ends)
                wanted = F.perspective(theirs, None, None, coefficients=numbers)
            expect_near(ours, wanted.numpy(), form, 1e-6)


def test_sanitizing_measures_the_sides_of_a_rotated_box() -> None:
    """torchvision takes a height from x2 - x4 and y2 - x3: it keeps the second, and drops the
    fourth."""
    turned = [[40, 30, 20, 10, 30], [40, 30, 50, 0.5, 45], [2, 2, 20, 10, 45], [40, 30, 5, 40, 0]]
    boxes = np.float64([*turned, [40, 30, np.nan, 10, 3]])
    source = hr.open(
        [{"image": np.zeros((1, HEIGHT, WIDTH), np.uint8), "boxes": boxes, "labels": np.arange(5)}],
        kinds={"boxes": "boxes:cxcywhr"},
    ).with_row_group("boxes", "labels")
    options: dict[str, Any] = {"batch_size": 1, "ragged": "list"}
    for form in FORMATS:
        steps = [T.ConvertBoundingBoxFormat(form), T.SanitizeBoundingBoxes(1)]
        batch = next(iter(hr.Loader(source, steps, **options)))
        assert np.asarray(batch.labels[0]).tolist() == [0, 3], form
        (target,) = batch.per_record("boxes", "labels")
        assert target["boxes"].shape == (2, FORMATS[form])


def test_steps_that_need_upright_boxes_refuse_rotated_ones() -> None:
    boxes = np.float32([[40, 30, 20, 10, 30]])
    image = np.zeros((3, HEIGHT, WIDTH), np.uint8)
    kinds = {"boxes": "boxes:cxcywhr"}
    source = hr.open([{"image": image, "boxes": boxes}] * 4, kinds=kinds)
    for step in (
        T.RandomIoUCrop(),
        T.RandomBBoxCrop(),
        T.RandomSizedBBoxSafeCrop(9),
        T.EncodeBoxes([0.0, 0.0, 9.0, 9.0]),
        T.SanitizeBoundingBoxes(min_visibility=0.3),
        T.ConvertBoundingBoxFormat("xyxy"),
    ):
        with pytest.raises(hr.ConfigError, match=r"(?s)rotated|upright"):
            hr.Loader(source, [step], batch_size=2)
    for wrong in (np.float32([[1, 2, 3, 4]]), np.int64([[1, 2, 3, 4, 5]])):
        with pytest.raises(hr.ConfigError, match="HR0181"):
            hr.open([{"image": image, "boxes": wrong}], kinds=kinds)


def test_relative_corners_convert_to_pixels_and_back() -> None:
    corners = np.float64([[0.1, 0.2, 0.5, 0.1, 0.6, 0.4, 0.2, 0.5]])
    ours = moved(corners, "xyxyxyxy_normalized", [T.ConvertBoundingBoxFormat("xyxyxyxy")])[1]
    np.testing.assert_array_equal(ours, corners * ([WIDTH, HEIGHT] * 4))
    both = [T.ConvertBoundingBoxFormat(f"xyxyxyxy{more}") for more in ("", "_normalized")]
    ours = moved(corners, "xyxyxyxy_normalized", both)[1]
    np.testing.assert_allclose(ours, corners, 1e-15)


@pytest.mark.filterwarnings("ignore:.*in Python")
def test_packs_and_joint_steps_keep_the_rotated_format(tmp_path: Any) -> None:
    boxes = random_boxes(np.random.default_rng(4), "cxcywhr", "float32")
    image = np.zeros((1, HEIGHT, WIDTH), np.uint8)
    source = hr.open([{"image": image, "boxes": boxes}] * 3, kinds={"boxes": "boxes:cxcywhr"})
    hr.pack(source, str(tmp_path / "packed"))
    packed = hr.open(str(tmp_path / "packed"))
    assert packed.schema[1].box_format == "cxcywhr"
    for mode in ("soft", "hard", "none"):
        runs = [
            next(iter(hr.Loader(each, [T.SetClampingMode(mode), step], batch_size=3))).boxes[0]
            for each in (source, packed)
            for step in (T.RandomRotation((30, 30)), v2.RandomRotation((30, 30)))
        ]
        for each in runs[1:]:
            expect_near(np.asarray(each), np.asarray(runs[0]), "cxcywhr", 1e-3)


@pytest.mark.parametrize("form", FORMATS)
def test_invalid_boxes_do_not_affect_other_rows(form: str) -> None:
    """Boxes with NaNs, infinities or zero size cause no error, and change no other row."""
    good = random_boxes(np.random.default_rng(7), form, "float32")
    strange = good.copy()
    strange[::2] = np.float32([np.nan, np.inf, 0, -1e38])[np.arange(ROWS // 2) % 4, None]
    affine: dict[str, Any] = {"scale": (1.5, 1.5), "shear": (9, 9)}
    steps = [
        T.RandomAffine((30, 30), **affine),
        T.CenterCrop(40),
        T.ClampBoundingBoxes("hard"),
        T.Resize((30, 20)),
        T.RandomHorizontalFlip(1),
        T.GridDistortion(),
    ]
    one, other = (moved(boxes, form, steps)[1] for boxes in (good, strange))
    np.testing.assert_array_equal(one[1::2], other[1::2])
