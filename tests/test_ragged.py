# SPDX-License-Identifier: Apache-2.0
"""Records of differing shape in one batch: padded, packed, in lists; the same rows each way."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch

import headrace as hr
from headrace import _core
from headrace import transforms as T

ROWS = (3, 0, 5, 1, 0, 2, 7, 1, 4, 2, 0)


def record(index: int, rows: int) -> dict[str, Any]:
    random = np.random.default_rng(index)
    return {
        "image": random.integers(0, 256, (3, 8, 12), np.uint8),
        "boxes": random.uniform(0, 8, (rows, 4)).astype(np.float32),
        "labels": random.integers(0, 90, rows),
        "points": random.uniform(0, 8, (rows, 5, 3)).astype(np.float32),
        "masks": random.integers(0, 2, (rows, 8, 12), np.uint8),
        "number": index,
    }


RECORDS = [record(index, rows) for index, rows in enumerate(ROWS)]
RAGGED = ("boxes", "labels", "points", "masks")


def source(records: list[dict[str, Any]] = RECORDS) -> Any:
    said = {"boxes": "boxes:xyxy", "points": "keypoints", "masks": "masks"}
    present = {name: kind for name, kind in said.items() if name in records[0]}
    shapes = {
        name: (-1, *value.shape[1:])
        for name, value in records[0].items()
        if name in RAGGED and isinstance(value, np.ndarray)
    }
    return hr.open(records, kinds=present, shapes=shapes)


def loader(steps: Any = (), records: list[dict[str, Any]] = RECORDS, **options: Any) -> Any:
    return hr.Loader(source(records), steps, **{"batch_size": 4, **options})


def assert_same(got: dict[str, Any], expected: dict[str, Any]) -> None:
    for name, value in got.items():
        np.testing.assert_array_equal(np.asarray(value), expected[name], name)
        assert tuple(value.shape) == np.shape(expected[name]), name


@pytest.mark.parametrize("multiple", [1, 4])
def test_padded_values_lengths_and_mask_equal_numpys(multiple: int) -> None:
    first = 0
    for batch in loader(ragged="pad", pad_to_multiple_of=multiple):
        here = RECORDS[first : first + len(batch.number)]
        first += len(here)
        lengths = [len(each["boxes"]) for each in here]
        longest = -(-max(lengths) // multiple) * multiple
        for name, padding in (("boxes", 0), ("labels", -1), ("points", 0), ("masks", 0)):
            expected = np.full((len(here), longest, *here[0][name].shape[1:]), padding)
            expected = expected.astype(here[0][name].dtype)
            for row, each in enumerate(here):
                expected[row, : lengths[row]] = each[name]
            np.testing.assert_array_equal(batch[name], expected)
            assert batch[name].dtype == here[0][name].dtype
            np.testing.assert_array_equal(batch[f"{name}_lengths"], lengths)
            inside = np.arange(longest) < np.array(lengths)[:, None]
            np.testing.assert_array_equal(batch[f"{name}_mask"], inside)
    assert first == len(RECORDS)


def test_packed_values_are_the_records_rows_one_after_another() -> None:
    first = 0
    for batch in loader(ragged="packed"):
        here = RECORDS[first : first + len(batch.number)]
        first += len(here)
        offsets = np.cumsum([0, *(len(each["boxes"]) for each in here)])
        for name in RAGGED:
            np.testing.assert_array_equal(batch[name], np.concatenate([e[name] for e in here]))
            np.testing.assert_array_equal(batch[f"{name}_offsets"], offsets)
            assert batch[f"{name}_offsets"].dtype == np.int64


@pytest.mark.parametrize("ragged", ["pad", "packed", "list"])
@pytest.mark.parametrize("view", ["numpy", "torch"])
def test_per_record_restores_the_records(ragged: str, view: str) -> None:
    got = []
    for batch in getattr(loader(ragged=ragged), view)():
        targets = batch.per_record(*RAGGED, "number")
        assert all(isinstance(value, type(batch.image)) for value in targets[0].values()) or (
            view == "numpy"
        )
        got += targets
    assert len(got) == len(RECORDS)
    for target, expected in zip(got, RECORDS, strict=True):
        assert list(target) == [*RAGGED, "number"]
        assert_same(target, expected)


def test_per_record_gives_views_and_survives_a_pickle() -> None:
    batch = next(iter(loader(ragged="packed").torch()))
    part = batch.per_record("boxes")[2]["boxes"]
    assert part.data_ptr() == batch.boxes[3:].data_ptr()
    part[0, 0] = 77
    assert batch.boxes[3, 0] == 77
    again = pickle.loads(pickle.dumps(batch)).per_record()
    assert set(again[0]) == {"image", *RAGGED, "number"}
    assert torch.equal(again[2]["boxes"], part)


def test_companion_fields_come_last_unless_named() -> None:
    padded = loader(ragged="pad", fields=("boxes", "image"))
    assert next(iter(padded))._fields == ("boxes", "image", "boxes_lengths", "boxes_mask")
    padded = loader(ragged="pad", fields=("boxes_mask", "boxes", "image"))
    assert next(iter(padded))._fields == ("boxes_mask", "boxes", "image", "boxes_lengths")
    packed = loader(ragged="packed", fields=("boxes_offsets", "boxes"))
    assert next(iter(packed))._fields == ("boxes_offsets", "boxes")


def test_a_row_group_shares_its_companions(tmp_path: Any) -> None:
    path = coco(tmp_path)
    names = ("boxes", "labels", "areas", "crowd")
    with hr.Loader(hr.coco(path), fields=names, batch_size=3, ragged="pad") as padded:
        batch = next(iter(padded))
    assert batch._fields == (*names, "boxes_lengths", "boxes_mask")
    assert batch.boxes_lengths.tolist() == [2, 0, 1]
    assert batch.labels.tolist() == [[1, 2], [-1, -1], [1, -1]]
    assert batch.crowd.tolist() == [[0, 0], [0, 0], [0, 0]]
    assert [len(each["areas"]) for each in batch.per_record()] == [2, 0, 1]


def test_a_declared_row_group_shares_its_companions_too() -> None:
    grouped = source().with_row_group("boxes", "labels", "points", "masks")
    with hr.Loader(grouped, batch_size=4, ragged="packed") as packed:
        batch = next(iter(packed))
    assert batch._fields == ("image", *RAGGED, "number", "boxes_offsets")
    for target, expected in zip(batch.per_record(*RAGGED), RECORDS[:4], strict=True):
        assert_same(target, expected)


def test_a_step_that_drops_rows_of_one_field_of_a_group_is_detected(tmp_path: Any) -> None:
    def thin(boxes: Any) -> Any:
        return boxes[:1]

    path = coco(tmp_path)
    with (
        hr.Loader(
            hr.coco(path), [thin], fields=("boxes", "labels"), batch_size=3, ragged="packed"
        ) as packed,
        pytest.raises(hr.DataError, match='"labels" has 2 rows, "boxes" 1') as raised,
    ):
        next(iter(packed))
    assert raised.value.code == "HR0125"


def coco(folder: Any) -> str:
    import json

    from PIL import Image

    pictures = []
    for number in range(3):
        Image.new("RGB", (16, 12)).save(folder / f"{number}.png")
        pictures.append({"id": number, "file_name": f"{number}.png", "width": 16, "height": 12})
    boxes = [(0, 1, [1, 2, 3, 4]), (0, 2, [2, 2, 5, 5]), (2, 1, [0, 0, 4, 4])]
    annotations = [
        {"id": i, "image_id": at, "category_id": label, "bbox": box, "area": 12.0, "iscrowd": 0}
        for i, (at, label, box) in enumerate(boxes)
    ]
    categories = [{"id": 0, "name": "none"}, {"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
    path = folder / "instances.json"
    path.write_text(
        json.dumps({"images": pictures, "annotations": annotations, "categories": categories})
    )
    return str(path)


PICTURES = [
    {
        "image": np.random.default_rng(i).integers(0, 256, (3, 4 + i, 9 - i), np.uint8),
        "mask": np.random.default_rng(i).integers(0, 9, (1, 4 + i, 9 - i), np.uint8),
    }
    for i in range(5)
]


@pytest.mark.parametrize("memory_format", ["channels_first", "channels_last"])
def test_images_are_padded_with_a_mask_of_their_pixels(memory_format: str) -> None:
    with hr.Loader(PICTURES, batch_size=5, ragged="pad", memory_format=memory_format) as padded:
        batch = next(iter(padded.torch()))
    assert batch.image.shape == (5, 3, 8, 9)
    assert batch.image_lengths.tolist() == [[4 + i, 9 - i] for i in range(5)]
    for row, picture in enumerate(PICTURES):
        height, width = picture["image"].shape[1:]
        expected = np.zeros((3, 8, 9), np.uint8)
        expected[:, :height, :width] = picture["image"]
        np.testing.assert_array_equal(batch.image[row], expected)
        ids = np.full((1, 8, 9), 255, np.uint8)  # the value that cross-entropy ignores
        ids[:, :height, :width] = picture["mask"]
        np.testing.assert_array_equal(batch.mask[row], ids)
        inside = np.zeros((8, 9), bool)
        inside[:height, :width] = True
        np.testing.assert_array_equal(batch.image_mask[row], inside)
    assert batch.image.is_contiguous(memory_format=getattr(torch, {
        "channels_first": "contiguous_format"}.get(memory_format, memory_format)))  # fmt: skip
    for target, picture in zip(batch.per_record("image", "mask"), PICTURES, strict=True):
        assert_same(target, picture)


def test_images_stay_lists_if_rows_are_packed() -> None:
    with hr.Loader(PICTURES, batch_size=5, ragged="packed") as packed:
        batch = next(iter(packed))
    assert batch._fields == ("image", "mask")
    assert [each.shape for each in batch.image] == [each["image"].shape for each in PICTURES]


def test_padding_may_be_any_number() -> None:
    batch = next(iter(loader(ragged="pad", pad_value={"labels": -100, "boxes": float("nan")})))
    assert batch.labels[1].tolist() == [-100] * 5
    assert np.isnan(batch.boxes[1]).all()
    assert (batch.masks[1] == 0).all()


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        ({"ragged": "pad", "pad_value": {"label": 1}}, "HR0119", '"label", which is not padded'),
        ({"ragged": "pad", "pad_value": {"image": 1}}, "HR0119", '"image", which is not padded'),
        ({"ragged": "pad", "pad_value": {"masks": 256}}, "HR0119", "uint8 cannot hold"),
        ({"ragged": "pad", "pad_value": {"labels": 0.5}}, "HR0119", "int64 cannot hold"),
        ({"ragged": "pad", "pad_value": {"labels": float("nan")}}, "HR0119", "cannot hold"),
        ({"ragged": "packed", "pad_value": {"boxes": 1}}, "HR0119", "not padded"),
        ({"pad_value": {"boxes": 1}, "ragged": "list"}, "HR0119", "not padded"),
        ({"ragged": "pad", "pad_value": -1}, None, "pad_value is a dictionary"),
        ({"ragged": "pad", "pad_value": {"labels": "x"}}, None, "list of numbers"),
        ({"ragged": "pad", "pad_to_multiple_of": 0}, None, "pad_to_multiple_of"),
        ({"ragged": "pad", "fields": "boxes_lengths"}, "HR0119", "it is added by \"boxes\""),
        ({"ragged": "pad", "fields": ("image", "image_mask")}, "HR0119", "which does not exist"),
        ({"ragged": "list", "fields": ("boxes", "boxes_mask")}, "HR0112", "does not exist"),
    ],
)  # fmt: skip
def test_impossible_options_are_refused_before_a_thread_starts(
    options: dict[str, Any], code: str | None, text: str
) -> None:
    with pytest.raises(hr.ConfigError, match=text) as raised:
        loader(**options)
    assert code in (None, raised.value.code)


def test_a_field_of_the_records_with_a_companions_name_is_refused() -> None:
    records = [{"boxes": each["boxes"], "boxes_lengths": 1} for each in RECORDS]
    with pytest.raises(hr.ConfigError, match="exclude it with fields="):
        loader(records=records, ragged="pad")
    batch = next(iter(loader(records=records, ragged="pad", fields="boxes")))
    assert batch.boxes_lengths.tolist() == [3, 0, 5, 1]


def test_unknown_fields_of_per_record_and_companions_are_refused() -> None:
    batch = next(iter(loader(ragged="pad")))
    for name, text in (("box", "did you mean"), ("boxes_mask", "of another field")):
        with pytest.raises(hr.ConfigError, match=text) as raised:
            batch.per_record(name)
        assert raised.value.code == "HR0743"


@pytest.mark.parametrize("ragged", ["pad", "packed"])
def test_batches_of_records_without_rows_are_empty(ragged: str) -> None:
    none = [record(index, 0) for index in range(5)]
    for batch in loader(records=none, ragged=ragged, batch_size=2):
        count = len(batch.number)
        assert batch.boxes.shape == ((count, 0, 4) if ragged == "pad" else (0, 4))
        assert batch.masks.shape[-3:] == (0, 8, 12)
        for target in batch.per_record():
            assert target["boxes"].shape == (0, 4)
            assert target["masks"].shape == (0, 8, 12)


def test_boxes_that_are_nan_stay_nan_and_padding_stays_padding() -> None:
    records = [{"boxes": np.full((n, 4), np.nan, np.float32)} for n in (1, 2)]
    batch = next(iter(loader(records=records, ragged="pad", batch_size=2)))
    assert np.isnan(batch.boxes[batch.boxes_mask]).all()
    assert (batch.boxes[~batch.boxes_mask] == 0).all()


def flat(batch: Any) -> list[bytes]:
    return [np.asarray(value).tobytes() for value in batch]


STEPS = [T.RandomHorizontalFlip(), T.RandomCrop((6, 8))]


@pytest.mark.parametrize("ragged", ["pad", "packed"])
def test_threads_resume_and_numbers_of_batches_change_nothing(ragged: str) -> None:
    options = {"ragged": ragged, "shuffle": True, "seed": 3, "batch_size": 2}
    with loader(STEPS, threads=1, **options) as one:
        expected = [flat(batch) for batch in one]
        assert [flat(one.batch(0, index)) for index in range(len(one))] == expected
    with loader(STEPS, threads=4, **options) as four:
        batches = iter(four)
        got = [flat(next(batches)) for _ in range(2)]
        state = four.state_dict()
    with loader(STEPS, threads=2, **options) as resumed:
        resumed.load_state_dict(state)
        got += [flat(batch) for batch in resumed]
    assert got == expected


@pytest.mark.parametrize("ragged", ["pad", "packed", "list"])
def test_ranks_together_get_the_rows_of_one_process(ragged: str) -> None:
    options = {"ragged": ragged, "shuffle": True, "seed": 5, "last_batch": "drop"}
    with loader(STEPS, batch_size=4, shard=False, **options) as one:
        expected = [target for batch in one for target in batch.per_record()]
    ranks = []
    for rank in range(2):
        with loader(STEPS, batch_size=2, shard=(rank, 2), **options) as each:
            ranks.append([batch.per_record() for batch in each])
    got = [target for pair in zip(*ranks, strict=True) for part in pair for target in part]
    assert len(got) == len(expected) == 8
    for mine, theirs in zip(got, expected, strict=True):
        assert_same(mine, theirs)


@pytest.mark.parametrize("ragged", ["pad", "packed", "list"])
def test_resident_records_and_workers_give_the_same_rows(ragged: str) -> None:
    options = {"ragged": ragged, "seed": 5, "fields": ("boxes", "labels", "number")}
    with loader(STEPS, **options) as streamed:
        expected = [target for batch in streamed for target in batch.per_record()]
    for more in ({"resident": True}, {"cache": "8 MiB"}, {"batch_size": 3}):
        with loader(STEPS, **{**options, **more}) as other:
            got = [target for batch in other for target in batch.per_record()]
        for mine, theirs in zip(got, expected, strict=True):
            assert_same(mine, theirs)


@pytest.mark.parametrize("ragged", ["pad", "packed"])
def test_bad_records_are_skipped_with_their_rows(ragged: str) -> None:
    def refuse(number: int) -> int:
        if number in (0, 4):
            raise ValueError("bad")
        return number

    kept = [each for each in RECORDS if each["number"] not in (0, 4)]
    with (
        loader([refuse], ragged=ragged, on_error="skip", error_budget=9) as skipping,
    ):
        got = [target for batch in skipping for target in batch.per_record()]
    assert len(got) == len(kept)
    for mine, theirs in zip(got, kept, strict=True):
        assert_same(mine, theirs)


def test_text_and_views_of_a_fork_come_with_padded_images() -> None:
    records = [{"image": each["image"], "caption": "x" * i} for i, each in enumerate(PICTURES)]
    views = T.Fork("image", a=[T.RandomHorizontalFlip(1)], b=[T.ToDtype("bfloat16", scale=True)])
    with hr.Loader(records, [views], batch_size=5, ragged="pad", pad_value={"b": 0.5}) as padded:
        batch = next(iter(padded.torch()))
    assert batch._fields[:3] == ("a", "b", "caption") and batch.caption[2] == "xx"
    assert batch.b.dtype == torch.bfloat16 and batch.b[0, 0, -1, -1] == 0.5
    for target, each in zip(batch.per_record("a", "caption"), records, strict=True):
        np.testing.assert_array_equal(target["a"], each["image"][:, :, ::-1])
        assert target["caption"] == each["caption"]


@pytest.mark.parametrize("ragged", ["pad", "packed"])
@pytest.mark.parametrize("devices", [1, 2, 3])
def test_devices_get_the_same_rows(ragged: str, devices: int) -> None:
    names = [_core.simulated_device(seed) for seed in range(devices)]
    got = []
    with loader(ragged=ragged, fields=(*RAGGED, "number")) as streamed:
        for parts in streamed.torch(names):
            got += [target for part in parts for target in part.per_record()]
    assert len(got) == len(RECORDS)
    for mine, theirs in zip(got, RECORDS, strict=True):
        assert_same(mine, {name: theirs[name] for name in mine})


def test_the_plan_says_what_is_padded() -> None:
    text = str(loader(ragged="pad").plan())
    assert "boxes_lengths" in text and "padded" in text
