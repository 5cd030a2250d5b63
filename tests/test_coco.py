# SPDX-License-Identifier: Apache-2.0
"""COCO annotations equal those read by pycocotools and torchvision."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import headrace as hr

WIDTH, HEIGHT = 53, 41


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes annotations of two images, ids 9 and 4."""

    def write(annotations: list[dict[str, Any]], **more: Any) -> Path:
        images = []
        for number in (9, 4):
            Image.new("RGB", (WIDTH, HEIGHT), (number, 0, 0)).save(tmp_path / f"{number}.png")
            images.append(
                {"id": number, "file_name": f"{number}.png", "width": WIDTH, "height": HEIGHT}
            )
        categories = [{"id": 20, "name": "dog"}, {"id": 3, "name": "cat"}]
        path = tmp_path / "annotations.json"
        path.write_text(
            json.dumps(
                {"images": images, "annotations": annotations, "categories": categories} | more
            )
        )
        return path

    return write


def row(image: int, segmentation: object, **more: Any) -> dict[str, Any]:
    box = {"image_id": image, "category_id": 3, "bbox": [1, 2, 10, 11], "id": 1}
    return box | {"segmentation": segmentation} | more


def random_polygon(rng: np.random.Generator) -> list[float]:
    points = int(rng.integers(3, 12))
    reach = rng.uniform(-0.3, 1.3, (points, 2)) * (WIDTH, HEIGHT)
    match rng.integers(4):
        case 0:
            reach = np.round(reach)
        case 1:
            reach = np.round(reach * 2) / 2
        case 2:
            reach = np.clip(reach, 0, (WIDTH, HEIGHT))
    if rng.integers(4) == 0:
        reach = np.repeat(reach, 2, axis=0)
    return [float(value) for value in reach.ravel()]


def test_masks_of_random_polygons_equal_those_of_pycocotools(write: Callable[..., Path]) -> None:
    mask = pytest.importorskip("pycocotools.mask")
    rng = np.random.default_rng(5)
    outlines = [[random_polygon(rng) for _ in range(rng.integers(1, 4))] for _ in range(400)]
    outlines += [[random_polygon(rng), [1.5, 2, 9.25, 7]]]
    source = hr.open(str(write([row(9, outline) for outline in outlines])), masks=True)
    masks = source[1]["masks"]
    assert masks.shape == (401, HEIGHT, WIDTH)
    for got, outline in zip(masks, outlines, strict=True):
        wanted = mask.decode(mask.merge(mask.frPyObjects(outline, HEIGHT, WIDTH)))
        np.testing.assert_array_equal(got, wanted)


def test_run_length_codes_equal_those_of_pycocotools(write: Callable[..., Path]) -> None:
    mask = pytest.importorskip("pycocotools.mask")
    rng = np.random.default_rng(6)
    planes = [
        (rng.random((HEIGHT, WIDTH)) < share).astype(np.uint8)
        for share in (0, 0.01, 0.1, 0.5, 0.9, 0.99, 1)
    ]
    rows = []
    for plane in planes:
        code = mask.encode(np.asfortranarray(plane))
        rows.append(row(9, {"size": code["size"], "counts": code["counts"].decode()}, iscrowd=1))
        ends = np.flatnonzero(np.diff(plane.ravel(order="F"), prepend=0, append=2))
        counts = [int(count) for count in np.diff(ends, prepend=0)]
        rows.append(row(9, {"counts": counts, "size": [HEIGHT, WIDTH]}))
    masks = hr.open(str(write(rows)), masks=True)[1]["masks"]
    for number, plane in enumerate(planes):
        np.testing.assert_array_equal(masks[2 * number], plane)
        np.testing.assert_array_equal(masks[2 * number + 1], plane)


def corpus() -> Path:
    folder = os.environ.get("HEADRACE_TEST_DATA")
    path = Path(folder or ".") / "coco" / "annotations.json"
    if not folder or not path.exists():
        pytest.skip("needs HEADRACE_TEST_DATA")
    return path


def test_a_real_dataset_equals_pycocotools_result() -> None:
    path = corpus()
    coco = pytest.importorskip("pycocotools.coco").COCO(path)
    source = hr.open(str(path), masks=True)
    ids = sorted(coco.imgs)
    assert source.column("image_id").tolist() == ids
    assert source.classes == [coco.cats[number]["name"] for number in sorted(coco.cats)]
    number_of = {category: number for number, category in enumerate(sorted(coco.cats))}
    compared = 0
    for index, image_id in enumerate(ids):
        if not Path(source.key(index)).exists():
            with pytest.raises(hr.StorageError):
                source[index]
            continue
        record = source[index]
        rows = coco.imgToAnns[image_id]
        boxes = np.array([a["bbox"] for a in rows], np.float32).reshape(-1, 4)
        boxes[:, 2:] += boxes[:, :2]
        np.testing.assert_array_equal(record["boxes"], boxes)
        assert record["labels"].tolist() == [number_of[a["category_id"]] for a in rows]
        assert record["crowd"].tolist() == [a["iscrowd"] for a in rows]
        np.testing.assert_array_equal(record["areas"], np.array([a["area"] for a in rows], "f4"))
        for got, annotation in zip(record["masks"], rows, strict=True):
            if len(annotation["segmentation"][0]) == 4:
                continue  # two points, which pycocotools interprets as a box
            np.testing.assert_array_equal(got, coco.annToMask(annotation))
            compared += 1
    assert compared > 20


def test_boxes_are_converted_as_torchvision_converts_them(write: Callable[..., Path]) -> None:
    torch = pytest.importorskip("torch")
    ops = pytest.importorskip("torchvision.ops")
    rng = np.random.default_rng(7)
    given = rng.uniform(0, 40, (200, 4)).round(3).tolist()
    path = write([row(4, [], bbox=box) for box in given])
    for form in ("xyxy", "xywh", "cxcywh"):
        wanted = ops.box_convert(torch.tensor(given, dtype=torch.float32), "xywh", form)
        np.testing.assert_array_equal(hr.open(str(path), boxes=form)[0]["boxes"], wanted.numpy())


def test_a_loader_delivers_rows_as_lists(write: Callable[..., Path]) -> None:
    path = write([row(9, []), row(9, [], category_id=20)])
    loader = hr.Loader(
        hr.open(str(path)), fields=("boxes", "labels", "image_id"), batch_size=2, ragged="list"
    )
    (batch,) = loader
    assert [boxes.shape for boxes in batch["boxes"]] == [(0, 4), (2, 4)]
    assert [np.asarray(labels).tolist() for labels in batch["labels"]] == [[], [0, 1]]
    assert np.asarray(batch["image_id"]).tolist() == [4, 9]


def test_a_bad_box_affects_only_its_record(write: Callable[..., Path]) -> None:
    path = write([row(9, []), row(4, [], bbox=[float("nan"), 0, 1, 1])])
    source = hr.open(str(path))
    assert "1 record with bad annotations" in repr(source)
    assert len(source.column("image_id")) == len(source)
    with pytest.raises(hr.DataError, match=r"HR0435.*that is not finite"):
        source[0]
    assert source[1]["boxes"].shape == (1, 4)
    loader = hr.Loader(source, fields=("labels",), batch_size=1, ragged="list", on_error="skip")
    assert sum(len(batch["labels"]) for batch in loader) == 1


def test_captions_are_text_and_a_list(write: Callable[..., Path]) -> None:
    said = ['A "dog".', "Zwei\nHüte \u2603"]
    path = write([{"image_id": 9, "id": n, "caption": text} for n, text in enumerate(said)])
    record = hr.open(str(path))[1]
    assert record["caption"] == said[0]
    assert json.loads(record["captions"]) == said


def test_keypoints_have_three_numbers_each(write: Callable[..., Path]) -> None:
    points = [1, 2, 2, 30.5, 4, 1]
    path = write([row(9, [], keypoints=points), row(9, [])])
    keypoints = hr.open(str(path), keypoints=True)[1]["keypoints"]
    assert keypoints.tolist() == [[[1, 2, 2], [30.5, 4, 1]], [[0, 0, 0], [0, 0, 0]]]


def test_a_truncated_file_is_refused_with_the_offset(write: Callable[..., Path]) -> None:
    path = write([row(9, [])])
    text = path.read_text()
    for part in range(1, 64):
        path.write_text(text[: len(text) * part // 64])
        with pytest.raises(hr.DataError, match="HR0433"):
            hr.open(str(path), format="coco")
