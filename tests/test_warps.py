# SPDX-License-Identifier: Apache-2.0
"""Warps equal torchvision's, on tensors and on Pillow images: every pixel of images and masks, and
the rows of boxes, keypoints and instance masks that follow them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import PIL
import pytest
from fused_products import needs_fused_products
from PIL import Image

import headrace as hr
from headrace import transforms as T

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")
from torchvision import tv_tensors  # noqa: E402
from torchvision.transforms import v2  # noqa: E402
from torchvision.transforms.v2 import InterpolationMode  # noqa: E402
from torchvision.transforms.v2 import functional as F  # noqa: E402
from torchvision.transforms.v2.functional._geometry import _create_identity_grid  # noqa: E402

torch.set_num_threads(1)  # its threads spin if there is little work
Array = np.ndarray[Any, Any]
needs_pillow = pytest.mark.skipif(PIL.__version__.split(".")[0] != "13", reason="needs Pillow 13")
ROWS = 16  # torch sums in a different order for fewer points; see PointMap
KINDS = {"points": "keypoints", "mask": "mask", "boxes": "boxes:xyxy", "masks": "masks"}
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
    if rng.random() < 0.15:
        height = width = min(height, width)
    return int(height), int(width)


def corners_of(height: int, width: int) -> list[list[int]]:
    return [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]


def random_record(rng: np.random.Generator, channels: int) -> dict[str, Array]:
    height, width = random_size(rng)
    low = rng.uniform(-0.2, 0.9, (ROWS, 2))
    corners = np.concatenate([low, low + rng.uniform(0, 0.5, (ROWS, 2))], 1)
    points = rng.uniform(-5, 60, (ROWS, 2))
    points[:4] = corners_of(height, width)  # which reveal the draw
    return {
        "image": rng.integers(0, 256, (channels, height, width), dtype=np.uint8),
        "mask": rng.integers(0, 256, (1, height, width), dtype=np.uint8),
        "boxes": (corners * [width, height, width, height]).astype("float32"),
        "keypoints": points,
        "masks": rng.integers(0, 2, (2, height, width)).astype("float32"),
    }


def warped(records: list[dict[str, Array]], step: Any, **options: Any) -> list[dict[str, Array]]:
    kinds = {name: kind for name, kind in KINDS.items() if name in records[0]}
    options = {"batch_size": len(records), "ragged": "list", "threads": 1, **options}
    shapes = {"masks": (2, -1, -1), "keypoints": (-1, 2), "boxes": (-1, 4)}
    source = hr.open(
        records,
        kinds=kinds,
        shapes={name: shape for name, shape in shapes.items() if name in records[0]},
    )
    batch = next(iter(hr.Loader(source, [step], **options)))
    return [
        {name: np.asarray(getattr(batch, name)[i]) for name in record}
        for i, record in enumerate(records)
    ]


def by_pillow(call: Any, image: Array, **how: Any) -> Array:
    planes = image[0] if len(image) == 1 else np.ascontiguousarray(image.transpose(1, 2, 0))
    made = np.asarray(call(Image.fromarray(planes), **how))
    return made[None] if made.ndim == 2 else made.transpose(2, 0, 1)


def by_torchvision(
    record: dict[str, Array], call: Any, fill: Any, mask_fill: int, mode: Any
) -> Any:
    """Each field of the record, boxes not yet clamped."""
    canvas = record["image"].shape[1:]
    image, mask, masks = (torch.from_numpy(record[name]) for name in ("image", "mask", "masks"))
    out = {
        "image": call(image, fill=fill, interpolation=mode).numpy(),
        "mask": call(tv_tensors.Mask(mask), fill=mask_fill).numpy(),
        "masks": call(tv_tensors.Mask(masks), fill=0).numpy(),
    }
    if "boxes" in record:
        boxes, points = (torch.from_numpy(record[name]) for name in ("boxes", "keypoints"))
        given = {"format": "XYXY", "canvas_size": canvas, "clamping_mode": None}
        out["boxes"] = call(tv_tensors.BoundingBoxes(boxes, **given)).numpy()
        out["keypoints"] = call(tv_tensors.KeyPoints(points, canvas_size=canvas)).numpy()
    return out


def expect_same(ours: dict[str, Array], wanted: dict[str, Array], context: str) -> None:
    """Boxes end at our image's edge; torchvision's may end at an edge that is 1 off."""
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
    if rng.random() < 0.15:
        return None  # black, into which bilinear edges of tensors fade in a different way
    if rng.random() < 0.5:
        return int(rng.choice([0, 0, 255, rng.integers(0, 256)]))
    return [int(value) for value in rng.integers(0, 256, channels)]


def random_rotation(rng: np.random.Generator) -> tuple[Any, Any]:
    """Arguments of our operator, and torchvision's function for a record and its result."""
    angle, expand = random_angle(rng), bool(rng.random() < 0.4)
    center = [float(c) for c in rng.uniform(-5, 50, 2)] if rng.random() < 0.3 else None
    more = {"expand": expand, "center": center}

    def theirs(record: Any, ours: Any) -> Any:
        return lambda value, **how: F.rotate(value, angle, **more, **how)

    return {"degrees": (angle, angle), **more}, theirs


def random_affine(rng: np.random.Generator) -> tuple[Any, Any]:
    angle = random_angle(rng) if rng.random() < 0.7 else 0.0
    scale = float(rng.choice([1, 1, 0.5, 2, rng.uniform(0.02, 4)]))
    shear = [float(s) for s in rng.uniform(-60, 60, 2)] if rng.random() < 0.6 else [0.0, 0.0]
    center = [float(c) for c in rng.uniform(-5, 50, 2)] if rng.random() < 0.3 else None
    translate = [float(t) for t in rng.uniform(0, 1, 2)] if rng.random() < 0.5 else None
    return affine_with(angle, scale, shear, center, translate)


def affine_with(
    angle: float, scale: float, shear: list[float], center: Any, translate: Any
) -> tuple[Any, Any]:
    """Like random_rotation(), for an affine map with these values."""

    def theirs(record: Any, ours: Any) -> Any:
        canvas = record["image"].shape[1:]
        points = tv_tensors.KeyPoints(torch.from_numpy(record["keypoints"]), canvas_size=canvas)
        still = F.affine(points, angle, [0, 0], scale, shear, center=center)
        moved = [int(t) for t in np.rint(ours["keypoints"][0] - still.numpy()[0])]
        most = np.array(translate or [0, 0]) * canvas[::-1]
        assert (np.abs(moved) <= np.rint(most)).all()
        return lambda value, **how: F.affine(
            value, angle, moved, scale, shear, center=center, **how
        )

    along = (shear[0], shear[0], shear[1], shear[1])
    ours = {"degrees": (angle, angle), "scale": (scale, scale), "shear": along, "center": center}
    return {**ours, "translate": translate}, theirs


def random_shift(rng: np.random.Generator) -> tuple[Any, Any]:
    """Only quarter turns, or translations by whole pixels: these interpolate no pixel."""
    translate = [float(t) for t in rng.choice([0, 0.2, 0.7, 1], 2)] if rng.random() < 0.7 else None
    center = [float(c) for c in rng.integers(-5, 50, 2)] if rng.random() < 0.2 else None
    angle = 0.0 if translate or center else float(rng.choice([0, 90, 180, 270, -90, 540]))
    return affine_with(angle, 1.0, [0.0, 0.0], center, translate)


def perspective_of(starts: Any, ends: Any) -> list[float]:
    """torchvision's coefficients without its solver's rounding errors, as float32."""
    rows = []
    for (x, y), (to_x, to_y) in zip(ends, starts, strict=True):
        rows.append([Fraction(int(v)) for v in (x, y, 1, 0, 0, 0, -to_x * x, -to_x * y, to_x)])
        rows.append([Fraction(int(v)) for v in (0, 0, 0, x, y, 1, -to_y * x, -to_y * y, to_y)])
    for i in range(8):
        pivot = next(r for r in range(i, 8) if rows[r][i])
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for r in range(8):
            if r != i:
                rows[r] = [a - rows[r][i] * b for a, b in zip(rows[r], rows[i], strict=True)]
    return [float(np.float32(float(row[8]))) for row in rows]


def random_perspective(rng: np.random.Generator) -> tuple[Any, Any]:
    distortion = float(rng.choice([0.2, 0.5, 0.9, 1]))

    def theirs(record: Any, ours: Any) -> Any:
        height, width = record["image"].shape[1:]
        starts = corners_of(height, width)
        ends = np.rint(ours["keypoints"][:4]).astype(int)
        half = distortion * np.array([width // 2, height // 2])
        assert (np.abs(ends - starts) <= half.astype(int)).all()
        if np.array_equal(record["keypoints"], ours["keypoints"]):
            for name in ("image", "mask", "masks"):  # no perspective maps to it, or it is the
                # identity
                np.testing.assert_array_equal(ours[name], record[name])
            return None
        numbers = perspective_of(starts, ends.tolist())
        return lambda value, **how: F.perspective(value, None, None, coefficients=numbers, **how)

    return {"distortion_scale": distortion, "p": 1.0}, theirs


CASES = {
    "RandomRotation": random_rotation,
    "RandomAffine": random_affine,
    "RandomAffine, whole pixels": random_shift,
    "RandomPerspective": random_perspective,
}


def cases(name: str, arithmetic: str, seeds: range) -> Any:
    """(record, our result, torchvision's function, fill, mask_fill, mode, a text)."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        channels = int(rng.choice([1, 3]))
        arguments, theirs = CASES[name](rng)
        operator = getattr(T, name.split(",")[0])
        fill, mask_fill = random_fill(rng, channels), int(rng.integers(0, 256))
        smooth = ["bilinear"] if arithmetic == "torch" else ["bilinear", "bicubic"]
        mode = str(rng.choice(["nearest", *smooth]))
        common = {"interpolation": mode, "mask_fill": mask_fill, "arithmetic": arithmetic}
        step = operator(**arguments, fill=fill, **common)
        records = [random_record(rng, channels) for _ in range(10)]
        if arguments.get("expand"):
            records = [record for record in records if record["mask"].size < 20_000]
            for record in records if arguments["center"] else []:
                # torchvision's rows are not where its pixels are.
                del record["boxes"], record["keypoints"]
        for record, ours in zip(records, warped(records, step), strict=True):
            text = f"{step}, {record['image'].shape}"
            call = theirs(record, ours)
            if call:
                yield record, ours, call, fill, mask_fill, MODES[mode], text


@needs_fused_products
@pytest.mark.parametrize("part", range(2))
@pytest.mark.parametrize("name", CASES)
def test_every_field_is_warped_as_by_torchvision(name: str, part: int) -> None:
    for case in cases(name, "torch", range(part * 20, part * 20 + 20)):
        record, ours, call, fill, mask_fill, mode, text = case
        expect_same(ours, by_torchvision(record, call, fill, mask_fill, mode), text)


@needs_fused_products
@needs_pillow
@pytest.mark.parametrize("part", range(2))
@pytest.mark.parametrize("name", CASES)
def test_every_field_is_warped_as_by_torchvision_on_pillow_images(name: str, part: int) -> None:
    for case in cases(name, "pillow", range(part * 20, part * 20 + 20)):
        record, ours, call, fill, mask_fill, mode, text = case
        nearest = InterpolationMode.NEAREST
        wanted = by_torchvision(record, call, fill, mask_fill, nearest)
        wanted["image"] = by_pillow(call, record["image"], fill=fill, interpolation=mode)
        how = {"fill": mask_fill, "interpolation": nearest}
        wanted["mask"] = by_pillow(call, record["mask"], **how)
        planes = record["masks"].astype(np.uint8)
        how = {"fill": 0, "interpolation": nearest}
        made = np.concatenate([by_pillow(call, plane[None], **how) for plane in planes])
        expect_same(ours, {**wanted, "masks": made.astype(np.float32)}, text)


@pytest.mark.parametrize("size", [(3, 4096), (4096, 2), (4095, 3), (64, 64)])
def test_the_longest_images_that_fold_equal_torchvisions(size: tuple[int, int]) -> None:
    """Their float32 positions are furthest from the pixels' centers."""
    rng = np.random.default_rng(sum(size))
    image = rng.choice([0, 255], (1, *size)).astype("uint8")
    points = np.array([[0.0, 0.0]])
    for seed, angle, fill in ((0, 180.0, 0), (1, 90.0, None), (2, 0.0, 255), (3, 0.0, 77)):
        shares = (0.9, 0.9) if angle == 0 else None
        step = T.RandomAffine((angle, angle), translate=shares, interpolation="bilinear", fill=fill)
        (ours,) = warped([{"image": image, "points": points}], step, seed=seed)
        moved = [int(t) for t in ours["points"][0]] if shares else [0, 0]
        bilinear = {"fill": fill, "interpolation": InterpolationMode.BILINEAR}
        wanted = F.affine(torch.from_numpy(image), angle, moved, 1.0, [0.0], **bilinear)
        np.testing.assert_array_equal(ours["image"], wanted.numpy(), f"{angle} {moved}")


def displacement_of(moved: Array, height: int, width: int) -> Any:
    """The drawn displacement field, from the results for a point on each pixel."""
    exact = _create_identity_grid((height, width), torch.device("cpu"), torch.float64)[0]
    extents = torch.tensor([width, height], dtype=torch.float64)
    points = torch.from_numpy(moved.reshape(height, width, 2))
    return (exact - ((points + 0.5) / (0.5 * extents) - 1)).float()[None]


@pytest.mark.parametrize("part", range(2))
def test_elastic_transforms_of_images_and_rows_equal_torchvisions(part: int) -> None:
    for seed in range(part * 100, part * 100 + 100):
        rng = np.random.default_rng(seed)
        fill, mask_fill = random_fill(rng, 3), int(rng.integers(0, 256))
        mode = str(rng.choice(["nearest", "bilinear"]))
        step = T.ElasticTransform(
            alpha=[float(a) for a in rng.uniform(0, 200, 2)],
            sigma=[float(s) for s in rng.uniform(0.3, 6, 2)] if rng.random() < 0.9 else 0.0,
            interpolation=mode,
            fill=fill,
            mask_fill=mask_fill,
            arithmetic=str(rng.choice(["torch", "pillow"])),
        )
        records = [random_record(rng, 3) for _ in range(5)]
        for record in records:
            height, width = record["image"].shape[1:]
            rows, columns = np.indices((height, width))
            record["keypoints"] = np.stack([columns, rows], -1).reshape(-1, 2).astype("float64")
            record["points"] = rng.uniform(-5, 60, (ROWS, 2)).astype("float32")
        for record, ours in zip(records, warped(records, step), strict=True):
            height, width = record["image"].shape[1:]
            field = displacement_of(ours["keypoints"], height, width)
            wanted = by_torchvision(
                record,
                lambda value, field=field, **how: F.elastic(value, field, **how),
                fill,
                mask_fill,
                MODES[mode],
            )
            points = tv_tensors.KeyPoints(
                torch.from_numpy(record["points"]), canvas_size=(height, width)
            )
            wanted["points"] = F.elastic(points, field).numpy()
            expect_same(ours, wanted, f"{step}, {record['image'].shape}")


DRAWN: list[tuple[Any, Any]] = [
    (T.RandomRotation((-20, 70)), v2.RandomRotation((-20, 70))),
    (
        T.RandomAffine(15, translate=(0.1, 0.3), scale=(0.5, 1.5), shear=(-5, 9, -20, 2)),
        v2.RandomAffine(15, translate=(0.1, 0.3), scale=(0.5, 1.5), shear=(-5, 9, -20, 2)),
    ),
    (T.RandomAffine((3, 40), shear=8), v2.RandomAffine((3, 40), shear=8)),
    (T.RandomPerspective(0.6, 1.0), v2.RandomPerspective(0.6, 1.0)),
    (T.RandomPerspective(0.4, 0.3), v2.RandomPerspective(0.4, 0.3)),
    (T.ElasticTransform((30.0, 60.0), (4.0, 2.0)), v2.ElasticTransform([30.0, 60.0], [4.0, 2.0])),
]


@pytest.mark.parametrize("pair", DRAWN, ids=lambda pair: pair[0].name)
def test_random_values_have_torchvisions_distribution(pair: tuple[Any, Any]) -> None:
    """Kolmogorov-Smirnov for each coordinate of points in the middle and on the edges."""
    count, height, width = 1500, 30, 44
    points = np.array([[0, 0], [43, 0], [20, 15], [3, 29], [31, 8]], "float64")
    images = np.zeros((count, 1, height, width), np.uint8)
    source = hr.records(image=images, keypoints=np.stack([points] * count))
    batch = next(iter(hr.Loader(source, [pair[0]], batch_size=count, seed=5)))
    ours = np.asarray(batch.keypoints)
    torch.manual_seed(5)
    given = tv_tensors.KeyPoints(torch.from_numpy(points), canvas_size=(height, width))
    theirs = np.stack([pair[1](given).numpy() for _ in range(count)])
    for point in range(len(points)):
        for axis in range(2):
            one, other = np.sort(ours[:, point, axis]), np.sort(theirs[:, point, axis])
            # Equal draws of the two differ in their last bits.
            one, other = one.round(6), other.round(6)
            every = np.concatenate([one, other])
            share = np.searchsorted(one, every, "right") - np.searchsorted(other, every, "right")
            assert np.abs(share).max() / count < 2.2 * (2 / count) ** 0.5, (point, axis)


def test_a_rotated_strip_stays_within_the_memory_limit() -> None:
    strip = np.zeros((1, 3, 20, 6000), np.uint8)
    options: dict[str, Any] = {"batch_size": 1, "threads": 1}
    # If the plan knows the size it is reserved, otherwise it is seen when the angle is drawn.
    for degrees, code in (((45, 45), "HR0703"), ((44, 45), "HR0126")):
        steps = [T.RandomRotation(degrees, expand=True), T.CenterCrop(30)]
        with pytest.raises(hr.Error, match=code):
            next(iter(hr.Loader(hr.records(image=strip), steps, memory_limit="64 MiB", **options)))
        more = hr.Loader(hr.records(image=strip), steps, memory_limit="1 GiB", **options)
        assert next(iter(more)).image.shape == (1, 3, 30, 30)


BEFORE: list[list[Any]] = [
    [T.Resize((9, 14))],
    [T.Pad([1, 2, 3, 0], fill=7, mask_fill=7)],
    [T.RandomErasing(1.0, value=9, fields="image")],
    [T.RandomErasing(1.0, value=9, fields="image"), T.RandomHorizontalFlip(1.0)],
    [T.Resize((9, 14)), T.Pad(2), T.CenterCrop((8, 12)), T.RandomVerticalFlip(1.0)],
    [T.RandomInvert(1.0), T.Resize(9)],
]


@pytest.mark.parametrize(
    "before",
    BEFORE,
    ids=lambda steps: "-".join(step.name for step in steps),
)
def test_quarter_turns_are_exact_after_pending_steps(before: list[Any]) -> None:
    """A recipe with a resize, a border or a hole in it cannot swap its axes."""
    rng = np.random.default_rng(2)
    record = {
        "image": rng.integers(0, 256, (3, 12, 17), dtype=np.uint8),
        "mask": rng.integers(0, 256, (1, 12, 17), dtype=np.uint8),
        "masks": rng.integers(0, 2, (2, 12, 17)).astype("float32"),
    }
    source = hr.open([record], kinds={"mask": "mask", "masks": "masks"})
    still = next(iter(hr.Loader(source, before, batch_size=1)))
    for quarters in (1, 2, 3, -1):
        turn = T.RandomRotation((90.0 * quarters, 90.0 * quarters), expand=True)
        batch = next(iter(hr.Loader(source, [*before, turn], batch_size=1)))
        for name in record:
            expected = np.rot90(still[name], quarters, (-2, -1))
            np.testing.assert_array_equal(batch[name], expected, f"{name} {quarters}")


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
@pytest.mark.parametrize("before", BEFORE, ids=lambda steps: "-".join(step.name for step in steps))
def test_translations_by_whole_pixels_are_exact_after_pending_steps(
    before: list[Any], interpolation: str
) -> None:
    rng = np.random.default_rng(2)
    record = {
        "image": rng.integers(0, 256, (3, 12, 17), dtype=np.uint8),
        "mask": rng.integers(0, 256, (1, 12, 17), dtype=np.uint8),
        "masks": rng.integers(0, 2, (2, 12, 17)).astype("float32"),
        "points": np.array([[0.0, 0.0]]),
    }
    source = hr.open([record], kinds={"mask": "mask", "masks": "masks", "points": "keypoints"})
    step = T.RandomAffine(
        0, translate=(0.5, 0.5), interpolation=interpolation, fill=[7, 8, 9], mask_fill=5
    )
    for seed in range(6):
        options: dict[str, Any] = {"batch_size": 1, "seed": seed}
        still = next(iter(hr.Loader(source, before, **options)))
        batch = next(iter(hr.Loader(source, [*before, step, T.Pad(1)], **options)))
        x, y = (np.asarray(batch.points)[0, 0] - np.asarray(still.points)[0, 0] - 1).astype(int)
        for name, fill in (("image", [7, 8, 9]), ("mask", [5]), ("masks", [0, 0])):
            given = np.asarray(still[name])[0]
            height, width = given.shape[1:]
            wanted = np.empty_like(given)
            wanted[:] = np.array(fill, given.dtype)[:, None, None]
            rows, columns = (slice(max(0, by), None) for by in (y, x))
            part = given[:, max(0, -y) : height - max(0, y), max(0, -x) : width - max(0, x)]
            wanted[:, rows, columns][:, : part.shape[1], : part.shape[2]] = part
            wanted = np.pad(wanted, ((0, 0), (1, 1), (1, 1)))
            np.testing.assert_array_equal(batch[name][0], wanted, f"{name}, {x}, {y}")


def fused_products(rows: Any, by: Any) -> Any:
    """rows (n, 3) times by (3, 2), each product added without being rounded, as MKL does it on
    Intel's CPUs. A long double holds such a sum."""
    rows, by = rows[0].numpy(), by[0].numpy()
    columns = []
    for column in by.T:
        at = rows[:, 0] * column[0]
        for axis in (1, 2):
            product = rows[:, axis].astype(np.longdouble) * np.longdouble(column[axis])
            at = (product + at).astype(np.float32)
        columns.append(at)
    return torch.from_numpy(np.stack(columns, 1))[None]


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="needs a long double of 64 bits")
@pytest.mark.parametrize("angle", [90, 270])
@pytest.mark.parametrize("size", [(375, 500), (500, 375), (20, 31), (153, 146), (8, 12)])
def test_a_quarter_turn_of_a_non_square_image_falls_between_pixels(
    angle: int, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If width - height is odd, every position is halfway between two pixels, and the last bit of a
    product decides: torchvision's pixels differ between AMD and Intel CPUs.
    """
    monkeypatch.setattr(torch.Tensor, "bmm", fused_products)
    image = np.random.default_rng(3).integers(0, 256, (3, *size), dtype=np.uint8)
    for mode in ("nearest", "bilinear"):
        given = {"interpolation": MODES[mode], "fill": 0}
        wanted = F.rotate(torch.from_numpy(image), angle, **given).numpy()
        (ours,) = warped([{"image": image}], T.RandomRotation((angle, angle), interpolation=mode))
        np.testing.assert_array_equal(ours["image"], wanted, mode)
        affine = {"translate": [0, 0], "scale": 1.0, "shear": [0.0, 0.0]}
        wanted = F.affine(torch.from_numpy(image), angle, **affine, **given).numpy()
        (ours,) = warped([{"image": image}], T.RandomAffine((angle, angle), interpolation=mode))
        np.testing.assert_array_equal(ours["image"], wanted, mode)
