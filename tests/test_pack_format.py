# SPDX-License-Identifier: Apache-2.0
"""docs/spec/pack-format.md is complete: tests/pack_reader.py was written from it alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pack_reader import PackReader
from test_invariance import RECORDS, write_photos

import headrace as hr

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("level", ["fast", "dense", "none"])
def test_a_plain_reader_reads_every_record(level: str, shards: int, tmp_path: Path) -> None:
    photos, path = tmp_path / "photos", tmp_path / "pack"
    write_photos(photos)
    hr.pack(photos, path, level, shards)
    folder, number = hr.open(photos), 0
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        reader = PackReader(file)
        assert reader.check_pages() == reader.pages
        assert [field.name for field in reader.fields] == ["image", "label"]
        assert reader.classes == folder.classes and reader.first == number
        for i in range(reader.records):
            values = reader.record(i)
            stored = folder.engine.read(number)
            assert int.from_bytes(values["label"], "little", signed=True) == stored["label"]
            assert photos / os.fsdecode(reader.keys[i]) == Path(folder.key(number))
            if reader.form(i, 0) == 0:
                assert values["image"] == stored["image"]
            else:
                assert level != "none"
            number += 1
    assert number == RECORDS


def test_a_plain_reader_reads_fields_of_every_storage(tmp_path: Path) -> None:
    x, wide = np.arange(12.0).reshape(6, 2), np.arange(600).reshape(6, 100)
    source = hr.records(x=x, wide=wide, text=[str(i) * 9 for i in range(6)])
    hr.pack(source, tmp_path / "x")
    reader = PackReader(tmp_path / "x")
    reader.check_pages()
    for i in range(6):
        assert reader.record(i) == {
            "x": x[i].tobytes(),
            "wide": wide[i].tobytes(),
            "text": (str(i) * 9).encode(),
        }


def test_the_specifications_example_equals_the_written_file(tmp_path: Path) -> None:
    page = (DOCS / "spec" / "pack-format.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    content = (tmp_path / "tiny.hrpack").read_bytes()
    shown = bytearray(len(content))
    for place, line in re.findall(r"^([0-9a-f]{6})  ((?:[0-9a-f]{2} ?){16})$", page, re.MULTILINE):
        shown[int(place, 16) : int(place, 16) + 16] = bytes.fromhex(line)
    assert f"{len(content):,} bytes" in page
    assert bytes(shown) == content
    reader = PackReader(tmp_path / "tiny.hrpack")
    assert [reader.record(i)["text"] for i in range(2)] == [b"hi", b"sun"]
