# SPDX-License-Identifier: Apache-2.0
"""HDF5 files that are hostile, damaged, or of an unsupported kind: each is refused with an error
that names the cause."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr

h5py = pytest.importorskip("h5py")

VERSIONS = ["earliest", "v108", "v110", "latest"]


def test_links_to_other_files_are_never_followed(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["v"] = np.arange(4)
    raw = tmp_path / "secret.bin"
    raw.write_bytes(bytes(range(32)))

    def link(file: Any) -> None:
        file["v"] = h5py.ExternalLink("secret.h5", "/v")

    def storage(file: Any) -> None:
        file.create_dataset("v", (4,), "<i8", external=[(str(raw), 0, 32)])

    def virtual(file: Any) -> None:
        layout = h5py.VirtualLayout((4,), "<i8")
        layout[:] = h5py.VirtualSource(tmp_path / "secret.h5", "v", (4,))
        file.create_virtual_dataset("v", layout)

    makers: list[tuple[Callable[[Any], None], str]] = [
        (link, "an external link"),
        (storage, "stored in other files"),
        (virtual, "a virtual dataset"),
    ]
    for (make, message), version in itertools.product(makers, VERSIONS):
        if make is virtual and version in ("earliest", "v108"):
            continue
        with h5py.File(tmp_path / "a.h5", "w", libver=version) as file:
            make(file)
            file["w"] = np.arange(4)
        for fields in (None, ["v"], ["w", "v"]):
            with pytest.raises(hr.UnsupportedError, match=f"HR0494.*{message}"):
                hr.open(tmp_path / "a.h5", fields=fields)
        assert len(hr.open(tmp_path / "a.h5", fields=["w"])) == 4


def test_unsupported_features_are_named(tmp_path: Path) -> None:
    def with_filter(**options: Any) -> Callable[[Any], None]:
        return lambda file: file.create_dataset("v", data=np.arange(4), chunks=(4,), **options)

    def compound(file: Any) -> None:
        file["v"] = np.zeros(4, dtype=[("a", "i4"), ("b", "f4")])

    def references(file: Any) -> None:
        file.create_dataset("v", (4,), h5py.ref_dtype)

    def complex_numbers(file: Any) -> None:
        file["v"] = np.zeros(4, np.complex64)

    def lists(file: Any) -> None:
        file.create_dataset("v", (4, 2), h5py.string_dtype())

    def nothing(file: Any) -> None:
        file.create_dataset("v", (4, 0), "u1")

    for make, message in [
        (nothing, "records without any element"),
        (with_filter(scaleoffset=0), "scaleoffset"),
        (compound, "a compound type"),
        (references, "references"),
        (complex_numbers, "co(mpound|mplex)"),
        (lists, "a list of strings"),
    ]:
        with h5py.File(tmp_path / "a.h5", "w") as file:
            make(file)
        with pytest.raises(hr.UnsupportedError, match=f"HR0490.*{message}") as caught:
            hr.open(tmp_path / "a.h5")
        assert caught.value.where.member == "/v" and caught.value.hint


def test_a_shape_bomb_is_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", (1 << 40, 1 << 20), "u1", chunks=(1, 1 << 20))
    with pytest.raises(hr.ResourceLimitError, match=r"HR0493.*1099511627776 rows"):
        hr.open(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", (4,), "u1", chunks=(300 << 20,), maxshape=(None,))
    with pytest.raises(hr.ResourceLimitError, match=r"HR0493.*chunks of more than 256 MiB"):
        hr.open(tmp_path / "a.h5")


def test_damage_is_an_error_with_its_offset(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    rows = np.random.default_rng(4).integers(0, 64, (20, 100), dtype=np.uint8)
    with h5py.File(path, "w") as file:
        options = {"chunks": (1, 100), "compression": "gzip", "fletcher32": True}
        file.create_dataset("v", data=rows, **options)
        info = file["v"].id.get_chunk_info(7)
    content = bytearray(path.read_bytes())
    content[info.byte_offset + 40] ^= 1
    path.write_bytes(content)
    source = hr.open(path)
    for i in range(20):
        if i != 7:
            np.testing.assert_array_equal(source[i]["v"], rows[i])
    with pytest.raises(hr.DataError, match=r"HR0489.*checksum") as caught:
        source[7]
    where = caught.value.where
    assert (where.file, where.member, where.record) == (str(path), "/v", 7)
    assert where.offset == info.byte_offset
    loader = hr.Loader(source, batch_size=5, on_error="skip", error_budget=1).numpy()
    assert sum(len(batch["v"]) for batch in loader) == 19
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(hr.DataError, match=r"HR0489.*was truncated"):
        hr.open(path)


def test_a_damaged_label_is_minus_one_in_the_column(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("label", data=np.arange(5, 25), chunks=(1,), fletcher32=True)
        offset = file["label"].id.get_chunk_info(7).byte_offset
    content = bytearray(path.read_bytes())
    content[offset] ^= 1
    path.write_bytes(content)
    expected = [*range(5, 12), -1, *range(13, 25)]
    classes = [str(i) for i in range(25)]
    for source in (hr.open(path), hr.open(path, classes=classes)):
        assert source.column("label").tolist() == expected
        with pytest.raises(hr.DataError, match=r"HR0489.*checksum"):
            source[7]
    with pytest.raises(hr.ConfigError, match=r"HR0406.*'24'"):
        hr.open(path, classes=classes[:24])


def test_datasets_that_are_not_rows_are_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["v"] = np.arange(4)
        file["one"] = 5.0
        file["type"] = np.dtype("<i4")
        file["group/w"] = np.arange(4)
    for name, message in [("one", "HR0492.*one value"), ("type", "HR049"), ("group", "HR049")]:
        with pytest.raises(hr.Error, match=message):
            hr.open(tmp_path / "a.h5", fields=[name])


def test_the_error_of_a_damaged_row_has_its_offset(tmp_path: Path) -> None:
    """The bytes of the rows are truncated after the file was opened."""
    rows = np.arange(40_000, dtype="<i4").reshape(100, 400)
    for options in ({}, {"chunks": (1, 400)}, {"chunks": (10, 400), "compression": "gzip"}):
        path = tmp_path / f"{len(options)}.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("v", data=rows, **options)
        source = hr.open(path)
        os.truncate(path, path.stat().st_size // 2)
        bad = []
        for i in range(100):
            try:
                np.testing.assert_array_equal(source[i]["v"], rows[i])
            except hr.DataError as error:
                assert error.where.file == str(path) and error.where.record == i
                bad.append(i)
        assert bad


def test_trusted_files_are_read_through_h5py(tmp_path: Path) -> None:
    table = np.zeros(6, dtype=[("a", ">i4"), ("b", "<f4", (2,))])
    table["a"], table["b"] = np.arange(6), np.arange(12).reshape(6, 2)
    scaled = np.arange(60).reshape(6, 10)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["table"] = table
        file.create_dataset("scaled", data=scaled, chunks=(2, 10), scaleoffset=0)
        file["images"] = np.arange(6 * 4 * 5, dtype=np.uint8).reshape(6, 4, 5)
        file["labels"] = np.arange(6) % 2
        file["text"] = ["a", "b", "c", "d", "e", "é"]
    with pytest.raises(hr.UnsupportedError, match="trusted=True"):
        hr.open(tmp_path / "a.h5")
    source = hr.open(tmp_path / "a.h5", trusted=True)
    assert len(source) == 6 and "through h5py" in repr(source)
    for i in range(6):
        record = source[i]
        assert record["label"] == i % 2 and record["text"] == "abcdeé"[i]
        assert record["table_a"] == i and record["image"].shape == (1, 4, 5)
        np.testing.assert_array_equal(record["table_b"], table["b"][i])
        np.testing.assert_array_equal(record["scaled"], scaled[i])
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["v"] = h5py.ExternalLink("a.h5", "/labels")
        file["inside"] = h5py.SoftLink("/v")
        file["table"] = table
    for fields in (None, ["v"], ["table", "v"], ["table", "inside"]):
        with pytest.raises(hr.UnsupportedError, match=r"HR049[45]"):
            hr.open(tmp_path / "b.h5", trusted=True, fields=fields)


def test_names_that_are_not_utf8_are_fields_or_a_headrace_error(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset(b"caf\xe9\xff", data=np.arange(10))
    assert [field.name for field in hr.open(tmp_path / "a.h5").schema] == ["caf__"]
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file.create_dataset(b"caf\xe9\xff", data=np.zeros(10, [("a", "i4"), ("b", "f4")]))
    with pytest.raises(hr.UnsupportedError, match="compound"):
        hr.open(tmp_path / "b.h5")
    with pytest.raises(hr.UnsupportedError, match="h5py cannot read") as caught:
        hr.open(tmp_path / "b.h5", trusted=True)
    assert caught.value.code == "HR0495"
