# SPDX-License-Identifier: Apache-2.0
"""Manifests equal the data written by Python's csv and json modules."""

from __future__ import annotations

import csv
import io
import json
import random
from pathlib import Path

import audio_files
import numpy as np
import pytest
from PIL import Image

import headrace as hr

SIGNS = ["a", "B", " ", ",", ";", '"', "\n", "\r\n", "é", "☃", "'", "\t", "|", "#", "=", "0"]


def texts(count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    return ["x" + "".join(draw.choices(SIGNS, k=draw.randrange(9))) for _ in range(count)]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_csv_is_read_as_python_wrote_it(
    tmp_path: Path, delimiter: str, line_end: str, mark: str
) -> None:
    notes = texts(500, seed=len(delimiter + line_end + mark))
    out = io.StringIO(newline="")
    table = csv.writer(out, delimiter=delimiter, lineterminator=line_end)
    table.writerow(["path", "note", "count", "share"])
    for number, note in enumerate(notes):
        table.writerow([f"{number}.jpg", note, number - 7, number / 8])
    path = tmp_path / "t.csv"
    path.write_bytes((mark + out.getvalue()).encode())
    (tmp_path / "0.jpg").touch()
    source = hr.open(str(path))
    assert [source.key(i) for i in range(3)] == [str(tmp_path / f"{i}.jpg") for i in range(3)]
    assert source.column("count").tolist() == [number - 7 for number in range(500)]
    loader = hr.Loader(source, fields=("note", "share"), batch_size=500)
    (batch,) = loader
    assert list(batch["note"]) == notes
    np.testing.assert_array_equal(np.asarray(batch["share"]), np.arange(500, dtype="f4") / 8)


def test_json_lines_are_read_as_python_wrote_them(tmp_path: Path) -> None:
    notes = texts(500, seed=3)
    draw = random.Random(4)
    shares = [draw.uniform(-1, 1) * 10.0 ** draw.randrange(-300, 300) for _ in notes]
    with (tmp_path / "t.jsonl").open("w") as file:
        for number, (note, share) in enumerate(zip(notes, shares, strict=True)):
            pairs = [("p", f"{number}.png"), ("note", note), ("n", -(2**63) + number), ("f", share)]
            if number:
                draw.shuffle(pairs)
            file.write(json.dumps(dict(pairs), ensure_ascii=number % 2 == 0) + "\n")
    (tmp_path / "0.png").touch()
    source = hr.open(str(tmp_path / "t.jsonl"), floats="float64")
    assert source.column("n").tolist() == [-(2**63) + number for number in range(500)]
    (batch,) = hr.Loader(source, fields=("note", "f"), batch_size=500)
    assert list(batch["note"]) == notes
    np.testing.assert_array_equal(np.asarray(batch["f"]), np.array(shares))


def test_images_masks_and_labels_are_read_together(tmp_path: Path) -> None:
    for name, mode in (("1.png", "RGB"), ("1_mask.png", "L")):
        Image.new(mode, (6, 5), 7).save(tmp_path / name)
    (tmp_path / "t.csv").write_text("photo,mask_file,class,note\n1.png,1_mask.png,owl,\n")
    source = hr.open(str(tmp_path / "t.csv"))
    record = source[0]
    assert record["image"].shape == (3, 5, 6)
    assert record["mask"].shape == (1, 5, 6)
    assert record["label"] == 0
    assert source.classes == ["owl"]
    assert record["note"] == ""


def test_a_line_of_another_length_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("path,label,x\na.jpg,1,2\nb.jpg,1\n")
    with pytest.raises(hr.DataError, match=r"HR0437.*line 3: 2 cells, but the header has 3"):
        hr.open(str(tmp_path / "t.csv"))


def test_a_table_of_path_and_label_stays_a_list(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("path,label\na.jpg,1\n")
    (tmp_path / "a.jpg").touch()
    assert "list" in repr(hr.open(str(tmp_path / "t.csv")))
    assert "manifest" in repr(hr.open(str(tmp_path / "t.csv"), format="manifest"))


def test_numbers_that_float32_cannot_distinguish_are_float64(tmp_path: Path) -> None:
    columns = {
        "patient": ["123456789.0", "123456790.0", "123456791.0"],
        "time": ["1700000000.25", "1700000010.5", "1700000020.75"],
        "northing": ["567890.12", "567890.13", "567890.14"],
        "weight": ["0.5", "1.25", "2.75"],
        "serial": ["12345678901234567890", "12345678901234567891", "7"],  # beyond 64 bits: a name
    }
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    (tmp_path / "a.csv").write_text(
        "\n".join([",".join(columns), *(",".join(row.values()) for row in rows)])
    )
    (tmp_path / "a.jsonl").write_text(
        "\n".join(
            json.dumps({name: float(cell) for name, cell in row.items() if name != "serial"})
            for row in rows
        )
    )
    for file in ("a.csv", "a.jsonl"):
        source = hr.open(tmp_path / file)
        for name in ("patient", "time", "northing"):
            assert [float(record[name]) for record in source] == list(map(float, columns[name]))
        dtypes = {field.name: str(field.dtype) for field in source.schema}
        assert dtypes["weight"] == "float32" and dtypes["northing"] == "float64"
    text = [record["serial"] for record in hr.open(tmp_path / "a.csv")]
    assert text == columns["serial"]
    said = hr.open(tmp_path / "a.csv", floats="float32")
    assert {str(f.dtype) for f in said.schema if f.name != "serial"} == {"float32"}


def test_a_missing_id_does_not_merge_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,id,b\nx,123456789,1\ny,,2\nz,123456790,3\n")
    ids = [record["id_"] for record in hr.open(tmp_path / "a.csv", missing="fill")]
    assert ids[0] == 123456789 and np.isnan(ids[1]) and ids[2] == 123456790


def test_fields_never_omit_an_image_audio_or_label(tmp_path: Path) -> None:
    rows = "\n".join(f"{i}.wav,words {i},{i + 0.5},{i}" for i in range(3))
    (tmp_path / "a.csv").write_text(f"path,text,seconds,label\n{rows}\n")
    (tmp_path / "2.wav").touch()
    for fields in (["text"], ["text", "path"]):
        source = hr.open(tmp_path / "a.csv", fields=fields)
        assert {field.name for field in source.schema} == {"audio", "label", "text"}


def test_the_index_that_pandas_writes_is_a_field(tmp_path: Path) -> None:
    Image.new("RGB", (4, 4)).save(tmp_path / "0.png")
    (tmp_path / "a.csv").write_text(",path,label\n7,0.png,cat\n8,0.png,dog\n")
    source = hr.open(tmp_path / "a.csv")
    assert [field.name for field in source.schema] == ["image", "label", "index"]
    assert [record["index"] for record in source] == [7, 8]


def test_text_next_to_audio_is_read_without_the_audio(tmp_path: Path) -> None:
    (tmp_path / "whole.wav").write_bytes(audio_files.wav_of(audio_files.int16_waves(800, seed=1)))
    (tmp_path / "broken.wav").write_bytes(b"this is not audio")
    names = ("whole.wav", "broken.wav", "missing.wav")
    lines = [{"audio": name, "text": name[0]} for name in names]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, lines)))
    loader = hr.Loader(tmp_path / "t.jsonl", batch_size=3, fields="text")
    assert [list(batch.text) for batch in loader] == [["w", "b", "m"]]
    assert loader.stats()["bad_records"] == 0
