# SPDX-License-Identifier: Apache-2.0
"""Tensors of torch.save are read in place, and no code in a file is ever run."""

from __future__ import annotations

import collections
import io
import os
import pickle
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr

torch: Any = pytest.importorskip("torch")

DTYPES = [
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "bool",
]


def saved(path: Path, value: Any, **options: Any) -> Path:
    torch.save(value, path, **options)
    return path


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_of_each_dtype_equal_what_torch_saved(tmp_path: Path, dtype: str) -> None:
    values = torch.randint(0, 2, (7, 3, 2)).to(getattr(torch, dtype))
    src = hr.open(saved(tmp_path / "a.pt", {"values": values}))
    np.testing.assert_array_equal(src.column("values"), values.numpy())


def test_data_and_target_are_images_and_labels(tmp_path: Path) -> None:
    """In the format of torchvision's processed MNIST files."""
    images = torch.randint(0, 255, (9, 28, 28), dtype=torch.uint8)
    labels = torch.arange(9)
    src = hr.open(saved(tmp_path / "training.pt", (images, labels)))
    assert [field.name for field in src.schema] == ["image", "label"]
    for number, record in enumerate(src):
        np.testing.assert_array_equal(record["image"][0], images[number].numpy())
        assert record["label"] == number


@pytest.mark.parametrize(
    "value",
    [
        lambda x: x,
        lambda x: {"x": x},
        lambda x: collections.OrderedDict(x=x),
        lambda x: {"x": torch.nn.Parameter(x)},
        lambda x: {"x": x[2:9]},
        lambda x: {"x": x[::2]},
        lambda x: {"x": x[:, :4].clone()},
        lambda x: {"x": x.unsqueeze(1).expand(12, 1, 4)},
        lambda x: {"x": x[:0]},
    ],
)
def test_rows_are_read_at_the_declared_offsets(tmp_path: Path, value: Any) -> None:
    given = value(torch.arange(48, dtype=torch.float32).reshape(12, 4))
    of = given if isinstance(given, torch.Tensor) else given["x"]
    src = hr.open(saved(tmp_path / "a.pt", given))
    assert len(src) == len(of)
    np.testing.assert_array_equal(src.column("x"), of.detach().numpy())


def test_tensors_may_share_a_storage_and_fields_may_be_named(tmp_path: Path) -> None:
    whole = torch.arange(20.0)
    path = saved(tmp_path / "a.pt", {"low": whole[:10], "high": whole[10:], "note": "of 2024"})
    with pytest.raises(hr.Error, match="'note' is not a tensor"):
        hr.open(path)
    src = hr.open(path, fields=["high", "l=low"])
    np.testing.assert_array_equal(src.column("high"), whole[10:].numpy())
    np.testing.assert_array_equal(src.column("l"), whole[:10].numpy())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (lambda: {"x": torch.arange(12.0).reshape(3, 4).T}, "contiguous"),
        (lambda: {"x": torch.zeros(1).expand(1000)}, "contiguous"),
        (lambda: {"x": torch.tensor(3.0)}, "single value"),
        (lambda: {"x": torch.zeros(3, dtype=torch.complex64)}, "names torch.ComplexFloatStorage"),
        (lambda: {"x": np.zeros(3)}, "names"),
        (lambda: {"x": torch.zeros(3), "y": torch.zeros(4)}, "4"),
        (lambda: {}, "not a tensor"),
        (lambda: torch.nn.Linear(2, 2), "names"),
    ],
)
def test_unsupported_files_are_refused_by_name_and_reason(
    tmp_path: Path, value: Any, text: str
) -> None:
    with pytest.raises(hr.Error, match=text):
        hr.open(saved(tmp_path / "a.pt", value()))


def test_old_files_are_refused_with_a_hint(tmp_path: Path) -> None:
    old = saved(tmp_path / "a.pt", {"x": torch.zeros(3)}, _use_new_zipfile_serialization=False)
    with pytest.raises(hr.Error, match="HR0429") as caught:
        hr.open(old)
    assert "torch.save(torch.load(path, weights_only=True)" in caught.value.hint


class Attack:
    """Runs its argument when it is unpickled."""

    def __init__(self, function: Any, *given: Any) -> None:
        self.call = function, given

    def __reduce__(self) -> Any:
        return self.call


def archive(path: Path, pickled: bytes, storage: bytes = bytes(64)) -> Path:
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("archive/data.pkl", pickled)
        out.writestr("archive/byteorder", "little")
        for number in range(2):
            out.writestr(f"archive/data/{number}", storage)
    return path


@pytest.mark.parametrize("protocol", range(6))
def test_no_code_of_a_file_runs(tmp_path: Path, protocol: int) -> None:
    hit = tmp_path / "hit"
    for attack in (
        Attack(os.mkdir, str(hit)),
        Attack(eval, f"open({str(hit)!r}, 'w')"),
        Attack(exec, "import os"),
        Attack(__import__, "os"),
    ):
        for value in (attack, {"x": attack}, [attack], ({"x": 1}, attack)):
            path = archive(tmp_path / "a.pt", pickle.dumps(value, protocol))
            with pytest.raises(hr.Error):
                hr.open(path)
            assert not hit.exists()


def pickled_tensors() -> list[bytes]:
    out = []
    for value in (
        {"image": torch.zeros(4, 2, dtype=torch.uint8), "label": torch.arange(4)},
        (torch.arange(4.0), torch.arange(4)),
        collections.OrderedDict(w=torch.nn.Parameter(torch.zeros(4, 1))),
    ):
        memory = io.BytesIO()
        torch.save(value, memory)
        with zipfile.ZipFile(memory) as read:
            [name] = [name for name in read.namelist() if name.endswith("data.pkl")]
            out.append(read.read(name))
    return out


def test_changed_pickles_are_errors_or_tensors_within_their_storage(tmp_path: Path) -> None:
    draws = random.Random(4)
    seeds = pickled_tensors()
    opened = 0
    for number in range(3000):
        data = bytearray(draws.choice(seeds))
        for _ in range(draws.choice((1, 1, 2, 6))):
            at = draws.randrange(len(data))
            way = draws.randrange(4)
            if way == 0:
                data[at] = draws.randrange(256)
            elif way == 1:
                del data[at : at + draws.randint(1, 9)]
            elif way == 2:
                data[at:at] = draws.choice(seeds)[at % 40 : at % 40 + draws.randint(1, 20)]
            else:
                data[at:at] = bytes([draws.choice(b"hjqrtuseb.QRc(0\x85\x86\x87\x94")])
            if not data:
                data = bytearray(b".")
        path = archive(tmp_path / f"{number % 8}.pt", bytes(data))
        try:
            src = hr.open(path)
            for index in range(min(len(src), 8)):
                src[index]
            opened += 1
        except hr.Error:
            pass
    assert opened > 20  # and some were still intact


@pytest.mark.parametrize(
    "pickled",
    [
        b"",
        b".",
        b"\x80\x02",
        b"\x80\x02}q\x00.",
        b"\x80\x02h\x05.",
        b"\x80\x02X\xff\xff\xff\xffabc.",
        b"\x80\x02\x8a\xff.",
        b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff.",
        b"\x80\x02r\xff\xff\xff\xff.",
        b"\x80\x02]r\xff\xff\xff\xff.",
        b"(" * 100_000,
        b"\x80\x02" + b"]q\x00h\x00a" * 10_000 + b".",
        b"cos\nsystem\n.",
        b"\x80\x02}" + b"(" * 7 + b"R.",
        b"\x80\x02]K\x01R.",
        b"\x80\x02)Q.",
    ],
)
def test_hostile_pickles_are_errors(tmp_path: Path, pickled: bytes) -> None:
    with pytest.raises(hr.Error):
        hr.open(archive(tmp_path / "a.pt", pickled))


@pytest.mark.parametrize(
    "change",
    [
        {"offset": 2**62},
        {"offset": -1},
        {"sizes": (2**62, 2**62)},
        {"sizes": (-1, 4)},
        {"sizes": (5, 4)},
        {"strides": (2**62, 1)},
        {"strides": (4, 2**62)},
        {"strides": (-4, 1)},
        {"strides": (1,)},
        {"storage": "9"},
        {"storage": "../../etc/passwd"},
    ],
)
def test_a_tensor_beyond_its_storage_is_an_error(tmp_path: Path, change: dict[str, Any]) -> None:
    given = {"offset": 0, "sizes": (4, 4), "strides": (4, 1), "storage": "0", **change}

    def push(text: str) -> bytes:
        return b"X" + len(text).to_bytes(4, "little") + text.encode()

    def long(value: Any) -> bytes:
        if isinstance(value, tuple):
            return b"(" + b"".join(map(long, value)) + b"t"
        return b"\x8a\x08" + value.to_bytes(8, "little", signed=True)

    storage = push("storage") + b"ctorch\nFloatStorage\n" + push(given["storage"]) + push("cpu")
    pickled = (
        b"\x80\x02}(" + push("x") + b"ctorch._utils\n_rebuild_tensor_v2\n("
        b"("
        + storage
        + b"K\x10tQ"
        + long(given["offset"])
        + long(given["sizes"])
        + long(given["strides"])
        + b"\x89N"
        + b"tRu."
    )
    path = archive(tmp_path / "a.pt", pickled)
    if not change:
        assert len(hr.open(path)) == 4
    else:
        with pytest.raises(hr.Error):
            hr.open(path)


def test_the_unmodified_hand_written_pickle_is_a_tensor(tmp_path: Path) -> None:
    test_a_tensor_beyond_its_storage_is_an_error(tmp_path, {})
