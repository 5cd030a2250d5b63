# SPDX-License-Identifier: Apache-2.0
"""A folder of images, audio clips or videos, with one folder per class."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headrace import _core
from headrace.sources import Source
from headrace.write import Schema, WriterRecord, check_pictures, picture_bytes, picture_suffix
from headrace.write.durable import sync_all_below


def _check(schema: Schema) -> None:
    others = [{kind} for kind in _core.media() if kind != "image"]
    if {field.name for field in schema} - {"label"} not in others:
        check_pictures(schema, "a folder has images, audio clips or videos, and classes")


class FolderWriter:
    """Writes files whose names begin with the record's number, which preserves the order in a
    class."""

    def __init__(self, path: str, classes: Sequence[str], state: Mapping[str, Any]) -> None:
        self.path = path
        self.classes = list(classes)
        self.media = list(_core.media())
        self.records = state.get("records", 0)
        os.makedirs(path, exist_ok=True)

    def add(self, number: int, key: str, values: Mapping[str, Any]) -> None:
        kind = next(name for name in self.media if name in values)
        data = picture_bytes(values[kind])
        folder = self.path
        if "label" in values:
            folder = os.path.join(self.path, self._class(values["label"]))
        os.makedirs(folder, exist_ok=True)
        name = f"{number:09}-{os.path.basename(key) or kind}.{picture_suffix(data, kind)}"
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data)

    def _class(self, label: int) -> str:
        """A folder name for a class, which cannot point elsewhere."""
        name = self.classes[label] if 0 <= label < len(self.classes) else f"{label:06}"
        name = name.replace("/", "_").replace("\0", "_")
        return f"_{name}" if name.startswith(".") or not name else name

    def journal(self) -> dict[str, Any]:
        sync_all_below(self.path)
        return {}

    def close(self) -> None:
        sync_all_below(self.path)

    def abandon(self) -> None:
        pass


def _by_number(written: Source) -> Iterable[int]:
    """The order of records when the folder is listed: class by class, by number."""
    numbers = {os.path.basename(written.key(i))[:9]: i for i in range(len(written))}
    return (numbers[f"{number:09}"] for number in range(len(written)))


WRITER = WriterRecord(
    holds="one folder per class; names begin with the record's number",
    format="folder",
    open=lambda path, schema, classes, state: FolderWriter(path, classes, state),
    check=_check,
    arguments=lambda source: {"classes": source.classes} if source.classes else {},
    order=_by_number,
)
