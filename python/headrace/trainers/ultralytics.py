# SPDX-License-Identifier: Apache-2.0
"""Ultralytics' detection trainer, with training batches made by Headrace.

    YOLO("yolo11n.pt").train(trainer=ultralytics.DetectionTrainer, data="coco8.yaml")

Tested with ultralytics 8.4.190.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from ultralytics.models.yolo.detect import DetectionTrainer as TheirTrainer
from ultralytics.utils import RANK
from ultralytics.utils.torch_utils import torch_distributed_zero_first

from headrace import transforms as T
from headrace.loader import Loader
from headrace.sources import Source
from headrace.sources.objects import source_from_object
from headrace.trainers import MISFIT
from headrace.trainers.waiting import WaitShare

_UNTRANSLATED = ("copy_paste", "mixup", "cutmix", "perspective", "augmentations", "rect")
_GRAY = 114  # fill value around an image


class DetectionTrainer(TheirTrainer):  # type: ignore[misc]
    """Ultralytics' trainer with another training loader: mosaic, affine, HSV, flips and ``bgr``
    according to its arguments, with draws that depend on (seed, epoch, position). Validation is
    unchanged. On one rank, a mosaic's other images come from as many positions before it as
    Ultralytics keeps decoded; with ``cache="ram"``, and on several ranks, from the whole epoch.

    ``results.csv`` gets a column ``data_wait_share``: the share of the epoch, from 0 to 1, that
    the loop waited for batches. A resumed run begins the epoch after its checkpoint's with
    that epoch's order. Raises ConfigError HR0850 for arguments that this loader does not support.
    """

    _waits: WaitShare | None = None

    def get_dataloader(
        self, dataset_path: str, batch_size: int = 16, rank: int = 0, mode: str = "train"
    ) -> Any:
        if mode != "train":
            return super().get_dataloader(dataset_path, batch_size, rank, mode)
        with torch_distributed_zero_first(rank):  # which writes the labels' cache for the others
            dataset = self.build_dataset(dataset_path, mode, batch_size)
        loader = TrainLoader(dataset, self.args, batch_size)
        loader.sampler.set_epoch(self.start_epoch)  # with a smaller batch, after a lack of memory
        self._waits = WaitShare(loader)
        return loader

    def resume_training(self, ckpt: Any) -> None:
        super().resume_training(ckpt)
        self.train_loader.sampler.set_epoch(self.start_epoch)

    def save_metrics(self, metrics: Any) -> None:
        share = None if self._waits is None else self._waits.since_last()
        super().save_metrics({**metrics, "data_wait_share": share or 0.0})


class TrainLoader:
    """The training loader, with the attributes of train_loader that the trainer uses. dataset: a
    YOLODataset, of which only file names and labels are used. args: the trainer's arguments.
    """

    num_workers = 0

    def __init__(self, dataset: Any, args: Any, batch_size: int) -> None:
        _refuse_unsupported(args)
        self.dataset, self.batch_size = dataset, batch_size
        self.drop_last = bool(args.compile)
        self.sampler = _Sampler()
        self._args = args
        self._source = source_of(dataset)
        self._view = self._view_of(mosaic=args.mosaic > 0)

    def _view_of(self, mosaic: bool) -> Any:
        loader = Loader(
            self._source,
            steps_of(self._args, mosaic, mixed_within(self.dataset)),
            batch_size=self.batch_size,
            shuffle=True,
            seed=self._args.seed,
            last_batch="drop" if self.drop_last else "keep",
            ragged="packed",
            fields=("image", "boxes", "labels", "id"),
            shard="auto" if RANK != -1 else False,
            exif_orientation=True,  # Ultralytics' boxes are drawn on upright images
        )
        view = loader.torch(batch="dict")
        self.sampler.view = view
        return view

    def __len__(self) -> int:
        return len(self._view)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        epoch = self.sampler.epoch
        self._view.set_epoch(epoch)
        for batch in self._view:
            self._swap_channels(batch, epoch)
            yield self._theirs(batch)
        self.sampler.epoch += 1

    def reset(self) -> None:
        """Disables mosaic, for the last epochs; the order is unchanged."""
        view, self._view = self._view, self._view_of(mosaic=False)
        view.close()

    def close(self) -> None:
        self._view.close()

    def _swap_channels(self, batch: dict[str, Any], epoch: int) -> None:
        """Makes some images BGR, drawn by (seed, epoch, record)."""
        if not self._args.bgr:
            return
        for row, number in enumerate(batch["id"].tolist()):
            draw = np.random.default_rng((self._args.seed, epoch, number)).random()
            if draw < self._args.bgr:
                batch["image"][row] = batch["image"][row].flip(0)

    def _theirs(self, batch: dict[str, Any]) -> dict[str, Any]:
        """A batch in the form of Ultralytics' collate_fn."""
        import torch

        image, boxes = batch["image"], batch["boxes"].float()
        height, width = image.shape[-2:]
        low, high = boxes[:, :2], boxes[:, 2:]
        bboxes = torch.cat([(low + high) / 2, high - low], 1)
        bboxes /= torch.tensor([width, height, width, height], dtype=torch.float32)
        counts = batch["boxes_offsets"].diff()
        records = batch["id"].tolist()
        return {
            "img": image,
            "cls": batch["labels"].float().view(-1, 1),
            "bboxes": bboxes,
            "batch_idx": torch.repeat_interleave(torch.arange(len(counts)), counts).float(),
            "im_file": tuple(self.dataset.im_files[number] for number in records),
            "ori_shape": tuple(tuple(self.dataset.labels[n]["shape"]) for n in records),
            "resized_shape": tuple((height, width) for _ in records),
        }


class _Sampler:
    """The number of records of this rank, and the epoch."""

    epoch = 0
    view: Any = None

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.view.sampler)

    def __iter__(self) -> Iterator[int]:
        return iter(self.view.sampler)


class _Records:
    """Image files with boxes in pixels, as a YOLODataset lists them."""

    def __init__(self, dataset: Any) -> None:
        self._files, self._labels = dataset.im_files, dataset.labels

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, index: int) -> dict[str, Any]:
        label = self._labels[index]
        height, width = label["shape"]
        boxes = label["bboxes"].reshape(-1, 4) * (width, height, width, height)
        corners = boxes.copy()
        corners[:, :2] -= boxes[:, 2:] / 2
        corners[:, 2:] = corners[:, :2] + boxes[:, 2:]
        return {
            "image": self._files[index],
            "boxes": corners.astype("float32"),
            "labels": label["cls"].reshape(-1).astype("int64"),
        }


def _refuse_unsupported(args: Any) -> None:
    for name in _UNTRANSLATED:
        if getattr(args, name, 0):
            raise MISFIT.error(
                f"{name}={getattr(args, name)} is unsupported by this loader",
                hint=f"omit {name}=, or use Ultralytics' own trainer",
            )


def source_of(dataset: Any) -> Source:
    """The images and boxes of a YOLODataset. Raises ConfigError HR0850 for other labels."""
    if not hasattr(dataset, "labels") or getattr(dataset, "use_obb", False):
        raise MISFIT.error(
            f"{type(dataset).__name__} has no labels with upright boxes",
            hint="use Ultralytics' own trainer for this task",
        )
    shapes = {"boxes": (-1, 4), "labels": (-1,)}
    source: Source = source_from_object(
        _Records(dataset), shapes=shapes, kinds={"boxes": "boxes:xyxy"}
    )
    return source.with_row_group("boxes", "labels")


def mixed_within(dataset: Any) -> int | None:
    """The positions that a mosaic's images come from, as Ultralytics' buffer; None: all."""
    if RANK != -1 or dataset.cache == "ram":
        return None
    return max(int(dataset.max_buffer_length), 1)


def steps_of(args: Any, mosaic: bool, mix_within: int | None = None) -> list[Any]:
    """Ultralytics' augmentations with these arguments, in its order. mix_within: see Mosaic."""
    gains = args.hsv_h, args.hsv_s, args.hsv_v
    size, translate = args.imgsz, args.translate / 2 if mosaic else args.translate
    affine = T.RandomAffine(
        args.degrees,
        translate=(translate, translate),
        scale=(1 - args.scale, 1 + args.scale),
        shear=(-args.shear, args.shear, -args.shear, args.shear) if args.shear else None,
        interpolation="bilinear",
        fill=_GRAY,
    )
    return [
        T.Mosaic(size, fill=_GRAY, mix_within=mix_within, p=args.mosaic)
        if mosaic
        else T.Letterbox(size, fill=_GRAY),
        affine,
        *([T.CenterCrop(size)] if mosaic else []),
        *([T.RandomHSV(*gains)] if any(gains) else []),
        *([T.RandomVerticalFlip(args.flipud)] if args.flipud else []),
        *([T.RandomHorizontalFlip(args.fliplr)] if args.fliplr else []),
        T.SanitizeBoundingBoxes(min_size=2, min_visibility=0.1),
    ]
