# SPDX-License-Identifier: Apache-2.0
"""Tables in a program's memory: a DataFrame, a dictionary of columns, or tuples of path, label and
more. The engine reads their columns, like those of a manifest, without Python.

>>> table_in_memory([("a/1.jpg", "cat"), ("b/2.jpg", "dog")])
{'image': ['a/1.jpg', 'b/2.jpg'], 'label': ['cat', 'dog']}
>>> table_in_memory([("1.jpg", 3, 0.5)], names=("image", "label", "weight"))
{'image': ['1.jpg'], 'label': [3], 'weight': [0.5]}
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headrace import _core
from headrace.sources.column_list import ColumnList
from headrace.sources.columns import NOT_A_COLUMN, add_column
from headrace.sources.media_paths import is_media_path, is_stored_image, kind_by_suffix
from headrace.sources.source import Source, listed_kinds
from headrace.sources.values import named_values

_LABEL_HEADINGS = ("label", "labels", "class", "target", "category")  # as for a manifest


def table_in_memory(
    value: Any,
    kinds: Mapping[str, str] | None = None,
    *,
    names: Sequence[str] = (),
    root: str | os.PathLike[str] = "",
) -> dict[str, Any] | None:
    """Columns by name; None if it is not a table. names: names of the values of tuples."""
    if type(value).__module__.partition(".")[0] in ("pandas", "polars") and hasattr(
        value, "columns"
    ):
        return _named_as_in_a_manifest({str(name): value[name] for name in value.columns}, root)
    if isinstance(value, Mapping):
        columns = all(isinstance(name, str) and _is_column(c) for name, c in value.items())
        if value and columns:
            return dict(value)
        value = list(value.items())  # {path: label}
    if isinstance(value, (list, tuple)) and not kinds and _are_tuples(value):
        named = names or _names_of(value[0])
        return dict(zip(named, map(list, zip(*value, strict=True)), strict=True))
    return None


def _is_column(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes, Mapping))


def source_of_table(
    table: Mapping[str, Any],
    *,
    kinds: Mapping[str, str] | None = None,
    classes: Sequence[str] = (),
    root: str | os.PathLike[str] = "",
) -> Source:
    """A source over the columns.

    classes: class names in the order of their numbers; default: the distinct labels, sorted. root:
    the base folder of relative paths; default: the current folder.
    """
    said = listed_kinds(kinds)
    columns = ColumnList()
    for name, values in table.items():
        if name == "label" and classes:
            _add_labels(columns, list(values), list(classes))
        else:
            add_column(columns, name, values, (kinds or {}).get(name, ""), os.fspath(root))
    return columns.source(kinds=said)


def first_of(values: Any) -> Any:
    return next(iter(values), None)


def _add_labels(columns: ColumnList, labels: list[Any], classes: list[str]) -> None:
    import numpy as np

    numbers = {name: number for number, name in enumerate(classes)}
    known = [numbers.get(label, label) for label in labels]
    for record, number in enumerate(known):
        if isinstance(number, str) or not 0 <= number < len(classes):
            raise NOT_A_COLUMN.error(
                f"label of record {record} is {labels[record]!r}, which is not in classes="
            )
    array = np.asarray(known, np.int64)
    columns.add_array("label", array, classes=classes)


def _are_tuples(values: Sequence[Any]) -> bool:
    """Whether each value is a path, then a possible label, then other values."""
    return bool(values) and all(
        isinstance(value, (list, tuple))
        and not hasattr(value, "_fields")
        and len(value) == len(values[0]) > 1
        and is_media_path(value[0])
        and isinstance(value[1], (str, os.PathLike, int))
        and all(isinstance(each, (str, os.PathLike, int, float)) for each in value[2:])
        for value in values
    )


def _names_of(record: Sequence[Any]) -> list[str]:
    """image, label, and for other values the names as for Python records."""
    path, label, *others = record
    if is_media_path(label):
        raise NOT_A_COLUMN.error(
            f"record 0 has two paths, {os.fspath(path)!r} and {os.fspath(label)!r}",
            hint='names=("image", "mask"), one per value; or hr.records(image=[...], mask=[...])',
        )
    first = Path(os.fspath(path))  # so that the path is not mistaken for text
    return list(named_values((first, 0, *others)))


def _column_of_ids(table: Mapping[str, Any], root: str | os.PathLike[str]) -> str:
    """The column whose values are file names in the folder, without suffix; empty if there is
    none."""
    for heading, values in table.items():
        if not _core.is_heading_of_files(heading) or not isinstance(first_of(values), (str, int)):
            continue
        ids = [str(value) for value in values]
        if is_media_path(f"x{_core.suffix_of_files(ids, os.fspath(root), required=False)}"):
            return heading
    return ""


def _named_as_in_a_manifest(
    table: Mapping[str, Any], root: str | os.PathLike[str]
) -> dict[str, Any]:
    """The first column of paths, otherwise a column of ids, becomes the image; a column with a
    typical label heading becomes the label.
    """
    out: dict[str, Any] = {}
    paths = any(is_media_path(first_of(values)) for values in table.values())
    ids = "" if paths else _column_of_ids(table, root)
    for heading, values in table.items():
        first = first_of(values)
        lower = heading.lower()
        name = re.sub(r"\W+", "_", heading)
        if name in ("id", "key", "valid"):
            name += "_"  # reserved: every source has these
        if heading == ids:
            name, values = "image", [str(value) for value in values]
        elif is_media_path(first) or is_stored_image(first):
            suffixed = "image" if is_stored_image(first) else kind_by_suffix(first)
            kind = "mask" if "mask" in lower else suffixed
            if kind not in out and kind not in table:
                name = kind
        elif lower in _LABEL_HEADINGS and not isinstance(first, float) and "label" not in out:
            name = "label"
        if name in out:
            raise NOT_A_COLUMN.error(f"two columns would become the field {name!r}")
        out[name] = values
    return out
