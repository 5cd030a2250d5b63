# SPDX-License-Identifier: Apache-2.0
"""timm's training script, unmodified: its loaders become native and give the same batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import made_data
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("timm")
import timm_train as script  # noqa: E402
from comparison import assert_equal_batches, in_order, native, records_native  # noqa: E402
from torch import nn  # noqa: E402

PLAIN: dict[str, Any] = {
    "no_aug": True,
    "interpolation": "bilinear",
    "re_prob": 0.0,
    "auto_augment": None,
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_data.image_folder(tmp_path_factory.mktemp("folder"))


def ordered(loader: Any, stride: int = 1) -> Any:
    """Its prefetcher, and the records without random order."""
    inner = in_order(loader.loader, stride=stride)
    loader.loader = inner
    return loader


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"re_mode": "const", "re_count": 2},
        {"use_multi_epochs_loader": True},
        {"prefetcher": False, "re_prob": 0.0},
    ],
    ids=["default", "const", "multi-epochs", "no-prefetcher"],
)
def test_the_loaders_are_native(root: Path, options: dict[str, Any]) -> None:
    for dataloader in script.loaders(root, **options)[:2]:
        view = records_native(dataloader).torch()
        images, target = next(iter(view))
        assert images.shape == (8, 3, 64, 64) and images.dtype == torch.float32
        assert target.dtype == torch.int64


def test_batches_are_equal_without_random_steps(root: Path) -> None:
    train, validation, _ = script.loaders(root, **PLAIN)
    assert_equal_batches(native(validation), validation)
    train = ordered(train)
    assert_equal_batches(native(train), train)


def test_batches_are_mixed_with_smoothed_labels(root: Path) -> None:
    mixup = {**script.MIXUP, "cutmix_alpha": 0.0}
    mixed = ordered(script.loaders(root, mixup=mixup, batch_size=6, **PLAIN)[0], stride=7)
    plain = ordered(script.loaders(root, batch_size=6, **PLAIN)[0], stride=7)
    for (images, target), (whole, label) in zip(records_native(mixed).torch(), plain, strict=True):
        torch.testing.assert_close(target.sum(1), torch.ones(6))
        smooth = nn.functional.one_hot(label, 3) * 0.9 + 0.1 / 3
        different = (label != label.flip(0)).nonzero()[0]
        lam = ((target - smooth.flip(0)) / (smooth - smooth.flip(0)))[different, label[different]]
        mean = whole * lam + whole.flip(0) * (1 - lam)
        step = 1 / 255 / 0.224  # mixes bytes, with rounding
        torch.testing.assert_close(images, mean, rtol=0, atol=0.51 * step)


def test_the_loop_runs_on_the_view(root: Path) -> None:
    train, validation, mixup_fn = script.loaders(root, mixup=script.MIXUP)
    view, evaluated = records_native(train).torch(), native(validation).torch()
    model = nn.Sequential(nn.Conv2d(3, 4, 8, stride=8), nn.ReLU(), nn.Flatten(), nn.Linear(256, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(2):  # from epoch 1 on without MixUp
        assert script.train_one_epoch(epoch, model, view, optimizer, mixup_fn) > 0
    assert view.mixup_enabled is False
    assert script.validate(model, evaluated) == 18


@pytest.mark.parametrize("mixup", [{}, {"cutmix_alpha": 0.0}, {"prob": 0.5}], ids=str)
def test_our_mixing_gives_the_batches_of_timms_function(
    root: Path, mixup: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from headrace.migrate import fast_mixup

    def batches() -> list[Any]:
        loader = script.loaders(root, mixup={**script.MIXUP, **mixup})[0]
        return list(records_native(loader).torch())

    called: list[int] = []
    mix = fast_mixup._FastMixup._mix
    monkeypatch.setattr(
        fast_mixup._FastMixup, "_mix", lambda *given: called.append(1) or mix(*given)
    )
    ours = batches()
    assert len(called) > len(ours)
    monkeypatch.setattr(fast_mixup, "of", lambda *given: None)
    for one, other in zip(ours, batches(), strict=True):
        assert all(torch.equal(*pair) for pair in zip(one, other, strict=True))
