# SPDX-License-Identifier: Apache-2.0
"""torchvision's reference script for classification, unmodified: its loaders become native and give
the same batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import made_data
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision.transforms.v2")
import torchvision_classification as script  # noqa: E402
from comparison import assert_equal_batches, in_order, native  # noqa: E402

VERSIONS = pytest.mark.parametrize("use_v2", [False, True], ids=["v1", "v2"])
# A window of the largest square, and a flip with probability 1.
PINNED: dict[str, Any] = {"scale": (1.0, 1.0), "hflip_prob": 1.0}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_data.image_folder(tmp_path_factory.mktemp("folder"), size=(90, 90))


@VERSIONS
@pytest.mark.parametrize("policy", [None, "ra", "ta_wide", "augmix", "imagenet"])
def test_presets_are_native(root: Path, use_v2: bool, policy: str | None) -> None:
    train = {"auto_augment_policy": policy, "random_erase_prob": 0.1 if policy else 0.0}
    loader = native(script.loaders(root, use_v2=use_v2, train=train)[0])
    image, target = next(iter(loader.torch()))
    assert image.shape == (8, 3, 64, 64) and image.dtype == torch.float32
    assert target.dtype == torch.int64


@VERSIONS
def test_batches_are_equal_without_random_steps(root: Path, use_v2: bool) -> None:
    train, validation, _ = script.loaders(root, use_v2=use_v2, train={**PINNED, "ratio": (1, 1)})
    ordered = in_order(train)
    assert_equal_batches(native(ordered), ordered)
    assert_equal_batches(native(validation), validation)


@VERSIONS
@pytest.mark.parametrize("kind", ["mixup_alpha", "cutmix_alpha"])
def test_mixed_images_have_the_proportion_of_their_labels(
    root: Path, use_v2: bool, kind: str
) -> None:
    options: dict[str, Any] = {"use_v2": use_v2, "train": {**PINNED, "ratio": (1, 1)}}
    mixed = in_order(script.loaders(root, **{kind: 1.0}, **options)[0], stride=7)
    plain = list(in_order(script.loaders(root, **options)[0], stride=7))
    lambdas = []
    for (image, target), (whole, label) in zip(native(mixed).torch(), plain, strict=True):
        one_hot = torch.nn.functional.one_hot(label, 3).float()
        rolled, other = whole.roll(1, 0), one_hot.roll(1, 0)
        different = (one_hot != other).any(1).nonzero()[0]
        lam = target[different, label[different]].item()
        lambdas.append(lam)
        torch.testing.assert_close(target, one_hot * lam + other * (1 - lam))
        if kind == "mixup_alpha":
            mean = whole * lam + rolled * (1 - lam)
            torch.testing.assert_close(image, mean, rtol=0, atol=1e-5)
        else:
            near, far = (image - whole).abs() < 1e-5, (image - rolled).abs() < 1e-5
            assert (near | far).all()
            share = (~near).any(1).any(0).float().mean().item()  # pixels; one box per batch
            assert share == pytest.approx(1 - lam, abs=1e-3)
    assert len(set(lambdas)) > 1


def test_repeated_augmentation_has_a_new_order_each_epoch(root: Path) -> None:
    options = {"ra_sampler": True, "train": {**PINNED, "ratio": (1, 1)}}
    for rank in (0, 1):
        dataloader, _, sampler = script.loaders(root, ranks=(rank, 2), **options)
        loader = native(dataloader)
        for epoch in (0, 1, 5):
            sampler.set_epoch(epoch)
            assert_equal_batches(loader, dataloader)


def test_a_run_that_starts_at_epoch_3_has_the_order_of_that_epoch(root: Path) -> None:
    labels = {}
    for start in (0, 3):
        dataloader, _, sampler = script.loaders(root, ranks=(0, 2), train=PINNED)
        view = native(dataloader).torch()
        for epoch in range(start, 5):
            sampler.set_epoch(epoch)
            labels[start, epoch] = torch.cat([target for _, target in view]).tolist()
    assert labels[0, 3] == labels[3, 3] and labels[0, 4] == labels[3, 4]
    assert len({tuple(labels[0, epoch]) for epoch in range(5)}) > 1


@VERSIONS
def test_the_loop_runs_on_the_view(root: Path, use_v2: bool) -> None:
    train, validation, _ = script.loaders(root, use_v2=use_v2, mixup_alpha=0.2, cutmix_alpha=1.0)
    view, evaluated = native(train).torch(), native(validation).torch()
    model = script.small_model(len(view.dataset.classes))
    model(torch.zeros(1, 3, 64, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    model_ema = torch.optim.swa_utils.AveragedModel(model)
    assert script.train_one_epoch(model, optimizer, view, model_ema) > 0
    assert script.evaluate(model, evaluated) == 18
