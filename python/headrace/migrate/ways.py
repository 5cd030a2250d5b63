# SPDX-License-Identifier: Apache-2.0
"""Advice on what to write instead of a Python transform so that it runs natively."""

from __future__ import annotations

from typing import Any

from headrace.migrate.known_dataset import Dataset

# Equivalents of Albumentations; docs/start/migrating/albumentations.md has the arguments.
_ALBUMENTATIONS = {
    "Affine": "T.RandomAffine",
    "CenterCrop": "T.CenterCrop",
    "ChannelShuffle": "T.RandomChannelPermutation",
    "CoarseDropout": "T.CoarseDropout",
    "ColorJitter": "T.ColorJitter",
    "ElasticTransform": "T.ElasticTransform",
    "Equalize": "T.RandomEqualize",
    "GaussNoise": "T.GaussianNoise",
    "GaussianBlur": "T.GaussianBlur",
    "GridDistortion": "T.GridDistortion",
    "GridDropout": "T.GridDropout",
    "HorizontalFlip": "T.RandomHorizontalFlip",
    "InvertImg": "T.RandomInvert",
    "LongestMaxSize": "T.Resize",
    "Normalize": "T.ToDtype, T.Normalize",
    "Pad": "T.Pad",
    "Perspective": "T.RandomPerspective",
    "Posterize": "T.RandomPosterize",
    "RandomCrop": "T.RandomCrop",
    "RandomResizedCrop": "T.RandomResizedCrop",
    "Resize": "T.Resize",
    "Rotate": "T.RandomRotation",
    "SaltAndPepper": "T.SaltAndPepper",
    "Sharpen": "T.RandomAdjustSharpness",
    "ShiftScaleRotate": "T.RandomAffine",
    "SmallestMaxSize": "T.Resize",
    "Solarize": "T.RandomSolarize",
    "ToGray": "T.RandomGrayscale",
    "ToTensorV2": "",
    "VerticalFlip": "T.RandomVerticalFlip",
}
_FROM_FILES = "hr.Loader(hr.records(image=paths, label=labels), [...]) would be native"

_FROM_ANNOTATIONS = 'hr.Loader(hr.coco("instances.json"), [...]) would be native'

# Packages whose datasets a module of headrace.trainers replaces.
_TRAINERS = {
    "rfdetr": "headrace.trainers.rfdetr.train(model, ...) would be native",
    "ultralytics": "headrace.trainers.ultralytics.DetectionTrainer would be native",
}


def way_of_dataset(dataset: Dataset, original: Any) -> str:
    """Advice for a dataset that is called record by record."""
    if not dataset.steps:
        return ""
    if trainer := _TRAINERS.get(type(original).__module__.partition(".")[0]):
        return trainer
    from_files = _FROM_ANNOTATIONS if "boxes" in dataset.fields else _FROM_FILES
    return dataset.way or (from_files if dataset.note.startswith("left unchanged") else "")


def way_of(transform: Any) -> str:
    """Advice for an Albumentations Compose if all its transforms have equivalents; otherwise
    none."""
    compose = getattr(transform, "transform", transform)
    inner = getattr(compose, "transforms", None)
    if not type(compose).__module__.startswith("albumentations.") or not inner:
        return ""
    known = [_ALBUMENTATIONS.get(type(each).__name__) for each in inner]
    if None in known:
        return ""
    return f"[{', '.join(filter(None, known))}] instead would be native"
