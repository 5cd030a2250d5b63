# SPDX-License-Identifier: Apache-2.0
"""A file whose bytes are labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.write import AppendedFile, Schema, WriterRecord


def _check(schema: Schema) -> None:
    if [field.name for field in schema] != ["label"]:
        raise TypeError("it has labels alone")


class TemplateWriter:
    """One byte a label."""

    def __init__(self, path: str, state: Mapping[str, Any]) -> None:
        self.records = state.get("records", 0)
        self.file = AppendedFile(path, state.get("bytes", 0))

    def add(self, number: int, key: str, values: Mapping[str, Any]) -> None:
        self.file.write(bytes([values["label"]]))

    def journal(self) -> dict[str, Any]:
        return {"bytes": self.file.sync()}

    def close(self) -> None:
        self.file.close()

    def abandon(self) -> None:
        self.file.abandon()


WRITER = WriterRecord(
    holds="a byte a label",
    format="template_format",
    open=lambda path, schema, classes, state: TemplateWriter(path, state),
    check=_check,
    suffix=".hrtemplate",
)
