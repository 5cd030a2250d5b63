# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's image classification example, unmodified, also in its Trainer."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import made_data
import pytest
from PIL import ExifTags, Image

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
datasets = pytest.importorskip("datasets")
import huggingface_trainer as script  # noqa: E402
from comparison import assert_equal_batches, migrated, records_native  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_data.image_folder(tmp_path_factory.mktemp("folder"))


def test_set_transform_is_native_and_equal(root: Path) -> None:
    dataloader = DataLoader(script.splits(root)["validation"], 8, collate_fn=script.collate_fn)
    assert_equal_batches(records_native(dataloader), dataloader)
    train = DataLoader(script.splits(root)["train"], 8, shuffle=True, collate_fn=script.collate_fn)
    records_native(train)


def test_with_transform_with_a_partial_function_is_native(root: Path) -> None:
    def apply(examples: Any, transform: Any) -> Any:
        pixels = [transform(image.convert("RGB")) for image in examples["image"]]
        return {"pixel_values": pixels, "label": examples["label"]}

    steps = script.Compose([script.Resize((40, 48)), script.ToTensor()])
    data = script.folder_dataset(root, "train").shuffle(seed=3).select(range(5, 31))
    data = data.with_transform(functools.partial(apply, transform=steps))
    picked = torch.utils.data.Subset(data, list(range(0, 26, 3)))
    for dataset in (data, picked):
        dataloader = DataLoader(dataset, 4)
        assert_equal_batches(records_native(dataloader), dataloader)


def embedded(data: Any) -> Any:
    """The same images as bytes in the table, like in most datasets of the Hub."""
    paths = data.cast_column("image", datasets.Image(decode=False))
    files = paths.map(lambda row: {"image": {"bytes": Path(row["image"]["path"]).read_bytes()}})
    return files.cast_column("image", datasets.Image())


def test_images_in_the_table_are_native(root: Path) -> None:
    steps = script.Compose([script.Resize((40, 48)), script.ToTensor()])

    def apply(examples: Any) -> Any:
        examples["pixel_values"] = [steps(x.convert("RGB")) for x in examples["image"]]
        return examples

    whole = embedded(script.folder_dataset(root, "train"))
    for rows in (whole, whole.shuffle(seed=3).select(range(5, 31))):
        data = rows.with_transform(apply)
        for dataset in (data, torch.utils.data.Subset(data, list(range(0, 26, 3)))):
            dataloader = DataLoader(dataset, 4, collate_fn=script.collate_fn)
            assert_equal_batches(records_native(dataloader), dataloader)


def test_turned_images_in_the_table_are_upright(tmp_path: Path) -> None:
    steps = script.Compose([script.Resize((40, 48)), script.ToTensor()])
    root = made_data.image_folder(tmp_path)
    for number, path in enumerate(sorted(root.glob("val/*/*.jpg"))):
        with Image.open(path) as image:
            exif = image.getexif()
            exif[ExifTags.Base.Orientation] = 1 + number % 8
            image.convert("RGB").save(path, exif=exif)

    def apply(examples: Any) -> Any:
        return {"pixel_values": [steps(x.convert("RGB")) for x in examples["image"]]}

    data = embedded(script.folder_dataset(root, "val")).with_transform(apply)
    dataloader = DataLoader(data, 4)
    assert_equal_batches(records_native(dataloader), dataloader)


def test_transforms_that_read_labels_run_in_python(root: Path) -> None:
    steps = script.Compose([script.Resize((40, 48)), script.ToTensor()])
    other = script.Compose(
        [script.Resize((40, 48)), script.CenterCrop((40, 48)), script.ToTensor()]
    )

    def by_label(examples: Any) -> Any:
        pairs = zip(examples["image"], examples["label"], strict=True)
        pixels = [(other if y == 2 else steps)(x.convert("RGB")) for x, y in pairs]
        return {"pixel_values": pixels, "label": examples["label"]}

    data = script.folder_dataset(root, "train")
    for dataset in (data.with_transform(by_label), embedded(data).with_transform(by_label)):
        dataloader = DataLoader(dataset, 4)
        loader = migrated(dataloader)
        assert loader.report.python
        assert_equal_batches(loader, dataloader)


def test_the_trainer_trains_and_evaluates_on_views(root: Path, tmp_path: Path) -> None:
    """As in a script: the Trainer's own loaders, replaced."""
    trainer = script.trainer_of(root, tmp_path, num_train_epochs=1)
    train = migrated(trainer.get_train_dataloader())
    evaluation = migrated(trainer.get_eval_dataloader())
    trainer.get_train_dataloader = lambda: train.torch()
    trainer.get_eval_dataloader = lambda *_: evaluation.torch()
    result = trainer.train()
    assert result.global_step == 5 and result.training_loss > 0
    assert trainer.evaluate()["eval_loss"] > 0
