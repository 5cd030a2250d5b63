# SPDX-License-Identifier: Apache-2.0
"""A file whose bytes are labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.write import AppendingWriter, Schema, WriterRecord


def _check(schema: Schema) -> None:
    if [field.name for field in schema] != ["label"]:
        raise TypeError("it has only labels")


class TemplateWriter(AppendingWriter):
    """One byte per label."""

    def add(self, number: int, key: str, values: Mapping[str, Any]) -> None:
        self.file.write(bytes([values["label"]]))


WRITER = WriterRecord(
    holds="one byte per label",
    format="template_format",
    open=lambda path, schema, classes, state: TemplateWriter(path, state),
    check=_check,
    suffix=".hrtemplate",
)
