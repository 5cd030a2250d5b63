# SPDX-License-Identifier: Apache-2.0
"""Token files as laid out by other software: written here following their published layouts."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

Tokens = np.ndarray[Any, Any]
MEGATRON_CODES = {"uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint16": 8}


def some_tokens(count: int, below: int = 50257, seed: int = 0, dtype: str = "uint16") -> Tokens:
    return np.random.default_rng(seed).integers(0, below, count).astype(dtype)


def some_lengths(documents: int, mean: float, seed: int = 0) -> Tokens:
    return np.random.default_rng(seed).geometric(1 / mean, documents)


def llm_bytes(tokens: Tokens) -> bytes:
    """llm.c's format: 256 numbers of int32 (magic, version, tokens), then the tokens."""
    kinds = {"uint16": (20240520, 1), "uint32": (20240801, 7)}
    header = np.zeros(256, "<i4")
    header[:3] = (*kinds[tokens.dtype.name], len(tokens))
    return header.tobytes() + tokens.tobytes()


def megatron_index(
    lengths: Sequence[int], dtype: str, document_ends: Sequence[int] | None = None
) -> bytes:
    """The .idx of Megatron-LM's indexed datasets. document_ends: in sequences, the first is 0."""
    ends = range(len(lengths) + 1) if document_ends is None else document_ends
    item = np.dtype(dtype).itemsize
    pointers = np.concatenate([[0], np.cumsum(lengths)[:-1]]) * item if len(lengths) else []
    return (
        b"MMIDIDX\x00\x00"
        + struct.pack("<QBQQ", 1, MEGATRON_CODES[dtype], len(lengths), len(ends))
        + np.asarray(lengths, "<i4").tobytes()
        + np.asarray(pointers, "<i8").tobytes()
        + np.asarray(ends, "<i8").tobytes()
    )


def write_megatron(folder: Path, documents: Sequence[Tokens], name: str = "text_document") -> Path:
    """The path of the .bin."""
    tokens = np.concatenate(documents)
    (folder / f"{name}.bin").write_bytes(tokens.tobytes())
    index = megatron_index([len(each) for each in documents], tokens.dtype.name)
    (folder / f"{name}.idx").write_bytes(index)
    return folder / f"{name}.bin"


def cut(tokens: Tokens, lengths: Sequence[int] | Tokens) -> list[Tokens]:
    return np.split(tokens, np.cumsum(lengths)[:-1])
