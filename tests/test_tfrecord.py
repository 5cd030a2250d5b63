# SPDX-License-Identifier: Apache-2.0
"""TFRecord: the records of the files that they were made from, and those that TensorFlow reads."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import files_of, label_of, pixels_of
from tfrecord_writer import (
    crc32c,
    example,
    feature,
    field,
    frame,
    sequence_example,
    write_tfrecord,
)

import headrace as hr
from headrace import transforms as T

AUGMENT = [T.RandomCrop(12), T.RandomHorizontalFlip(), T.ToDtype("float32", scale=True)]


def imagenet_like(path: Path) -> bytes:
    return example(
        {
            "image/class/label": label_of(path) + 1,
            "image/class/text": path.parent.name.encode(),
            "image/encoded": path.read_bytes(),
            "image/object/bbox/xmin": [0.25] * (int(path.stem) % 3),
            "image/height": 7,
        }
    )


@pytest.fixture(scope="module")
def shards(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The images in three files."""
    root = tmp_path_factory.mktemp("shards")
    records = [imagenet_like(path) for path in files_of(pictures)]
    for number, (begin, end) in enumerate([(0, 9), (9, 10), (10, 23)]):
        write_tfrecord(root / f"train-{number:05}-of-00003", records[begin:end])
    return root


def batches_of(source: Any, **options: Any) -> list[bytes]:
    given: dict[str, Any] = {"batch_size": 4, "shuffle": True, "fields": ("image", "label")}
    loader = hr.Loader(source, AUGMENT, **{**given, **options})
    return [np.asarray(b["image"]).tobytes() + np.asarray(b["label"]).tobytes() for b in loader]


def test_the_tests_checksum_follows_the_rfc() -> None:
    assert crc32c(b"123456789") == 0xE3069283  # RFC 3720, B.4


def test_features_get_the_expected_names_and_kinds(shards: Path) -> None:
    source = hr.open(f"{shards}/train-*")
    assert [(f.name, f.kind, f.dtype, f.shape) for f in source.schema] == [
        ("image", "image", "uint8", (-1, -1, -1)),
        ("label", "label", "int64", ()),
        ("image_class_text", "text", "uint8", ()),
        ("image_height", "tensor", "int64", ()),
        ("image_object_bbox_xmin", "boxes", "float32", (-1,)),
    ]
    assert len(source) == 23
    assert source.key(9) == "train-00001-of-00003:0"
    assert f"tfrecord {shards}/train-* (23 records in 3 files)" in repr(source)


def test_records_equal_those_of_the_files(shards: Path, pictures: Path) -> None:
    source = hr.open(f"{shards}/train-{{00000..00002}}-of-00003", label_offset=-1)
    paths = files_of(pictures)
    for record, path in zip(source, paths, strict=True):
        assert np.array_equal(record["image"], pixels_of(path))
        assert record["label"] == label_of(path)
        assert record["image_class_text"] == path.parent.name
        assert record["image_object_bbox_xmin"].tolist() == [0.25] * (int(path.stem) % 3)
    assert source.column("label").tolist() == [label_of(path) for path in paths]
    assert source.column("image_height").tolist() == [7] * 23


def test_batches_equal_those_of_the_folder(shards: Path, pictures: Path) -> None:
    source = hr.open(f"{shards}/train-*", label_offset=-1)
    for threads in (1, 3):
        assert batches_of(source, threads=threads, seed=4) == batches_of(pictures, seed=4)


def test_a_loader_resumes_at_every_step(shards: Path) -> None:
    source = hr.open(f"{shards}/train-*")
    whole = batches_of(source)
    for step in range(len(whole) + 1):
        first = hr.Loader(source, AUGMENT, batch_size=4, shuffle=True, fields=("image", "label"))
        running = iter(first)
        for _ in range(step):
            next(running)
        second = hr.Loader(source, AUGMENT, batch_size=4, shuffle=True, fields=("image", "label"))
        second.load_state_dict(first.state_dict())
        rest = [np.asarray(b["image"]).tobytes() for b in second] if step < len(whole) else []
        assert [whole[step + i].startswith(r) for i, r in enumerate(rest)] == [True] * len(rest)
        assert len(rest) == len(whole) - step


def test_all_shards_of_a_run_cover_the_dataset(shards: Path) -> None:
    seen: list[int] = []
    for rank in range(3):
        loader = hr.Loader(
            hr.open(f"{shards}/train-*"),
            batch_size=1,
            shuffle=True,
            shard=(rank, 3),
            last_batch="pad",
            fields=("id", "image_height"),
        )
        seen += [int(i) for batch in loader for i in np.asarray(batch["id"])]
    assert set(seen) == set(range(23))


def test_shards_of_a_folder_are_sorted_by_number_and_other_suffixes_ignored(tmp_path: Path) -> None:
    for number in range(12):
        write_tfrecord(tmp_path / f"part-{number}.tfrecord", [example({"n": number})])
    (tmp_path / "part-0.idx").write_text("")
    source = hr.open(tmp_path)
    assert source.column("n").tolist() == list(range(12))


def test_lists_of_any_length_are_read_packed_or_not(tmp_path: Path) -> None:
    records = [
        example({"ints": [1, -1, 2**62], "floats": [0.5, -2.0], "same": [7, 8]}, packed=True),
        example({"ints": [5], "floats": [1.0, 3.0], "same": [9, 300]}, packed=False),
        example({"ints": [], "floats": [1.5, 3.5], "same": [-4, 6]}, packed=False),
    ]
    source = hr.open(write_tfrecord(tmp_path / "x", records))
    assert [(f.name, f.shape) for f in source.schema] == [
        ("floats", (2,)),
        ("ints", (-1,)),
        ("same", (2,)),
    ]
    assert [r["ints"].tolist() for r in source] == [[1, -1, 2**62], [5], []]
    assert [r["floats"].tolist() for r in source] == [[0.5, -2.0], [1.0, 3.0], [1.5, 3.5]]
    assert [r["same"].tolist() for r in source] == [[7, 8], [9, 300], [-4, 6]]


def test_a_repeated_feature_name_uses_the_last_value(tmp_path: Path) -> None:
    entries = [field(1, field(1, b"n") + field(2, feature(value))) for value in (1, 2)]
    message = field(1, b"".join(entries)) + field(7, b"unknown") + b"\x45\0\0\0\0"
    source = hr.open(write_tfrecord(tmp_path / "x", [message]))
    assert source[0]["n"] == 2
    assert source.column("n").tolist() == [2]
    source = hr.open(write_tfrecord(tmp_path / "y", [field(1, entries[0]) + field(1, entries[1])]))
    assert source[0]["n"] == 2


def test_a_sequence_example_gives_tensors_of_its_steps(tmp_path: Path) -> None:
    records = [
        sequence_example(
            {"label": n},
            {
                "frames": [[float(n), float(i)] for i in range(n)],
                "tokens": [[i] for i in range(n)],
                "words": [[b"a", b"b"]] * n,
                "rgb": [[bytes([i] * 4)] for i in range(n)],
            },
        )
        for n in range(1, 4)
    ]
    path = write_tfrecord(tmp_path / "x.tfrecord", records)
    source = hr.open(path)
    assert [(f.name, f.shape) for f in source.schema] == [
        ("label", ()),
        ("frames", (-1, 2)),
        ("tokens", (-1,)),
    ]
    assert "words: several byte strings" in repr(source)
    assert source[2]["frames"].tolist() == [[3, 0], [3, 1], [3, 2]]
    assert source[2]["tokens"].tolist() == [0, 1, 2]
    video = hr.open(path, fields=["label", "rgb:uint8[-1,4]"])
    assert video[1]["rgb"].tolist() == [[0] * 4, [1] * 4]
    with pytest.raises(hr.ConfigError, match=r'HR0474.*"words": its type cannot be inferred'):
        hr.open(path, fields=["words"])
    with pytest.raises(hr.DataError, match=r"HR0473.*step 0 has 4 values, but the field expects 5"):
        hr.open(path, fields=["rgb:uint8[-1,5]"])[0]


def test_fields_can_be_named_explicitly(tmp_path: Path) -> None:
    pixels = np.arange(24, dtype=np.uint8).reshape(4, 3, 2)
    values = {
        "id": b"first",
        "key!": 3,
        "key?": 4,
        "0/x": 5,
        "raw": pixels.tobytes(),
        "floats": np.arange(6, dtype="<f4").tobytes(),
    }
    path = write_tfrecord(tmp_path / "x", [example(values)] * 2)
    assert {f.name for f in hr.open(path).schema} == {
        "id_",
        "key_",
        "key__2",
        "_0_x",
        "raw",
        "floats",
    }
    source = hr.open(
        path, fields=["a=raw:uint8[4,3,2]", "b=floats:float32[-1,3]", "label=key?", "t=id:bytes"]
    )
    assert [f.name for f in source.schema] == ["a", "b", "label", "t"]
    assert np.array_equal(source[0]["a"], pixels)
    assert source[0]["b"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert source[0]["t"] == b"first"
    assert source.column("label").tolist() == [4, 4]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("x=nope", "no such feature in 1 record"),
        ("x=lable", 'did you mean "label"'),
        ("1x=label", "a field name must be an identifier"),
        ("key=label", "every source has a field 'key' already"),
        ("x=label:int64[0]", r"no shape: \[0\]"),
        ("x=label:int64[2,-1]", r"no shape: \[2,-1\]"),
        ("x=label:float32", "the feature contains int64"),
        ("x=label:text", "the feature contains numbers, not bytes"),
        ("x=text:label", "a label must be an integer"),
        ("x=", "no feature is named"),
    ],
)
def test_an_impossible_field_is_refused(tmp_path: Path, spec: str, message: str) -> None:
    path = write_tfrecord(tmp_path / "x", [example({"label": 1, "text": b"a"})])
    with pytest.raises(hr.ConfigError, match=rf"HR0474(.|\n)*{message}"):
        hr.open(path, fields=[spec])


@pytest.mark.parametrize(
    ("spec", "good", "bad", "message"),
    [
        ("x:int64[2]", [1, 2], [1, 2, 3], "it has 3 values, which do not fit the field's shape"),
        ("x:int64", 1, [1, 2], "it has 2 values, which do not fit"),
        ("x:float32[-1,2]", [1.0, 2.0], [1.0], "it has 1 value, which do not fit"),
        ("x:float32[2]", [1.0, 2.0], [1, 2], "it contains int64"),
        ("x:int64[2]", [1, 2], [1.0, 2.0], "it contains float32"),
        ("x:bytes", b"a", 1, "it contains numbers, not bytes"),
        ("x:bytes", b"a", [b"a", b"b"], "it contains 2 byte strings, but a field has one"),
        ("x:text", b"a", b"\xff", "it is not text: the bytes are not UTF-8"),
        ("x:uint8[2]", b"ab", [b"a", b"b"], "it contains 2 byte strings, but an array is one"),
        ("x:int16[2]", b"abcd", b"abc", "its 3 bytes are not a whole number of int16"),
        ("x:int64[2]", [1, 2], [], "the record does not have it"),
    ],
)
def test_a_record_that_differs_from_the_schema_is_an_error_of_that_record(
    tmp_path: Path, spec: str, good: Any, bad: Any, message: str
) -> None:
    before = 3000  # more than are sampled when the file is opened
    path = write_tfrecord(tmp_path / "x", [*[example({"x": good})] * before, example({"x": bad})])
    source = hr.open(path, fields=[spec])
    _ = source[0]
    with pytest.raises(hr.DataError, match=rf'HR0473(.|\n)*feature "x": {message}') as caught:
        _ = source[before]
    assert caught.value.where.record == before


def test_records_that_are_not_examples_are_one_field(tmp_path: Path, pictures: Path) -> None:
    words = [b"hello", b"", b"\xff\x00 world" * 100]
    source = hr.open(write_tfrecord(tmp_path / "x", words))
    assert [(f.name, f.kind) for f in source.schema] == [("data", "bytes")]
    assert [record["data"] for record in source] == words
    paths = files_of(pictures)[:3]
    source = hr.open(write_tfrecord(tmp_path / "y", [path.read_bytes() for path in paths]))
    assert np.array_equal(source[2]["image"], pixels_of(paths[2]))
    few = [path.read_bytes() for path in files_of(pictures)[:9]]
    few[4] = b"no picture"  # one of them may be bad
    source = hr.open(write_tfrecord(tmp_path / "few", few))
    assert [(f.name, f.kind) for f in source.schema] == [("image", "image")]
    assert source[8]["image"].ndim == 3
    with pytest.raises(hr.DataError):
        source[4]
    source = hr.open(write_tfrecord(tmp_path / "half", [*few[:4], *words, b"x"]))
    assert [(f.name, f.kind) for f in source.schema] == [("data", "bytes")]
    source = hr.open(write_tfrecord(tmp_path / "z", [example({"a": 1})]), content="bytes")
    assert source[0]["data"] == example({"a": 1})


def test_a_matching_index_is_used(tmp_path: Path) -> None:
    records = [example({"n": n}) for n in range(30)]
    path = write_tfrecord(tmp_path / "x.tfrecord", records)
    offsets = np.cumsum([0, *[len(frame(record)) for record in records]])
    lines = [f"{a} {b - a}\n" for a, b in pairwise(offsets)]
    place = tmp_path / "other.idx"
    place.write_text("".join(lines))
    assert hr.open(path, index=str(place)).column("n").tolist() == list(range(30))
    for wrong in (lines[1:], lines[:-1], ["0 5\n", *lines], ["x y\n"], [], [f"0 {offsets[-1]}\n"]):
        place.write_text("".join(wrong))
        with pytest.raises(hr.ConfigError, match=r"HR0475.*does not belong to the file"):
            hr.open(path, index=str(place))
        (tmp_path / "x.tfrecord.idx").write_text("".join(wrong))  # found, but not trusted
        assert hr.open(path).column("n").tolist() == list(range(30))


def test_compressed_shards_give_the_same_records(
    tmp_path: Path, shards: Path, pictures: Path
) -> None:
    packers = {
        "gz": gzip.compress,
        "zlib": zlib.compress,
        "gz2": lambda data: gzip.compress(data[:1000]) + gzip.compress(data[1000:]),
    }
    for name, pack in packers.items():
        root = tmp_path / name
        root.mkdir()
        for path in shards.iterdir():
            (root / f"{path.name}.gz").write_bytes(pack(path.read_bytes()))
        source = hr.open(f"{root}/train-*", label_offset=-1)
        assert batches_of(source) == batches_of(pictures)
        assert source.key(9) == "train-00001-of-00003.gz:0"


# --- TensorFlow -----------------------------------------------------------------------------------


def test_every_file_is_read_as_tensorflow_reads_it() -> None:
    data = os.environ.get("HEADRACE_TEST_DATA")
    if not data:
        pytest.skip("HEADRACE_TEST_DATA is not set")
    tensorflow = pytest.importorskip("tensorflow")
    files = sorted(path for path in Path(data, "formats", "tfrecord").rglob("*") if path.is_file())
    assert files
    for path in files:
        with path.open("rb") as file:
            packing = "GZIP" if file.read(2) == b"\x1f\x8b" else ""
        theirs = [r.numpy() for r in tensorflow.data.TFRecordDataset(str(path), packing)]
        ours = hr.open(path, format="tfrecord", content="bytes")
        assert [record["data"] for record in ours] == theirs, path
        source = hr.open(path, format="tfrecord")
        if [f.name for f in source.schema] == ["data"]:
            continue
        for number, raw in enumerate(theirs):
            try:
                record = source[number]
            except hr.DataError as error:  # a feature that all sampled records have
                missing = re.search('feature "(.*)": the record does not have it', str(error))
                message = tensorflow.train.Example.FromString(raw)
                assert missing, error
                assert not value_of(message.features.feature[missing[1]])
            else:
                compare(tensorflow, record, raw, source)


def compare(tensorflow: Any, record: dict[str, Any], raw: bytes, source: Any) -> None:
    message = tensorflow.train.SequenceExample.FromString(raw)
    context, lists = message.context.feature, message.feature_lists.feature_list
    named = {"".join(c if c.isalnum() else "_" for c in n): n for n in [*context, *lists]}
    for name in [declared.name for declared in source.schema]:
        theirs: Any
        if name in named and named[name] in lists:
            theirs = [value_of(step) for step in lists[named[name]].feature]
            assert np.allclose(record[name].ravel(), np.ravel(theirs), equal_nan=True)
            continue
        theirs = value_of(context[named[name]]) if named.get(name) in context else []
        ours = record[name]
        if isinstance(ours, (str, bytes)):
            assert (ours if isinstance(ours, bytes) else ours.encode()) == b"".join(theirs)
        else:
            ours = np.ravel(ours)
            assert np.array_equal(ours, np.asarray(theirs, ours.dtype)), name


def value_of(feature: Any) -> list[Any]:
    kind = feature.WhichOneof("kind")
    return list(getattr(feature, kind).value) if kind else []
