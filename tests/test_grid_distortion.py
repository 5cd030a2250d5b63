# SPDX-License-Identifier: Apache-2.0
"""GridDistortion: pixels equal torchvision's elastic transform of Albumentations' grids, and boxes,
keypoints and masks follow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace import transforms as T

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")
from test_warps import MODES, random_fill  # noqa: E402
from torchvision import tv_tensors  # noqa: E402
from torchvision.transforms.v2 import functional as F  # noqa: E402
from torchvision.transforms.v2.functional._geometry import _create_identity_grid  # noqa: E402

torch.set_num_threads(1)  # its threads spin if there is little work
Array = np.ndarray[Any, Any]
PICTURES = [{"image": np.zeros((3, 9, 9), np.uint8)}]
DENSE = 3000  # points along each axis, which reveal the draw


def lines_from(moved: Array, extent: int, cells: int) -> Array:
    """Where the lines come from: each cell is linear, so two points in it determine its ends."""
    at = np.linspace(0, 2 * extent, DENSE)  # columns may show more than the width of the picture
    lines = np.full(cells + 1, np.nan)
    for cell in range(cells):
        begin, end = extent * cell / cells, extent * (cell + 1) / cells
        (inside,) = np.nonzero((moved > begin) & (moved < end))
        first, last = inside[0], inside[-1]
        slope = (at[last] - at[first]) / (moved[last] - moved[first])
        lines[cell] = at[first] + (begin - moved[first]) * slope
        lines[cell + 1] = at[first] + (end - moved[first]) * slope
    return lines


def displacements(lines: Array, extent: int) -> Any:
    middles = np.arange(extent) + 0.5
    source = np.interp(middles, np.linspace(0, extent, len(lines)), lines)
    identity = _create_identity_grid((extent, extent), torch.device("cpu"), torch.float64)[0, 0]
    return torch.from_numpy(2 * source / extent - 1) - identity[:, 0]


def drawn(step: Any, records: list[dict[str, Array]], **options: Any) -> list[dict[str, Array]]:
    shapes = {"masks": (1, -1, -1), "dense": (-1, 2), "boxes": (-1, 4), "keypoints": (-1, 2)}
    kinds = {"mask": "mask", "masks": "masks", "dense": "keypoints", "boxes": "boxes:xyxy"}
    source = hr.open(records, kinds=kinds, shapes=shapes)
    options = {"batch_size": len(records), "ragged": "list", "threads": 1, **options}
    batch = next(iter(hr.Loader(source, [step], **options)))
    return [
        {name: np.asarray(batch[name][i]) for name in record} for i, record in enumerate(records)
    ]


def random_record(rng: np.random.Generator) -> dict[str, Array]:
    height, width = (int(extent) for extent in rng.integers(1, rng.choice([9, 60, 120]), 2))
    low = rng.uniform(0, 0.8, (5, 2))
    corners = np.concatenate([low, low + rng.uniform(0, 0.2, (5, 2))], 1)
    along = np.linspace(0, 2, DENSE)[:, None] * [width, height]
    return {
        "image": rng.integers(0, 256, (3, height, width), dtype=np.uint8),
        "mask": rng.integers(0, 256, (1, height, width), dtype=np.uint8),
        "masks": rng.integers(0, 2, (1, height, width)).astype("float32"),
        "boxes": corners * [width, height, width, height],
        "keypoints": rng.uniform(-5, 70, (9, 2)).astype("float32"),
        "dense": along,
    }


def test_pixels_equal_torchvisions_and_boxes_follow_the_grid_lines() -> None:
    for seed in range(80):
        rng = np.random.default_rng(seed)
        cells, limit = int(rng.integers(1, 9)), float(rng.uniform(0, 0.9))
        fill, mask_fill = random_fill(rng, 3), int(rng.integers(0, 256))
        mode, normalized = str(rng.choice(["nearest", "bilinear"])), bool(rng.random() < 0.5)
        step = T.GridDistortion(
            cells, limit, normalized, interpolation=mode, fill=fill, mask_fill=mask_fill
        )
        records = [random_record(rng) for _ in range(4)]
        for record, ours in zip(records, drawn(step, records, seed=seed), strict=True):
            height, width = record["image"].shape[1:]
            lines = [
                lines_from(ours["dense"][:, axis], extent, cells)
                for axis, extent in ((0, width), (1, height))
            ]
            for each, extent in zip(lines, (width, height), strict=True):
                factors = np.diff(each) * cells / extent
                if normalized:
                    np.testing.assert_allclose([each[0], each[-1]], [0, extent], atol=1e-9)
                    assert factors.max() / factors.min() <= (1 + limit) / (1 - limit) + 1e-9
                else:
                    assert (np.abs(factors - 1) <= limit + 1e-9).all()
            field = torch.zeros(1, height, width, 2, dtype=torch.float64)
            field[0, ..., 0] = displacements(lines[0], width)
            field[0, ..., 1] = displacements(lines[1], height)[:, None]
            expect_pixels(record, ours, field.float(), fill, mask_fill, MODES[mode])
            expect_rows(record, ours, lines)


def expect_pixels(
    record: dict[str, Array],
    ours: dict[str, Array],
    field: Any,
    fill: Any,
    mask_fill: int,
    mode: Any,
) -> None:
    image, mask, masks = (torch.from_numpy(record[name]) for name in ("image", "mask", "masks"))
    wanted = {
        "image": F.elastic(image, field, mode, fill),
        "mask": F.elastic(tv_tensors.Mask(mask), field, fill=mask_fill),
        "masks": F.elastic(tv_tensors.Mask(masks), field, fill=0),
    }
    for name, value in wanted.items():
        np.testing.assert_array_equal(ours[name], value.numpy(), name)


def expect_rows(record: dict[str, Array], ours: dict[str, Array], lines: list[Array]) -> None:
    """Inside the grid; the last cell continues beyond it."""
    extents = record["image"].shape[:0:-1]
    edges = [np.linspace(0, e, len(each)) for e, each in zip(extents, lines, strict=True)]
    for name, within in (("boxes", 1e-7), ("keypoints", 1e-3)):
        for at in range(record[name].shape[1]):
            axis = at % 2
            given = record[name][:, at].astype("float64")
            wanted = np.interp(given, lines[axis], edges[axis])
            known = (given >= 0) & (given <= lines[axis][-1])
            np.testing.assert_allclose(ours[name][known, at], wanted[known], within, within)


def test_grids_have_albumentations_distribution() -> None:
    """Compares each column's extent with 1 + a uniform draw, by Kolmogorov-Smirnov."""
    count, cells = 800, 4
    record = random_record(np.random.default_rng(3))
    height, width = record["image"].shape[1:]
    step = T.GridDistortion(cells, (-0.2, 0.5), False)
    moved = drawn(step, [record] * count, seed=2)
    for axis, extent in ((0, width), (1, height)):
        lines = np.stack([lines_from(each["dense"][:, axis], extent, cells) for each in moved])
        factors = np.sort(np.diff(lines, axis=1) * cells / extent, 0)
        share = (np.arange(count) + 0.5) / count
        for cell in range(cells):
            apart = np.abs((factors[:, cell] - 0.8) / 0.7 - share).max()
            assert apart < 1.9 / count**0.5, (axis, cell)


def test_wrong_arguments_are_refused_with_the_reason() -> None:
    for wrong in (
        {"num_steps": 0},
        {"distort_limit": 1.0},
        {"distort_limit": (0.3, -0.3)},
        {"distort_limit": -0.3},
        {"interpolation": "bicubic", "arithmetic": "pillow"},
    ):
        with pytest.raises(hr.ConfigError, match=r"\[GridDistortion\]"):
            hr.Loader(PICTURES, [T.GridDistortion(**wrong)], batch_size=1)
    with pytest.raises(hr.ConfigError, match="interpolation"):  # it was silently bilinear
        T.ElasticTransform(interpolation="bicubic", arithmetic="pillow")
