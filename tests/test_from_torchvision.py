# SPDX-License-Identifier: Apache-2.0
"""hr.from_dataloader() over torchvision's own datasets and transforms."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import migrated_classes as own
import numpy as np
import pytest
from conftest import TORCHVISION_OPERATORS, files_of, label_of
from headrace.migrate import originals
from migrated_classes import assert_same_batches, translated
from PIL import Image

import headrace as hr

torch = pytest.importorskip("torch")
tv = pytest.importorskip("torchvision")
pytest.importorskip("torchvision.transforms.v2")  # so that tv has it
from torch.utils.data import DataLoader, Subset  # noqa: E402

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def folder(root: Path, transform: Any, **more: Any) -> Any:
    return tv.datasets.ImageFolder(str(root), transform=transform, **more)


def test_evaluation_of_a_folder_is_native_and_equal(pictures: Path) -> None:
    v1 = tv.transforms
    recipe = [v1.Resize(24), v1.CenterCrop(16), v1.ToTensor(), v1.Normalize(MEAN, STD)]
    dataloader = DataLoader(folder(pictures, v1.Compose(recipe)), batch_size=5)
    loader = translated(dataloader)
    assert_same_batches(dataloader, loader, tolerance=1e-6)
    assert not loader.report.python
    assert loader.source.classes == ["cat", "dog", "eel"]
    assert loader.report.differences["label"] == 0 < loader.report.differences["image"] < 1e-6


class Preset:
    """As in torchvision's reference scripts."""

    def __init__(self, transforms: Any) -> None:
        self.transforms = transforms

    def __call__(self, image: Any) -> Any:
        return self.transforms(image)


def test_a_loader_accepts_a_compose_instead_of_a_list(pictures: Path) -> None:
    """With torchvision's input: Pillow images. Transforms that have an operator are native."""
    from torchvision.transforms import v2

    inside = [v2.Resize((20, 24)), v2.CenterCrop(16), v2.PILToTensor()]
    for made in (v2.Compose(inside), torch.nn.Sequential(*inside)):
        expected = torch.stack([image for image, _ in folder(pictures, made)])
        with warnings.catch_warnings(action="error"):
            loader = hr.Loader(pictures, made, batch_size=100)
        assert "Resize(" in repr(loader) and "PILToTensor" not in repr(loader)
        np.testing.assert_array_equal(next(iter(loader)).image, expected)
    preset = Preset(v2.Compose(inside))
    loader = hr.Loader(pictures, preset, batch_size=100)
    assert loader.assembly.pipeline.all_steps()[0].name == "Resize"
    np.testing.assert_array_equal(next(iter(loader)).image, expected)
    mixed = v2.Compose([v2.Resize((20, 24)), lambda image: image.rotate(90), v2.PILToTensor()])
    expected = torch.stack([image for image, _ in folder(pictures, mixed)])
    with pytest.warns(hr.Warning, match=r"\[.*lambda.*\] runs in Python.*of your own"):
        loader = hr.Loader(pictures, mixed, batch_size=100)
    np.testing.assert_array_equal(next(iter(loader)).image, expected)


def test_a_compose_over_several_fields_stays_one_call(pictures: Path) -> None:
    from torchvision.transforms import v2

    images = np.zeros((4, 3, 20, 30), np.uint8)
    source = hr.records(image=images, mask=np.arange(4 * 600, dtype=np.uint8).reshape(4, 20, 30))
    flip = v2.Compose([v2.RandomHorizontalFlip(1.0)])
    batch = next(iter(hr.Loader(source, flip, batch_size=4)))
    np.testing.assert_array_equal(batch.mask[0].squeeze(), source[0]["mask"].squeeze()[:, ::-1])


def test_training_pipelines_of_both_versions_are_native(pictures: Path) -> None:
    from torchvision.transforms import v2

    v1 = tv.transforms
    first = [
        v1.RandomResizedCrop(16),
        v1.RandomHorizontalFlip(),
        v1.RandomVerticalFlip(),
        v1.Pad(2, fill=7),
        v1.RandomCrop(16, padding=3),
        v1.RandomApply([v1.RandomHorizontalFlip(1.0)], p=0.3),
        v1.PILToTensor(),
        v1.ConvertImageDtype(torch.float32),
        v1.Normalize(MEAN, STD),
    ]
    second = [
        v2.RandomResizedCrop(16, antialias=True),
        v2.RandomHorizontalFlip(),
        v2.RandomCrop(16, padding=3),
        v2.ToImage(),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize(MEAN, STD),
    ]
    for recipe in (v1.Compose(first), v2.Compose([v2.Compose(second), v2.Identity()])):
        loader = translated(DataLoader(folder(pictures, recipe), batch_size=4, shuffle=True))
        assert not loader.report.python, loader.report
        assert loader.report.records_checked == 23
        assert next(iter(loader)).image.shape == (4, 3, 16, 16)


def test_transforms_without_an_operator_run_unchanged(pictures: Path) -> None:
    v1 = tv.transforms
    recipe = [
        own.Invert(),
        v1.Resize((12, 12)),
        v1.ToTensor(),
        v1.Lambda(torch.exp),
        v1.Normalize(MEAN, STD),
    ]
    dataset = folder(pictures, v1.Compose(recipe), target_transform=own.plus_ten)
    dataloader = DataLoader(dataset, batch_size=6)
    # A worker imports the unmodified torchvision, which fails where conftest has to fix it.
    for workers in (0,) if TORCHVISION_OPERATORS else (0, 1):
        with translated(dataloader, python_workers=workers) as loader:
            assert_same_batches(dataloader, loader, tolerance=2e-6)
    names = [part.name for part in loader.report.python]
    assert [name.partition("(")[0] for name in names] == ["Lambda", "target_transform plus_ten"]


def test_changed_shapes_and_dtypes_are_declared(pictures: Path) -> None:
    v1 = tv.transforms
    recipe = v1.Compose([v1.Resize((5, 6)), own.Grow(), torch.from_numpy])
    dataset = folder(pictures, recipe, target_transform=own.half)
    dataloader = DataLoader(dataset, batch_size=23)
    assert_same_batches(dataloader, translated(dataloader))


def test_random_steps_in_python_repeat_and_differ_by_record(pictures: Path) -> None:
    v1 = tv.transforms
    recipe = v1.Compose([v1.Resize((40, 40)), v1.RandomRotation(90), v1.ToTensor()])
    dataset = folder(pictures, recipe)
    same = Subset(dataset, [0] * 6)
    runs = [
        next(iter(translated(DataLoader(same, batch_size=6), threads=threads))).image
        for threads in (1, 3)
    ]
    np.testing.assert_array_equal(*runs)
    assert len({image.tobytes() for image in runs[0]}) == 6


def test_arrays_in_memory_are_sources() -> None:
    v1 = tv.transforms
    rng = np.random.default_rng(0)
    cifar = tv.datasets.CIFAR10.__new__(tv.datasets.CIFAR10)
    cifar.data = rng.integers(0, 256, (40, 32, 32, 3), dtype=np.uint8)
    cifar.targets = rng.integers(0, 10, 40).tolist()
    cifar.transform = v1.Compose([v1.ToTensor(), v1.Normalize(MEAN, STD)])
    mnist = tv.datasets.FashionMNIST.__new__(tv.datasets.FashionMNIST)
    mnist.data = torch.from_numpy(rng.integers(0, 256, (40, 28, 28), dtype=np.uint8))
    mnist.targets = torch.arange(40) % 10
    mnist.transform = v1.Compose([v1.Pad(2), v1.ToTensor(), v1.Normalize(0.13, 0.31)])
    for dataset in (cifar, mnist):
        dataset.target_transform = dataset.transforms = None
        dataloader = DataLoader(dataset, batch_size=16)
        loader = translated(dataloader)
        assert_same_batches(dataloader, loader, tolerance=1e-6)
        assert not loader.report.python


def test_extra_values_of_a_dataset_become_columns(pictures: Path) -> None:
    class Marked(tv.datasets.ImageFolder):  # type: ignore[misc, name-defined]
        def __getitem__(self, index: int) -> Any:
            image, label = super().__getitem__(index)
            return image, label, index

    recipe = tv.transforms.Compose([tv.transforms.Resize((4, 4)), tv.transforms.ToTensor()])
    dataloader = DataLoader(Marked(str(pictures), recipe), batch_size=9)
    loader = translated(dataloader)
    assert_same_batches(dataloader, loader, tolerance=1e-6)
    assert not loader.report.python
    left = translated(dataloader, trace=False)
    assert_same_batches(dataloader, left)
    assert "a __getitem__ of its own" in left.report.python[0].note


def test_labels_that_were_changed_are_the_ones_delivered(pictures: Path) -> None:
    dataset = folder(pictures, tv.transforms.Resize((4, 4)))
    dataset.transform = tv.transforms.Compose([dataset.transform, tv.transforms.ToTensor()])
    dataset.samples = [(path, 2 - label) for path, label in reversed(dataset.samples)]
    labels = next(iter(translated(DataLoader(dataset, batch_size=23)))).label
    assert labels.tolist() == [2 - label_of(path) for path in reversed(files_of(pictures))]


def test_pixels_that_differ_are_an_error_that_names_record_and_step(
    pictures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    v1 = tv.transforms
    recipe = v1.Compose([v1.Resize((8, 8)), own.Grow()])
    real = originals.value_from_pixels
    monkeypatch.setattr(originals, "value_from_pixels", lambda p, form: real(p[:, ::-1], form))
    dataloader = DataLoader(folder(pictures, recipe), batch_size=4)
    with pytest.raises(hr.ConfigError, match="after Grow") as caught:
        translated(dataloader)
    assert caught.value.code == "HR0835" and "image of record 0 differs" in str(caught.value)
    assert translated(dataloader, check=False).report.records_checked == 0


def test_image_options_apply_to_the_comparison_too(tmp_path: Path) -> None:
    """damaged= and sixteen_bit= only applied to the loader, so the cases they allow were
    rejected."""
    (tmp_path / "a").mkdir()
    whole = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 255, (48, 40, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(whole, "JPEG")
    (tmp_path / "a" / "0.jpg").write_bytes(whole.getvalue()[:-800] + b"\xff\xd9")
    recipe = [tv.transforms.Resize((24, 24)), tv.transforms.ToTensor()]
    dataloader = DataLoader(folder(tmp_path, tv.transforms.Compose(recipe)), batch_size=1)
    with pytest.raises(hr.DataError, match="HR0385"):
        hr.from_dataloader(dataloader, verbose=False)
    with pytest.warns(UserWarning, match="1 image of epoch 0 had damage"):
        loader = hr.from_dataloader(dataloader, verbose=False, damaged="repair")
    np.testing.assert_allclose(next(iter(loader))["image"], next(iter(dataloader))[0], atol=1e-6)


@pytest.mark.parametrize("fields", [None, "image", ["image"]])
def test_fields_are_declared_as_for_a_loader(pictures: Path, fields: Any) -> None:
    recipe = [tv.transforms.Resize((24, 24)), tv.transforms.ToTensor()]
    dataloader = DataLoader(folder(pictures, tv.transforms.Compose(recipe)), batch_size=1)
    loader = hr.from_dataloader(dataloader, verbose=False, fields=fields)
    assert next(iter(loader))._fields == (("image", "label") if fields is None else ("image",))


def test_choices_and_orders_are_native(pictures: Path) -> None:
    from torchvision.transforms import v2

    recipe = [
        v2.RandomResizedCrop(16, antialias=True),
        v2.RandomChoice(
            [v2.Grayscale(3), v2.Compose([v2.RandomHorizontalFlip(), v2.ColorJitter(0.4)])],
            p=[1, 3],
        ),
        v2.RandomOrder([v2.RandomInvert(0.5), v2.RandomPosterize(3)]),
        v2.ToImage(),
    ]
    loader = translated(DataLoader(folder(pictures, v2.Compose(recipe)), batch_size=4))
    assert not loader.report.python, loader.report
    assert loader.report.records_checked == 23


def test_warps_of_pillow_and_tensor_images_are_native_and_equal(pictures: Path) -> None:
    from torchvision import tv_tensors
    from torchvision.transforms import v2

    smooth = {"interpolation": v2.InterpolationMode.BILINEAR}
    recipe = [
        v2.RandomRotation((30, 30), expand=True, fill=(3, 4, 5), **smooth),
        v2.Resize((30, 30), antialias=True),
        v2.RandomRotation((-7, -7), center=(3, 9)),
    ]
    drawn = [
        v2.RandomAffine(9, (0.1, 0.2), (0.8, 1.2), 5, fill=3),
        v2.RandomPerspective(),
        v2.ElasticTransform(),
        v2.RandomRotation((11, 11), fill=None, **smooth),
        v2.RandomRotation((-4, -4), fill={tv_tensors.Mask: 255, "others": (7, 8, 9)}, **smooth),
    ]
    for first in ([], [v2.ToImage(), v2.CenterCrop(24)]):
        steps = [*first, *recipe[-1 if first else 0 :], *drawn, v2.ToImage()]
        loader = translated(DataLoader(folder(pictures, v2.Compose(steps)), batch_size=4))
        assert not loader.report.python, loader.report
        assert loader.report.records_checked == 23
    for unlike in (
        v2.RandomAffine(9, fill=2.5),
        v2.RandomAffine(9, fill={tv_tensors.Mask: 2}),
        v2.RandomAffine(9, fill={tv_tensors.Mask: 2.5, "others": 0}),
    ):
        dataset = folder(pictures, v2.Compose([v2.ToImage(), v2.CenterCrop(24), unlike]))
        (part,) = translated(DataLoader(dataset, batch_size=4), check=False).report.python
        assert "fill" in part.note


def test_the_users_own_methods_and_hooks_are_called(pictures: Path) -> None:
    """Their draws are their own, and a comparison without randomness would miss it."""
    from torchvision.transforms import v2

    v1 = tv.transforms
    corner = v1.RandomCrop(5)
    corner.get_params = lambda image, size: (0, 0, 5, 5)
    dark = v2.ColorJitter(0.5)
    dark.make_params = lambda inputs: {
        "fn_idx": torch.tensor([0]),
        "brightness_factor": 0.0,
        "contrast_factor": None,
        "saturation_factor": None,
        "hue_factor": None,
    }
    hooked = v2.RandomInvert(1.0)
    hooked.register_forward_hook(lambda module, given, image: v2.functional.vertical_flip(image))
    composed = v1.Compose([v1.PILToTensor()])
    composed.extra = 1  # no method
    for each in (corner, dark, hooked):
        recipe = v1.Compose([v1.CenterCrop(16), each, composed])
        loader = translated(DataLoader(folder(pictures, recipe), batch_size=23))
        assert [part.note for part in loader.report.python] == ["a callable of your own"], each
        batch = next(iter(loader))
        if each is corner:
            assert batch.image.shape[2:] == (5, 5)
        expected = np.stack([np.asarray(image) for image, _ in folder(pictures, recipe)])
        np.testing.assert_array_equal(batch.image, expected)
