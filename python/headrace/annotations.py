# SPDX-License-Identifier: Apache-2.0
"""Converts annotations of YOLO and VOC to one COCO file, which ``hr.coco`` reads.

>>> import headrace as hr, pathlib, tempfile
>>> from PIL import Image
>>> root = pathlib.Path(tempfile.mkdtemp())
>>> Image.new("RGB", (40, 20)).save(root / "1.png")
>>> _ = (root / "1.txt").write_text("1 0.5 0.5 0.25 0.5")
>>> file = hr.coco_from_yolo(root, root, root / "train.json", names=["cat", "dog"])
>>> hr.coco(file, images=root)[0]["boxes"].tolist()
[[15.0, 5.0, 25.0, 15.0]]
"""

from __future__ import annotations

import json
import math
import os
import xml.etree.ElementTree
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headrace.errors import declare
from headrace.sources.media_paths import kind_by_suffix

BAD_ANNOTATIONS = declare(
    "HR1403",
    "data",
    "invalid YOLO or VOC annotations",
    "A line of YOLO labels is a class and a box (center and size) or an outline of three or more "
    "points, in fractions of the image; a VOC file has the corners of each object in pixels. The "
    "message names the file and the problem.",
)

StrPath = str | os.PathLike[str]
Row = dict[str, Any]


def coco_from_yolo(
    images: StrPath,
    labels: StrPath,
    out: StrPath,
    *,
    names: Sequence[str] | Mapping[int, str] | None = None,
) -> Path:
    """Converts YOLO labels to COCO annotations; returns the file, for ``hr.coco``.

    Args:
        images: the folder of one split's images, such as ``data/images/train``; subfolders are
            included.
        labels: the folder of its label files, named like the images. An image without a label file,
            or with an empty one, has no boxes.
        out: the JSON file.
        names: class names by index, as ``names`` in the dataset's ``data.yaml``. Default: "0",
            "1", ...

    Outlines are kept (``hr.coco(..., masks=True)``), with the box around them. Sizes refer to
    upright images, as in Ultralytics: if some images are rotated by an Exif tag, read with
    ``exif_orientation=True``. Needs Pillow. Raises DataError (HR1403) for invalid annotations.
    """
    pictures = _pictures(images)
    rows = [_yolo_rows(Path(labels, name).with_suffix(".txt"), size) for name, size in pictures]
    largest = max((row["category_id"] for each in rows for row in each), default=-1)
    if names is None:
        names = [str(number) for number in range(largest + 1)]
    named = dict(names) if isinstance(names, Mapping) else dict(enumerate(names))
    for (name, _), each in zip(pictures, rows, strict=True):
        for row in each:
            if row["category_id"] not in named:
                what = f"class {row['category_id']} of {name} has no name: names= has {len(named)}"
                raise BAD_ANNOTATIONS.error(what, hint="names= needs one name per class")
    return _written(out, pictures, rows, named)


def coco_from_voc(
    images: StrPath,
    annotations: StrPath,
    out: StrPath,
    *,
    ids: StrPath | Iterable[str] | None = None,
    first_pixel: int = 1,
) -> Path:
    """Converts VOC annotations to COCO; returns the file, for ``hr.coco``.

    Args:
        images: the folder ``JPEGImages``.
        annotations: the folder ``Annotations``, an XML file per image.
        out: the JSON file.
        ids: names of images without suffix, or a file of ``ImageSets/Main`` that lists them in its
            first column. Default: all annotations.
        first_pixel: the coordinate of an image's first pixel: 1 in VOC's own files; labeling tools
            write 0. If it is 1, boxes include their last pixel, as in VOC.

    Classes are sorted by name. Objects marked as difficult become ``crowd``, so that ``hr.coco(...,
    skip_crowd=True)`` omits them. Needs Pillow. Raises DataError (HR1403) for invalid annotations.
    """
    if isinstance(ids, (str, os.PathLike)):
        lines = Path(ids).read_text(encoding="utf-8").splitlines()
        ids = [line.split()[0] for line in lines if line.strip()]
    files = sorted(Path(annotations).glob("*.xml"))
    if ids is not None:
        files = [Path(annotations, f"{name}.xml") for name in ids]
    trees = [_voc_tree(file) for file in files]
    pictures = [
        (name, _upright_size(Path(images, name)))
        for name in (_voc_image(images, f, t) for f, t in zip(files, trees, strict=True))
    ]
    found = [
        list(_voc_objects(file, tree, first_pixel)) for file, tree in zip(files, trees, strict=True)
    ]
    classes = sorted({name for each in found for name, _ in each})
    numbers = {name: number for number, name in enumerate(classes)}
    rows = [[{**row, "category_id": numbers[name]} for name, row in each] for each in found]
    return _written(out, pictures, rows, dict(enumerate(classes)))


def _pictures(folder: StrPath) -> list[tuple[str, tuple[int, int]]]:
    """The path of each image relative to the folder, with its (width, height)."""
    found = sorted(path for path in Path(folder).rglob("*") if kind_by_suffix(path) == "image")
    if not found:
        raise BAD_ANNOTATIONS.error(f"{os.fspath(folder)} has no images")
    return [(str(path.relative_to(folder)), _upright_size(path)) for path in found]


def _upright_size(path: Path) -> tuple[int, int]:
    from PIL import Image

    with Image.open(path) as image:
        width, height = image.size
        turned = image.getexif().get(0x0112, 1) in (5, 6, 7, 8)
    return (height, width) if turned else (width, height)


def _yolo_rows(file: Path, size: tuple[int, int]) -> list[Row]:
    if not file.exists():
        return []
    width, height = size
    rows = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            label, *values = map(float, line.split())
        except ValueError:
            label, values = -1.0, []
        is_outline = len(values) >= 6 and len(values) % 2 == 0
        if not all(map(math.isfinite, (label, *values))) or label < 0 or label != int(label):
            values, is_outline = [], False
        if len(values) != 4 and not is_outline:
            raise BAD_ANNOTATIONS.error(
                f"line {number} of {file} is neither a class and a box nor a class and an outline "
                f"({line!r})"
            )
        row: Row = {"category_id": int(label)}
        if is_outline:
            xs, ys = [x * width for x in values[::2]], [y * height for y in values[1::2]]
            left, top, right, bottom = min(xs), min(ys), max(xs), max(ys)
            outline = [value for point in zip(xs, ys, strict=True) for value in point]
            row["segmentation"] = [outline]
        else:
            x, y, w, h = values
            left, right = (x - w / 2) * width, (x + w / 2) * width
            top, bottom = (y - h / 2) * height, (y + h / 2) * height
        row["bbox"] = [left, top, right - left, bottom - top]
        rows.append(row)
    return rows


def _voc_tree(file: Path) -> xml.etree.ElementTree.Element:
    try:
        return xml.etree.ElementTree.parse(file).getroot()
    except (OSError, xml.etree.ElementTree.ParseError) as error:
        raise BAD_ANNOTATIONS.error(f"{file}: {error}") from None


def _voc_image(images: StrPath, file: Path, tree: xml.etree.ElementTree.Element) -> str:
    """Looks for the annotation file's own name first: the name inside may be from another
    folder."""
    stated = Path(tree.findtext("filename") or "").name
    for name in (f"{file.stem}.jpg", f"{file.stem}{Path(stated).suffix}", stated):
        if name and Path(images, name).is_file():
            return name
    raise BAD_ANNOTATIONS.error(
        f"{os.fspath(images)} has neither {file.stem}.jpg nor {stated}, the image of {file}"
    )


def _voc_objects(
    file: Path, tree: xml.etree.ElementTree.Element, first_pixel: int
) -> Iterator[tuple[str, Row]]:
    for number, item in enumerate(tree.iter("object"), 1):
        name = (item.findtext("name") or "").strip()
        texts = [item.findtext(f"bndbox/{side}") for side in ("xmin", "ymin", "xmax", "ymax")]
        try:
            left, top, right, bottom = (float(text or "nan") for text in texts)
        except ValueError:
            left = math.nan
        if not name or not all(map(math.isfinite, (left, top, right, bottom))):
            raise BAD_ANNOTATIONS.error(
                f"object {number} of {file} has no name, or no box of four numbers"
            )
        box = [left - first_pixel, top - first_pixel]
        box += [right - left + first_pixel, bottom - top + first_pixel]
        crowd = int((item.findtext("difficult") or "0").strip() == "1")
        yield name, {"bbox": box, "iscrowd": crowd}


def _written(
    out: StrPath,
    pictures: list[tuple[str, tuple[int, int]]],
    rows: list[list[Row]],
    names: Mapping[int, str],
) -> Path:
    images = [
        {"id": number, "file_name": name, "width": width, "height": height}
        for number, (name, (width, height)) in enumerate(pictures)
    ]
    pairs = [(number, row) for number, each in enumerate(rows) for row in each]
    annotations = [
        {"id": place, "image_id": number, **row} for place, (number, row) in enumerate(pairs)
    ]
    categories = [{"id": number, "name": name} for number, name in sorted(names.items())]
    content = {"images": images, "categories": categories, "annotations": annotations}
    path = Path(out)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path
