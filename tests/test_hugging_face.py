# SPDX-License-Identifier: Apache-2.0
"""A `datasets.Dataset` gives the same records as indexing it: upright images, only visible columns,
and the results of the user's functions."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

import headrace as hr
from headrace import transforms as T

pa = pytest.importorskip("pyarrow")


def photo(orientation: int) -> bytes:
    pixels = np.random.default_rng(0).integers(0, 255, (6, 10, 3), np.uint8)
    exif = Image.Exif()
    exif[274] = orientation
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", exif=exif)
    return file.getvalue()


def upright(encoded: bytes) -> np.ndarray:
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(encoded)))
    return np.asarray(image).transpose(2, 0, 1)


PHOTOS = [photo(orientation) for orientation in (1, 6, 8, 3, 5)]


class StandIn:
    """As much of a `datasets.Dataset` as Headrace uses."""

    def __init__(self, table: dict[str, Any], **form: Any) -> None:
        self.data = type("Table", (), {"table": pa.table(table)})()
        self.column_names = list(table)
        self._indices = None
        self._format_type = form.get("type")
        self._format_columns = form.get("columns")
        self._output_all_columns = False

    def __len__(self) -> int:
        return len(self.data.table)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"x": 10 * index}  # the result of a user's function


StandIn.__module__ = "datasets.arrow_dataset"


def columns() -> dict[str, Any]:
    return {
        "image": [{"bytes": each, "path": None} for each in PHOTOS],
        "label": list(range(len(PHOTOS))),
        "note": ["n"] * len(PHOTOS),
    }


def resized(batch: dict[str, Any]) -> dict[str, Any]:
    arrays = [np.asarray(image.resize((4, 4)), np.float32) for image in batch["image"]]
    return {"pixel_values": arrays, "label": batch["label"]}


def test_images_are_upright() -> None:
    source = hr.open(StandIn(columns()))
    loader = hr.Loader(source, batch_size=1, shuffle=False, ragged="list")
    for i, batch in enumerate(loader):
        np.testing.assert_array_equal(batch.image[0], upright(PHOTOS[i]))
        np.testing.assert_array_equal(source[i]["image"], upright(PHOTOS[i]))
    part = hr.subset(source, [1])  # and values derived from it
    np.testing.assert_array_equal(
        next(iter(hr.Loader(part, batch_size=1, ragged="list"))).image[0], source[1]["image"]
    )
    stored = hr.Loader(part, batch_size=1, ragged="list", exif_orientation=False)
    assert next(iter(stored)).image[0].shape == (3, 6, 10)


def test_hidden_columns_are_not_read() -> None:
    source = hr.open(StandIn(columns(), columns=["label", "image"]))
    assert sorted(field.name for field in source.schema) == ["image", "label"]


def test_records_are_the_results_of_the_datasets_transform() -> None:
    source = hr.open(StandIn(columns(), type="custom"))
    assert [record["x"] for record in source] == [0, 10, 20, 30, 40]


def test_splits_are_chosen_by_their_name() -> None:
    splits = type("DatasetDict", (dict,), {"__module__": "datasets.dataset_dict", "data": {}})
    with pytest.raises(
        hr.ConfigError, match=r'DatasetDict with the splits train, test(.|\n)*"train"'
    ):
        hr.open(splits(train=1, test=2))


def test_records_equal_the_librarys(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})
    given = {name: columns()[name] for name in ("image", "label")}
    data = datasets.Dataset(
        pa.table(given, schema=features.arrow_schema),
        info=datasets.DatasetInfo(features=features),
        fingerprint="given",  # otherwise the library hashes everything with pickle
    )
    for form in (data, data.with_format("numpy"), data.select([3, 1])):
        source = hr.open(form)
        for i in range(len(form)):
            image = np.asarray(form[i]["image"]).transpose(2, 0, 1)
            np.testing.assert_array_equal(source[i]["image"], image)

    made = data.select(range(5))  # as with_transform() does, which would hash the function
    made.set_format("custom", transform=resized, new_fingerprint="resized")
    batch = next(
        iter(hr.Loader(made, [T.Python(lambda x: -x, fields="pixel_values")], batch_size=5))
    )
    np.testing.assert_array_equal(batch.pixel_values[2], -made[2]["pixel_values"])
    with pytest.raises(hr.ConfigError, match="splits train"):
        hr.open(datasets.DatasetDict({"train": data}))
