# SPDX-License-Identifier: Apache-2.0
"""HDF5 files written by h5py give the same values as in h5py."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import headrace as hr

h5py = pytest.importorskip("h5py")

VERSIONS = ["earliest", "v108", "v110", "latest"]
NUMBERS = ["u1", "i1", "<i2", ">i2", "<u2", "<u4", ">u4", "<i4", "<i8", ">i8", "<u8"]
NUMBERS += ["<f2", ">f2", "<f4", ">f4", "<f8", ">f8", "?"]
LAYOUTS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "contiguous": ((11, 5, 7), {}),
    "one chunk": ((11, 5, 7), {"chunks": (11, 5, 7)}),
    "a record a chunk": ((11, 5, 7), {"chunks": (1, 5, 7)}),
    "records in chunks": ((11, 5, 7), {"chunks": (3, 5, 7)}),
    "records cut by chunks": ((11, 5, 7), {"chunks": (4, 2, 3)}),
    "grows": ((11, 5, 7), {"chunks": (2, 2, 7), "maxshape": (None, 5, 7)}),
    "grows along its second axis": ((11, 5, 7), {"chunks": (2, 2, 7), "maxshape": (11, None, 7)}),
    "grows everywhere": ((11, 5, 7), {"chunks": (2, 2, 3), "maxshape": (None, None, 9)}),
    "may grow a little": ((11, 5, 7), {"chunks": (2, 2, 3), "maxshape": (40, 8, 9)}),
    "many chunks": ((5000, 2, 2), {"chunks": (1, 2, 2)}),
    "many chunks that grow": ((5000, 2, 2), {"chunks": (1, 2, 2), "maxshape": (None, 2, 2)}),
    "many chunks that grow everywhere": (
        (3000, 2, 2),
        {"chunks": (1, 2, 2), "maxshape": (None, None, 2)},
    ),
}
FILTERS: dict[str, dict[str, Any]] = {
    "none": {},
    "gzip": {"compression": "gzip"},
    "lzf": {"compression": "lzf"},
    "shuffle, gzip": {"compression": "gzip", "shuffle": True},
    "fletcher32": {"fletcher32": True},
    "shuffle, gzip, fletcher32": {"compression": "gzip", "shuffle": True, "fletcher32": True},
    "shuffle, lzf, fletcher32": {"compression": "lzf", "shuffle": True, "fletcher32": True},
}


def numbers_of(dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(len(shape))
    if dtype == "?":
        return rng.integers(0, 2, shape).astype(bool)
    if np.dtype(dtype).kind == "f":
        return rng.normal(size=shape).astype(dtype)
    return rng.integers(0, 128, shape).astype(dtype)


def assert_same(path: Path, dataset: str = "v") -> None:
    """All records, in order and out of it, are the dataset's rows in native byte order."""
    with h5py.File(path) as file:
        expected = file[dataset][:]
    expected = expected.astype(expected.dtype.newbyteorder("="))
    source = hr.open(path, fields=[f"v={dataset}"])
    assert len(source) == len(expected)
    rows = [record["v"] for record in source]
    assert np.asarray(rows[0]).dtype == expected.dtype
    np.testing.assert_array_equal(np.stack(rows), expected)
    for row in (len(expected) - 1, 0, len(expected) // 2):
        np.testing.assert_array_equal(source[row]["v"], expected[row])


@pytest.mark.parametrize("filters", FILTERS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("version", VERSIONS)
def test_every_layout_is_read_through_every_filter(
    version: str, layout: str, filters: str, tmp_path: Path
) -> None:
    shape, options = LAYOUTS[layout]
    if filters != "none" and "chunks" not in options:
        pytest.skip("filters need chunks")
    for dtype in ("u1", ">f4") if filters == "none" else (">f4",):
        with h5py.File(tmp_path / "a.h5", "w", libver=version) as file:
            data = numbers_of(dtype, shape)
            file.create_dataset("v", data=data, **options, **FILTERS[filters])
        assert_same(tmp_path / "a.h5")


@pytest.mark.parametrize("layout", ["contiguous", "records cut by chunks"])
@pytest.mark.parametrize("dtype", NUMBERS)
def test_numbers_of_every_type_are_read(dtype: str, layout: str, tmp_path: Path) -> None:
    shape, options = LAYOUTS[layout]
    filters = FILTERS["shuffle, gzip"] if options else {}
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=numbers_of(dtype, shape), **options, **filters)
        file.create_dataset("scalars", data=numbers_of(dtype, (11,)))
        file.create_dataset("enum", data=np.arange(11) % 3, dtype=h5py.enum_dtype({"a": 0, "b": 2}))
        array = np.dtype((np.dtype(dtype), (2, 3)))
        file.create_dataset("arrays", (11,), dtype=array)[...] = numbers_of(dtype, (11, 2, 3))
    for dataset in ("v", "scalars", "enum", "arrays"):
        assert_same(tmp_path / "a.h5", dataset)


@pytest.mark.parametrize("version", VERSIONS)
def test_unwritten_values_are_the_fill_value(version: str, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w", libver=version) as file:
        file.create_dataset("nothing", (9, 4), "<i2", fillvalue=7)
        file.create_dataset("zeros", (9, 4), ">f8")
        file.create_dataset("holes", (9, 4), ">i4", chunks=(2, 3), fillvalue=-5)[3:5, 1:] = 6
        packed = file.create_dataset(
            "packed", (9, 4), "u1", chunks=(2, 3), maxshape=(None, 4), compression="gzip"
        )
        packed[7] = 9
        shrunk = file.create_dataset("shrunk", (20, 9), "u1", chunks=(2, 3), maxshape=(20, 9))
        shrunk[...] = 3
        shrunk.resize((9, 4))
    for dataset in ("nothing", "zeros", "holes", "packed", "shrunk"):
        assert_same(tmp_path / "a.h5", dataset)


def test_chunks_stored_uncompressed_are_read(tmp_path: Path) -> None:
    """lzf skips incompressible chunks, as their mask says; edge chunks may be stored unfiltered."""
    noise = np.random.default_rng(1).integers(0, 256, (10, 50), dtype=np.uint8)
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        file.create_dataset("noise", data=noise, chunks=(1, 50), compression="lzf")
        create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        create.set_chunk((4, 40))
        create.set_deflate(3)
        if hasattr(create, "set_chunk_opts"):
            create.set_chunk_opts(h5py.h5d.CHUNK_DONT_FILTER_PARTIAL_CHUNKS)
        space = h5py.h5s.create_simple(noise.shape)
        edges = h5py.h5d.create(file.id, b"edges", h5py.h5t.NATIVE_UINT8, space, create)
        edges.write(h5py.h5s.ALL, h5py.h5s.ALL, noise)
    for dataset in ("noise", "edges"):
        assert_same(tmp_path / "a.h5", dataset)


@pytest.mark.parametrize("version", VERSIONS)
def test_compact_data_and_a_user_block_are_read(version: str, tmp_path: Path) -> None:
    data = numbers_of("<i4", (6, 3))
    with h5py.File(tmp_path / "a.h5", "w", libver=version, userblock_size=2048) as file:
        create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        create.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple(data.shape)
        compact = h5py.h5d.create(file.id, b"v", h5py.h5t.STD_I32LE, space, create)
        compact.write(h5py.h5s.ALL, h5py.h5s.ALL, data)
        file["other"] = data
    assert_same(tmp_path / "a.h5")
    assert_same(tmp_path / "a.h5", "other")


@pytest.mark.parametrize("version", VERSIONS)
def test_strings_and_sequences_are_read(version: str, tmp_path: Path) -> None:
    texts = ["", "one", "zwei é", "three " * 1000, "x" * 70000, "six"]
    lists = [np.arange(n, dtype=">i4") for n in (0, 1, 5, 3000, 2, 7)]
    with h5py.File(tmp_path / "a.h5", "w", libver=version) as file:
        file.create_dataset("variable", data=texts, dtype=h5py.string_dtype())
        file.create_dataset(
            "chunked", data=texts, dtype=h5py.string_dtype(), chunks=(2,), compression="gzip"
        )
        file["fixed"] = np.array([b"a", b"bc", b"", b"def ", b"e\0f", b"ghi"])
        file["padded"] = np.array([text.encode() for text in texts[:3] * 2], dtype="S9")
        spaces = h5py.h5t.C_S1.copy()
        spaces.set_size(6)
        spaces.set_strpad(h5py.h5t.STR_SPACEPAD)
        made = h5py.h5d.create(file.id, b"spaces", spaces, h5py.h5s.create_simple((6,)))
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([b"a  ", b"b", b"", b"c d", b"e", b"f"]))
        ragged = file.create_dataset("ragged", (6,), h5py.vlen_dtype(np.dtype("<i4")))
        for i, values in enumerate(lists):
            ragged[i] = values
        file["opaque"] = np.array([b"ab\0", b"\0cd"] * 3, dtype="V3")
        expected = {name: file[name][:] for name in file}
    source = hr.open(tmp_path / "a.h5")
    assert {field.name: field.kind for field in source.schema} == {
        **dict.fromkeys(("variable", "chunked", "fixed", "padded", "spaces"), "text"),
        "ragged": "tensor",
        "opaque": "bytes",
    }
    for i, record in enumerate(source):
        for name in ("variable", "chunked", "fixed", "padded", "spaces"):
            assert record[name].encode() == expected[name][i], name
        np.testing.assert_array_equal(record["ragged"], lists[i])
        assert record["ragged"].dtype == np.int32
        assert bytes(record["opaque"]) == expected["opaque"][i].tobytes()


@pytest.mark.parametrize("version", VERSIONS)
def test_many_names_deep_groups_and_long_names_are_read(version: str, tmp_path: Path) -> None:
    """Groups of every form: a few links, and more than fit in an object header."""
    with h5py.File(tmp_path / "a.h5", "w", libver=version) as file:
        for i in range(700):
            file[f"many/a name that takes some room {i:04}"] = np.full(3, i)
        file["/".join(f"level{i}" for i in range(40)) + "/v"] = np.arange(4)
        file["a name of " + "200 letters " * 16] = np.arange(5)
    for i in (0, 1, 350, 699):
        source = hr.open(tmp_path / "a.h5", fields=[f"v=many/a name that takes some room {i:04}"])
        assert [record["v"] for record in source] == [i, i, i]
    assert_same(tmp_path / "a.h5", "/".join(f"level{i}" for i in range(40)) + "/v")
    assert_same(tmp_path / "a.h5", "a name of " + "200 letters " * 16)


def encoded(format: str, number: int) -> bytes:
    pixels = np.random.default_rng(number).integers(0, 256, (20 + number, 30, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, format)
    return out.getvalue()


def test_encoded_images_decode_as_from_a_folder(tmp_path: Path) -> None:
    pictures = [encoded("JPEG" if i % 2 else "PNG", i) for i in range(8)]
    with h5py.File(tmp_path / "a.h5", "w") as file:
        images = file.create_dataset("images", (8,), h5py.vlen_dtype(np.uint8))
        masks = file.create_dataset("seg/masks", (8,), h5py.vlen_dtype(np.uint8))
        plain = file.create_dataset("blobs", (8,), h5py.vlen_dtype(np.uint8))
        for i, picture in enumerate(pictures):
            images[i] = np.frombuffer(picture, np.uint8)
            masks[i] = np.frombuffer(pictures[0], np.uint8)
            plain[i] = np.arange(i, dtype=np.uint8)
        file["labels"] = np.arange(8, dtype=np.uint8) % 3
    source = hr.open(tmp_path / "a.h5")
    assert [(field.name, field.kind) for field in source.schema] == [
        ("blobs", "bytes"),
        ("image", "image"),
        ("label", "label"),
        ("mask", "mask"),
    ]
    for i, picture in enumerate(pictures):
        assert bytes(source.engine.read(i)["image"]) == picture
        if i % 2 == 0:
            expected = np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"))
            np.testing.assert_array_equal(source[i]["image"], expected.transpose(2, 0, 1))
        assert bytes(source[i]["blobs"]) == bytes(range(i))
    assert source.column("label").tolist() == [0, 1, 2, 0, 1, 2, 0, 1]


@pytest.mark.parametrize("options", [{}, {"chunks": (1, 9, 8, 3), "compression": "gzip"}])
def test_arrays_of_images_have_their_channels_first(
    options: dict[str, Any], tmp_path: Path
) -> None:
    rng = np.random.default_rng(2)
    last = rng.integers(0, 256, (6, 9, 8, 3), dtype=np.uint8)
    gray = rng.integers(0, 256, (6, 9, 8), dtype=np.uint8)
    volume = rng.integers(0, 256, (6, 9, 8, 7), dtype=np.uint8)
    for name, data, expected in [
        ("images", last, last.transpose(0, 3, 1, 2)),
        ("x", last.transpose(0, 3, 1, 2), last.transpose(0, 3, 1, 2)),
        ("image", gray, gray[:, None]),
    ]:
        with h5py.File(tmp_path / "a.h5", "w") as file:
            file.create_dataset(name, data=data, **(options if data is last else {}))
            file["y"] = np.arange(6, dtype=">i2")
            file["volume"] = volume
        source = hr.open(tmp_path / "a.h5")
        assert [field.name for field in source.schema][:1] == ["image" if name != "x" else "volume"]
        kinds = {field.name: (field.kind, tuple(field.shape)) for field in source.schema}
        assert kinds["image"] == ("image", expected.shape[1:])
        assert kinds["volume"] == ("tensor", (9, 8, 7))
        for i, record in enumerate(source):
            np.testing.assert_array_equal(record["image"], expected[i])
            assert record["label"] == i
        loader = hr.Loader(source, batch_size=4, threads=2)
        batches = [batch["image"] for batch in loader.numpy()]
        np.testing.assert_array_equal(np.concatenate(batches), expected)


def test_labels_that_are_names_become_classes(tmp_path: Path) -> None:
    names = ["dog", "cat", "dog", "eel"]
    with h5py.File(tmp_path / "text.h5", "w") as file:
        file["x"] = np.zeros((4, 2), np.float32)
        file["labels"] = names
    with h5py.File(tmp_path / "enum.h5", "w") as file:
        file["x"] = np.zeros((4, 2), np.float32)
        kind = h5py.enum_dtype({"cat": 0, "dog": 1, "eel": 2})
        file.create_dataset("labels", data=[1, 0, 1, 2], dtype=kind)
    for path in (tmp_path / "text.h5", tmp_path / "enum.h5"):
        source = hr.open(path)
        assert source.classes == ["cat", "dog", "eel"]
        assert source.column("label").tolist() == [1, 0, 1, 2]
        given = hr.open(path, classes=["eel", "dog", "cat"])
        assert given.column("label").tolist() == [1, 2, 1, 0]
        with pytest.raises(hr.ConfigError, match=r"HR0406.*'dog' and 'eel'"):
            hr.open(path, classes=["cat"])


def test_fields_name_datasets(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for part, rows in (("train", 6), ("val", 3)):
            file[f"{part}/images"] = np.zeros((rows, 1, 4, 4), np.uint8)
            file[f"{part}/labels"] = np.arange(rows)
        file["alias"] = h5py.SoftLink("/val/labels")
        file["loop"] = h5py.SoftLink("/loop")
    with pytest.raises(hr.ConfigError, match=r"HR0492.*/val/images 3, /train/images 6"):
        hr.open(tmp_path / "a.h5")
    source = hr.open(tmp_path / "a.h5", fields=["train/images", "target_=/train/labels"])
    assert [field.name for field in source.schema] == ["image", "target_"] and len(source) == 6
    assert hr.open(tmp_path / "a.h5", fields=["alias"]).column("alias").tolist() == [0, 1, 2]
    for fields, message in [
        (["train/pictures"], "there is no dataset /train/pictures"),
        (["train/images", "val/labels"], "/val/labels has 3 rows, but /train/images has 6"),
        (["my name=train/images"], "'my name' cannot be a field's name"),
        (["a=train/images", "a=train/labels"], "two fields have the name 'a'"),
        ([], "fields= names 0 datasets"),
        (["loop"], "cyclic soft links"),
    ]:
        with pytest.raises(hr.Error, match=message):
            hr.open(tmp_path / "a.h5", fields=fields)


def test_several_files_are_one_source(tmp_path: Path) -> None:
    for number, rows in enumerate((3, 5, 1)):
        with h5py.File(tmp_path / f"part-{number}.h5", "w") as file:
            file["x"] = np.full((rows, 2), number, np.float32)
            file["y"] = np.arange(rows) + 10 * number
    for path in (tmp_path, tmp_path / "part-{0..2}.h5", tmp_path / "part-*.h5"):
        source = hr.open(path)
        assert source.column("label").tolist() == [0, 1, 2, 10, 11, 12, 13, 14, 20]
        assert [record["x"][0] for record in source] == [0] * 3 + [1] * 5 + [2]
        assert source.key(3).endswith("part-1.h5: 0")
    with h5py.File(tmp_path / "part-1.h5", "w") as file:
        file["x"] = np.zeros((5, 3), np.float32)
        file["y"] = np.arange(5)
    with pytest.raises(hr.ConfigError, match="differs in type or shape from the first file"):
        hr.open(tmp_path)


def rows_of(dataset: Any) -> list[Any]:
    """As Headrace delivers them. h5py does not swap big-endian sequences."""
    swapped = dataset.name == "/vlunicode_big"
    out = []
    for row in dataset[:]:
        value = row.tobytes() if isinstance(row, np.void) else row
        out.append(value.byteswap() if swapped else value)
    return out


def corpus() -> list[Path]:
    root = os.environ.get("HEADRACE_TEST_DATA")
    return sorted(Path(root).glob("formats/hdf5/**/*.h*5")) if root else []


@pytest.mark.skipif(not corpus(), reason="HEADRACE_TEST_DATA does not name the corpus")
@pytest.mark.parametrize("path", corpus(), ids=lambda path: path.name)
def test_files_of_other_projects_are_read_as_h5py_does_or_refused(path: Path) -> None:
    with h5py.File(path) as file:
        names: list[str] = []
        file.visititems(
            lambda name, it: names.append(name) if isinstance(it, h5py.Dataset) else None
        )
        for name in names:
            try:
                source = hr.open(path, fields=[f"v={name}"])
            except (hr.UnsupportedError, hr.ConfigError) as error:
                assert error.code in ("HR0490", "HR0492"), name
                continue
            expected = rows_of(file[name])
            assert len(source) == len(expected)
            for record, value in zip(source, expected, strict=True):
                got = record["v"]
                if isinstance(value, bytes):
                    got = got.encode() if isinstance(got, str) else bytes(got)
                    assert got == value, name
                elif isinstance(got, bytes):
                    assert got == np.asarray(value).tobytes(), name
                else:
                    np.testing.assert_array_equal(np.asarray(got), value, name)
