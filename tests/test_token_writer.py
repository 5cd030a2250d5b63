# SPDX-License-Identifier: Apache-2.0
"""Texts written with a tokenizer are in the file exactly as the tokenizer returned them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import token_functions
from token_files import megatron_index

import headrace as hr

TEXTS = ["a cat", "", "über", "x" * 1000, "日本", "the end"]
IDS = [[ord(letter) for letter in text] for text in TEXTS]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("batch", [1, 4, 100])
def test_documents_equal_those_of_the_tokenizer(tmp_path: Path, batch: int, workers: int) -> None:
    path = tmp_path / "train.bin"
    report = hr.write_tokens(
        hr.records(text=TEXTS),
        path,
        token_functions.code_points,
        eos=3,
        batch=batch,
        python_workers=workers,
    )
    wanted = [[*ids, 3] for ids in IDS]
    assert (report["documents"], report["tokens"]) == (len(TEXTS), sum(map(len, wanted)))
    flat = np.concatenate(wanted).astype(np.uint16)
    np.testing.assert_array_equal(np.fromfile(path, np.uint16), flat)
    index = megatron_index([len(ids) for ids in wanted], "uint16")
    assert (tmp_path / "train.idx").read_bytes() == index
    assert [r["tokens"].tolist() for r in hr.tokens(path, window=None)] == wanted
    assert sorted(os.listdir(tmp_path)) == ["train.bin", "train.idx"]


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int32", "int64"])
def test_tokens_of_every_dtype_are_written(tmp_path: Path, dtype: str) -> None:
    hr.write_tokens(
        hr.records(caption=["ab", "c"]),
        tmp_path / "a.bin",
        token_functions.code_points,
        field="caption",
        dtype=np.dtype(dtype),
    )
    np.testing.assert_array_equal(np.fromfile(tmp_path / "a.bin", dtype), [97, 98, 99])
    assert len(hr.tokens(tmp_path / "a.bin", window=None)) == 2


def test_texts_are_packed_into_rows(tmp_path: Path) -> None:
    hr.write_tokens(hr.records(text=["abc", "de"]), tmp_path / "a.bin", token_functions.code_points)
    (row,) = hr.packed(hr.tokens(tmp_path / "a.bin", window=None), length=6)
    assert row["tokens"].tolist() == [97, 98, 99, 100, 101, 0]


@pytest.mark.parametrize(
    ("tokenizer", "given", "text"),
    [
        (token_functions.one_short, {}, "1 documents for 2 texts"),
        (token_functions.nested, {}, r"int64 of shape \(1, 2\) for text 0"),
        (token_functions.code_points, {"dtype": "uint8"}, "text 1 has the token 26412"),
        (token_functions.raises, {}, "unknown letter"),
    ],
)
def test_invalid_results_of_a_tokenizer_are_refused(
    tmp_path: Path, tokenizer: Any, given: dict[str, Any], text: str
) -> None:
    with pytest.raises(hr.Error, match=text):
        hr.write_tokens(hr.records(text=["a", "日本"]), tmp_path / "a.bin", tokenizer, **given)
    assert os.listdir(tmp_path) == []


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    source = hr.records(text=["ab"])
    path = tmp_path / "a.bin"
    hr.write_tokens(source, path, token_functions.code_points)
    with pytest.raises(hr.ConfigError, match=r"HR0193 .*a\.bin exists"):
        hr.write_tokens(source, path, token_functions.code_points)
    with pytest.raises(hr.Error, match="unknown letter"):
        hr.write_tokens(source, path, token_functions.raises, overwrite=True)
    assert path.stat().st_size == 4
    hr.write_tokens(source, path, token_functions.code_points, overwrite=True, eos=0)
    assert path.stat().st_size == 6


def test_each_rank_of_a_launcher_writes_all_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("RANK", "1"), ("WORLD_SIZE", "2"), ("LOCAL_WORLD_SIZE", "2")):
        monkeypatch.setenv(name, value)
    path = tmp_path / "a.bin"
    hr.write_tokens(hr.records(text=TEXTS), path, token_functions.code_points, eos=3, batch=1)
    found = [r["tokens"].tolist() for r in hr.tokens(path, window=None)]
    assert found == [[*ids, 3] for ids in IDS]


def test_an_index_never_describes_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process may end at any step of the replacement."""
    path, index = tmp_path / "a.bin", tmp_path / "a.idx"
    replace = os.replace
    for failing in (path, index):
        hr.write_tokens(hr.records(text=["ab"]), path, token_functions.code_points, overwrite=True)

        def fails(source: str, target: str, failing: Path = failing) -> None:
            if target == str(failing):
                assert not index.exists()
                raise OSError("no space")
            replace(source, target)

        monkeypatch.setattr(os, "replace", fails)
        with pytest.raises(OSError, match="no space"):
            hr.write_tokens(
                hr.records(text=["abc"]), path, token_functions.code_points, overwrite=True
            )
        monkeypatch.setattr(os, "replace", replace)
        assert os.listdir(tmp_path) == (["a.bin"] if failing == path else [])
        assert failing == index or path.stat().st_size == 4


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    source = hr.records(text=["ab"], label=[1])
    for given, text in (
        ({"field": "label"}, "field of kind label, not text"),
        ({"field": "words"}, "'words' is not a field"),
        ({"dtype": "uint32"}, "dtype must be"),
        ({"eos": 70_000}, "eos must be an integer <= 65535"),
    ):
        with pytest.raises(hr.ConfigError, match=text):
            hr.write_tokens(source, tmp_path / "a.bin", token_functions.code_points, **given)
    with pytest.raises(hr.ConfigError, match="does not end with"):
        hr.write_tokens(source, tmp_path / "a.npy", token_functions.code_points)
