# SPDX-License-Identifier: Apache-2.0
"""MixUp and CutMix equal torchvision's for the same lambda and box, and give the same rows in every
configuration of the loader."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace import transforms as T

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")
from torchvision.transforms import v2  # noqa: E402

Array = np.ndarray[Any, Any]
CLASSES = 50


def source(count: int = 96, size: tuple[int, int, int] = (3, 17, 23), seed: int = 1) -> Any:
    random = np.random.default_rng(seed)
    images = random.integers(0, 256, (count, *size), dtype=np.uint8)
    return hr.records(image=images, label=np.arange(count, dtype=np.int64) % CLASSES)


def epoch(data: Any, steps: Any, **options: Any) -> list[Any]:
    loader = hr.Loader(data, steps, **{"batch_size": 16, "threads": 2, **options})
    return [(np.array(batch.image), np.array(batch.label)) for batch in loader]


def torch_epoch(data: Any, steps: Any) -> list[Any]:
    loader = hr.Loader(data, steps, batch_size=16, threads=2).torch()
    return [(images.clone(), labels.clone()) for images, labels in loader]


def groups(batches: list[Any], size: int) -> Any:
    for images, labels in batches:
        for first in range(0, len(images), size):
            yield images[first : first + size], labels[first : first + size]


DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("per_record", [False, True])
def test_mixup_equals_torchvisions_for_the_same_lambda(dtype: str, per_record: bool) -> None:
    data = source()
    steps = [T.ToDtype(dtype, scale=True)]
    mix = T.MixUp(alpha=0.8, num_classes=CLASSES, group=8, per_record=per_record)
    plain = groups(torch_epoch(data, steps), 8)
    lambdas: set[float] = set()
    theirs = v2.MixUp(num_classes=CLASSES)
    for (images, labels), (before, numbers) in zip(
        groups(torch_epoch(data, [*steps, mix]), 8), plain, strict=True
    ):
        assert images.dtype == DTYPES[dtype]
        own = labels[torch.arange(len(labels)), numbers].double().tolist()
        lambdas.update(own)
        assert per_record or len(set(own)) == 1
        for row, lam in enumerate(own):
            params = {"labels": numbers, "batch_size": len(numbers), "lam": lam}
            assert torch.equal(images[row], theirs.transform(before, params)[row])
            assert torch.equal(labels[row], theirs.transform(numbers, params)[row])
    assert len(lambdas) == (96 if per_record else 12)


def test_uint8_is_mixed_on_request_and_rounded_to_the_nearest() -> None:
    data = source()
    mix = T.MixUp(num_classes=CLASSES, uint8=True)
    for (images, labels), (before, numbers) in zip(
        groups(epoch(data, [mix]), 8), groups(epoch(data, []), 8), strict=True
    ):
        own = np.float32(labels[0, numbers[0]])
        rest = np.float32(1.0 - np.float64(own))
        wanted = np.roll(before, 1, axis=0) * rest + before * own
        np.testing.assert_array_equal(images, np.floor(wanted + np.float32(0.5)).astype(np.uint8))
    with pytest.raises(
        hr.Error, match=r"HR0510.*(?s:.*)\[MixUp\] mixes floating-point images(?s:.*)uint8=True"
    ):
        epoch(data, [T.MixUp(num_classes=CLASSES)])


@pytest.mark.parametrize("memory_format", ["channels_first", "channels_last"])
@pytest.mark.parametrize("per_record", [False, True])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "float16"])
def test_cutmix_equals_torchvisions_for_the_same_box(
    memory_format: str, per_record: bool, dtype: str
) -> None:
    count, height, width = 96, 17, 23
    # No two rows have the same value at the same position, so the origin of each value is visible.
    images = np.broadcast_to(
        np.arange(count, dtype=np.uint8)[:, None, None, None], (count, 3, 17, 23)
    )
    images = np.ascontiguousarray(images)
    data = hr.records(image=images, label=np.arange(count, dtype=np.int64))
    steps = [] if dtype == "uint8" else [T.ToDtype(dtype, scale=True)]
    mix = T.CutMix(num_classes=count, group=8, per_record=per_record, uint8=dtype == "uint8")
    options = {"memory_format": memory_format}
    boxes = set()
    for (ours, labels), (before, numbers) in zip(
        groups(epoch(data, [*steps, mix], **options), 8),
        groups(epoch(data, steps, **options), 8),
        strict=True,
    ):
        rolled = np.roll(before, 1, axis=0)
        for row in range(len(ours)):
            ys, xs = np.nonzero((ours[row] != before[row]).any(axis=0))
            box = (xs.min(), ys.min(), xs.max() + 1, ys.max() + 1) if len(xs) else (0, 0, 0, 0)
            boxes.add(box)
            x1, y1, x2, y2 = (int(n) for n in box)
            wanted = before[row].copy()
            wanted[:, y1:y2, x1:x2] = rolled[row, :, y1:y2, x1:x2]
            np.testing.assert_array_equal(ours[row], wanted)
            lam = float(1.0 - (x2 - x1) * (y2 - y1) / (width * height))
            theirs = v2.CutMix(num_classes=count)
            soft = theirs._mixup_label(torch.from_numpy(numbers), lam=lam)
            np.testing.assert_array_equal(labels[row], soft[row].numpy())
    assert len(boxes) > (60 if per_record else 8)


def ks_distance(values: Array, cdf: Any) -> float:
    values = np.sort(values)
    at = cdf(values)
    steps = np.arange(len(values) + 1) / len(values)
    return float(max(np.abs(at - steps[:-1]).max(), np.abs(at - steps[1:]).max()))


@pytest.mark.parametrize("alpha", [0.2, 1.0, 3.0])
def test_lambdas_have_torchs_distribution(alpha: float) -> None:
    count = 8000
    data = hr.records(
        image=np.zeros((count, 1, 1, 1), np.uint8), label=np.arange(count, dtype=np.int64) % 2
    )
    mix = T.MixUp(alpha=alpha, num_classes=2, group=2, per_record=True, uint8=True)
    batches = epoch(data, [mix], batch_size=1000)
    labels = np.concatenate([labels for _, labels in batches])
    own = labels[np.arange(count), np.arange(count) % 2]
    sample = torch.distributions.Beta(alpha, alpha).sample((200_000,)).numpy()
    sample.sort()
    distance = ks_distance(own, lambda x: np.searchsorted(sample, x) / len(sample))
    assert distance < 1.95 / np.sqrt(count) + 1.95 / np.sqrt(len(sample))


def test_boxes_have_torchvisions_distribution() -> None:
    count, side = 3000, 32
    images = np.zeros((count, 1, side, side), np.uint8)
    images[1::2] = 255
    data = hr.records(image=images, label=np.arange(count, dtype=np.int64) % 2)
    mix = T.CutMix(num_classes=2, group=2, per_record=True, uint8=True)
    ours = np.concatenate([labels for _, labels in epoch(data, [mix], batch_size=1000)])
    shares = ours[np.arange(count), np.arange(count) % 2]
    torch.manual_seed(3)
    theirs = v2.CutMix(num_classes=2)
    picture = torch.zeros(2, 1, side, side)
    sample = np.array([theirs.make_params([picture])["lam_adjusted"] for _ in range(6000)])
    for quantile in np.linspace(0.1, 0.9, 9):
        at = np.quantile(sample, quantile)
        assert abs((shares < at).mean() - (sample < at).mean()) < 0.035


MIXED = [
    [T.ToDtype("float32", scale=True), T.MixUp(num_classes=CLASSES)],
    [T.RandomHorizontalFlip(), T.CutMix(num_classes=CLASSES, uint8=True, per_record=True)],
    [
        T.ToDtype("float16", scale=True),
        T.RandomApply(
            [T.RandomChoice([T.MixUp(num_classes=CLASSES), T.CutMix(num_classes=CLASSES)])], p=0.8
        ),
    ],
]


@pytest.mark.parametrize("steps", MIXED)
def test_ranks_threads_and_a_resume_change_no_row(steps: Any) -> None:
    data = source(90)
    options = {"global_batch_size": 32, "shuffle": True, "seed": 5}
    whole = list(hr.Loader(data, steps, threads=1, **options))
    wanted = [(np.array(b.image), np.array(b.label)) for b in whole]
    for world in (2, 4):
        parts = [
            list(hr.Loader(data, steps, threads=2, shard=(rank, world), **options))
            for rank in range(world)
        ]
        for index, (images, labels) in enumerate(wanted):
            joined = np.concatenate([np.array(part[index].image) for part in parts])
            np.testing.assert_array_equal(joined, images)
            joined = np.concatenate([np.array(part[index].label) for part in parts])
            np.testing.assert_array_equal(joined, labels)
    loader = hr.Loader(data, steps, **options)
    next(iter(loader))
    state = loader.state_dict()
    again = hr.Loader(data, steps, threads=3, **options)
    again.load_state_dict(state)
    rest = [np.array(batch.image) for batch in again]
    assert len(rest) == 2
    for ours, (images, _) in zip(rest, wanted[1:], strict=True):
        np.testing.assert_array_equal(ours, images)


@pytest.mark.parametrize("steps", MIXED)
def test_resident_records_are_mixed_like_streamed_ones(steps: Any) -> None:
    data = source(64)
    streamed = epoch(data, steps, shuffle=True)
    resident = epoch(data, steps, shuffle=True, resident=True)
    for (images, labels), (others, soft) in zip(streamed, resident, strict=True):
        np.testing.assert_array_equal(images, others)
        np.testing.assert_array_equal(labels, soft)


def test_each_group_gets_one_mix_and_labels_are_always_rows() -> None:
    data = source(800, (1, 4, 4))
    choice = T.RandomChoice(
        [T.MixUp(num_classes=CLASSES, uint8=True), T.CutMix(num_classes=CLASSES, uint8=True)],
        p=[0.3, 0.7],
    )
    plain, mixed = (
        epoch(data, [], batch_size=80),
        epoch(data, [T.RandomApply([choice], p=0.5)], batch_size=80),
    )
    left = 0
    for (images, labels), (before, numbers) in zip(groups(mixed, 8), groups(plain, 8), strict=True):
        np.testing.assert_allclose(labels.sum(axis=1), 1, rtol=1e-6)
        if (images == before).all() and (labels.max(axis=1) == 1).all():
            np.testing.assert_array_equal(labels.argmax(axis=1), numbers)
            left += 1
    assert 30 <= left <= 75  # half of 100, and the few empty boxes


def test_label_smoothing_equals_timms() -> None:
    data = source(16)
    mix = T.MixUp(num_classes=CLASSES, group=16, label_smoothing=0.1, uint8=True)
    ((_, labels),) = epoch(data, [mix])
    off = 0.1 / CLASSES
    assert np.isclose(labels.min(), off)
    np.testing.assert_allclose(labels.sum(axis=1), 1, rtol=1e-6)
    ((_, labels),) = epoch(data, [T.OneHot(CLASSES, label_smoothing=0.1)])
    np.testing.assert_allclose(labels.max(axis=1), 0.9 + off)


def test_fields_that_cannot_be_mixed_are_refused_before_anything_runs() -> None:
    data = source(32)
    scaled = T.ToDtype("float32", scale=True)

    def refusal(*steps: Any, **options: Any) -> str:
        with pytest.raises(hr.Error) as caught:
            hr.Loader(options.pop("data", data), list(steps), batch_size=16, **options)
        return str(caught.value)

    assert "num_classes=N" in refusal(scaled, T.MixUp())
    assert "HR0723" in refusal(scaled, T.MixUp(num_classes=CLASSES, group=5))
    assert "HR0510" in refusal(
        scaled, T.MixUp(num_classes=CLASSES), T.CutMix(num_classes=CLASSES + 1)
    )
    assert "HR0130" in refusal(scaled, T.MixUp(num_classes=CLASSES), T.RandomHorizontalFlip())
    assert "HR0130" in refusal(
        T.RandomChoice([T.MixUp(num_classes=CLASSES, uint8=True), T.RandomHorizontalFlip()])
    )
    for alpha in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(hr.Error, match="HR0104"):
            T.MixUp(alpha=alpha)
    boxes = np.zeros((32, 2, 4), np.float32)
    with_boxes = hr.records(
        image=np.zeros((32, 3, 8, 8), np.uint8),
        label=np.zeros(32, np.int64),
        boxes=boxes,
        kinds={"boxes": "boxes"},
    )
    message = refusal(scaled, T.CutMix(num_classes=3), data=with_boxes)
    assert "HR0133" in message and '"boxes"' in message
    said = T.CutMix(num_classes=3, fields=("image", "label"))
    batch = next(iter(hr.Loader(with_boxes, [scaled, said], batch_size=16)))
    assert batch.boxes.shape == (16, 2, 4)
    without = hr.Loader(
        with_boxes, [scaled, T.CutMix(num_classes=3)], batch_size=16, fields=("image", "label")
    )
    assert next(iter(without)).label.shape == (16, 3)
    # An image that is mixed in a branch without its label would get a wrong label.
    mixed = [scaled, T.MixUp()]
    with pytest.raises(hr.Error, match="HR0133"):
        hr.Loader(data, {"image": mixed}, batch_size=16)
    assert "HR0133" in refusal(T.Fork("image", one=mixed, two=[scaled]))


def test_a_label_beyond_num_classes_is_a_bad_record() -> None:
    images = np.zeros((16, 1, 2, 2), np.uint8)
    for wrong in (3, -1, 2**62):
        labels = np.zeros(16, np.int64)
        labels[5] = wrong
        data = hr.records(image=images, label=labels)
        steps = [T.MixUp(num_classes=3, uint8=True)]
        with pytest.raises(hr.Error, match=rf"HR0530.*label {wrong} is not one of the 3 classes"):
            epoch(data, steps)
        ((_, soft),) = epoch(data, steps, on_error="skip", error_budget=1.0)
        assert soft.shape == (15, 3)


def test_targets_that_are_already_soft_labels_are_mixed_if_named() -> None:
    random = np.random.default_rng(2)
    target = random.random((32, 5), dtype=np.float32)
    data = hr.records(image=np.zeros((32, 1, 2, 2), np.uint8), target=target)
    mix = T.MixUp(group=16, uint8=True, fields=("image", "target"))
    batch = next(iter(hr.Loader(data, [mix], batch_size=16)))
    ours = np.array(batch.target)
    rolled = np.roll(target[:16], 1, axis=0)
    lam = ((ours - rolled) / (target[:16] - rolled)).mean()
    np.testing.assert_allclose(ours, lam * target[:16] + (1 - lam) * rolled, atol=1e-5)


def test_a_record_is_traced_up_to_mixing() -> None:
    mixing = [T.MixUp(num_classes=CLASSES, uint8=True), T.CutMix(num_classes=CLASSES, uint8=True)]
    inside = T.RandomApply([T.RandomChoice(mixing)], p=0.5)
    choice = T.RandomChoice([T.RandomInvert(1.0), [T.RandomSolarize(3, 1.0)]])
    loader = hr.Loader(source(), [choice, inside], batch_size=16)
    images, _ = groups(epoch(source(), [choice]), 16).__next__()
    for position in range(4):
        stages = loader.trace(position)
        assert len(stages) == 2
        np.testing.assert_array_equal(np.array(stages[-1].values["image"]), images[position])
