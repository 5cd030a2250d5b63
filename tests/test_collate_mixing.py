# SPDX-License-Identifier: Apache-2.0
"""A collate_fn that is torchvision's MixUp or CutMix becomes a transform; any other function runs
unchanged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import headrace as hr

torch = pytest.importorskip("torch")
torchvision = pytest.importorskip("torchvision")
import torch.utils.data as data  # noqa: E402
from torch.utils.data import DataLoader, default_collate  # noqa: E402
from torchvision.datasets import ImageFolder  # noqa: E402
from torchvision.transforms import v2  # noqa: E402

Function = Callable[[Any], Any]
CLASSES = 5

BYTES = torch.randint(0, 256, (24, 3, 6, 7), generator=torch.Generator().manual_seed(0)).byte()
IMAGES = BYTES / 255
LABELS = torch.arange(24) % CLASSES
AS_BYTES = v2.Compose([v2.CenterCrop((6, 7)), v2.PILToTensor()])
TENSORS = v2.Compose([AS_BYTES, v2.ToDtype(torch.float32, scale=True)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record i of the folder is image ORDER[i]: classes come one after the other."""
    root = tmp_path_factory.mktemp("pictures")
    for i, picture in enumerate(BYTES):
        path = root / str(int(LABELS[i])) / f"{i:02d}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(picture.permute(1, 2, 0).numpy()).save(path)
    return root


ORDER = [i for label in range(CLASSES) for i in range(24) if i % CLASSES == label]


def reference(mixup_or_cutmix: Any) -> Function:
    """As in torchvision's reference script for classification."""

    def collate_fn(batch: Any) -> Any:
        return mixup_or_cutmix(*default_collate(batch))

    return collate_fn


def as_lambda(mix: Any) -> Function:
    return lambda batch: mix(*torch.utils.data.default_collate(batch))


def as_lambda_of_module(mix: Any) -> Function:
    return lambda batch: mix(*data.dataloader.default_collate(batch))


def as_one(mix: Any) -> Function:
    return lambda batch: mix(default_collate(batch))


def in_steps(mix: Any) -> Function:
    def collate(samples: Any) -> Any:
        x, y = default_collate(samples)
        x, y = mix(x, y)
        return x, y

    return collate


def by_name(mix: Any) -> Function:
    def collate(samples: Any) -> Any:
        """Mixes."""
        samples = default_collate(samples)
        return mix(*samples)

    return collate


GLOBAL_MIX = v2.CutMix(num_classes=CLASSES)


def of_the_module(batch: Any) -> Any:
    return GLOBAL_MIX(*default_collate(batch))


def choice(p: list[float] | None = None) -> Any:
    mixes = [v2.MixUp(alpha=0.2, num_classes=CLASSES), v2.CutMix(num_classes=CLASSES)]
    return v2.RandomChoice(mixes, p=p)


def translated(folder: Path, function: Function, transform: Any = TENSORS, **options: Any) -> Any:
    dataset = ImageFolder(str(folder), transform)
    dataloader = DataLoader(dataset, batch_size=8, collate_fn=function)
    return hr.from_dataloader(dataloader, verbose=False, **options)


@pytest.mark.parametrize(
    "form", [reference, as_lambda, as_lambda_of_module, as_one, in_steps, by_name]
)
def test_common_forms_are_recognized(folder: Path, form: Callable[[Any], Function]) -> None:
    loader = translated(folder, form(choice()))
    assert any("collate_fn" in part.name for part in loader.report.native)
    assert not loader.report.python
    images, labels = next(iter(loader))
    assert images.shape == (8, 3, 6, 7) and labels.shape == (8, CLASSES)
    np.testing.assert_allclose(labels.sum(axis=1), 1, atol=1e-6)
    expected = form(choice())([(IMAGES[i], int(LABELS[i])) for i in range(8)])
    assert [value.shape for value in expected] == [images.shape, labels.shape]


def test_a_function_in_a_module_is_recognized_too(folder: Path) -> None:
    images, labels = next(iter(translated(folder, of_the_module)))
    assert labels.shape == (8, CLASSES)
    mixed = (images != IMAGES[ORDER[:8]].numpy()).any(axis=1)
    assert mixed.any() and not mixed.all()  # a box from another picture


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_a_batch_equals_torchvisions_for_the_same_proportion(folder: Path, dtype: str) -> None:
    """Each batch of torch's is a group: one proportion, and partners are neighbors in it."""
    floats = dtype == "float32"
    pictures = IMAGES if floats else BYTES
    mix = v2.MixUp(num_classes=CLASSES) if floats else v2.CutMix(num_classes=CLASSES)
    loader = translated(folder, reference(mix), TENSORS if floats else AS_BYTES)
    shares = set()
    for number, (images, labels) in enumerate(loader):
        plain = pictures[ORDER[number * 8 : number * 8 + 8]]
        own = LABELS[ORDER[number * 8 : number * 8 + 8]].tolist()
        differs = next(i for i in range(1, 8) if own[i] != own[i - 1])
        share = float(labels[differs, own[differs]])
        shares.add(share)
        if not floats:
            boxes = (images != plain.numpy()).any(axis=(0, 1))
            rows, columns = boxes.any(axis=1), boxes.any(axis=0)
            expected = np.where(rows[:, None] & columns, plain.roll(1, 0).numpy(), plain.numpy())
            np.testing.assert_array_equal(images, expected)
        else:
            expected = plain.roll(1, 0).mul_(1.0 - share).add_(plain.mul(share))
            np.testing.assert_allclose(images, expected.numpy(), atol=1e-6)
    assert len(shares) == 3


def test_probabilities_equal_those_of_the_choice(folder: Path) -> None:
    """MixUp changes every pixel of a batch, CutMix a box."""
    loader = translated(folder, reference(choice([1, 3])), seed=5)
    kinds = []
    for _ in range(60):
        for number, (images, _) in enumerate(loader):
            plain = IMAGES[ORDER[number * 8 : number * 8 + 8]].numpy()
            kinds.append(bool((images != plain).mean() > 0.999))
    assert 25 <= sum(kinds) <= 65  # of 180, a quarter; CutMix of all of a picture is rare


class RandomMixup(torch.nn.Module):
    """As in torchvision's reference script for v1."""

    def __init__(self, p: float = 1.0, alpha: float = 1.0) -> None:
        super().__init__()
        self.num_classes, self.p, self.alpha, self.inplace = CLASSES, p, alpha, False

    def forward(self, batch: Any, target: Any) -> Any:
        batch = batch.clone()
        target = torch.nn.functional.one_hot(target, self.num_classes).to(dtype=batch.dtype)
        if torch.rand(1).item() >= self.p:
            return batch, target
        rolled, target_rolled = self.partners(batch), self.partners(target)
        share = float(torch._sample_dirichlet(torch.tensor([self.alpha, self.alpha]))[0])
        batch.mul_(share).add_(rolled.mul_(1.0 - share))
        target.mul_(share).add_(target_rolled.mul_(1.0 - share))
        return batch, target

    def partners(self, batch: Any) -> Any:
        return batch.roll(1, 0)


class RandomCutmix(RandomMixup):
    def forward(self, batch: Any, target: Any) -> Any:
        batch = batch.clone()
        target = torch.nn.functional.one_hot(target, self.num_classes).to(dtype=batch.dtype)
        if torch.rand(1).item() >= self.p:
            return batch, target
        rolled, target_rolled = self.partners(batch), self.partners(target)
        share = float(torch._sample_dirichlet(torch.tensor([self.alpha, self.alpha]))[0])
        height, width = batch.shape[-2:]
        x, y = torch.randint(width, (1,)), torch.randint(height, (1,))
        half = 0.5 * (1.0 - share) ** 0.5
        x1, y1 = (
            int((x - int(half * width)).clamp(min=0)),
            int((y - int(half * height)).clamp(min=0)),
        )
        x2, y2 = int((x + int(half * width)).clamp(max=width)), int(y + int(half * height))
        y2 = min(y2, height)
        batch[:, :, y1:y2, x1:x2] = rolled[:, :, y1:y2, x1:x2]
        share = float(1.0 - (x2 - x1) * (y2 - y1) / (width * height))
        target.mul_(share).add_(target_rolled.mul_(1.0 - share))
        return batch, target


def test_the_reference_scripts_own_mixes_are_native(folder: Path) -> None:
    mix = torchvision.transforms.RandomChoice([RandomMixup(alpha=0.2), RandomCutmix()])
    loader = translated(folder, reference(mix))
    assert any("collate_fn" in part.name for part in loader.report.native)
    assert not loader.report.python
    shares = []
    for _ in range(20):
        for _images, labels in loader:
            np.testing.assert_allclose(labels.sum(axis=1), 1, atol=1e-6)
            shares.append(labels.max(axis=1).min())
    assert len(set(shares)) > 30


class RandomMixUp(RandomMixup):
    """Another function with the same name: partners come from the batch's other end."""

    def partners(self, batch: Any) -> Any:
        return batch.flip(0)


class OwnMix(v2.MixUp):  # type: ignore[misc]
    def forward(self, *inputs: Any) -> Any:
        return inputs


def with_default(mix: Any) -> Function:
    def collate(batch: Any, mix: Any = mix) -> Any:
        return mix(*default_collate(batch))

    return collate


def with_more(mix: Any) -> Function:
    def collate(batch: Any) -> Any:
        images, labels = mix(*default_collate(batch))
        return images * 2, labels

    return collate


def swapped(mix: Any) -> Function:
    def collate(batch: Any) -> Any:
        images, labels = default_collate(batch)
        return mix(labels, images)

    return collate


def returning_in_part(mix: Any) -> Function:
    def collate(batch: Any) -> Any:
        images, labels = default_collate(batch)
        mix(images, labels)
        return images, labels

    return collate


def another_collate(mix: Any) -> Function:
    def default_collate(batch: Any) -> Any:
        return batch

    return lambda batch: mix(*default_collate(batch))


def empty_cell() -> Function:
    def collate(batch: Any) -> Any:
        return mix(*default_collate(batch))

    if len(IMAGES) == 0:
        mix = choice()
    return collate


DIFFERENT = [
    with_default(choice()),
    with_more(choice()),
    swapped(v2.RandomChoice([v2.Identity()])),
    returning_in_part(choice()),
    reference(OwnMix(num_classes=CLASSES)),
    reference(RandomMixUp()),
    reference(RandomMixup(p=0.5)),
    reference(v2.RandomChoice([v2.MixUp(num_classes=CLASSES), v2.Identity()])),
    reference(v2.Compose([choice()])),
    reference(lambda *batch: batch),
    reference(v2.MixUp(num_classes=CLASSES, labels_getter=lambda batch: batch[1])),
]


@pytest.mark.parametrize("function", DIFFERENT)
def test_functions_that_differ_run_unchanged(folder: Path, function: Function) -> None:
    loader = translated(folder, function)
    (part,) = loader.report.python
    assert part.name.startswith("collate_fn=") and "run on each finished batch" in part.note
    plain = [(IMAGES[i], int(LABELS[i])) for i in ORDER[:8]]
    expected = function(plain)
    ours = loader.torch().batch(0, 0)
    # labels are mixed, or by chance unchanged
    assert len(ours) == len(expected) and len(ours[1]) == 8
    assert ours[0].shape == expected[0].shape and ours[0].dtype == expected[0].dtype


@pytest.mark.parametrize("function", [another_collate(choice()), empty_cell(), choice()])
def test_a_function_that_fails_on_a_list_of_records_is_refused(
    folder: Path, function: Function
) -> None:
    with pytest.raises(hr.ConfigError, match="HR0834") as refused:
        translated(folder, function)
    assert 'collate="default"' in str(refused.value)


def test_records_of_other_fields_are_not_mixed() -> None:
    numbers = torch.utils.data.TensorDataset(torch.rand(16, 3), torch.rand(16, 2), torch.ones(16))
    dataloader = DataLoader(numbers, batch_size=8, collate_fn=reference(choice()))
    with pytest.raises(hr.ConfigError, match=r"HR0834.*ValueError"):  # torchvision's own
        hr.from_dataloader(dataloader, verbose=False)


def test_a_skipped_collate_fn_is_counted(folder: Path) -> None:
    loader = translated(folder, reference(choice()), collate="default")
    assert next(iter(loader))[1].shape == (8,)
    assert "collate_fn" in loader.report.changed[0].name


def test_batches_have_the_requested_size(folder: Path) -> None:
    loader = translated(folder, reference(choice()), batch_size=4)
    assert [len(images) for images, _ in loader] == [4] * 6
