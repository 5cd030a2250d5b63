# SPDX-License-Identifier: Apache-2.0
"""Automatic augmentation gives torchvision's pixels for each operation at each strength, on tensors
and on Pillow images, and draws them with the same frequency."""

from __future__ import annotations

import itertools
from collections import Counter
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

Array = np.ndarray[Any, Any]
needs_pillow = pytest.mark.skipif(PIL.__version__.split(".")[0] != "13", reason="needs Pillow 13")
ARITHMETIC = ["torch", pytest.param("pillow", marks=needs_pillow)]


def picture(channels: int, height: int, width: int, seed: int = 1) -> Array:
    """Smooth with an edge and some noise, so that each operation has a visible effect."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    planes = [40 + 3 * x + y, 200 - 2 * y + x, 30 + 5 * ((x + y) % 30)][:channels]
    noise = random.integers(-20, 20, (channels, height, width))
    out: Array = np.clip(np.stack(planes) + noise, 12, 230).astype(np.uint8)
    return out


def through(image: Array, count: int, step: Any, seed: int = 1) -> list[bytes]:
    data = hr.records(image=np.broadcast_to(image, (count, *image.shape)).copy())
    loader = hr.Loader(data, [step], batch_size=count // 4, seed=seed, threads=2)
    return [np.array(row).tobytes() for batch in loader for row in batch.image]


class Theirs:
    """One image after an operation of torchvision."""

    def __init__(self, policy: Any, arithmetic: str, interpolation: str, fill: Any = None) -> None:
        self.policy, self.arithmetic = policy, arithmetic
        self.interpolation = InterpolationMode(interpolation)
        self.fill = policy._fill

    def apply(self, image: Array, steps: list[tuple[str, float]]) -> bytes:
        value: Any = torch.from_numpy(image)
        if self.arithmetic == "pillow":
            rows = image.transpose(1, 2, 0)
            value = Image.fromarray(rows[..., 0] if len(image) == 1 else rows)
        for name, magnitude in steps:
            value = self.policy._apply_image_or_video_transform(
                value, name, magnitude, interpolation=self.interpolation, fill=self.fill
            )
        array = np.asarray(value)
        if self.arithmetic == "pillow":
            array = array[None] if array.ndim == 2 else array.transpose(2, 0, 1)
        return array.tobytes()

    def strengths(self, image: Array, bins: int) -> dict[str, list[tuple[int, float]]]:
        """For each operation by name: (bin, magnitude), both signs."""
        space = self.policy._AUGMENTATION_SPACE
        out: dict[str, list[tuple[int, float]]] = {}
        for name, (magnitudes, signed) in space.items():
            values = magnitudes(bins, *image.shape[1:])
            each = enumerate([0.0] * bins if values is None else values.tolist())
            out[name] = [(i, s * m) for i, m in each for s in ((1, -1) if signed else (1, 1))]
        return out


def expect_drawn(found: list[bytes], wanted: dict[bytes, float]) -> None:
    """Each result is one of theirs, and each of theirs occurs with the expected frequency
    (chi-square)."""
    counts = Counter(found)
    assert set(counts) <= set(wanted), f"{len(set(counts) - set(wanted))} outcomes of no operation"
    rare = [key for key, p in wanted.items() if p * len(found) >= 12 and key not in counts]
    assert not rare, f"{len(rare)} outcomes never came"
    expected = {key: p * len(found) for key, p in wanted.items() if p * len(found) >= 5}
    chi = sum((counts[key] - e) ** 2 / e for key, e in expected.items())
    freedom = len(expected) - 1
    assert chi < freedom + 4.5 * (2 * freedom) ** 0.5, (chi, freedom)


@needs_fused_products
@pytest.mark.parametrize("arithmetic", ARITHMETIC)
@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
def test_trivial_augment_does_each_operation_at_each_strength(
    arithmetic: str, interpolation: str
) -> None:
    for shape, fill in (((3, 41, 37), None), ((1, 20, 33), [77.0])):
        image = picture(*shape)
        theirs = Theirs(v2.TrivialAugmentWide(fill=fill), arithmetic, interpolation)
        wanted: dict[bytes, float] = {}
        for name, strengths in theirs.strengths(image, 31).items():
            for _, magnitude in strengths:
                made = theirs.apply(image, [(name, magnitude)])
                wanted[made] = wanted.get(made, 0) + 1 / 14 / 31 / 2
        step = T.TrivialAugmentWide(fill=fill, interpolation=interpolation, arithmetic=arithmetic)
        expect_drawn(through(image, 12_000, step), wanted)


@pytest.mark.parametrize("arithmetic", ARITHMETIC)
def test_rand_augment_does_each_operation(arithmetic: str) -> None:
    image = picture(3, 33, 45, seed=2)
    theirs = Theirs(v2.RandAugment(), arithmetic, "nearest")
    strengths = theirs.strengths(image, 31)
    for magnitude in (0, 1, 9, 17, 30):
        wanted: dict[bytes, float] = {}
        for name, each in strengths.items():
            for index, value in each:
                if index == magnitude:
                    made = theirs.apply(image, [(name, value)])
                    wanted[made] = wanted.get(made, 0) + 1 / 28
        step = T.RandAugment(1, magnitude, arithmetic=arithmetic)
        expect_drawn(through(image, 1600, step), wanted)
    nine = [(n, v) for n, each in strengths.items() for i, v in each if i == 9]
    wanted = {}
    for pair in itertools.product(nine, repeat=2):
        made = theirs.apply(image, list(pair))
        wanted[made] = wanted.get(made, 0) + 1 / 28 / 28
    expect_drawn(through(image, 8000, T.RandAugment(arithmetic=arithmetic)), wanted)


@needs_fused_products
@pytest.mark.parametrize("arithmetic", ARITHMETIC)
@pytest.mark.parametrize("policy", ["imagenet", "cifar10", "svhn"])
def test_auto_augment_does_each_pair(policy: str, arithmetic: str) -> None:
    image = picture(3, 32, 40, seed=3)
    theirs = Theirs(v2.AutoAugment(v2.AutoAugmentPolicy(policy)), arithmetic, "nearest")
    strengths = theirs.strengths(image, 10)
    wanted: dict[bytes, float] = {}
    for pair in theirs.policy._policies:
        ways = []
        for name, p, index in pair:
            taken = [v for i, v in strengths[name] if i == (index or 0)]
            ways.append([(1 - p, None), *((p / 2, (name, value)) for value in taken)])
        for (first, a), (second, b) in itertools.product(*ways):
            if first * second > 0:
                made = theirs.apply(image, [step for step in (a, b) if step])
                wanted[made] = wanted.get(made, 0) + first * second / 25
    step = T.AutoAugment(v2.AutoAugmentPolicy(policy), arithmetic=arithmetic)
    expect_drawn(through(image, 8000, step), wanted)


@needs_fused_products
def test_images_of_all_sizes_and_bins_equal_torchvisions() -> None:
    random = np.random.default_rng(5)
    for trial in range(8):
        height, width = (int(n) for n in random.integers(1, 90, 2))
        bins = int(random.integers(2, 12))
        image = random.integers(0, 256, (3, height, width), dtype=np.uint8)
        theirs = Theirs(v2.TrivialAugmentWide(bins), "torch", "nearest")
        wanted = {
            theirs.apply(image, [(name, magnitude)])
            for name, strengths in theirs.strengths(image, bins).items()
            for _, magnitude in strengths
        }
        assert set(through(image, 600, T.TrivialAugmentWide(bins), seed=trial)) <= wanted


def share_of(ours: Array, own: Array, aug: Array) -> float | None:
    """The proportion with which blending the two gives ours, truncated to integers, or None.
    Proportions are float32, so results may be just below an integer.
    """
    apart = aug - own
    still = np.abs(apart) < 0.5
    lost = (own - ours)[still]
    if lost.size and (lost.min() < 0 or lost.max() > 1):
        return None
    if still.all():
        return 0.0
    first, last = ((ours + n - own)[~still] / apart[~still] for n in (-2e-4, 1 + 2e-4))
    low, high = np.minimum(first, last).max(), np.maximum(first, last).min()
    return float(low + high) / 2 if low <= high else None


@needs_fused_products
@pytest.mark.parametrize("all_ops", [True, False])
def test_aug_mix_mixes_an_image_with_a_chain_of_operations(all_ops: bool) -> None:
    image = picture(3, 24, 30, seed=4)
    theirs = Theirs(v2.AugMix(), "torch", "bilinear")
    space = v2.AugMix._AUGMENTATION_SPACE if all_ops else v2.AugMix._PARTIAL_AUGMENTATION_SPACE
    made: dict[str, list[Array]] = {}
    for name, (magnitudes, signed) in space.items():
        values = magnitudes(10, *image.shape[1:])
        for value in [0.0] if values is None else values[:4].tolist():
            for sign in (1, -1) if signed else (1,):
                out = np.frombuffer(theirs.apply(image, [(name, sign * value)]), np.uint8)
                made.setdefault(name, []).append(out.astype(np.float64))
    own = image.reshape(-1).astype(np.float64)
    step = T.AugMix(severity=4, mixture_width=1, chain_depth=1, all_ops=all_ops)
    came: Counter[str] = Counter()
    shares = []
    for row in through(image, 1200, step):
        ours = np.frombuffer(row, np.uint8).astype(np.float64)
        fits = [
            (name, share)
            for name, each in made.items()
            for aug in each
            if (share := share_of(ours, own, aug)) is not None
        ]
        assert fits, "no mixture with one operation"
        came.update({name for name, _ in fits})
        if len(fits) == 1 and fits[0][0] == "Rotate":
            shares.append(fits[0][1])
    assert len(came) == len(space)
    assert 0.3 < np.mean(shares) < 0.7
    assert min(shares) < 0.2 and max(shares) > 0.8


def test_aug_mix_of_many_chains_is_not_brighter_than_its_parts() -> None:
    white = np.full((3, 9, 9), 255, np.uint8)
    # Rotations and translations add black; wrapped values would show.
    for row in through(white, 400, T.AugMix(mixture_width=7, all_ops=False, fill=255)):
        assert len(row) == 3 * 9 * 9
    gray = np.full((1, 5, 5), 255, np.uint8)
    step = T.AugMix(mixture_width=5, chain_depth=1, severity=1, all_ops=False)
    kept = [np.frombuffer(row, np.uint8).min() for row in through(gray, 400, step)]
    assert max(kept) >= 254


POLICIES = [
    T.TrivialAugmentWide(),
    T.RandAugment(),
    T.AutoAugment(),
    T.AugMix(),
    T.TimmAugment("rand-m9-mstd0.5-inc1"),
    T.TimmAugment("augmix"),
]


@pytest.mark.parametrize("step", POLICIES, ids=repr)
def test_threads_ranks_and_a_resume_change_no_batch(step: Any) -> None:
    images = np.stack([picture(3, 24, 20, seed=n) for n in range(60)])
    data = hr.records(image=images)
    steps = [T.RandomCrop(18), step, T.ToDtype("float32", scale=True)]
    options = {"global_batch_size": 20, "shuffle": True, "seed": 9}
    wanted = [np.array(b.image) for b in hr.Loader(data, steps, threads=1, **options)]
    halves = [
        [np.array(b.image) for b in hr.Loader(data, steps, threads=3, shard=(rank, 2), **options)]
        for rank in range(2)
    ]
    for index, batch in enumerate(wanted):
        np.testing.assert_array_equal(np.concatenate([half[index] for half in halves]), batch)
    loader = hr.Loader(data, steps, **options)
    next(iter(loader))
    again = hr.Loader(data, steps, **options)
    again.load_state_dict(loader.state_dict())
    for ours, batch in zip(again, wanted[1:], strict=True):
        np.testing.assert_array_equal(ours.image, batch)


def test_masks_and_boxes_follow_the_image_as_in_torchvision() -> None:
    image = picture(3, 41, 37)
    mask = np.random.default_rng(6).integers(0, 5, (1, 41, 37), dtype=np.uint8)
    boxes = np.float32([[3.5, 4, 20, 30.25], [15, 2, 36, 11]])
    theirs = Theirs(v2.TrivialAugmentWide(), "torch", "nearest")
    canvas = tv_tensors.BoundingBoxes(torch.from_numpy(boxes), format="XYXY", canvas_size=(41, 37))
    wanted: dict[bytes, list[tuple[bytes, Array]]] = {}
    for name, strengths in theirs.strengths(image, 31).items():
        for _, magnitude in strengths:
            spatial: list[Any] = [tv_tensors.Mask(torch.from_numpy(mask)), canvas]
            if name[:5] in ("Shear", "Trans", "Rotat"):
                spatial = [
                    theirs.policy._apply_image_or_video_transform(
                        each, name, magnitude, interpolation="nearest", fill=theirs.fill
                    )
                    for each in spatial
                ]
            mask_there, boxes_there = (each.as_subclass(torch.Tensor).numpy() for each in spatial)
            made = (mask_there.tobytes(), boxes_there)
            wanted.setdefault(theirs.apply(image, [(name, magnitude)]), []).append(made)
    count = 4000
    every = lambda value: np.broadcast_to(value, (count, *value.shape)).copy()  # noqa: E731
    data = hr.records(
        image=every(image),
        mask=every(mask),
        boxes=every(boxes),
        kinds={"mask": "mask", "boxes": "boxes:xyxy"},
    )
    moved = set()
    for batch in hr.Loader(data, [T.TrivialAugmentWide()], batch_size=500):
        for row in zip(
            np.array(batch.image), np.array(batch.mask), np.array(batch.boxes), strict=True
        ):
            ours = row[1].tobytes()
            fits = [their for its, their in wanted[row[0].tobytes()] if its == ours]
            assert fits, "the mask did not follow"
            assert min(np.abs(row[2] - their).max() for their in fits) <= 2e-5
            moved.add(ours)
    assert len(moved) > 200


def test_impossible_arguments_are_refused_before_anything_runs() -> None:
    image = np.zeros((8, 3, 9, 9), np.uint8)
    data = hr.records(image=image, mask=image[:, :1], kinds={"mask": "mask"})

    def refusal(*steps: Any, of: Any = data) -> str:
        with pytest.raises(hr.Error) as caught:
            hr.Loader(of, list(steps), batch_size=4)
        return str(caught.value)

    assert "HR0510" in refusal(T.AugMix()) and "would not match all of them" in refusal(T.AugMix())
    hr.Loader(data, [T.AugMix(fields="image")], batch_size=4)
    boxes = hr.records(
        image=image,
        boxes=np.zeros((8, 1, 4), np.float32),
        kinds={"boxes": "boxes:xyxy"},
    )
    assert "HR0186" in refusal(T.AugMix(), of=boxes)
    assert "HR0510" in refusal(T.RandAugment(magnitude=31))
    assert "HR0510" in refusal(T.ToDtype("float32", scale=True), T.TrivialAugmentWide())
    assert "HR0512" in refusal(T.TrivialAugmentWide(fill=[1, 2], fields="image"))
    two = hr.records(image=np.zeros((8, 2, 9, 9), np.uint8))
    assert "HR0510" in refusal(T.TrivialAugmentWide(), of=two)
    for call in (
        lambda: T.AutoAugment("imagnet"),
        lambda: T.TrivialAugmentWide(1),
        lambda: T.RandAugment(num_ops=0),
        lambda: T.AugMix(severity=11),
        lambda: T.AugMix(alpha=float("nan")),
        lambda: T.AugMix(mixture_width=0),
    ):
        with pytest.raises(hr.Error, match="HR0104"):
            call()


@pytest.mark.parametrize("vertical", [False, True])
def test_five_and_ten_crops_equal_torchvisions(vertical: bool) -> None:
    images = np.stack([picture(3, 31, 26, seed=n) for n in range(6)])
    data = hr.records(image=images, label=np.arange(6))
    for size in (9, [31, 25], [12, 26]):
        for step, theirs in (
            (T.FiveCrop(size), v2.FiveCrop(size)),
            (T.TenCrop(size, vertical_flip=vertical), v2.TenCrop(size, vertical_flip=vertical)),
        ):
            batch = next(iter(hr.Loader(data, [step], batch_size=6)))
            wanted = theirs(torch.from_numpy(images))
            names = ["top_left", "top_right", "bottom_left", "bottom_right", "center"]
            names += [name + "_mirrored" for name in names[: len(wanted) - 5]]
            for name, crops in zip(names, wanted, strict=True):
                np.testing.assert_array_equal(batch[name], crops.numpy())
    with pytest.raises(hr.Error, match=r"HR0510.*larger than"):
        hr.Loader(data, [T.FiveCrop(27)], batch_size=2)
    with pytest.raises(hr.Error, match="HR0111"):
        hr.Loader(data, [T.FiveCrop(9, field="picture")], batch_size=2)
