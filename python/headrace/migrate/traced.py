# SPDX-License-Identifier: Apache-2.0
"""An ordinary Dataset as a source, made from the columns of files and values that ``look`` found.

``Image.open(self.paths[i]).convert("RGB")``, ``self.transform(image)``, ``self.labels[i]`` becomes
a column of paths, whose files are decoded natively, the list in ``transform``, and a column of
labels.
"""

from __future__ import annotations

import collections
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.errors import Error
from headrace.migrate.known_dataset import Dataset, NoFormat, Picture
from headrace.migrate.look import LIMIT, Looked, look, transforms_of
from headrace.migrate.look.columns import numpy_column
from headrace.migrate.look.marks import Op
from headrace.migrate.look.pictures import opened
from headrace.migrate.look.row_files import TableRows, rows_of
from headrace.migrate.nesting import Node
from headrace.migrate.originals import Keyword, pixels_of
from headrace.migrate.spread import spread
from headrace.sources import Source, subset
from headrace.sources import open as open_source
from headrace.sources.column_list import ColumnList
from headrace.sources.combined import join
from headrace.sources.media_paths import is_media_path

Column = dict[str, Any]
_DECODED = 8  # number of images to compare with Headrace's decoding


def traced(dataset: Any, trace: bool | float, why: str) -> Dataset:
    """Raises NoFormat with the reason if it has to run in Python. why: the reason why its class is
    unknown."""
    if trace is False or type(dataset).__module__ == "builtins":
        raise NoFormat(why)
    limit = LIMIT if trace is True else float(trace)
    found = look(dataset, limit)
    if found.reason:
        raise NoFormat(f"left unchanged: {found.reason}", found.way, found.keeps_state)
    assert found.node is not None
    columns = dict(zip(found.node.names, found.columns, strict=True))
    files = {name: column for name, column in columns.items() if "paths" in column}
    for column in files.values():
        column["rows"] = rows_of(column["paths"])  # which keep their table alive
    forms = {name: form_of(column["ops"], column["kind"]) for name, column in files.items()}
    upright = {_is_upright(column["ops"]) for column in files.values()}
    if len(upright) > 1:
        raise NoFormat("left unchanged: it rotates only some of its images by their Exif tags")
    shared = _shared(files)
    others = [name for name in files if shared and name != shared]
    source = _source({n: c for n, c in columns.items() if n not in others}, dataset)
    transforms = transforms_of(dataset, found.deep)
    pictures = {
        name: Picture(
            [
                *_first(column["ops"]),
                *(_called(op, transforms) for op in column["ops"] if op[0] == "call"),
            ],
            forms[name],
        )
        for name, column in files.items()
    }
    out = Dataset(
        f"{type(dataset).__name__}: {_sentence(columns, found.node)}",
        source,
        found.node.names,
        _raw(columns),
        several=pictures,
        named=found.node.how == "dict",
        node=found.node,
        options={"exif_orientation": True} if upright == {True} else {},
        note=_note(found, len(dataset)),
        skips=found.skips,
        shared=shared,
        is_traced=True,
        outside=found.outside,
    )
    _compare_decoded(out, files)
    return out


def form_of(ops: tuple[Op, ...], kind: str) -> str:
    """The input of its first transform: "pil", "array", "bgr" or "tensor". Raises NoFormat."""
    before = [op for op in ops if op[0] != "call"]
    is_called = len(before) < len(ops)
    names = [op[0] for op in before if op[0] != "upright"]
    if names[:1] == ["decode"]:
        if before[0][1] != "RGB":
            raise NoFormat(
                f"left unchanged: it decodes with ImageReadMode.{before[0][1]}, with which files "
                "differ in the number of channels",
                "ImageReadMode.RGB makes it native",
            )
        return "tensor"
    if not is_called:
        raise NoFormat(
            "left unchanged: its images get into the record without a transform that makes them "
            "tensors",
            "a transform that ends in v2.ToImage() or ToTensor() makes it native",
        )
    if names == ["imread", "reversed"]:
        return "array"
    if names == ["imread"]:
        return "bgr"
    modes = [op[1] for op in before if op[0] == "convert"]
    if not modes or modes[-1] not in ("RGB", "L") or len(set(modes)) > 1:
        raise NoFormat(
            "left unchanged: it opens images "
            + (f"as {' and then '.join(modes)}" if modes else "without .convert(...)"),
            '.convert("RGB") after Image.open() makes it native',
        )
    if "array" in names and modes[-1] == "L":
        raise NoFormat("left unchanged: it makes arrays of grayscale images")
    return "array" if "array" in names else "pil"


def _is_upright(ops: tuple[Op, ...]) -> bool:
    return ("upright",) in ops or ("imread",) in ops  # as OpenCV does by default


def _first(ops: tuple[Op, ...]) -> list[Any]:
    """Gray images are decoded in color first."""
    return [Gray()] if ("convert", "L") in ops else []


class Gray:
    """``image.convert("L")`` of a color image."""

    def __call__(self, image: Any) -> Any:
        return image.convert("L")

    def __repr__(self) -> str:
        return 'convert("L")'


def _called(op: Op, transforms: dict[str, Any]) -> Any:
    real, how = transforms[op[1]], op[2]
    return Keyword(real, how[1], how[2]) if how[:1] == ("keyword",) else real


def _source(columns: dict[str, Column], dataset: Any) -> Source:
    out = ColumnList()
    kinds = []
    in_table = None
    for name, column in columns.items():
        if rows := column.get("rows"):
            in_table = _table_source(name, rows)
            continue
        if "paths" in column:
            others = {os.path.splitext(path)[1] for path in column["paths"]}
            unknown = sorted(suffix for suffix in others if not is_media_path("a" + suffix))
            if unknown:
                raise NoFormat(
                    f"left unchanged: Headrace has no decoder for files of {', '.join(unknown)}"
                )
            out.add_paths(name, [os.path.abspath(path) for path in column["paths"]])
            kinds.append(f"{name}=image")
            continue
        values = numpy_column(column)
        if column["form"][0] == "text":
            out.add_texts(name, values)
        elif column["form"][0] == "bytes":
            raise NoFormat("left unchanged: its records have bytes")
        else:
            values = np.ascontiguousarray(values)
            classes = _classes(dataset, name, values)
            kind = None if name == "label" and values.dtype == np.int64 else "tensor"
            out.add_array(name, values, None, classes, None if classes else kind)
    if in_table and len(columns) == 1:
        return in_table
    rest = out.source(type(dataset).__name__, kinds, evident_kinds=False)
    return join(in_table, rest, "position") if in_table else rest


def _table_source(name: str, rows: TableRows) -> Source:
    table, numbers = rows
    source = open_source(table.dataset.rename_column(table.column, name), kinds={name: "image"})
    is_all = np.array_equal(numbers, np.arange(len(source)))
    return source if is_all else subset(source, numbers)


def _classes(dataset: Any, name: str, values: Any) -> list[str]:
    given = getattr(dataset, "classes", None)
    if name != "label" or not isinstance(given, (list, tuple)) or values.ndim != 1:
        return []
    inside = values.dtype == np.int64 and values.min() >= 0 and values.max() < len(given)
    return [str(each) for each in given] if inside else []


def _raw(columns: dict[str, Column]) -> Callable[[int], dict[str, Any]]:
    values: dict[str, Any] = {n: numpy_column(c) for n, c in columns.items() if "paths" not in c}

    def raw(number: int) -> dict[str, Any]:
        return {
            name: opened(column["paths"][number], _until_gray(column["ops"]))
            if "paths" in column
            else values[name][number]
            for name, column in columns.items()
        }

    return raw


def _until_gray(ops: tuple[Op, ...]) -> tuple[Op, ...]:
    return tuple(("convert", "RGB") if op == ("convert", "L") else op for op in ops)


def _shared(files: dict[str, Column]) -> str:
    """The field with the files of all images; empty if there are several such fields."""
    first, *others = files.values()
    alike_ = all(each["paths"] == first["paths"] for each in others)
    return next(iter(files)) if others and alike_ else ""


def _sentence(columns: dict[str, Column], node: Node) -> str:
    parts = []
    for name, column in columns.items():
        if "paths" not in column:
            parts.append(name)
            continue
        words = [_word(op) for op in column["ops"] if op[0] not in ("call", "decode", "imread")]
        calls = [op[1] for op in column["ops"] if op[0] == "call"]
        start = {"imread": "cv2.imread(path)", "decode": "decode_image(path)"}
        parts.append(
            start.get(column["ops"][0][0], "Image.open(path)")
            + "".join(words)
            + "".join(f" -> {call}" for call in calls)
        )
    times = collections.Counter(parts)  # two views of one file are reported once
    return "; ".join(part if n == 1 else f"{n} times {part}" for part, n in times.items())


def _word(op: Op) -> str:
    if op[0] == "convert":
        return f'.convert("{op[1]}")'
    return {"upright": ", upright", "array": ", np.array", "reversed": "[..., ::-1]"}[op[0]]


def _note(found: Looked, count: int) -> str:
    return f"traced, {count:,} records twice; {found.compared} images of real files equal"


def _compare_decoded(dataset: Dataset, files: dict[str, Column]) -> None:
    """Raises NoFormat if Headrace decodes a file differently than the dataset."""
    from headrace.migrate.check import decoded

    picks = spread(len(dataset.source), _DECODED)
    try:
        ours = decoded(dataset, picks)
    except Error as refused:
        raise NoFormat(f"left unchanged: {str(refused).splitlines()[0]}") from None
    for number, record in zip(picks, ours, strict=True):
        raw = dataset.raw(int(number))
        for name, picture in dataset.pictures.items():
            if name not in record:
                continue
            theirs = pixels_of(raw[name], picture.kind)
            if not np.array_equal(record[name], theirs):
                raise NoFormat(
                    f"left unchanged: {files[name]['paths'][int(number)]} has different pixels "
                    "in Headrace, which decodes like Pillow"
                )
