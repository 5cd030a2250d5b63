# SPDX-License-Identifier: Apache-2.0
"""hr.from_dataloader() over torchvision's own datasets and transforms."""

from __future__ import annotations

import io
import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import migrated_classes as own
import numpy as np
import pytest
from conftest import TORCHVISION_OPERATORS, files_of, label_of
from migrated_classes import assert_same_batches, first_of, translated
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


def test_torchs_own_resize_of_tensors_is_pillows_within_one(pictures: Path) -> None:
    from torchvision.transforms import v2

    recipe = v2.Compose([v2.ToImage(), v2.Resize((17, 16), antialias=True)])
    dataset = folder(pictures, recipe)
    loader = translated(DataLoader(dataset, batch_size=23))
    (part,) = [part for part in loader.report.native if part.note.startswith("Pillow's")]
    assert part.name.startswith("Resize")
    ours = next(iter(loader.torch())).image.int()
    theirs = torch.stack([image for image, _ in dataset]).int()
    assert (ours - theirs).abs().max() <= 1


def test_what_has_no_operator_runs_as_it_is(pictures: Path) -> None:
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
    # A worker imports torchvision as it is, which fails where conftest has to mend it.
    for workers in (0,) if TORCHVISION_OPERATORS else (0, 1):
        with translated(dataloader, python_workers=workers) as loader:
            assert_same_batches(dataloader, loader, tolerance=2e-6)
    names = [part.name for part in loader.report.python]
    assert [name.partition("(")[0] for name in names] == [
        "Invert",
        "Lambda",
        "target_transform plus_ten",
    ]


@pytest.mark.parametrize("channels", [1, 3])
def test_grayscale_is_native_with_the_arithmetic_of_what_it_gets(
    pictures: Path, channels: int
) -> None:
    from torchvision.transforms import v2

    v1 = tv.transforms
    to_float = v2.ToDtype(torch.float32, scale=True)
    for recipe, arithmetic in (
        ([v1.Grayscale(channels), v1.Resize((12, 12)), v2.ToImage()], "pillow"),
        ([v2.Resize((12, 12)), v2.Grayscale(channels), v2.ToImage()], "pillow"),
        ([v1.Resize((12, 12)), v2.ToImage(), v2.Grayscale(channels)], "torch"),
        ([v1.Resize((12, 12)), v2.ToImage(), to_float, v2.Grayscale(channels)], "torch"),
        ([v1.Resize((12, 12)), v1.PILToTensor(), v1.Grayscale(channels)], None),
    ):
        dataset = folder(pictures, v2.Compose(recipe))
        dataloader = DataLoader(dataset, batch_size=6)
        with translated(dataloader) as loader:
            assert_same_batches(dataloader, loader)
            plan = str(loader.plan())
        (part,) = [part for part in loader.report.parts if part.name.startswith("Grayscale")]
        assert part.became == ("native" if arithmetic else "Python step"), part
        assert arithmetic is None or re.search(f"arithmetic=.?{arithmetic}", plan), plan


@pytest.mark.parametrize("kind", ["pil", "tensor"])
def test_colors_are_native_with_the_arithmetic_of_what_they_get(pictures: Path, kind: str) -> None:
    from torchvision.transforms import v2

    steady = (
        v2.RandomGrayscale(1.0),
        v2.RandomInvert(1.0),
        v2.RandomPosterize(3, 1.0),
        v2.RandomSolarize(99, 1.0),
        v2.RandomAutocontrast(1.0),
        v2.RandomEqualize(1.0),
        v2.RandomAdjustSharpness(1.7, 1.0),
        v2.ColorJitter((1.3, 1.3)),
        v2.ColorJitter(contrast=(0.6, 0.6)),
        v2.ColorJitter(saturation=(1.5, 1.5)),
        v2.ColorJitter(hue=(0.2, 0.2)),
    )
    random = (v2.ColorJitter(0.4, 0.4, 0.4, 0.1), v2.RandomPhotometricDistort())
    for transform in (*steady, *random, v2.RandomChannelPermutation()):
        # Pillow's and torchvision's Resize differ; a crop is the same in both.
        before = [v2.CenterCrop((40, 33))] + ([v2.ToImage()] if kind == "tensor" else [])
        dataset = folder(pictures, v2.Compose([*before, transform, v2.ToImage()]))
        dataloader = DataLoader(dataset, batch_size=6)
        with translated(dataloader) as loader:
            assert not loader.report.python, loader.report
            if transform in steady:
                assert_same_batches(dataloader, loader)
            else:
                next(iter(loader))


def test_colors_of_floats_and_of_the_first_transforms_of_tensors_run_as_they_are(
    pictures: Path,
) -> None:
    v1, v2 = tv.transforms, tv.transforms.v2
    for steps in ([v1.ToTensor(), v1.ColorJitter(0.2)], [v1.ToTensor(), v2.RandomEqualize(1.0)]):
        dataset = folder(pictures, v1.Compose([v1.Resize((12, 12)), *steps]))
        with translated(DataLoader(dataset, batch_size=6)) as loader:
            (part,) = loader.report.python
            assert "floats" in part.note, part


def test_colors_of_floats_are_native_in_the_arithmetic_of_v2(pictures: Path) -> None:
    v2 = tv.transforms.v2
    to_float = [v2.Resize((12, 12)), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
    steady = [v2.RandomInvert(1.0), v2.RandomSolarize(0.3, 1.0), v2.RandomPosterize(3, 1.0)]
    steady += [v2.RandomAutocontrast(1.0), v2.RandomGrayscale(1.0)]
    for transform in (*steady, v2.ColorJitter(0.2, 0.2, 0.2, 0.1), v2.RandomPhotometricDistort()):
        dataset = folder(pictures, v2.Compose([*to_float, transform]))
        dataloader = DataLoader(dataset, batch_size=6)
        with translated(dataloader) as loader:
            assert not loader.report.python, loader.report
            if transform in steady:
                assert_same_batches(dataloader, loader)


def test_random_erasing_is_native(pictures: Path) -> None:
    v1, v2 = tv.transforms, tv.transforms.v2
    for version, value in (
        (v1, 0),
        (v1, (0.1, 0.2, 0.3)),
        (v1, "random"),
        (v2, 0.5),
        (v2, "random"),
    ):
        erasing = version.RandomErasing(p=1.0, scale=(0.2, 0.3), value=value)
        steps = [v1.Resize((40, 40)), v1.ToTensor(), erasing]
        dataset = folder(pictures, v1.Compose(steps))
        loader = translated(DataLoader(dataset, batch_size=4))
        part = next(p for p in loader.report.parts if p.name.startswith("RandomErasing"))
        assert part.became == "native", part
        for image in next(iter(loader)).image:
            if value == "random":
                erased = ((image < 0) | (image > 1)).any(axis=0)
            else:
                wanted = np.float32(np.broadcast_to(value, 3)).reshape(3, 1, 1)
                erased = np.all(image == wanted, axis=0)
            assert 0.1 < erased.mean() < 0.4


def test_noise_on_bytes_is_native_and_erasing_noise_stays_torchvisions(pictures: Path) -> None:
    v2 = tv.transforms.v2
    steps = [
        v2.Resize((40, 40)),
        v2.ToImage(),
        v2.GaussianNoise(),
        v2.RandomErasing(value="random"),
    ]
    dataset = folder(pictures, v2.Compose(steps))
    with translated(DataLoader(dataset, batch_size=4)) as loader:
        (part,) = loader.report.python
        assert part.name.startswith("RandomErasing") and "bytes" in part.note


def test_other_shapes_and_dtypes_are_declared(pictures: Path) -> None:
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


def test_coco_is_read_from_its_file(pictures: Path, tmp_path: Path) -> None:
    pytest.importorskip("pycocotools")
    images, annotations = [], []
    for number, path in enumerate(files_of(pictures)):
        images.append(
            {
                "id": 100 - number,
                "file_name": str(path.relative_to(pictures)),
                "width": 1000,
                "height": 1000,
            }
        )
        for box in range(number % 3):
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": 100 - number,
                    "area": 6,
                    "category_id": 7 + box,
                    "bbox": [1, box, 2, 3],
                    "iscrowd": 0,
                }
            )
    file = tmp_path / "boxes.json"
    categories = [{"id": i, "name": f"c{i}"} for i in range(7, 9)]
    file.write_text(
        json.dumps({"images": images, "annotations": annotations, "categories": categories})
    )
    recipe = tv.transforms.Compose([tv.transforms.Resize((8, 8)), tv.transforms.ToTensor()])
    dataset = tv.datasets.CocoDetection(str(pictures), str(file), transform=recipe)
    dataloader = DataLoader(dataset, batch_size=4, collate_fn=first_of)
    with pytest.raises(hr.ConfigError, match="annotations="):
        translated(dataloader, collate="default")
    given: dict[str, Any] = {"collate": "default", "annotations": file}
    with pytest.raises(hr.ConfigError, match=r"HR0835.* boxes of record"):
        translated(dataloader, **given)  # ours follow, torchvision's stay where they were
    classified = translated(dataloader, **given, fields=("image", "labels"))
    assert classified.report.records_checked == 23
    assert next(iter(classified))._fields == ("image", "labels")
    dataset = tv.datasets.CocoDetection(
        str(pictures), str(file), transform=tv.transforms.ToTensor()
    )
    dataloader = DataLoader(dataset, batch_size=4, collate_fn=first_of)
    loader = translated(dataloader, **given)
    assert loader.report.records_checked == 23
    boxes = [boxes for batch in loader for boxes in batch.boxes]
    assert [len(box) for box in boxes] == [len(target) for _, target in dataset]


def detection(pictures: Path, tmp_path: Path, transforms: Any, keys: Any = None) -> Any:
    """CocoDetection as torchvision's references wrap it; some pictures have no boxes."""
    images, annotations = [], []
    for number, path in enumerate(files_of(pictures)):
        with Image.open(path) as picture:
            width, height = picture.size
        name = str(path.relative_to(pictures))
        images.append({"id": number, "file_name": name, "width": width, "height": height})
        for box in range(number % 3):
            row = {"id": len(annotations) + 1, "image_id": number, "category_id": 7 + box}
            place = [box, 1, width / 2, height / 3]
            annotations.append({**row, "bbox": place, "area": 6, "iscrowd": 0})
    file = tmp_path / "boxes.json"
    named = {"categories": [{"id": i, "name": f"c{i}"} for i in range(7, 9)]}
    file.write_text(json.dumps({"images": images, "annotations": annotations, **named}))
    dataset = tv.datasets.CocoDetection(str(pictures), str(file), transforms=transforms)
    return tv.datasets.wrap_dataset_for_transforms_v2(dataset, keys), file


def test_transforms_of_image_and_boxes_together(pictures: Path, tmp_path: Path) -> None:
    pytest.importorskip("pycocotools")
    v2 = tv.transforms.v2
    recipe = v2.Compose(
        [
            v2.RandomPhotometricDistort(),
            v2.RandomHorizontalFlip(0.5),
            v2.Resize((30, 40)),
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
            v2.ToPureTensor(),
        ]
    )
    dataset, file = detection(pictures, tmp_path, recipe)
    dataloader = DataLoader(dataset, batch_size=4, collate_fn=first_of)
    loader = translated(dataloader, collate="default", annotations=file)
    assert not loader.report.python
    assert loader.report.records_checked == 23
    assert loader.report.differences == dict.fromkeys(("image", "boxes", "labels", "image_id"), 0)
    flipped = sum(
        bool(len(ours)) and not np.allclose(ours, theirs["boxes"])
        for (_, theirs), ours in zip(
            (dataset[i] for i in range(23)),
            (b for batch in loader for b in batch.boxes),
            strict=True,
        )
        if "boxes" in theirs
    )
    assert 0 < flipped < 16, "they are flipped apart from ours, and so are their boxes"
    dataset, file = detection(pictures, tmp_path, recipe, ["boxes", "labels"])
    dataloader = DataLoader(dataset, batch_size=4, collate_fn=first_of)
    given: dict[str, Any] = {"collate": "default", "annotations": file}
    batch = next(iter(translated(dataloader, **given)))
    assert batch._fields == ("image", "boxes", "labels")


def test_torchvisions_recipe_for_ssd_has_no_step_in_python(pictures: Path, tmp_path: Path) -> None:
    """As its reference script writes it for pictures of Pillow."""
    pytest.importorskip("pycocotools")
    v2, mask = tv.transforms.v2, tv.tv_tensors.Mask
    recipe = v2.Compose(
        [
            v2.RandomPhotometricDistort(),
            v2.RandomZoomOut(fill=defaultdict(lambda: (123.0, 117.0, 104.0), {mask: 0})),
            v2.RandomIoUCrop(),
            v2.RandomHorizontalFlip(p=0.5),
            v2.ToImage(),
            v2.ToDtype(torch.float, scale=True),
            v2.ConvertBoundingBoxFormat(tv.tv_tensors.BoundingBoxFormat.XYXY),
            v2.SanitizeBoundingBoxes(),
            v2.ToPureTensor(),
        ]
    )
    dataset, file = detection(pictures, tmp_path, recipe)
    dataloader = DataLoader(dataset, batch_size=4, collate_fn=first_of)
    loader = translated(dataloader, collate="default", annotations=file)
    assert not loader.report.python
    assert loader.report.records_checked == 23
    for batch in loader:
        assert [len(rows) for rows in batch.boxes] == [len(rows) for rows in batch.labels]


def test_what_cannot_move_boxes_natively_is_refused(pictures: Path, tmp_path: Path) -> None:
    pytest.importorskip("pycocotools")
    dataset, file = detection(pictures, tmp_path, lambda image, target: (image, target))
    dataloader = DataLoader(dataset, batch_size=4, collate_fn=first_of)
    given: dict[str, Any] = {"collate": "default", "annotations": file}
    with pytest.raises(hr.ConfigError, match=r"HR0834.*together.*callable of your own"):
        translated(dataloader, **given)


def test_coco_with_absolute_names_is_read_on_the_users_word(pictures: Path, tmp_path: Path) -> None:
    pytest.importorskip("pycocotools")
    images = [
        {"id": number, "file_name": str(path.absolute()), "width": 1000, "height": 1000}
        for number, path in enumerate(files_of(pictures))
    ]
    file = tmp_path / "absolute.json"
    box = {"id": 1, "image_id": 0, "category_id": 7, "bbox": [1, 1, 2, 3], "area": 6, "iscrowd": 0}
    named = {"annotations": [box], "categories": [{"id": 7, "name": "c"}]}
    file.write_text(json.dumps({"images": images, **named}))
    dataset = tv.datasets.CocoDetection(str(tmp_path), str(file), tv.transforms.ToTensor())
    dataloader = DataLoader(dataset, batch_size=4, collate_fn=first_of)
    given: dict[str, Any] = {"collate": "default", "annotations": file}
    with pytest.raises(hr.ConfigError, match=r"HR0276[^\0]*outside=True"):
        translated(dataloader, **given)
    loader = translated(dataloader, **given, outside=True)
    assert loader.report.records_checked == 23


def test_overridden_datasets_are_asked_themselves(pictures: Path) -> None:
    class Marked(tv.datasets.ImageFolder):  # type: ignore[misc, name-defined]
        def __getitem__(self, index: int) -> Any:
            image, label = super().__getitem__(index)
            return image, label, index

    recipe = tv.transforms.Compose([tv.transforms.Resize((4, 4)), tv.transforms.ToTensor()])
    dataloader = DataLoader(Marked(str(pictures), recipe), batch_size=9)
    loader = translated(dataloader)
    assert_same_batches(dataloader, loader)
    assert "a __getitem__ of its own" in loader.report.python[0].note


def test_labels_that_were_changed_are_the_ones_delivered(pictures: Path) -> None:
    dataset = folder(pictures, tv.transforms.Resize((4, 4)))
    dataset.transform = tv.transforms.Compose([dataset.transform, tv.transforms.ToTensor()])
    dataset.samples = [(path, 2 - label) for path, label in reversed(dataset.samples)]
    labels = next(iter(translated(DataLoader(dataset, batch_size=23)))).label
    assert labels.tolist() == [2 - label_of(path) for path in reversed(files_of(pictures))]


def test_other_pixels_are_an_error_that_names_record_and_step(pictures: Path) -> None:
    v1 = tv.transforms
    recipe = v1.Compose([v1.Resize((8, 8)), own.Counting(), v1.ToTensor()])
    dataloader = DataLoader(folder(pictures, recipe), batch_size=4)
    with pytest.raises(hr.ConfigError, match="after Counting") as caught:
        translated(dataloader)
    assert caught.value.code == "HR0835" and "image of record 0 differs" in str(caught.value)
    assert translated(dataloader, check=False).report.records_checked == 0


def test_how_pictures_are_read_holds_for_the_comparison_too(tmp_path: Path) -> None:
    """damaged= and sixteen_bit= were the loader's alone, so what they allow was refused."""
    (tmp_path / "a").mkdir()
    whole = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 255, (48, 40, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(whole, "JPEG")
    (tmp_path / "a" / "0.jpg").write_bytes(whole.getvalue()[:-800] + b"\xff\xd9")
    recipe = [tv.transforms.Resize((24, 24)), tv.transforms.ToTensor()]
    dataloader = DataLoader(folder(tmp_path, tv.transforms.Compose(recipe)), batch_size=1)
    with pytest.raises(hr.DataError, match="HR0385"):
        hr.from_dataloader(dataloader, verbose=False)
    with pytest.warns(UserWarning, match="1 picture of epoch 0 had damage"):
        loader = hr.from_dataloader(dataloader, verbose=False, damaged="repair")
    np.testing.assert_allclose(next(iter(loader))["image"], next(iter(dataloader))[0], atol=1e-6)


@pytest.mark.parametrize("fields", [None, "image", ["image"]])
def test_fields_are_said_as_to_a_loader(pictures: Path, fields: Any) -> None:
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


def test_a_jpeg_is_native_and_compared(pictures: Path) -> None:
    v2 = tv.transforms.v2
    steps = [v2.Resize((40, 40)), v2.JPEG((30, 60)), v2.PILToTensor()]
    dataset = folder(pictures, v2.Compose(steps))
    with translated(DataLoader(dataset, batch_size=4)) as loader:
        assert not loader.report.python and loader.report.records_checked == 23


def test_random_sizes_and_canvases_are_native(pictures: Path) -> None:
    v2 = tv.transforms.v2
    for transform in (
        v2.RandomResize(20, 40),
        v2.RandomShortestSize([20, 31], 50),
        v2.ScaleJitter((30, 40), (0.5, 2)),
        v2.RandomZoomOut(fill=[1, 2, 3]),
    ):
        dataset = folder(pictures, v2.Compose([transform, v2.CenterCrop(24), v2.ToImage()]))
        with translated(DataLoader(dataset, batch_size=6)) as loader:
            assert not loader.report.python, loader.report
            next(iter(loader))


def test_policies_are_native_in_the_arithmetic_of_the_pipeline(pictures: Path) -> None:
    from torchvision.transforms import v2

    policies = [
        v2.AutoAugment(v2.AutoAugmentPolicy.SVHN),
        v2.RandAugment(3, 7, fill=[1.0, 2.0, 3.0]),
        v2.TrivialAugmentWide(interpolation=v2.InterpolationMode.BILINEAR),
        v2.AugMix(),
    ]
    for first, arithmetic in ((v2.Identity(), "pillow"), (v2.ToImage(), "torch")):
        recipe = [v2.CenterCrop(16), first, *policies, v2.ToImage()]
        loader = translated(DataLoader(folder(pictures, v2.Compose(recipe)), batch_size=4))
        assert not loader.report.python, loader.report
        plan = str(loader.plan())
        wanted = 3 if arithmetic == "pillow" else 4  # AugMix is torch's in both
        assert plan.count(f'arithmetic="{arithmetic}"') == wanted, plan
    first = [tv.transforms.TrivialAugmentWide(), tv.transforms.CenterCrop(16), v2.ToImage()]
    loader = translated(DataLoader(folder(pictures, tv.transforms.Compose(first)), batch_size=4))
    assert not loader.report.python, loader.report


def test_padding_modes_and_filters_are_native_and_compared(pictures: Path) -> None:
    from torchvision.transforms import v2

    lanczos, box = v2.InterpolationMode.LANCZOS, v2.InterpolationMode.BOX
    steps = [
        v2.Resize((30, 34), interpolation=lanczos),
        v2.Pad([1, 2, 3, 4], padding_mode="reflect"),
        v2.RandomResizedCrop(24, interpolation=box),
        v2.RandomCrop(24, padding=3, padding_mode="symmetric"),
        v2.RGB(),
        v2.PILToTensor(),
    ]
    loader = translated(DataLoader(folder(pictures, v2.Compose(steps)), batch_size=4))
    assert not loader.report.python, loader.report
    assert loader.report.records_checked == 23


def test_warps_of_both_kinds_of_pictures_are_native_and_equal(pictures: Path) -> None:
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
    ]
    for first in ([], [v2.ToImage(), v2.CenterCrop(24)]):
        steps = [*first, *recipe[-1 if first else 0 :], *drawn, v2.ToImage()]
        loader = translated(DataLoader(folder(pictures, v2.Compose(steps)), batch_size=4))
        assert not loader.report.python, loader.report
        assert loader.report.records_checked == 23
    # torchvision's edges do not fade into None, which ours have no word for.
    for unlike in (v2.RandomRotation(9, fill=None, **smooth), v2.RandomAffine(9, fill=2.5)):
        dataset = folder(pictures, v2.Compose([v2.ToImage(), v2.CenterCrop(24), unlike]))
        (part,) = translated(DataLoader(dataset, batch_size=4), check=False).report.python
        assert "fill" in part.note


def test_methods_and_hooks_of_the_users_own_are_asked(pictures: Path) -> None:
    """What they draw is theirs, and a comparison without what is random would not see it."""
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


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("padding", [0, 3, (5, 1), (1, 2, 3, 4), [2]])
def test_a_random_crops_padding_is_on_the_sides_where_it_was(
    pictures: Path, version: str, padding: Any
) -> None:
    """v2 keeps left, right, top, bottom, and takes left, top, right, bottom."""
    from torchvision.transforms import v2

    kind = v2 if version == "v2" else tv.transforms
    left, top, right, bottom = (
        [padding] * 4 if isinstance(padding, int) else (list(padding) * 4)[:4]
    )
    recipe = [tv.transforms.CenterCrop(16), kind.RandomCrop((16, 16), padding=padding, fill=255)]
    composed = tv.transforms.Compose([*recipe, tv.transforms.PILToTensor()])
    loader = translated(DataLoader(folder(pictures, composed), batch_size=23), sampler=[0] * 2000)
    assert not loader.report.python
    white = np.zeros((16, 16))
    for batch in loader:
        white += (batch.image == 255).all(1).sum(0)
    # A side is padding as often as the window can hang over it: of left + right + 1 places.
    shares = [white[8, 0], white[0, 8], white[8, -1], white[-1, 8]]
    across, down = left + right + 1, top + bottom + 1
    expected = [left / across, top / down, right / across, bottom / down]
    np.testing.assert_allclose(np.array(shares) / 2000, expected, atol=0.07)
