# SPDX-License-Identifier: Apache-2.0
"""Parquet, Arrow and Hugging Face datasets give the same values as pyarrow."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace import _core

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

CORPUS = Path(os.environ.get("HEADRACE_TEST_DATA", "/nonexistent")) / "formats" / "parquet"
PICTURES = sorted((Path(__file__).parent.parent / "examples" / "images").glob("*.jpg"))[:4]


def table(rows: int = 24) -> Any:
    pictures = [PICTURES[i % len(PICTURES)].read_bytes() for i in range(rows)]
    random = np.random.default_rng(0)
    return pa.table(
        {
            "image": [{"bytes": each, "path": "x.jpg"} for each in pictures],
            "label": pa.array(np.arange(rows) % 5, pa.int32()),
            "caption": ["", *(f"row {i} é" for i in range(1, rows))],
            "score": pa.array(random.random(rows), pa.float32()),
            "good": pa.array([i % 3 == 0 for i in range(rows)]),
            "box": pa.array(random.random((rows, 4)).tolist(), pa.list_(pa.float32(), 4)),
            "tokens": pa.array([list(range(i % 4)) for i in range(rows)], pa.list_(pa.int16())),
        }
    )


def decode(picture: bytes) -> np.ndarray[Any, Any]:
    return np.asarray(_core.decode_field(picture))


def check(source: hr.Source, expected: Any) -> None:
    rows = expected.to_pylist()
    assert len(source) == len(rows)
    assert source.column("label").tolist() == [row["label"] for row in rows]
    for i in range(len(rows)):
        got, row = source[i], rows[i]
        assert np.array_equal(got["image"], decode(row["image"]["bytes"]))
        assert (got["label"], got["caption"]) == (row["label"], row["caption"])
        assert np.asarray(got["score"]) == np.float32(row["score"])
        assert bool(np.asarray(got["good"])) == row["good"]
        np.testing.assert_array_equal(got["box"], np.array(row["box"], np.float32))
        np.testing.assert_array_equal(got["tokens"], np.array(row["tokens"], np.int16))


@pytest.mark.parametrize("memory", [1 << 30, 0])
def test_parquet_equals_what_pyarrow_reads(tmp_path: Path, memory: int) -> None:
    expected = table()
    pq.write_table(expected, tmp_path / "a.parquet", row_group_size=7)
    check(hr.parquet(tmp_path / "a.parquet", memory=memory), expected)
    with hr.Loader(
        hr.parquet(tmp_path / "a.parquet", ["image", "label"], memory=memory),
        [hr.transforms.Resize((8, 8))],
        batch_size=8,
        shuffle=True,
    ) as loader:
        labels = np.concatenate([np.asarray(batch.label) for batch in loader])
    assert sorted(labels.tolist()) == sorted(expected["label"].to_pylist())


def test_files_of_a_folder_are_sorted(tmp_path: Path) -> None:
    expected = table()
    for i in range(3):
        pq.write_table(expected.slice(i * 8, 8), tmp_path / f"part-{i}.parquet")
    check(hr.open(tmp_path), expected)
    check(hr.open(f"{tmp_path}/part-{{0..2}}.parquet"), expected)


@pytest.mark.parametrize("stream", [False, True])
def test_arrow_files_and_streams_are_read(tmp_path: Path, stream: bool) -> None:
    expected = table()
    write = pa.ipc.new_stream if stream else pa.ipc.new_file
    with write(str(tmp_path / "a.arrow"), expected.schema) as writer:
        for batch in expected.to_batches(max_chunksize=5):
            writer.write_batch(batch)
    source = hr.open(tmp_path / "a.arrow")
    check(source, expected)
    assert len(source[5:11]) == 6


def test_fields_are_chosen_and_renamed(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "a.parquet")
    source = hr.open(tmp_path / "a.parquet", fields=["label=caption", "value=score"])
    assert [field.name for field in source.schema] == ["label", "value"]
    assert source.classes[0] == "" and len(source.classes) == 24
    with pytest.raises(hr.UnsupportedError, match="did you mean"):
        hr.open(tmp_path / "a.parquet", fields=["scoer"])


def test_images_may_be_given_as_paths(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    for i, picture in enumerate(PICTURES):
        (tmp_path / "p" / f"{i}.jpg").write_bytes(picture.read_bytes())
    images = [{"bytes": None, "path": f"p/{i}.jpg"} for i in range(len(PICTURES))]
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    pq.write_table(pa.table({"image": pa.array(images, kind)}), tmp_path / "a.parquet")
    source = hr.open(tmp_path / "a.parquet")
    for i, picture in enumerate(PICTURES):
        assert np.array_equal(source[i]["image"], decode(picture.read_bytes()))


def test_a_row_without_an_image_is_a_bad_record(tmp_path: Path) -> None:
    pictures = [PICTURES[0].read_bytes(), None, PICTURES[1].read_bytes()]
    pq.write_table(pa.table({"image": pa.array(pictures, pa.binary())}), tmp_path / "a.parquet")
    source = hr.open(tmp_path / "a.parquet")
    with pytest.raises(hr.DataError) as caught:
        source[1]
    assert caught.value.code == "HR0428" and caught.value.where.record == 1
    assert source[2]["image"].ndim == 3


def test_a_column_that_cannot_be_a_field_is_named(tmp_path: Path) -> None:
    def refused(**columns: Any) -> str:
        pq.write_table(pa.table(columns), tmp_path / "a.parquet")
        with pytest.raises(hr.UnsupportedError) as caught:
            hr.open(tmp_path / "a.parquet")
        assert caught.value.code == "HR0427"
        return str(caught.value)

    assert "no value (null) in 1 of 3" in refused(x=pa.array([1, None, 3]))
    assert "'t' is of type timestamp" in refused(t=pa.array([0], pa.timestamp("s")))
    assert "a structure of a" in refused(s=pa.array([{"a": 1}]))
    (tmp_path / "a.parquet").write_bytes(b"PAR1 cut off")
    with pytest.raises(hr.UnsupportedError, match="pyarrow cannot read"):
        hr.open(tmp_path / "a.parquet")


def test_slices_of_arrow_arrays_are_read_from_their_offset(tmp_path: Path) -> None:
    expected = table()
    sliced = expected.slice(3, 10)
    with pa.ipc.new_file(str(tmp_path / "a.arrow"), sliced.schema) as writer:
        writer.write_table(sliced)
    check(hr.open(tmp_path / "a.arrow"), sliced)


def test_hugging_face_datasets_are_read(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {"label": datasets.ClassLabel(names=["cat", "dog"]), "n": datasets.Value("int64")}
    )
    data = datasets.Dataset.from_dict({"label": [0, 1, 1], "n": [5, 6, 7]}, features=features)
    data.save_to_disk(str(tmp_path / "one"))
    datasets.DatasetDict({"train": data, "test": data.select([0])}).save_to_disk(
        str(tmp_path / "two")
    )
    for source in (hr.open(tmp_path / "one"), hr.open(tmp_path / "two", split="train")):
        assert source.classes == ["cat", "dog"] and source.column("n").tolist() == [5, 6, 7]
    with pytest.raises(hr.ConfigError, match="HR0432"):
        hr.open(tmp_path / "two")
    chosen = hr.open(data.select([2, 0]))
    assert chosen.column("n").tolist() == [7, 5] and chosen.classes == ["cat", "dog"]


@pytest.mark.skipif(not CORPUS.exists(), reason="HEADRACE_TEST_DATA/formats/parquet")
def test_the_corpus_is_read_or_refused_and_named() -> None:
    for path in sorted(CORPUS.rglob("*.parquet")):
        expected = pq.read_table(path)
        try:
            source = hr.open(path)
        except hr.UnsupportedError as error:
            assert error.code == "HR0427"
            continue
        assert len(source) == len(expected)
        source[0]


def test_a_missing_label_late_in_a_file_is_a_bad_record(tmp_path: Path) -> None:
    labels = pa.array([1, 2, 3, None], pa.int64())
    columns = pa.table({"x": [[1.0, 2.0]] * 4, "label": labels})
    pq.write_table(columns, tmp_path / "a.parquet", row_group_size=2)
    source = hr.parquet(tmp_path / "a.parquet", memory=0)  # one row group at a time
    assert source.column("label").tolist() == [1, 2, 3, -1]
    with pytest.raises(hr.Error):
        source[3]


def arrow_file(path: Path, columns: dict[str, Any]) -> bytearray:
    data = pa.table(columns)
    with pa.ipc.new_file(str(path), data.schema) as writer:
        writer.write_table(data)
    return bytearray(path.read_bytes())


@pytest.mark.parametrize("fields", [None, ["label=text"], ["tokens"], ["image"]])
@pytest.mark.parametrize("far", [4_000, (1 << 30)])
def test_damaged_offsets_do_not_crash(tmp_path: Path, fields: Any, far: int) -> None:
    rows, path = 100, tmp_path / "a.arrow"
    columns = {
        "image": pa.array([b"x" * 10] * rows, pa.binary()),
        "text": ["abc"] * rows,
        "tokens": pa.array([[1, 2, 3, 4, 5]] * rows, pa.list_(pa.int64())),
    }
    for step in (10, 3, 5):  # bytes or elements of a value: the column whose offsets are damaged
        data = arrow_file(path, columns)
        offsets = np.arange(rows + 1, dtype=np.int32) * step
        at = data.find(offsets.tobytes())
        offsets[1:8] += far
        data[at : at + offsets.nbytes] = offsets.tobytes()
        path.write_bytes(data)
        untouched = {10: "image", 3: "text", 5: "tokens"}[step] not in str(fields or columns)
        if untouched:
            assert len(hr.open(path, fields=fields)) == rows
            continue
        with pytest.raises(hr.UnsupportedError, match="is damaged") as caught:
            hr.open(path, fields=fields)
        assert caught.value.code == "HR0427"


def test_indices_beyond_their_dictionary_do_not_crash(tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    numbers = np.arange(500, dtype=np.int32) % 7
    words = pa.DictionaryArray.from_arrays(numbers, [f"w{i}" for i in range(7)])
    data = arrow_file(path, {"word": words})
    at = data.find(numbers.tobytes())
    data[at + 40 : at + 44] = (1 << 28).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(hr.UnsupportedError, match="is damaged"):
        hr.open(path)


def test_a_dictionary_that_expands_too_much_is_refused_with_a_hint_that_helps(
    tmp_path: Path,
) -> None:
    """memory= does not affect it, and was named in the error."""
    rows = 1 << 19
    words = pa.DictionaryArray.from_arrays(np.zeros(rows, np.int8), ["x" * 2000])
    arrow_file(tmp_path / "a.arrow", {"word": words, "n": np.zeros(rows, np.int64)})
    with pytest.raises(hr.ResourceLimitError, match="HR0499") as caught:
        hr.open(tmp_path / "a.arrow")
    assert "memory=" not in caught.value.hint
    assert len(hr.open(tmp_path / "a.arrow", fields=["n"])) == rows


def test_names_that_are_not_utf8_are_a_headrace_error(tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    data = arrow_file(path, {"cafe_x": [1, 2, 3], "b": [1, 2, 3]})
    path.write_bytes(data.replace(b"cafe_x", b"caf\xe9\xff!"))
    with pytest.raises(hr.UnsupportedError, match="the name of a column is not UTF-8"):
        hr.open(path)
    data = arrow_file(path, {"label": ["cafe_x", "b"]})
    path.write_bytes(data.replace(b"cafe_x", b"caf\xe9\xff!"))
    with pytest.raises(hr.UnsupportedError, match=r"is damaged: .*UTF8"):
        hr.open(path)


def large(path: Path, stream: bool, **options: Any) -> Any:
    """Batches of more than 1 MiB, so that unwanted columns are not read."""
    random = np.random.default_rng(1)
    pictures = [PICTURES[i % len(PICTURES)].read_bytes() + random.bytes(120_000) for i in range(24)]
    expected = table().set_column(
        0, "image", pa.array([{"bytes": each, "path": "x.jpg"} for each in pictures])
    )
    expected = expected.append_column(
        "raw", pa.array([random.bytes(150_000) for _ in pictures], pa.large_binary())
    )
    write = pa.ipc.new_stream if stream else pa.ipc.new_file
    with write(str(path), expected.schema, **options) as writer:
        for batch in expected.to_batches(max_chunksize=11):
            writer.write_batch(batch)
    return expected


@pytest.mark.parametrize("stream", [False, True])
def test_arrow_values_are_read_by_position(tmp_path: Path, stream: bool) -> None:
    from headrace.sources.arrow_files.by_position import FilesByPosition

    path = tmp_path / "a.arrow"
    expected = large(path, stream)
    check(hr.open(path), expected)
    assert [record["raw"] for record in hr.open(path)] == expected["raw"].to_pylist()
    with open("/proc/self/maps") as maps:  # of an open source
        source = hr.open(path)
        assert str(path) not in maps.read()
    places = FilesByPosition([str(path)])
    raw = places.tables()[0].column("raw")
    before = bytes_read()
    places.fill(raw, whole=False)
    assert bytes_read() - before < 10_000
    assert all(places.place_of(chunk.buffers()[2]) for chunk in raw.chunks[:2])
    del source


def bytes_read() -> int:
    counters = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(counters["rchar"])


def test_an_arrow_file_that_is_truncated_while_it_is_open_is_a_bad_record(tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    expected = large(path, stream=False)
    source = hr.open(path)
    with hr.Loader(source, [], batch_size=1, on_error="skip", ragged="list") as loader:
        batches = iter(loader)
        next(batches)
        os.truncate(path, 2_000_000)
        assert sum(len(np.asarray(batch.label)) for batch in batches) < len(expected) - 1
    with pytest.raises(hr.Error) as caught:
        source[21]
    assert caught.value.code.startswith("HR02") and caught.value.where.record == 21


def test_compressed_arrow_files_are_read_into_memory(tmp_path: Path) -> None:
    for packing in ("lz4", "zstd"):
        options = pa.ipc.IpcWriteOptions(compression=packing)
        expected = large(tmp_path / "a.arrow", False, options=options)
        check(hr.open(tmp_path / "a.arrow"), expected)
