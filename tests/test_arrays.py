# SPDX-License-Identifier: Apache-2.0
"""Arrays in files equal those read by NumPy, safetensors and pyarrow, or are rejected by name."""

from __future__ import annotations

import gzip
import io
import math
import os
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr

CORPUS = Path(os.environ.get("HEADRACE_TEST_DATA", "/nonexistent")) / "formats"
DTYPES = ["u1", "i1", "<i2", ">i4", "<i8", "<u2", ">u4", "<u8", "<f2", ">f4", "<f8", "?"]


def same(source: hr.Source, field: str, expected: np.ndarray[Any, Any]) -> None:
    """All records of a field; images are channels-first."""
    assert len(source) == len(expected)
    for i, wanted in enumerate(expected):
        got = source[i][field]
        np.testing.assert_array_equal(np.asarray(got).reshape(np.shape(wanted)), wanted)
        if not np.isscalar(got):
            assert np.asarray(got).dtype == np.asarray(wanted).dtype.newbyteorder("=")


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_npy_equals_what_numpy_wrote(tmp_path: Path, dtype: str, order: str) -> None:
    random = np.random.default_rng(1)
    for shape in [(5, 3), (70, 2, 3), (4, 2, 3, 5), (3, 100)]:
        array = (random.random(shape) * 100).astype(dtype)
        np.save(tmp_path / "a.npy", np.asarray(array, order=order))
        same(hr.npy(tmp_path / "a.npy", field="v"), "v", array)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_of_npy_is_read(tmp_path: Path, version: tuple[int, int]) -> None:
    array = np.arange(12, dtype="<f4").reshape(4, 3)
    with open(tmp_path / "a.npy", "wb") as file:
        np.lib.format.write_array(file, array, version=version)
    same(hr.open(tmp_path / "a.npy"), "data", array)


def test_channels_always_come_first(tmp_path: Path) -> None:
    images = np.random.default_rng(2).integers(0, 256, (6, 9, 10, 3), dtype=np.uint8)
    np.save(tmp_path / "last.npy", images)
    np.save(tmp_path / "first.npy", images.transpose(0, 3, 1, 2))
    for name in ("last", "first"):
        source = hr.open(tmp_path / f"{name}.npy")
        assert source.schema[0].kind == "image"
        same(source, "image", images.transpose(0, 3, 1, 2))


def test_structured_arrays_and_strings_are_fields(tmp_path: Path) -> None:
    kind = [("label", "u1"), ("box", ">i2", (2,)), ("name", "U5"), ("code", "S3")]
    array = np.zeros(4, kind)
    array["label"] = [3, 1, 2, 0]
    array["box"] = np.arange(8).reshape(4, 2)
    array["name"] = ["é", "", "naïve", "\N{SNOWMAN}"]
    array["code"] = [b"ab", b"", b"abc", b"x"]
    np.save(tmp_path / "a.npy", array)
    source = hr.open(tmp_path / "a.npy")
    assert source.column("label").tolist() == [3, 1, 2, 0]
    same(source, "box", array["box"])
    assert [record["name"] for record in source] == array["name"].tolist()
    assert [record["code"] for record in source] == [each.decode() for each in array["code"]]


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_equals_what_numpy_wrote(tmp_path: Path, save: Any) -> None:
    random = np.random.default_rng(3)
    arrays = {
        "x": random.integers(0, 256, (7, 8, 9), dtype=np.uint8),
        "y": np.arange(7)[::-1] % 3,
        "boxes": np.asfortranarray(random.random((7, 20, 4))),
    }
    save(tmp_path / "a.npz", **arrays)
    source = hr.open(tmp_path / "a.npz")
    same(source, "image", arrays["x"])
    same(source, "boxes", arrays["boxes"])
    assert source.column("label").tolist() == arrays["y"].tolist()
    batch = next(iter(hr.Loader(source, batch_size=7)))
    np.testing.assert_array_equal(np.asarray(batch["boxes"]), arrays["boxes"])


def test_npz_with_zip64_is_read(tmp_path: Path) -> None:
    array = np.arange(600, dtype=np.float32).reshape(6, 100)
    buffer = io.BytesIO()
    np.save(buffer, array)
    with (
        zipfile.ZipFile(tmp_path / "a.npz", "w") as archive,
        archive.open("v.npy", "w", force_zip64=True) as member,
    ):
        member.write(buffer.getvalue())
    same(hr.open(tmp_path / "a.npz"), "v", array)


def test_a_folder_of_arrays_of_different_shapes_is_ragged(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    arrays = [random.random((size, 3)).astype(np.float32) for size in (2, 5, 3)]
    for number, array in enumerate(arrays):
        (tmp_path / "d" / f"class{number % 2}").mkdir(parents=True, exist_ok=True)
        np.save(tmp_path / "d" / f"class{number % 2}" / f"{number}.npy", array)
    source = hr.open(tmp_path / "d")
    assert source.schema[0].shape == (-1, 3) and source.classes == ["class0", "class1"]
    for i, number in enumerate([0, 2, 1]):
        np.testing.assert_array_equal(source[i]["data"], arrays[number])


def test_object_arrays_are_refused_and_never_unpickled(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return (os.mkdir, (str(tmp_path / "sprung"),))

    np.save(tmp_path / "a.npy", np.array([Trap(), None], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "a.npz", x=np.array([Trap(), None], dtype=object))
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(Trap()))
    (tmp_path / "a.bin").write_bytes(pickle.dumps({"x": Trap()}))
    for name, code in [
        ("a.npy", "HR0425"),
        ("a.npz", "HR0425"),
        ("a.pkl", "HR0429"),
        ("a.bin", "HR0429"),
    ]:
        with pytest.raises(hr.UnsupportedError) as caught:
            hr.open(tmp_path / name)
        assert caught.value.code == code
    assert not (tmp_path / "sprung").exists()


def sparse_npy(path: Path, descr: str, shape: tuple[int, ...], fortran: bool = False) -> Path:
    """An array of zeros that takes no disk space."""
    header = {"descr": descr, "fortran_order": fortran, "shape": shape}
    with path.open("wb") as file:
        np.lib.format.write_array_header_2_0(file, header)
        file.truncate(file.tell() + np.dtype(descr).itemsize * math.prod(shape))
    return path


def test_the_size_of_arrays_held_in_memory_is_limited(tmp_path: Path) -> None:
    strings = sparse_npy(tmp_path / "s.npy", "<U1000", (100_000,))
    with pytest.raises(hr.UnsupportedError, match=r"HR0425.*the limit is 256 MiB"):
        hr.open(strings)
    turned = sparse_npy(tmp_path / "f.npy", "<f8", (1 << 20, 200), fortran=True)
    with pytest.raises(hr.UnsupportedError, match=r"HR0425.*in Fortran order.*up to 1 GiB"):
        hr.open(turned)
    cut = sparse_npy(tmp_path / "c.npy", "<f8", (100, 3), fortran=True)
    os.truncate(cut, cut.stat().st_size - 1)
    strings.write_bytes(strings.read_bytes()[:5000])
    for path in (cut, strings):
        with pytest.raises(hr.DataError, match="HR0424"):
            hr.open(path)


def test_a_folder_of_structured_arrays_is_refused(tmp_path: Path) -> None:
    for name in ("a.npy", "b.npy"):
        np.save(tmp_path / name, np.zeros(3, [("a", "<i4"), ("b", "<f8")]))
    with pytest.raises(hr.UnsupportedError, match=r"HR0425.*must contain one array of numbers"):
        hr.open(tmp_path)


def test_old_torch_files_are_refused_with_a_hint(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "weights.bin"
    torch.save({"x": torch.zeros(3)}, path, _use_new_zipfile_serialization=False)
    with pytest.raises(hr.UnsupportedError, match="weights_only=True"):
        hr.open(path)


def test_idx_files_are_read_per_the_specification(tmp_path: Path) -> None:
    images = np.random.default_rng(5).integers(0, 256, (11, 28, 28), dtype=np.uint8)
    labels = np.arange(11, dtype=np.uint8) % 10
    with gzip.open(tmp_path / "train-images-idx3-ubyte.gz", "wb") as file:
        file.write(struct.pack(">4B3I", 0, 0, 8, 3, *images.shape) + images.tobytes())
    with gzip.open(tmp_path / "train-labels-idx1-ubyte.gz", "wb") as file:
        file.write(struct.pack(">4BI", 0, 0, 8, 1, 11) + labels.tobytes())
    source = hr.open(tmp_path)
    same(source, "image", images[:, None])
    assert source.column("label").tolist() == labels.tolist()


def test_safetensors_equal_what_the_library_wrote(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors.numpy")
    random = np.random.default_rng(6)
    arrays = {
        name: (random.random((5, 4)) * 100).astype(name)
        for name in ("uint8", "int16", "int64", "uint32", "float16", "float32", "float64", "bool")
    }
    library.save_file(arrays, tmp_path / "a.safetensors")
    source = hr.open(tmp_path / "a.safetensors")
    for name, array in arrays.items():
        same(source, name, array)


def test_bfloat16_is_read_from_safetensors(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    library = pytest.importorskip("safetensors.torch")
    values = torch.randn(6, 40, generator=torch.Generator().manual_seed(0)).bfloat16()
    library.save_file({"v": values}, tmp_path / "a.safetensors")
    (batch,) = hr.Loader(tmp_path / "a.safetensors", batch_size=6).torch()
    assert torch.equal(batch.v, values)


@pytest.mark.skipif(not (CORPUS / "npy").exists(), reason="HEADRACE_TEST_DATA/formats/npy")
def test_the_npy_corpus_is_read_or_refused() -> None:
    read = 0
    for path in sorted((CORPUS / "npy").rglob("*.npy")):
        try:
            expected = np.load(path, allow_pickle=False)
        except ValueError as error:
            with pytest.raises(hr.Error):
                hr.open(path)
            assert "pickle" in str(error)
            continue
        if expected.dtype.kind not in "?uif" or expected.ndim == 0 or 0 in expected.shape:
            with pytest.raises(hr.Error):
                hr.open(path)
            continue
        source = hr.npy(path, field="v")
        step = max(1, len(expected) // 20)
        for i in range(0, len(expected), step):
            np.testing.assert_array_equal(source[i]["v"], expected[i], err_msg=str(path))
        read += 1
    assert read >= 20


@pytest.mark.skipif(not (CORPUS / "idx").exists(), reason="HEADRACE_TEST_DATA/formats/idx")
def test_the_idx_corpus_is_read_or_refused() -> None:
    for path in sorted((CORPUS / "idx").iterdir()):
        try:
            whole = gzip.decompress(path.read_bytes())
        except (EOFError, OSError):
            with pytest.raises(hr.DataError):
                hr.open(path, format="idx")
            continue
        sizes = struct.unpack(f">{whole[3]}I", whole[4 : 4 + 4 * whole[3]])
        if len(whole) != 4 + 4 * whole[3] + int(np.prod(sizes)):
            with pytest.raises(hr.DataError):
                hr.open(path, format="idx")
            continue
        expected = np.frombuffer(whole, np.uint8, offset=4 + 4 * whole[3]).reshape(sizes)
        source = hr.open(path, format="idx")
        field = "image" if expected.ndim > 1 else "label"
        for i in range(0, len(expected), 97):
            np.testing.assert_array_equal(np.squeeze(source[i][field]), expected[i])
