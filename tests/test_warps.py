# SPDX-License-Identifier: Apache-2.0
"""Warps equal torchvision's, on tensors and on Pillow's pictures: every pixel of images and masks,
and the rows of boxes, keypoints and instance masks that follow them."""

from __future__ import annotations

from typing import Any

import numpy as np
import PIL
import pytest
from PIL import Image

import headrace as hr
from headrace import transforms as T

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")
from torchvision import tv_tensors  # noqa: E402
from torchvision.transforms.v2 import InterpolationMode  # noqa: E402
from torchvision.transforms.v2 import functional as F  # noqa: E402

Array = np.ndarray[Any, Any]
needs_pillow = pytest.mark.skipif(PIL.__version__.split(".")[0] != "13", reason="needs Pillow 13")
ROWS = 16  # torch adds up in another order where there are fewer points; see PointMap
KINDS = {"mask": "mask", "boxes": "boxes:xyxy", "masks": "masks"}
MODES = {
    "nearest": InterpolationMode.NEAREST,
    "bilinear": InterpolationMode.BILINEAR,
    "bicubic": InterpolationMode.BICUBIC,
}


def random_size(rng: np.random.Generator) -> tuple[int, int]:
    """Most are small, some long and narrow, some large."""
    most = rng.choice([4, 12, 40, 90, 250], p=[0.2, 0.3, 0.3, 0.15, 0.05])
    height, width = rng.integers(1, most + 1, 2)
    if rng.random() < 0.05:
        height, width = rng.integers(1, 6), rng.integers(300, 701)
    return int(height), int(width)


def random_record(rng: np.random.Generator, channels: int) -> dict[str, Array]:
    height, width = random_size(rng)
    low = rng.uniform(-0.2, 0.9, (ROWS, 2))
    corners = np.concatenate([low, low + rng.uniform(0, 0.5, (ROWS, 2))], 1)
    return {
        "image": rng.integers(0, 256, (channels, height, width), dtype=np.uint8),
        "mask": rng.integers(0, 256, (1, height, width), dtype=np.uint8),
        "boxes": (corners * [width, height, width, height]).astype("float32"),
        "keypoints": rng.uniform(-5, 60, (ROWS, 2)),
        "masks": rng.integers(0, 2, (2, height, width)).astype("float32"),
    }


def warped(records: list[dict[str, Array]], step: Any, **options: Any) -> list[dict[str, Array]]:
    kinds = {name: kind for name, kind in KINDS.items() if name in records[0]}
    options = {"batch_size": len(records), "ragged": "list", "threads": 1, **options}
    source = hr.open(records, kinds=kinds, shapes={"masks": (2, -1, -1)})
    batch = next(iter(hr.Loader(source, [step], **options)))
    return [
        {name: np.asarray(getattr(batch, name)[i]) for name in record}
        for i, record in enumerate(records)
    ]


def by_pillow(call: Any, image: Array, *arguments: Any) -> Array:
    planes = image[0] if len(image) == 1 else np.ascontiguousarray(image.transpose(1, 2, 0))
    made = np.asarray(call(Image.fromarray(planes), *arguments))
    return made[None] if made.ndim == 2 else made.transpose(2, 0, 1)


def by_torchvision(record: dict[str, Array], call: Any, fill: Any, mask_fill: int) -> Any:
    """Each field of the record by `call(value, fill)`, boxes not yet cut off."""
    canvas = record["image"].shape[1:]
    out = {
        "image": call(torch.from_numpy(record["image"]), fill).numpy(),
        "mask": call(tv_tensors.Mask(torch.from_numpy(record["mask"])), mask_fill).numpy(),
        "masks": call(tv_tensors.Mask(torch.from_numpy(record["masks"])), 0).numpy(),
    }
    if "boxes" in record:
        boxes, points = (torch.from_numpy(record[name]) for name in ("boxes", "keypoints"))
        given = {"format": "XYXY", "canvas_size": canvas, "clamping_mode": None}
        out["boxes"] = call(tv_tensors.BoundingBoxes(boxes, **given), None).numpy()
        out["keypoints"] = call(tv_tensors.KeyPoints(points, canvas_size=canvas), None).numpy()
    return out


def expect_same(ours: dict[str, Array], wanted: dict[str, Array], context: str) -> None:
    """Boxes end at the picture that there is: torchvision's may end at one that is 1 off."""
    height, width = wanted["image"].shape[1:]
    if "boxes" in wanted:
        most = np.array([width, height, width, height], wanted["boxes"].dtype)
        wanted = {**wanted, "boxes": np.clip(wanted["boxes"], 0, most)}
    for name, value in wanted.items():
        np.testing.assert_array_equal(ours[name], value, f"{name}: {context}")
        assert ours[name].dtype == value.dtype


def random_angle(rng: np.random.Generator) -> float:
    special = [0, 90, 180, 270, -90, 360, 45, 1e-7, -180, 450]
    return float(rng.choice(special)) if rng.random() < 0.25 else float(rng.uniform(-400, 400))


def random_fill(rng: np.random.Generator, channels: int) -> Any:
    if rng.random() < 0.5:
        return int(rng.choice([0, 0, 255, rng.integers(0, 256)]))
    return [int(value) for value in rng.integers(0, 256, channels)]


def random_rotation(rng: np.random.Generator, channels: int) -> tuple[Any, Any]:
    """Arguments of our operator, and torchvision's `call(value, fill, interpolation)`."""
    angle, expand = random_angle(rng), bool(rng.random() < 0.4)
    center = [float(c) for c in rng.uniform(-5, 50, 2)] if rng.random() < 0.3 else None
    more = {"expand": expand, "center": center}

    def call(value: Any, fill: Any, mode: str = "nearest") -> Any:
        return F.rotate(value, angle, interpolation=MODES[mode], fill=fill, **more)

    return {"degrees": (angle, angle), **more}, call


def random_affine(rng: np.random.Generator, channels: int) -> tuple[Any, Any]:
    """Nothing is moved: what is drawn would not be known; see the test of translations."""
    angle = random_angle(rng) if rng.random() < 0.7 else 0.0
    scale = float(rng.choice([1, 1, 0.5, 2, rng.uniform(0.02, 4)]))
    shear = [float(s) for s in rng.uniform(-60, 60, 2)] if rng.random() < 0.6 else [0.0, 0.0]
    center = [float(c) for c in rng.uniform(-5, 50, 2)] if rng.random() < 0.3 else None

    def call(value: Any, fill: Any, mode: str = "nearest") -> Any:
        more = {"center": center, "fill": fill, "interpolation": MODES[mode]}
        return F.affine(value, angle, [0, 0], scale, shear, **more)

    along = (shear[0], shear[0], shear[1], shear[1])
    ours = {"degrees": (angle, angle), "scale": (scale, scale), "shear": along, "center": center}
    return ours, call


CASES = {T.RandomRotation: random_rotation, T.RandomAffine: random_affine}


def cases(operator: Any, arithmetic: str, seeds: range) -> Any:
    """(record, what ours makes of it, torchvision's call, its arguments, a text)."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        channels = int(rng.choice([1, 3]))
        arguments, call = CASES[operator](rng, channels)
        fill, mask_fill = random_fill(rng, channels), int(rng.integers(0, 256))
        mode = str(rng.choice(["nearest", "bilinear"]))
        common = {"interpolation": mode, "mask_fill": mask_fill, "arithmetic": arithmetic}
        step = operator(**arguments, fill=fill, **common)
        records = [random_record(rng, channels) for _ in range(10)]
        if arguments.get("expand"):
            records = [record for record in records if record["mask"].size < 20_000]
            for record in records if arguments["center"] else []:
                # torchvision's rows do not lie where its pixels do.
                del record["boxes"], record["keypoints"]
        for record, ours in zip(records, warped(records, step), strict=True):
            yield record, ours, call, (fill, mask_fill, mode), f"{step}, {record['image'].shape}"


@pytest.mark.parametrize("part", range(2))
@pytest.mark.parametrize("operator", CASES)
def test_every_field_is_warped_as_by_torchvision(operator: Any, part: int) -> None:
    seeds = range(part * 26, part * 26 + 26)
    for record, ours, call, (fill, mask_fill, mode), text in cases(operator, "torch", seeds):
        wanted = by_torchvision(record, call, fill, mask_fill)
        wanted["image"] = call(torch.from_numpy(record["image"]), fill, mode).numpy()
        expect_same(ours, wanted, text)


@needs_pillow
@pytest.mark.parametrize("part", range(2))
@pytest.mark.parametrize("operator", CASES)
def test_every_field_is_warped_as_of_pillows_pictures(operator: Any, part: int) -> None:
    seeds = range(part * 26, part * 26 + 26)
    for record, ours, call, (fill, mask_fill, mode), text in cases(operator, "pillow", seeds):
        wanted = by_torchvision(record, call, fill, mask_fill)
        wanted["image"] = by_pillow(call, record["image"], fill, mode)
        wanted["mask"] = by_pillow(call, record["mask"], mask_fill)
        planes = record["masks"].astype(np.uint8)
        wanted["masks"] = np.concatenate([by_pillow(call, plane[None], 0) for plane in planes])
        wanted["masks"] = wanted["masks"].astype(np.float32)
        expect_same(ours, wanted, text)
