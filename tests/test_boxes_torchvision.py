# SPDX-License-Identifier: Apache-2.0
"""Boxes and keypoints of a CenterCrop that only pads, and of a RandomRotation that expands, are
torchvision's to the last bit, in each format and dtype."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace import transforms as T

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")
from torchvision import tv_tensors  # noqa: E402
from torchvision.transforms.v2 import functional as F  # noqa: E402

HEIGHT, WIDTH, ROWS = 41, 54, 40
Array = np.ndarray[Any, Any]
FORMATS = ("xyxy", "xywh", "cxcywh")
DTYPES = ("float32", "float64", "int64")


def record_of(form: str, dtype: str, seed: int) -> dict[str, Array]:
    """Boxes inside the image, across its edge and beyond it, at non-terminating fractions."""
    rng = np.random.default_rng(seed)
    low = rng.uniform(-0.2, 1.0, (ROWS, 2)) * (WIDTH, HEIGHT)
    extents = rng.uniform(0, 0.7, (ROWS, 2)) * (WIDTH, HEIGHT)
    ends = {"xyxy": (low, low + extents), "xywh": (low, extents)}
    boxes = np.concatenate(ends.get(form, (low + extents / 2, extents)), 1)
    points = rng.uniform(-5, 60, (ROWS, 2))
    floats = dtype if dtype != "int64" else "float32"
    return {
        "image": np.zeros((1, HEIGHT, WIDTH), np.uint8),
        "boxes": boxes.astype(dtype),
        "keypoints": points.astype(floats),
    }


def ours(record: dict[str, Array], form: str, step: Any) -> dict[str, Array]:
    source = hr.open([record], kinds={"boxes": f"boxes:{form}", "keypoints": "keypoints"})
    batch = next(iter(hr.Loader(source, [step], batch_size=1, threads=1, ragged="list")))
    return {name: np.asarray(values[0]) for name, values in batch._asdict().items()}


def tensors(record: dict[str, Array], form: str, **more: Any) -> tuple[Any, Any]:
    boxes, points = (torch.from_numpy(record[name]) for name in ("boxes", "keypoints"))
    canvas = {"canvas_size": (HEIGHT, WIDTH)}
    return (
        tv_tensors.BoundingBoxes(boxes, format=form.upper(), **canvas, **more),
        tv_tensors.KeyPoints(points, **canvas),
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("more", [(0, 0), (8, 6), (0, 40), (30, 0), (201, 2)], ids=str)
def test_boxes_of_a_center_crop_that_only_pads_equal_torchvisions(
    form: str, dtype: str, more: tuple[int, int]
) -> None:
    """For odd padding torchvision pads an image by half a pixel less than its boxes; ours match the
    image.
    """
    size = [HEIGHT + more[0], WIDTH + more[1]]
    for seed in range(4):
        record = record_of(form, dtype, seed)
        made = ours(record, form, T.CenterCrop(size))
        boxes, points = tensors(record, form)
        left, top = more[1] // 2, more[0] // 2
        borders = [left, top, more[1] - left, more[0] - top]
        for given, name in ((boxes, "boxes"), (points, "keypoints")):
            if not (more[0] % 2 or more[1] % 2):
                want = F.center_crop(given, size)
                np.testing.assert_array_equal(made[name], want.numpy(), "center_crop")
            want = F.pad(given, borders)
            np.testing.assert_array_equal(made[name], want.numpy(), "pad")
            assert made[name].dtype == record[name].dtype


def fused(a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once."""
    return type(c)(float(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))))


def products(points: Any, by: Any) -> Any:
    """(n, 3) times (3, 2) with MKL's summation order on Intel CPUs; for a canvas's four corners
    a different order."""
    rows = []
    for x, y, _ in points.numpy():
        rows.append([])
        for a, b, c in by.numpy().T:
            if len(points) == 4 and points.dtype == torch.float32:
                rows[-1].append((x * a + c) + y * b)
            else:
                rows[-1].append(fused(y, b, x * a) + c)
    return torch.tensor(np.array(rows), dtype=points.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", FORMATS)
def test_boxes_of_a_rotation_that_expands_equal_torchvisions(
    form: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Boxes end at our image's edge; torchvision's may end at an edge that is 1 off."""
    monkeypatch.setattr(torch, "matmul", products)  # which differs between CPUs
    angles = [0.0, 90.0, 180.0, -90.0, 45.0, *np.random.default_rng(2).uniform(-400, 400, 4)]
    for seed, angle in enumerate(map(float, angles)):
        record = record_of(form, dtype, seed)
        made = ours(record, form, T.RandomRotation((angle, angle), expand=True))
        boxes, points = tensors(record, form, clamping_mode=None)
        picture = F.rotate(torch.from_numpy(record["image"]), angle, expand=True)
        assert made["image"].shape == picture.shape
        corners = boxes.as_subclass(torch.Tensor)
        corners = corners if boxes.is_floating_point() else corners.float()
        corners = F.convert_bounding_box_format(corners, form.upper(), "XYXY")
        corners = tv_tensors.wrap(corners, like=boxes, format="XYXY")
        free = F.rotate(corners, angle, expand=True)
        free.canvas_size, free.clamping_mode = tuple(picture.shape[-2:]), "soft"
        want = F.convert_bounding_box_format(F.clamp_bounding_boxes(free), new_format=form.upper())
        want = want.as_subclass(torch.Tensor).to(boxes.dtype)
        np.testing.assert_array_equal(made["boxes"], want.numpy(), str(angle))
        want = F.rotate(points, angle, expand=True)
        np.testing.assert_array_equal(made["keypoints"], want.numpy(), str(angle))
