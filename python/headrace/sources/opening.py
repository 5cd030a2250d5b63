# SPDX-License-Identifier: Apache-2.0
"""A source from any argument of ``open``: a path, a pattern, an object with ``len()`` and ``[i]``.

>>> import headrace as hr
>>> src = hr.open([("a", 0), ("b", 1)])  # any object with len() and [i]
>>> len(src), src[1]["label"], src.column("label").tolist()
(2, 1, [0, 1])
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from headrace import _core
from headrace.dtypes import dtype_name
from headrace.errors import warn
from headrace.printable import printable
from headrace.sources.media_paths import is_media_path
from headrace.sources.recipe import Recipe, makes_sources
from headrace.sources.source import NOT_A_SOURCE, Progress, Source, listed_kinds
from headrace.sources.tables_in_memory import source_of_table, table_in_memory


@makes_sources
def open(
    path: Any,
    *more: Any,
    progress: Progress | None = None,
    kinds: Mapping[str, str] | None = None,
    filesystem: Any = None,
    **params: Any,
) -> Source:
    """Opens a source: a path, whose format is recognized by its content, or an object with
    ``len()`` and ``[i]``.

    path: or a pattern for several files ("train-*.tar") or a list of their paths; a DataFrame, a
    table of Arrow, a dictionary of columns, or a list of (path, label).
    params: parameters of the format (listed by ``headrace formats``), such as ``classes=`` of a
    folder.
    kinds: kinds of fields that the container does not define: ``{"seg": "mask"}``, see
    ``Source.with_kinds``.
    filesystem: the filesystem of the path: an object of fsspec, obstore, pyarrow.fs or
    multi-storage-client.
    progress: called with (done, total or -1) while a large dataset is listed.
    """
    if more:
        raise NOT_A_SOURCE.error(
            f"open() takes one source, and keywords (got {1 + len(more)} arguments)",
            hint="hr.open([path, path]) for several files of one dataset, hr.concat(a, b) for "
            "several datasets",
        )
    if isinstance(path, Source):
        return path.with_kinds(kinds) if kinds else path
    if isinstance(path, (list, tuple)) and ("format" in params or _are_paths(path)):
        path = "\n".join(os.fspath(one) for one in path)  # the engine's form of several paths
    given = {
        "path": path,
        "filesystem": filesystem,
    }  # the arguments with which it is opened again elsewhere
    if filesystem is not None:
        from headrace.sources.filesystems import path_on

        if not isinstance(path, (str, os.PathLike)):
            raise NOT_A_SOURCE.error(
                f"filesystem= needs a path (got {type(path).__name__})",
                hint='hr.open("bucket/train", filesystem=fs)',
            )
        path = "\n".join(path_on(filesystem, one) for one in os.fspath(path).split("\n"))
    if isinstance(path, (str, os.PathLike)):
        arguments = {name: _plain(value) for name, value in params.items()}
        if filesystem is None:
            given = {"path": absolute(path)}
        listed = listed_kinds(kinds)  # checks them
        recipe = Recipe(open, {**given, "kinds": dict(kinds or {}) or None, **arguments})
        if kinds is not None:
            arguments["kinds"] = listed
        engine = _core.open(os.fspath(path), arguments, progress)
        for text in engine.cautions:
            warn(printable(text))
        return Source(engine, os.fspath(path), recipe=recipe)
    if _is_stream(path):
        from headrace.sources.stream import stream

        return stream(path, kinds=kinds, **params)
    if type(path).__module__.partition(".")[0] == "datasets" and hasattr(path, "data"):
        return _open_dataset(path, kinds, params)
    if type(path).__module__ == "pyarrow.lib" and hasattr(path, "column_names"):
        from headrace.sources.arrow_files.tables import source_of_arrow

        engine = source_of_arrow(path, **params)
        recipe = Recipe(open, {"path": path, "kinds": kinds, **params})
        return Source(_core.with_evident_kinds(engine, listed_kinds(kinds)), recipe=recipe)
    of_objects = not params.keys().isdisjoint(("shapes", "labels"))  # values, not columns
    table = table_in_memory(path, kinds, names=params.get("names", ()), root=params.get("root", ""))
    if table is not None and not of_objects:
        params.pop("names", None)
        return source_of_table(table, kinds=kinds, **params)
    if isinstance(path, Mapping) and 0 not in path:
        raise NOT_A_SOURCE.error(
            f"a {type(path).__name__} with values that cannot be columns",
            hint='hr.open({"image": [...], "label": [...]}), with one list per field',
        )
    if hasattr(path, "__len__") and hasattr(path, "__getitem__"):
        from headrace.sources.objects import source_from_object

        return source_from_object(path, kinds=kinds, **params)
    if isinstance(path, Iterator):
        raise NOT_A_SOURCE.error(
            f"a {type(path).__name__} yields its values only once and has no [i]",
            hint="use list(...), or sorted(...) for paths; hr.stream(...) for one epoch of records",
        )
    if callable(path) or hasattr(path, "__iter__"):
        raise NOT_A_SOURCE.error(
            f"{type(path).__name__} has no len() and [i]",
            hint="use hr.stream(...) if it is an iterable of records or a function that returns an "
            "iterable",
        )
    raise NOT_A_SOURCE.error(
        f"{type(path).__name__} is neither a path nor an object with len() and [i]",
        hint="hr.open('train/'), hr.records(image=[...]), or an object with len() and [i]",
    )


def _is_stream(given: Any) -> bool:
    """Whether it can only be a stream: a generator function, or an IterableDataset of torch or
    Hugging Face."""
    if inspect.isgeneratorfunction(given):
        return True
    homes = ("torch", "datasets")
    return any(
        base.__name__ == "IterableDataset" and base.__module__.partition(".")[0] in homes
        for base in type(given).__mro__
    )


def _open_dataset(dataset: Any, kinds: Mapping[str, str] | None, params: dict[str, Any]) -> Source:
    """A ``datasets.Dataset`` of Hugging Face: its table, or its records if a user-defined function
    makes them (``with_transform``). Images are upright, since that library rotates them."""
    if isinstance(dataset, Mapping):
        raise NOT_A_SOURCE.error(
            f"a {type(dataset).__name__} with the splits {', '.join(map(str, dataset))}",
            hint=f'hr.open(dataset["{next(iter(dataset), "train")}"])',
        )
    params.pop("format", None)
    recipe = Recipe(open, {"path": dataset, "kinds": kinds, **params})
    if getattr(dataset, "_format_type", None) == "custom":
        from headrace.sources.objects import source_from_object

        return source_from_object(dataset, kinds=kinds, **params)
    from headrace.sources.arrow_files.tables import source_of_dataset

    shown = getattr(dataset, "_format_columns", None)  # set_format(columns=[...])
    if shown is not None and not getattr(dataset, "_output_all_columns", False):
        params.setdefault("fields", [name for name in dataset.column_names if name in shown])
    engine = source_of_dataset(dataset, **params)
    engine = _core.with_evident_kinds(engine, listed_kinds(kinds))
    return Source(engine, upright=True, recipe=recipe)


# "train-00001.tar", not a sentence or a URL
_FILE_NAME = re.compile(r"[^\s:]+\.[A-Za-z]\w{0,9}")


def _are_paths(values: Sequence[Any]) -> bool:
    """Whether a list contains files that are read as one source, not records."""
    if not values or not all(isinstance(value, (str, os.PathLike)) for value in values):
        return False
    first = os.fspath(values[0])
    if is_media_path(first):
        raise NOT_A_SOURCE.error(
            f"{type(values).__name__} of image paths",
            hint="hr.records(image=[...], label=[...]) reads them",
        )
    # If one of them exists, all are paths: a misspelled path must not turn the list into text.
    # Nor must a misspelled folder, in which no file exists.
    some = [os.fspath(value) for value in values[:16]]
    named = all(map(_FILE_NAME.fullmatch, some))
    return isinstance(values[0], os.PathLike) or named or any(map(os.path.exists, some))


def absolute(path: str | os.PathLike[str]) -> str:
    """Makes paths or patterns, one per line, absolute, so that they are valid in another current
    folder.
    """

    def whole(one: str) -> str:
        is_whole = _core.scheme_of(one) or os.path.isabs(one)
        return one if is_whole else os.path.join(os.getcwd(), one)

    return "\n".join(map(whole, os.fspath(path).split("\n")))


def _plain(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (np.dtype, type)) or type(value).__name__ == "dtype":  # also torch's
        return dtype_name(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    return list(value) if isinstance(value, (tuple, range)) else value


def _open_in_python(format: str, files: list[str], arguments: dict[str, Any]) -> _core.Source:
    # Each of these converts any exception of its library to one of our errors.
    if format == "hdf5":
        from headrace.sources import trusted_hdf5

        return trusted_hdf5.open_files(files, arguments)
    from headrace.sources.arrow_files import tables

    return tables.open_files(format, files, arguments)


_core.set_python_opener(_open_in_python)
