# SPDX-License-Identifier: Apache-2.0
"""Converts columns of Arrow tables to columns of the engine."""

from __future__ import annotations

import contextlib
import errno
import importlib
import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from headrace import _core
from headrace.errors import Code, Error, declare, did_you_mean

TABLE = declare(
    "HR0427",
    "unsupported",
    "table cannot be opened",
    "Parquet and Arrow files and Hugging Face datasets are read by pyarrow (`pip install "
    "pyarrow`). Fields are columns of integers, floats, booleans, strings, bytes, images and audio "
    "(bytes, or structs with bytes and path), and numeric lists. Omit columns of other types with "
    "fields=, or convert them once with the library that wrote them.",
)

_TOO_COSTLY = Code("HR0499", "resource", "opening is too expensive for the size of the files")
_TOO_MANY_OPEN = Code("HR0207", "storage", "too many open files")
LEAST_UNPACKED = 256 << 20  # bytes to which any file may expand, however small it is

_MEANINGS = {
    "image": ("image", "images", "img"),
    "mask": ("mask", "masks"),
    "label": ("label", "labels", "target", "targets"),
}
_MEDIA = {"Image": "image", "Audio": "audio", "Video": "video"}  # Hugging Face's features


def pyarrow(module: str = "pyarrow") -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise TABLE.error(f"pyarrow is missing: {error}", hint="pip install pyarrow") from error


def unreadable(path: str, error: Exception) -> Exception:
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return _TOO_MANY_OPEN.error(
            f"{path}: {error}", hint="raise the limit on open files (ulimit -n)"
        )
    if isinstance(error, MemoryError):
        return _TOO_COSTLY.error(
            f"{path}: {error}",
            hint="select the fields you need with fields=, or rewrite the file",
        )
    return TABLE.error(
        f"pyarrow cannot read {path}: {error}", hint="copy the file again, or rewrite it"
    )


@contextlib.contextmanager
def reading(path: str) -> Iterator[None]:
    """Converts any exception of a library that reads a file to one of our errors. For damaged
    files, pyarrow also raises exceptions other than ArrowException: UnicodeDecodeError, KeyError.
    """
    try:
        yield
    except Error:
        raise
    except Exception as error:
        raise unreadable(path, error) from error


class FilePlace(NamedTuple):
    files: _core.StoredFiles
    number: int
    path: str
    position: int


class Buffers:
    """The positions of buffers whose values were not read; in this class, all are in memory."""

    def fill(self, values: Any, whole: bool) -> None:
        """Reads a column; its :func:`large_values` only if all of it is requested."""

    def place_of(self, buffer: Any) -> FilePlace | None:
        """The buffer's position in a file; None: in memory."""
        return None


def unpacks_too_far(
    where: str,
    most: int,
    hint: str = "raise memory=, select the fields you need with fields=, or write smaller row "
    "groups",
) -> Exception:
    return _TOO_COSTLY.error(
        f"values of {where} that are stored once for many rows take more than {most:,} bytes",
        hint=hint,
    )


class Column(NamedTuple):
    column: str  # in the table
    name: str  # of the field
    classes: list[str]
    media: str = ""  # "image", "audio" or "video", if the dataset's features say so


def chosen_columns(schema: Any, fields: Sequence[str] | None) -> list[Column]:
    try:
        names = list(schema.names)
    except UnicodeDecodeError as error:
        raise TABLE.error(
            f"the name of a column is not UTF-8: {error.object!r}",
            hint="the file is damaged, or needs other column names",
        ) from error
    features = _features(schema)
    chosen: list[Column] = []
    for text in names if fields is None else fields:
        column, name = text, ""
        if text not in names and "=" in text:
            name, column = text.split("=", 1)
        if column not in names:
            raise TABLE.error(f"there is no column {column!r}", hint=did_you_mean(column, names))
        taken = {other.name for other in chosen}
        if not name:
            name = next((m for m, words in _MEANINGS.items() if column in words), column)
            name = _word(column if name in taken else name)
        feature = features.get(column, {})
        classes = [str(each) for each in feature.get("names") or []]
        media = _MEDIA.get(str(feature.get("_type")), "")
        chosen.append(Column(column, name, classes, "mask" if media and name == "mask" else media))
    return chosen


def with_agreed_classes(
    columns: Sequence[Column], schemas: Sequence[Any], files: Sequence[str]
) -> list[Column]:
    """The columns with the class names common to all files. A label is an index into its own file's
    list: if the lists differ, the same number means different things.
    """
    features = [_features(schema) for schema in schemas]
    out = []
    for column in columns:
        names, of = column.classes, files[0]
        for feature, file in zip(features, files, strict=True):
            own = [str(each) for each in feature.get(column.column, {}).get("names") or []]
            if not names and own:
                names, of = own, file
            if own and own != names:
                raise TABLE.error(
                    f"classes of column {column.column!r} are {_first_few(own)} in {file}, but "
                    f"{_first_few(names)} in {of}: one number would mean two classes",
                    hint="write the files with one list of classes (datasets: "
                    "align_labels_with_mapping), or open only files that agree",
                )
        out.append(column._replace(classes=names))
    return out


def _first_few(names: Sequence[str]) -> str:
    return repr(list(names[:4]))[:-1] + (", ...]" if len(names) > 4 else "]")


def _word(text: str) -> str:
    word = "".join(c if c.isalnum() or c == "_" else "_" for c in text)
    word = word if word[:1].isidentifier() else "_" + word
    return word + "_" if word in ("id", "key", "valid") else word


def _features(schema: Any) -> dict[str, Any]:
    """Hugging Face's features by column: names of classes and the like."""
    try:
        stored = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        features = stored["info"]["features"]
        return {name: each for name, each in features.items() if isinstance(each, dict)}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


class Place(NamedTuple):
    """The base folder of paths in a table, and whether they may point outside it."""

    folder: str = ""  # empty: a table made by the caller, whose paths are used unchanged
    outside: bool = False


# --- In memory ------------------------------------------------------------------------------------


def source_of_table(
    table: Any,
    chosen: Sequence[Column],
    place: Place,
    title: str,
    buffers: Buffers | None = None,
) -> _core.Source:
    columns = _core.ColumnList()
    for column in chosen:
        add_column(columns, column, table.column(column.column), place, buffers)
    return columns.source(title)


def add_column(
    columns: _core.ColumnList,
    column: Column,
    values: Any,
    place: Place,
    buffers: Buffers | None = None,
    media: str = "",
) -> None:
    """media: the kind of bytes if known; otherwise that of the first values."""
    pa = pyarrow()
    buffers = buffers or Buffers()
    buffers.fill(values, whole=column.name == "label")
    _check(values, column)
    values = _plain(values, column)
    kind = values.type
    if pa.types.is_struct(kind):
        _add_struct(columns, column, values, place, buffers, media)
    elif is_text(kind):
        if column.name == "label":
            _no_nulls(values, column)
            columns.add_texts(column.name, values.to_pylist())
        else:
            _add_blobs(columns, column, values, "text", buffers)
    elif _is_binary(kind):
        media = media or _kind_of_bytes(values, column, buffers)
        _add_blobs(columns, column, values, media, buffers)
    elif _is_list(kind):
        _add_vectors(columns, column, values)
    else:
        array = _numbers(values, column)
        columns.add_array(column.name, array, array, column.classes)


def _check(values: Any, column: Column) -> None:
    """Checks that every offset, length and index is valid, so that reading a value stays within its
    memory. pyarrow trusts them: a damaged one would crash the process. Text may be any bytes, as
    elsewhere, but class names must be UTF-8.
    """
    pa = pyarrow()
    if column.name != "label" and is_text(values.type):
        values = [chunk.view(_as_bytes(chunk.type)) for chunk in values.chunks]
    else:
        values = values.chunks
    try:
        for chunk in values:
            chunk.validate(full=True)
    except pa.ArrowException as error:
        raise refused(
            column, f"is damaged: {error}", "copy or rewrite the file, or omit the column"
        ) from error


def _as_bytes(kind: Any) -> Any:
    pa = pyarrow()
    return pa.large_binary() if pa.types.is_large_string(kind) else pa.binary()


def _plain(values: Any, column: Column) -> Any:
    """The column without dictionaries, extension types and views."""
    pa = pyarrow()
    if isinstance(values.type, pa.BaseExtensionType):
        chunks = [chunk.storage for chunk in values.chunks]
        values = pa.chunked_array(chunks, values.type.storage_type)
    if pa.types.is_dictionary(values.type):
        most = LEAST_UNPACKED + 64 * values.nbytes
        if unpacked_bytes(values) > most:
            raise unpacks_too_far(
                f"column {column.column!r}",
                most,
                "select the fields you need with fields=, or write the column without a dictionary",
            )
        values = values.cast(values.type.value_type)
    if str(values.type) == "string_view":
        values = values.cast(pa.large_string())
    if str(values.type) == "binary_view":
        values = values.cast(pa.large_binary())
    if pa.types.is_fixed_size_binary(values.type):
        values = values.cast(pa.binary())
    return values


def unpacked_bytes(values: Any) -> int:
    """The size of a dictionary's strings if each row had its own copy; numbers are negligible."""
    pa = pyarrow()
    total = 0
    for chunk in values.chunks:
        words = chunk.dictionary
        if len(words) and (is_text(words.type) or _is_binary(words.type)):
            lengths = pyarrow("pyarrow.compute").binary_length(words).fill_null(0).to_numpy(False)
            rows = chunk.indices.fill_null(0).cast(pa.int64()).to_numpy(False)
            total += int(lengths.astype(np.int64)[rows].sum())
    return total


def is_text(kind: Any) -> bool:
    pa = pyarrow()
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_binary(kind: Any) -> bool:
    pa = pyarrow()
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def is_bytes(kind: Any) -> bool:
    """Whether a column holds bytes, whose content may be an image."""
    pa = pyarrow()
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    binary = _is_binary(kind) or pa.types.is_fixed_size_binary(kind) or str(kind) == "binary_view"
    return bool(binary or pa.types.is_struct(kind))


def _is_list(kind: Any) -> bool:
    pa = pyarrow()
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def refused(column: Column, what: str, hint: str = "") -> Exception:
    return TABLE.error(f"column {column.column!r} {what}", hint=hint or "omit it with fields=[...]")


def _no_nulls(values: Any, column: Column) -> None:
    if values.null_count:
        raise refused(
            column,
            f"has no value (null) in {values.null_count:,} of {len(values):,} rows",
            "filter such rows out, or fill in values",
        )


def _numbers(values: Any, column: Column) -> np.ndarray[Any, Any]:
    """Scalars and fixed-size lists: one array whose first axis is the row."""
    pa = pyarrow()
    count, shape = len(values), []
    while pa.types.is_fixed_size_list(values.type):
        _no_nulls(values, column)
        shape.append(values.type.list_size)
        chunks = [chunk.flatten() for chunk in values.chunks]
        values = pa.chunked_array(chunks, values.type.value_type)
    kind = values.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise refused(column, f"is of type {kind}")
    if not pa.types.is_floating(kind) or shape:
        _no_nulls(values, column)
    array = values.to_numpy()
    if pa.types.is_integer(kind) and not shape:
        if pa.types.is_uint64(kind) and count and int(array.max()) >= 1 << 63:
            raise refused(column, "has numbers that do not fit into int64")
        array = array.astype(np.int64)
    return np.ascontiguousarray(array).reshape([count, *shape])


Part = tuple[int, int, int, bool, int, int, int, int]


def large_values(chunk: Any) -> Any:
    """The buffer of a chunk that holds only variable-length values; None without one."""
    pa = pyarrow()
    if isinstance(chunk.type, pa.BaseExtensionType):
        chunk = chunk.storage
    if pa.types.is_struct(chunk.type) and chunk.type.get_field_index("bytes") >= 0:
        chunk = chunk.field("bytes")
    return chunk.buffers()[2] if is_text(chunk.type) or _is_binary(chunk.type) else None


def _part(chunk: Any, data: Any, data_bytes: int) -> Part:
    """The location of a chunk's values, as arguments of ColumnList.add_blobs."""
    valid, offsets = chunk.buffers()[:2]
    wide = str(chunk.type).startswith("large")
    return (
        data.address if data is not None else 0,
        data_bytes,
        offsets.address + chunk.offset * (8 if wide else 4) if offsets is not None else 0,
        wide,
        len(chunk),
        valid.address if valid is not None else 0,
        chunk.offset,
        -1,
    )


def _add_blobs(
    columns: _core.ColumnList, column: Column, values: Any, kind: str, buffers: Buffers
) -> None:
    parts: list[Part] = []
    files: dict[str, int] = {}
    for chunk in values.chunks:
        data = chunk.buffers()[2]
        if not len(chunk):
            continue
        part = _part(chunk, data, data.size if data is not None else 0)
        if data is not None and (place := buffers.place_of(data)):
            number = files.setdefault(place.path, len(files))
            part = (place.position, *part[1:7], number)
        parts.append(part)
    columns.add_blobs(column.name, kind, _core.DType.uint8, parts, values, list(files))


def _add_vectors(columns: _core.ColumnList, column: Column, values: Any) -> None:
    pa = pyarrow()
    kind = values.type.value_type
    name = "float16" if pa.types.is_float16(kind) else str(kind).replace("double", "float64")
    name = {"float": "float32", "halffloat": "float16"}.get(name, name)
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if not numeric or name not in _core.DType.__members__:
        raise refused(column, f"is a list of {kind}")
    dtype = _core.DType.__members__[name]
    parts = []
    for chunk in values.chunks:
        numbers = chunk.values
        if numbers.null_count:
            raise refused(column, "has lists with nulls in them")
        data = numbers.buffers()[1]
        item = kind.bit_width // 8
        if not len(chunk):
            continue
        part = _part(chunk, data, len(numbers) * item)
        parts.append((part[0] + numbers.offset * item, *part[1:]))
    columns.add_blobs(column.name, "tensor", dtype, parts, values, [])


def _struct_parts(values: Any, column: Column) -> tuple[Any, Any]:
    """The columns of an image: its bytes, and its path, either of which may be missing."""
    pa = pyarrow()
    names = [values.type.field(i).name for i in range(values.type.num_fields)]
    if "bytes" not in names:
        raise refused(column, f"is a structure of {', '.join(names)}")
    flat = [chunk.flatten() for chunk in values.chunks]

    def member(name: str) -> Any:
        if name not in names:
            return None
        kind = values.type.field(name).type
        return pa.chunked_array([chunk[names.index(name)] for chunk in flat], kind)

    return member("bytes"), member("path")


def _add_struct(
    columns: _core.ColumnList,
    column: Column,
    values: Any,
    place: Place,
    buffers: Buffers,
    media: str,
) -> None:
    data, path = _struct_parts(values, column)
    if path is not None and len(values) and data.null_count == len(data):
        _no_nulls(path, column)
        columns.add_paths(column.name, path.to_pylist(), place.folder, place.outside)
        return
    data = _plain(data, column)
    if not _is_binary(data.type):
        raise refused(column, f"holds its bytes as {data.type}")
    _add_blobs(columns, column, data, media or _kind_of_bytes(data, column, buffers), buffers)


def _kind_of_bytes(values: Any, column: Column, buffers: Buffers) -> str:
    """Images, audio or video, if one of the first values is such a file; otherwise bytes."""
    for value in itertools.islice(_first_values(values.slice(0, 100), buffers), 4):
        if not _core.media_error(value, "audio"):  # a video with sound can be read as either
            return "audio" if _core.media_error(value, "video") else "video"
        try:
            _core.decode_field(value, lenient=True)
        except Exception:
            if not _core.media_error(value, "video"):
                return "video"
            continue
        return "mask" if column.name == "mask" else "image"
    return "bytes"


def _first_values(values: Any, buffers: Buffers) -> Iterator[bytes]:
    for chunk in values.chunks:
        _, offsets, data = chunk.buffers()
        place = buffers.place_of(data) if data is not None else None
        wide = pyarrow().types.is_large_binary(chunk.type)
        for row in range(len(chunk)):
            if not chunk[row].is_valid:
                continue
            if place is None:
                yield chunk[row].as_py()
                continue
            ends = np.frombuffer(offsets, np.int64 if wide else np.int32)
            begin, end = ends[chunk.offset + row : chunk.offset + row + 2].tolist()
            wanted = (place.number, place.position + begin, end - begin)
            yield np.asarray(place.files.read([wanted])[0]).tobytes()
