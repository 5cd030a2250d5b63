# SPDX-License-Identifier: Apache-2.0
"""CocoDetection as a source: alone, and as wrapped by torchvision for joint transforms."""

from __future__ import annotations

import collections
import copy
import importlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from headrace.migrate.known_dataset import (
    REFUSED,
    Dataset,
    NoFormat,
    Told,
    joint_transforms,
    untransformed,
)
from headrace.migrate.nesting import node_of
from headrace.sources import Source, subset
from headrace.sources import open as open_source

_TARGETS = ("boxes", "labels", "image_id")
_MASKS = "masks"
_FILES = 8  # files to read when looking for a dataset's annotations


def alone(dataset: Any, told: Told) -> Dataset:
    """CocoDetection whose transform gets the image; its target is COCO's list of dictionaries."""
    together = dataset.transforms
    if getattr(together, "target_transform", None) is not None:
        raise NoFormat("its target_transform takes COCO's list of dictionaries")
    plain = untransformed(dataset)

    def raw(i: int) -> dict[str, Any]:
        image, target = plain[i]
        boxes = np.array([row["bbox"] for row in target], np.float32).reshape(-1, 4)
        labels = np.array([row["category_id"] for row in target], np.int64)
        number = np.int64(dataset.ids[i])
        return {"image": image, "boxes": boxes, "labels": labels, "image_id": number}

    return Dataset(
        "",
        _source(dataset, told, "xywh"),
        ("image", *_TARGETS),
        raw,
        transform=getattr(together, "transform", None),
        ragged=True,
        note="targets are the fields boxes (x, y, w, h) and labels (ids of categories), not a "
        "list of dictionaries; hr.coco() has masks, keypoints and other boxes",
    )


def wrapped(dataset: Any, told: Told) -> Dataset:
    """CocoDetection whose transforms get the image, its boxes and its masks together."""
    wanted = dataset._target_keys or _TARGETS
    known = {*_TARGETS, _MASKS}
    if wanted == "all" or not set(wanted) <= known:
        others = "all" if wanted == "all" else ", ".join(sorted({*wanted} - known))
        raise NoFormat(f"its targets have more than {', '.join(sorted(known))}: {others}")
    together = joint_transforms(dataset)
    masks = _MASKS in wanted
    plain = copy.copy(dataset)
    plain.transforms = None

    def raw(i: int) -> dict[str, Any]:
        image, target = plain[i]
        boxes = _boxes_on(
            image, target.get("boxes", np.zeros((0, 4)))
        )  # images without objects have none
        labels = target["labels"] if "labels" in target else boxes.new_zeros(0).long()
        out = {"image": image, "boxes": boxes, "labels": labels}
        if masks:
            out[_MASKS] = target.get(_MASKS, _no_masks(image))
        return {**out, "image_id": np.int64(dataset.ids[i])}

    targets = [name for name in ("boxes", "labels", _MASKS, "image_id") if name in wanted]
    return Dataset(
        "",
        _source(dataset, told, "xyxy", masks),
        ("image", *targets),
        raw,
        transform=together,
        together=True,
        ragged=True,
        node=node_of((np.zeros((3, 1, 1), np.uint8), {name: np.zeros(1) for name in targets})),
        note="boxes are float32 (left, top, right, bottom); an image without objects has "
        "empty fields, whereas torchvision omits the keys",
    )


def _boxes_on(image: Any, boxes: Any) -> Any:
    """torchvision's boxes, as float32."""
    import torch

    tv_tensors = importlib.import_module("torchvision.tv_tensors")
    rows = torch.as_tensor(boxes, dtype=torch.float32)
    size = (image.height, image.width)
    return tv_tensors.BoundingBoxes(rows, format="XYXY", canvas_size=size)


def _no_masks(image: Any) -> Any:
    import torch

    empty = torch.zeros((0, image.height, image.width), dtype=torch.uint8)
    return importlib.import_module("torchvision.tv_tensors").Mask(empty)


def _source(dataset: Any, told: Told, boxes: str, masks: bool = False) -> Source:
    """The dataset's records in the order of its ids."""
    annotations = told.annotations
    if annotations is None:
        annotations = _file_of(dataset)
    source = open_source(
        os.fspath(annotations),
        format="coco",
        images=os.fspath(dataset.root),
        boxes=boxes,
        category_ids="keep",
        captions=False,
        masks=masks,
        allow_outside=told.outside,
    )
    places = {image: place for place, image in enumerate(sorted(dataset.coco.imgs))}
    if len(source) != len(places):
        raise REFUSED.error(
            f"{annotations} lists {len(source)} images, but the dataset {len(places)}",
            hint="annotations= is for one dataset: call from_dataloader once for each",
        )
    rows = [places[image] for image in dataset.ids]
    return source if rows == list(range(len(source))) else subset(source, rows)


def _file_of(dataset: Any) -> Path:
    """The file that the dataset was loaded from, whose name it does not keep. Files near the images
    are compared in full: annotations that a script changed or filtered in memory are not in any
    file."""
    coco = dataset.coco
    wanted = getattr(coco, "dataset", None)
    tried: list[Path] = []
    if isinstance(wanted, dict) and _is_indexed_as_it_is(coco):
        for path in _candidates(Path(dataset.root))[:_FILES]:
            tried.append(path)
            try:
                with path.open("rb") as file:
                    found = json.load(file)
            except (OSError, ValueError):
                continue
            if found == wanted:
                return path
    looked = f" ({', '.join(path.name for path in tried)} have others)" if tried else ""
    raise REFUSED.error(
        "CocoDetection does not keep the name of its file, and no file near "
        f"{os.fspath(dataset.root)} has its annotations{looked}",
        hint='from_dataloader(..., annotations="instances_train2017.json"); annotations that a '
        "script made or changed in memory can be written to a file with json.dump("
        "dataset.coco.dataset, file)",
    )


def _is_indexed_as_it_is(coco: Any) -> bool:
    """Whether the index of pycocotools, which finds targets, matches its list of annotations."""
    listed: dict[Any, list[int]] = collections.defaultdict(list)
    for row in coco.dataset.get("annotations", ()):
        listed[row["image_id"]].append(id(row))
    return all([id(row) for row in coco.imgToAnns.get(i, ())] == listed[i] for i in coco.imgs)


def _candidates(pictures: Path) -> list[Path]:
    """JSON files near a folder of images; those with a matching name first."""
    above = pictures.resolve().parent
    folders = [pictures, above / "annotations", above, above.parent / "annotations"]
    files = [path for folder in folders for path in sorted(folder.glob("*.json"))]

    def order(path: Path) -> tuple[bool, bool]:
        return pictures.name not in path.stem, "instances" not in path.stem

    return sorted(dict.fromkeys(files), key=order)
