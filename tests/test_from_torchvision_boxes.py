# SPDX-License-Identifier: Apache-2.0
"""hr.from_dataloader() over datasets with boxes: they follow the image, or it is rejected."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import files_of
from migrated_classes import first_of, translated
from PIL import Image

import headrace as hr

torch = pytest.importorskip("torch")
tv = pytest.importorskip("torchvision")
pytest.importorskip("torchvision.transforms.v2")  # so that tv has it
from torch.utils.data import DataLoader  # noqa: E402


def size_of(path: Path) -> dict[str, int]:
    with Image.open(path) as picture:
        return {"width": picture.width, "height": picture.height}


def test_coco_is_read_from_its_file(pictures: Path, tmp_path: Path) -> None:
    pytest.importorskip("pycocotools")
    images, annotations = [], []
    for number, path in enumerate(files_of(pictures)):
        images.append(
            {
                "id": 100 - number,
                "file_name": str(path.relative_to(pictures)),
                **size_of(path),
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
        translated(dataloader, **given)  # ours follow, torchvision's do not move
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
    """CocoDetection as wrapped by torchvision's references; some images have no boxes."""
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


def test_joint_transforms_of_image_and_boxes_are_native(pictures: Path, tmp_path: Path) -> None:
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
            (b for batch in loader for b in batch.target["boxes"]),
            strict=True,
        )
        if "boxes" in theirs
    )
    assert 0 < flipped < 16, "they are flipped apart from ours, and so are their boxes"
    dataset, file = detection(pictures, tmp_path, recipe, ["boxes", "labels"])
    dataloader = DataLoader(dataset, batch_size=4, collate_fn=first_of)
    given: dict[str, Any] = {"collate": "default", "annotations": file}
    batch = next(iter(translated(dataloader, **given)))
    assert batch._fields == ("image", "target") and list(batch.target) == ["boxes", "labels"]


def test_torchvisions_recipe_for_ssd_has_no_step_in_python(pictures: Path, tmp_path: Path) -> None:
    """As in its reference script for Pillow images."""
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
        boxes, labels = batch.target["boxes"], batch.target["labels"]
        assert [len(rows) for rows in boxes] == [len(rows) for rows in labels]


def as_tuples(batch: Any) -> Any:
    """As in torchvision's reference scripts for detection."""
    return tuple(zip(*batch))  # noqa: B905


def test_torchvisions_detection_collate_fn_becomes_lists(pictures: Path, tmp_path: Path) -> None:
    pytest.importorskip("pycocotools")
    dataset, file = detection(pictures, tmp_path, tv.transforms.v2.ToImage(), ["boxes", "labels"])
    for function in (as_tuples, lambda batch: list(zip(*batch))):  # noqa: B905
        dataloader = DataLoader(dataset, batch_size=4, collate_fn=function)
        loader = translated(dataloader, annotations=file)
        assert not loader.report.python
        images, targets = next(iter(dataloader))
        batch = next(iter(loader))
        for ours, theirs in zip(batch.image, images, strict=True):
            assert np.array_equal(ours, theirs)
        for ours, theirs in zip(batch.target, targets, strict=True):
            if "boxes" in theirs:  # otherwise it has no objects
                assert all(np.array_equal(ours[name], theirs[name]) for name in ours)
    dataloader = DataLoader(dataset, batch_size=4, collate_fn=lambda batch: (*zip(*batch), 1))  # noqa: B905
    with pytest.raises(hr.ConfigError, match="HR0834"):
        translated(dataloader, annotations=file)


def test_boxes_of_a_crop_that_pads_by_an_odd_number_are_equal(
    pictures: Path, tmp_path: Path
) -> None:
    """For such a CenterCrop torchvision's boxes are a pixel off; the difference is not ours."""
    pytest.importorskip("pycocotools")
    v2 = tv.transforms.v2
    recipe = v2.Compose(
        [v2.RandomCrop((61, 61), pad_if_needed=True), v2.SanitizeBoundingBoxes(), v2.ToImage()]
    )
    dataset, file = detection(pictures, tmp_path, recipe)
    loader = translated(DataLoader(dataset, batch_size=4, collate_fn=as_tuples), annotations=file)
    assert loader.report.records_checked == 23
    assert loader.report.differences["boxes"] == 0


def outlined(path: Path) -> None:
    """Adds an outline to each object of a file; the second object of an image gets run lengths."""
    data = json.loads(path.read_text())
    sizes = {image["id"]: (image["height"], image["width"]) for image in data["images"]}
    for row in data["annotations"]:
        x, y, w, h = row["bbox"]
        row["segmentation"] = [[x, y, x + w, y, x + w, y + h, x + 1, y + h / 2]]
        if row["category_id"] == 8:
            height, width = sizes[row["image_id"]]
            counts = [height + 3, 5, height * width - height - 8]
            row |= {"iscrowd": 1, "segmentation": {"counts": counts, "size": [height, width]}}
    path.write_text(json.dumps(data))


def test_masks_of_coco_follow_their_images(pictures: Path, tmp_path: Path) -> None:
    pytest.importorskip("pycocotools")
    v2 = tv.transforms.v2
    keys = ["boxes", "labels", "masks", "image_id"]
    whole = v2.Compose([v2.RandomHorizontalFlip(1.0), v2.PILToTensor(), v2.ToPureTensor()])
    _, file = detection(pictures, tmp_path, whole, keys)
    outlined(file)
    plain = tv.datasets.CocoDetection(str(pictures), str(file), transforms=whole)
    dataset = tv.datasets.wrap_dataset_for_transforms_v2(plain, keys)
    dataloader = DataLoader(dataset, batch_size=4, collate_fn=as_tuples)
    loader = translated(dataloader, annotations=file)
    assert not loader.report.python
    for (images, targets), ours in zip(dataloader, loader.torch(), strict=True):
        assert all(map(torch.equal, images, ours.image))
        for mine, theirs in zip(ours.target, targets, strict=True):
            assert list(mine) == ["boxes", "labels", "masks", "image_id"]
            assert mine["image_id"] == theirs["image_id"]
            for name in set(theirs) - {"image_id"}:
                assert torch.equal(mine[name], theirs[name])
    dataset.transforms = v2.Compose([v2.Resize((33, 47)), v2.ToImage()])
    loader = translated(dataloader, annotations=file)
    assert not loader.report.python
    assert any("masks are resized as in Pillow" in part.note for part in loader.report.native)


def test_the_file_of_a_coco_dataset_is_found_by_its_contents(
    pictures: Path, tmp_path: Path
) -> None:
    """torchvision does not keep its name. Another file near the images is not mistaken for it."""
    pytest.importorskip("pycocotools")
    root = tmp_path / "coco" / "train2017"
    shutil.copytree(pictures, root)
    _, file = detection(root, tmp_path, None)
    data = json.loads(file.read_text())
    (tmp_path / "coco" / "annotations").mkdir()
    other = tmp_path / "coco" / "annotations" / "instances_train2017.json"
    mine = tmp_path / "coco" / "annotations" / "some_name.json"
    mine.write_text(json.dumps(data))
    data["annotations"][0]["category_id"] = 8
    other.write_text(json.dumps(data))
    v2 = tv.transforms.v2
    plain = tv.datasets.CocoDetection(str(root), str(mine), transforms=v2.ToImage())
    dataset = tv.datasets.wrap_dataset_for_transforms_v2(plain)
    dataloader = DataLoader(dataset, batch_size=4, collate_fn=as_tuples)
    loader = translated(dataloader)
    assert [int(label) for batch in loader for t in batch.target for label in t["labels"]] == [
        int(label) for i in range(23) for label in dataset[i][1].get("labels", ())
    ]
    plain.ids = plain.ids[3:17:2]  # a script removes some of them
    picked = translated(dataloader)
    assert [int(t["image_id"]) for batch in picked for t in batch.target] == plain.ids
    row = plain.coco.dataset["annotations"][0]
    row["category_id"] = 8  # and changes some: the data in memory is now in the other file
    assert len(translated(dataloader).source) == 7
    plain.coco.imgToAnns[row["image_id"]] = []
    with pytest.raises(hr.ConfigError, match=r"HR0834[^\0]*annotations="):
        translated(dataloader)


def test_transforms_that_cannot_move_boxes_natively_run_in_python(
    pictures: Path, tmp_path: Path
) -> None:
    pytest.importorskip("pycocotools")

    def same(image: Any, target: Any) -> Any:
        full = {"boxes": torch.zeros(0, 4), "labels": torch.zeros(0, dtype=torch.int64), **target}
        full.pop("image_id", None)  # which torchvision omits only for images without objects
        return tv.transforms.functional.pil_to_tensor(image), full

    dataset, file = detection(pictures, tmp_path, same, ["boxes", "labels"])
    dataloader = DataLoader(dataset, batch_size=4, collate_fn=as_tuples)
    loader = translated(dataloader, annotations=file)
    assert "together" in loader.report.python[0].note
    images, targets = next(iter(dataloader))
    ours = next(iter(loader.torch()))
    assert all(map(torch.equal, images, ours[0]))
    assert all(torch.equal(a["boxes"], b["boxes"]) for a, b in zip(ours[1], targets, strict=True))


def test_coco_with_absolute_names_is_read_on_request(pictures: Path, tmp_path: Path) -> None:
    pytest.importorskip("pycocotools")
    images = [
        {"id": number, "file_name": str(path.absolute()), **size_of(path)}
        for number, path in enumerate(files_of(pictures))
    ]
    file = tmp_path / "absolute.json"
    box = {"id": 1, "image_id": 0, "category_id": 7, "bbox": [1, 1, 2, 3], "area": 6, "iscrowd": 0}
    named = {"annotations": [box], "categories": [{"id": 7, "name": "c"}]}
    file.write_text(json.dumps({"images": images, **named}))
    dataset = tv.datasets.CocoDetection(str(tmp_path), str(file), tv.transforms.ToTensor())
    dataloader = DataLoader(dataset, batch_size=4, collate_fn=first_of)
    given: dict[str, Any] = {"collate": "default", "annotations": file}
    with pytest.raises(hr.ConfigError, match=r"HR0276[^\0]*allow_outside=True"):
        translated(dataloader, **given)
    loader = translated(dataloader, **given, allow_outside=True)
    assert loader.report.records_checked == 23
