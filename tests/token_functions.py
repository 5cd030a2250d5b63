# SPDX-License-Identifier: Apache-2.0
"""Tokenizers for tests, in a module that worker processes can import."""

from __future__ import annotations


def code_points(texts: list[str]) -> list[list[int]]:
    return [[ord(letter) for letter in text] for text in texts]


def one_short(texts: list[str]) -> list[list[int]]:
    return code_points(texts)[1:]


def nested(texts: list[str]) -> list[list[list[int]]]:
    return [[[1, 2]] for _ in texts]


def raises(texts: list[str]) -> list[list[int]]:
    raise ValueError("unknown letter")
