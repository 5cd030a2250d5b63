# SPDX-License-Identifier: Apache-2.0
"""RF-DETR's training, with batches made by Headrace.

    rfdetr.train(RFDETRMedium(), dataset_dir="coco", epochs=10)

or ``rfdetr.DataModule(model_config, train_config)`` instead of its RFDETRDataModule.

Tested with rfdetr 1.11.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from rfdetr.config import AugmentationBackend
from rfdetr.training import RFDETRDataModule
from rfdetr.training.module_data import GradAccumAlignedDataset
from rfdetr.utilities.tensors import (
    NestedTensor,
    PackedTargets,
    pack_targets,
    pad_targets_to_fixed_count,
)

from headrace import transforms as T
from headrace.loader import Loader
from headrace.loader.views import Delivered
from headrace.sources import Source
from headrace.sources.objects import source_from_object
from headrace.sources.selection import subset
from headrace.trainers import MISFIT

_FEWEST = 5  # optimizer steps per epoch, for which RF-DETR repeats records of a small dataset
_OWN = "RF-DETR's own RFDETRDataModule"


def train(model: Any, **options: Any) -> Any:
    """``model.train(**options)`` of an RFDETR model, with Headrace's batches."""
    with mock.patch("rfdetr.training.RFDETRDataModule", DataModule):
        return model.train(**options)


class DataModule(RFDETRDataModule):  # type: ignore[misc]
    """RF-DETR's data module with other training and validation loaders: COCO and YOLO datasets with
    boxes, its resizing, crops, flips and normalization, drawn by (seed, epoch, position). A run
    resumed from a mid-epoch checkpoint continues with the next batch.

    Raises ConfigError HR0850 for features that these loaders lack: masks, key points,
    ``aug_config`` with transforms, augmentation on the GPU, and WebDataset.
    """

    def __init__(self, model_config: Any, train_config: Any) -> None:
        if train_config.augmentation_backend in ("cpu", "auto"):  # whatever is installed
            native = {"augmentation_backend": AugmentationBackend.TV}
            train_config = train_config.model_copy(update=native)
        super().__init__(model_config, train_config)

    def train_dataloader(self) -> Any:
        dataset = self._require_dataset(self._dataset_train, "fit")
        if self._kornia_pipeline is not None:
            raise MISFIT.error(
                "augmentation on the GPU needs images that are not normalized",
                hint=f'augmentation_backend="cpu", or {_OWN}',
            )
        size, world = self._resolve_batch_size(), self._world_size()
        step = size * self._effective_grad_accum_steps()
        source = source_of(dataset)
        aligned = GradAccumAlignedDataset(
            dataset, step, world, minimum_length=step * world * _FEWEST
        )
        source = subset(source, [*range(len(dataset)), *aligned._pad_indices])
        options = {"shuffle": True, "last_batch": "drop"}
        return self._batches(dataset, source, size, self.train_config.pad_targets_to, options)

    def val_dataloader(self) -> Any:
        return self._evaluation("validate", self._dataset_val)

    def test_dataloader(self) -> Any:
        return self._evaluation("test", self._dataset_test)

    def predict_dataloader(self) -> Any:
        return self._evaluation("predict", self._dataset_val)

    def _evaluation(self, stage: str, built: Any) -> Any:
        dataset = self._require_dataset(built, stage)
        options = {"last_batch": "keep" if self._world_size() == 1 else "pad"}
        size = self._resolve_eval_batch_size()
        return self._batches(dataset, source_of(dataset), size, None, options)

    def _batches(
        self, dataset: Any, source: Source, size: int, rows: int | None, options: Any
    ) -> Batches:
        steps, fixed, crops = steps_of(vars(dataset)["_transforms"])
        block = self.model_config.patch_size * self.model_config.num_windows
        if fixed and fixed % block:
            fixed = 0  # padded to a multiple
        loader = Loader(
            source,
            steps,
            batch_size=size,
            seed=self.train_config.seed or 0,
            ragged="packed" if fixed else "pad",
            **({} if fixed else {"pad_to_multiple_of": block}),
            **options,
        )
        trainer = self.trainer
        view = loader.torch(None if trainer is None else trainer.strategy.root_device, batch="dict")
        return Batches(view, rows, self.train_config.pack_targets, crops)

    def _world_size(self) -> int:
        return getattr(self.trainer, "world_size", 1) if self.trainer else 1


class Batches:
    """A view whose batches are RF-DETR's: ``(NestedTensor, targets)``. Everything else is forwarded
    to the view.
    """

    def __init__(self, view: Delivered, rows: int | None, pack: bool, crops: bool) -> None:
        self.view = view
        self._rows, self._pack, self._crops = rows, pack, crops

    def __iter__(self) -> Iterator[tuple[NestedTensor, Any]]:
        for batch in self.view:
            yield self._theirs(batch)

    def __len__(self) -> int:
        return len(self.view)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.view, name)

    def state_dict(self) -> dict[str, Any]:
        return self.view.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.view.load_state_dict(state)

    def _theirs(self, batch: dict[str, Any]) -> tuple[NestedTensor, Any]:
        image = batch["image"]
        padding = ~batch["image_mask"] if "image_mask" in batch else None
        none = padding is None
        mask = (
            image.new_zeros((len(image), *image.shape[2:]), dtype=torch.bool) if none else padding
        )
        targets: Any = self._targets(batch)
        if self._rows is not None:
            targets = pad_targets_to_fixed_count(tuple(targets), self._rows)
            targets = pack_targets(targets) if self._pack else targets
        elif not self._pack:
            targets = tuple(targets)
        return NestedTensor(image, mask, none), targets

    def _targets(self, batch: dict[str, Any]) -> PackedTargets:
        """Rows of all records, end to end: boxes as fractions of their image."""
        image, boxes, labels, area = (batch[name] for name in ("image", "boxes", "labels", "area"))
        if "image_mask" in batch:
            size, rows = batch["image_lengths"], batch["boxes_mask"]
            counts = batch["boxes_lengths"]
            boxes, labels, area = boxes[rows], labels[rows], area[rows]
        else:
            size = torch.tensor(image.shape[2:], device=image.device).expand(len(image), 2)
            counts = batch["boxes_offsets"].diff()
        low, high = boxes[:, :2], boxes[:, 2:]
        extent = high - low
        center = (low + high) / 2
        owner = torch.repeat_interleave(counts)
        if self._crops:  # what is outside of a crop has no area
            kept = (extent > 0).all(1)
            center, extent, labels, owner = center[kept], extent[kept], labels[kept], owner[kept]
            counts = torch.bincount(owner, minlength=len(counts))
            area = extent.prod(1)
        else:
            scale = (size.double() / batch["orig_size"].double()).prod(1)
            area = area * scale.float()[owner]
        fractions = torch.cat([center, extent], 1) / size.flip(1).float().repeat(1, 2)[owner]
        rows_of = counts.tolist()
        row, pair = [[n] for n in rows_of], [[2]] * len(rows_of)
        values = {
            "area": area,
            "boxes": fractions.reshape(-1),
            "image_id": batch["image_id"],
            "iscrowd": torch.zeros_like(labels),
            "labels": labels,
            "orig_size": batch["orig_size"].reshape(-1),
            "size": size.reshape(-1),
        }
        shapes = {name: row for name in ("area", "iscrowd", "labels")}
        shapes |= {"boxes": [[n, 4] for n in rows_of], "image_id": [[1]] * len(rows_of)}
        shapes |= {"orig_size": pair, "size": pair}
        return PackedTargets(values, shapes, len(rows_of))


class _Records:
    """Image files and what RF-DETR makes of their annotations, by its own ConvertCoco or
    ConvertYolo, once per record.
    """

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._made: list[dict[str, Any] | None] = [None] * len(dataset)

    def __len__(self) -> int:
        return len(self._made)

    def __getitem__(self, index: int) -> dict[str, Any]:
        made = self._made[index]
        if made is None:
            made = self._made[index] = self._convert(index)
        return made

    def _convert(self, index: int) -> dict[str, Any]:
        dataset, image_id = self._dataset, self._dataset.ids[index]
        known = dataset.coco.imgs[image_id]
        if hasattr(dataset, "sv_dataset"):
            sample = dataset.sv_dataset.get_image_info(index)
            path, found = sample.image_path, {"detections": sample.to_detections()}
        else:
            path = str(Path(dataset.root) / known["file_name"])
            found = {"annotations": dataset._load_target(image_id)}
        _, target = dataset.prepare(_Size(known), {"image_id": image_id, **found})
        return {
            "image": path,
            "boxes": target["boxes"].numpy(),
            "labels": target["labels"].numpy(),
            "area": target["area"].numpy(),
            "image_id": int(target["image_id"]),
            "orig_size": target["orig_size"].numpy(),
        }


class _Size:
    """An image of which only the size is used."""

    def __init__(self, known: Mapping[str, int]) -> None:
        self.size = known["width"], known["height"]


def source_of(dataset: Any) -> Source:
    """The images and boxes of a CocoDetection or a YoloDetection. Raises ConfigError HR0850 for
    other datasets, and for masks or keypoints.
    """
    why = (
        "is not a COCO or YOLO dataset"
        if not hasattr(dataset, "prepare") or not hasattr(dataset, "coco")
        else "has masks"
        if dataset.include_masks
        else "has key points"
        if dataset.include_keypoints
        else ""
    )
    if why:
        raise MISFIT.error(f"{type(dataset).__name__} {why}", hint=_OWN)
    shapes = {"boxes": (-1, 4), "labels": (-1,), "area": (-1,)}
    source: Source = source_from_object(
        _Records(dataset),
        shapes=shapes,
        kinds={"boxes": "boxes:xyxy", "image_id": "tensor", "orig_size": "tensor"},
    )
    return source.with_row_group("boxes", "labels", "area")


def steps_of(transforms: Any) -> tuple[list[Any], int, bool]:
    """RF-DETR's transforms as Headrace's; the height and width of all results, or 0 if they
    differ; and whether some crop. Raises ConfigError HR0850 for transforms of other packages.
    """
    translated = _Translated()
    steps = translated.steps(transforms)
    sizes = translated.sizes
    return steps, sizes.pop() if len(sizes) == 1 else 0, translated.crops


class _Translated:
    def __init__(self) -> None:
        self.sizes: set[int] = set()
        self.crops = False

    def steps(self, given: Any) -> list[Any]:
        name, parts = type(given).__name__, getattr(given, "transforms", [])
        if name == "Compose":
            if [type(part).__name__ for part in parts] == ["RandomResize", "RandomChoice"]:
                return self._scale_jitter(*parts)
            return [step for part in parts for step in self.steps(part)]
        if name == "RandomSelect":
            both = [self.steps(given.transform1), self.steps(given.transform2)]
            return [T.RandomChoice(both, p=[given.p, 1 - given.p])]
        if name == "RandomChoice":
            return _one_of([self.steps(part) for part in parts])
        if name == "Resize":
            return self._resized(given.size)
        if name == "RandomHorizontalFlip" and not given.keypoint_flip_pairs:
            return [T.RandomHorizontalFlip(given.p)]
        if name == "ToImage":
            return []
        if name == "ToDtype" and given.dtype is torch.float32 and given.scale:
            return [T.ToDtype("float32", scale=True)]
        if name == "Normalize":
            theirs = vars(given)["_normalize"]
            return [T.Normalize(theirs.mean, theirs.std)]
        raise MISFIT.error(
            f"{name} is a transform that this loader does not have",
            hint=f"aug_config=None or {{}} and square_resize_div_64=True, or {_OWN}",
        )

    def _resized(self, size: tuple[int, int]) -> list[Any]:
        self.sizes |= {*size}
        return [T.Resize(size)]

    def _scale_jitter(self, resize: Any, choice: Any) -> list[Any]:
        """The shorter side becomes one of several lengths, then a square of random size is cropped,
        and resized."""
        self.crops = True
        crops = choice.transforms
        least, most = crops[0].min_max_height
        squares = [
            [
                T.Resize(short),
                *_one_of([[T.RandomCrop(side)] for side in _sides(short, least, most)]),
            ]
            for short in resize.sizes
        ]
        return [*_one_of(squares), *_one_of([self._resized(crop.size) for crop in crops])]


def _sides(short: int, least: int, most: int) -> range:
    """The possible sides of crops of an image whose shorter side is ``short``."""
    return range(min(least, short), min(most, short) + 1)


def _one_of(lists: list[list[Any]]) -> list[Any]:
    return lists[0] if len(lists) == 1 else [T.RandomChoice(lists)]
