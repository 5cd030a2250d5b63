# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's datasets.Dataset with a transform from set_transform or with_transform.

The function takes columns of a batch: ``examples["pixel_values"] = [transform(image.convert("RGB"))
for image in examples["image"]]``. ``Rows`` presents the table's records as an ordinary Dataset,
which can be traced as usual; columns that the collate function does not read are dropped. Images
are files, or bytes in the table.
"""

from __future__ import annotations

import functools
import importlib
import types
from collections.abc import Callable
from typing import Any

from headrace.migrate.collated import equal
from headrace.migrate.known_dataset import NoFormat
from headrace.migrate.look.row_files import TableImages
from headrace.migrate.seeding import seeded

_COMPARED = 8  # number of records to compare


def is_known(dataset: Any) -> bool:
    """Whether it is a datasets.Dataset with a user's transform."""
    home = type(dataset).__module__.partition(".")[0]
    return home == "datasets" and getattr(dataset, "_format_type", None) == "custom"


def rows_of(dataset: Any, rows_taken: Any, collate: Callable[[list[Any]], Any] | None) -> Any:
    """Its records as a Dataset of files. rows_taken: their indices, or None for all. Raises
    NoFormat.
    """
    function, keywords = _function_of(dataset)
    plain = dataset.with_format(None)
    library = importlib.import_module("datasets")
    features = plain.features.items()
    images = [name for name, feature in features if isinstance(feature, library.Image)]
    if len(images) != 1 or plain.features[images[0]].mode is not None:
        raise NoFormat("it does not have exactly one image column, without a color mode")
    plain = plain.cast_column(images[0], library.Image(decode=False))
    numbers = range(len(plain)) if rows_taken is None else rows_taken
    pictures = plain.select_columns(images)
    first = pictures[0][images[0]]
    table = None
    if first["bytes"] is not None:
        table = TableImages(pictures)
        paths = table.paths(numbers)
    elif first["path"]:
        paths = [each["path"] for each in pictures.select(numbers)[:][images[0]]]
    else:
        raise NoFormat("its first image has neither bytes nor a path")
    space = {
        "rows_table": table,  # of the class, which is not copied for tracing
        "__module__": function.__module__,
        "__getitem__": _in_module(_getitem, function),
        "__len__": lambda self: len(self.rows_paths),
        "rows_globals": function.__globals__,
    }
    rows: Any = type(type(dataset).__name__, (), space)()
    rows.rows_paths = paths
    rows.rows_order = list(plain.column_names)
    rows.rows_columns = plain.remove_columns(images).select(numbers)[:]
    rows.rows_keywords = keywords
    rows.rows_code, rows.rows_defaults = function.__code__, function.__defaults__
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        setattr(rows, name, cell.cell_contents)
    rows.rows_left_out = _unread(dataset, collate)
    _compare(dataset, numbers, rows)
    return rows


def _function_of(dataset: Any) -> tuple[types.FunctionType, dict[str, Any]]:
    options = getattr(dataset, "_format_kwargs", {})
    function: Any = options.get("transform")
    keywords: dict[str, Any] = {}
    if isinstance(function, functools.partial) and not function.args:
        function, keywords = function.func, dict(function.keywords)
    if not isinstance(function, types.FunctionType):
        raise NoFormat("its transform is not a function of the script")
    if options.keys() != {"transform"} or getattr(dataset, "_output_all_columns", False):
        raise NoFormat("its format has other options")
    return function, keywords


def _in_module(template: Any, function: types.FunctionType) -> types.FunctionType:
    """A copy of ``template`` with the globals of ``function``, as if it were defined in the script,
    whose calls are traced.
    """
    return types.FunctionType(template.__code__, function.__globals__, "__getitem__")


def _getitem(self: Any, index: int) -> dict[str, Any]:
    import types

    from PIL import Image, ImageOps

    from headrace.migrate.look.row_files import file_of

    # Like datasets does.
    image = ImageOps.exif_transpose(Image.open(file_of(self.rows_paths[index])))
    batch = {name: [image] for name in self.rows_order}
    for name, values in self.rows_columns.items():
        batch[name] = [values[index]]
    cells = tuple(types.CellType(getattr(self, name)) for name in self.rows_code.co_freevars)
    function = types.FunctionType(
        self.rows_code, self.rows_globals, "transform", self.rows_defaults, cells
    )
    done = function(batch, **self.rows_keywords)
    return {name: done[name][0] for name in done if name not in self.rows_left_out}


def _unread(dataset: Any, collate: Callable[[list[Any]], Any] | None) -> frozenset[str]:
    """Removes the opened images, which are in the records but not in batches."""
    records = [dataset[0], dataset[len(dataset) - 1]]
    images = frozenset(name for name, value in records[0].items() if hasattr(value, "getbands"))
    if not images or collate is None:
        return images
    fewer = [{n: value for n, value in r.items() if n not in images} for r in records]
    try:
        with seeded(0):
            expected = collate(records)
        with seeded(0):
            alike = equal(collate(fewer), expected)
    except Exception:
        alike = False
    if not alike:
        raise NoFormat(f"its collate_fn reads {', '.join(sorted(images))} as it was opened")
    return images


def _compare(dataset: Any, numbers: Any, rows: Any) -> None:
    """Raises NoFormat unless both return the same records. numbers: of the dataset's records."""
    count = len(numbers)
    for number in sorted({index * (count - 1) // _COMPARED for index in range(_COMPARED + 1)}):
        with seeded(0):
            record = dataset[int(numbers[number])]
            theirs = {n: v for n, v in record.items() if n not in rows.rows_left_out}
        with seeded(0):
            ours = rows[number]
        if not equal(ours, theirs):
            raise NoFormat(
                f"its transform gives record {number} a different value from a batch of one"
            )
