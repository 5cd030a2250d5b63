# SPDX-License-Identifier: Apache-2.0
"""Sources over Python objects: a list, a torch Dataset, anything with ``len()`` and ``[i]``.

What record 0 holds decides the fields; pictures have a fixed shape where those of the first, the
middle and the last record agree. Dictionaries and namedtuples name them; the values of a
plain tuple are called image (or data), label, and so on. The engine reads on its one Python thread,
many records for each time that it takes the GIL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from headrace import _core
from headrace.errors import declare
from headrace.sources import Source
from headrace.steps import describe

_UNKNOWN_VALUE = declare(
    "HR0614",
    "config",
    "a record that has no fields",
    "Record 0 of a Python object decides the fields. It may be a dictionary, a tuple or one value; "
    "values may be integers, floats, strings, bytes, pictures of Pillow, and arrays or tensors of "
    "numbers. Anything else must be turned into one of these by the object.",
)

_PICTURES = ("image", "mask")


def source_from_object(
    records: Any, *, shapes: Mapping[str, Sequence[int]] | None = None, classes: Sequence[str] = ()
) -> Source:
    """A source over ``records``.

    shapes: of fields whose records differ in shape, with -1 for the axes that do:
    ``shapes={"boxes": (-1, 4)}``. classes: names of the labels; default, the object's own.
    """
    reader = ObjectReader(records, shapes or {})
    names = list(classes) or [str(name) for name in getattr(records, "classes", [])]
    described = type(records).__name__
    text = repr((type(records).__qualname__, len(records), reader.kinds))
    import hashlib

    fingerprint = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
    description = f"{described} ({len(records):,} records)"
    return Source(
        _core.host_source(
            reader, len(records), list(reader.fields), names, fingerprint, description
        )
    )


class ObjectReader:
    """Maps an object's records to fields; the engine calls read, key and integer_column."""

    def __init__(self, records: Any, shapes: Mapping[str, Sequence[int]]) -> None:
        self.records = records
        first = _named(records[0]) if len(records) else {}
        self.kinds = {name: _kind_of(name, value) for name, value in first.items()}
        self.fields = []
        for name, kind in self.kinds.items():
            value = _crossing(kind, first[name])
            shape = shapes.get(name)
            if kind == "picture" and shape is None and self._are_like(name, value.shape):
                shape = value.shape
            self.fields.append(_field(name, kind, value, shape))

    def _are_like(self, name: str, shape: tuple[int, ...]) -> bool:
        """Whether the middle and the last picture have record 0's shape: then all must."""
        probes = {len(self.records) // 2, len(self.records) - 1}
        try:
            return all(
                _crossing("picture", _named(self.records[i])[name]).shape == shape for i in probes
            )
        except Exception:  # a bad record is found, and named, when its turn comes
            return False

    def read(self, indices: list[int], wanted: list[bool]) -> list[Any]:
        """For each index the values by field (None where not wanted), or what went wrong."""
        return [self._read_one(index, wanted) for index in indices]

    def _read_one(self, index: int, wanted: list[bool]) -> list[Any] | str:
        try:
            values = _named(self.records[index])
            out: list[Any] = []
            for field, asked in zip(self.fields, wanted, strict=True):
                out.append(self._checked(field, values) if asked else None)
            return out
        except KeyboardInterrupt:
            raise
        except BaseException as failure:
            return describe(failure)

    def _checked(self, field: _core.Field, values: Mapping[str, Any]) -> Any:
        value = _crossing(self.kinds[field.name], values[field.name])
        if isinstance(value, np.ndarray):
            dtype = field.dtype
            if value.dtype.name != dtype:
                raise TypeError(f"{field.name} is {value.dtype.name}, record 0 had {dtype}")
            fits = len(value.shape) == len(field.shape) and all(
                want in (-1, have) for want, have in zip(field.shape, value.shape, strict=True)
            )
            if not fits:
                raise ValueError(
                    f"{field.name} has shape {value.shape}, record 0 says {field.shape}; "
                    f"hr.open(..., shapes={{{field.name!r}: ...}}) with -1 leaves an axis open"
                )
        return value

    def key(self, index: int) -> str:
        return str(index)

    def integer_column(self, name: str) -> list[int]:
        """From the object's own list of labels, else from every record."""
        known = getattr(self.records, "targets", None) if name == "label" else None
        if known is not None and len(known) == len(self.records):
            return [int(value) for value in known]
        return [int(_named(self.records[i])[name]) for i in range(len(self.records))]


def _named(record: Any) -> dict[str, Any]:
    """A record's values by field name."""
    if isinstance(record, Mapping):
        return {str(name): value for name, value in record.items()}
    if isinstance(record, tuple) and hasattr(record, "_fields"):
        return dict(zip(record._fields, record, strict=True))
    if not isinstance(record, (tuple, list)):
        return {_first_name(record): record}
    names = [_first_name(record[0])] if record else []
    for value in record[1:]:
        base = "label" if _is_integer(value) else "image" if _is_picture(value) else "data"
        taken = sum(name.rstrip("0123456789") == base for name in names)
        names.append(base if not taken else f"{base}{taken + 1}")
    return dict(zip(names, record, strict=True))


def _first_name(value: Any) -> str:
    return "image" if _is_picture(value) else "data"


def _is_picture(value: Any) -> bool:
    if hasattr(value, "getbands"):
        return True
    shape, dtype = getattr(value, "shape", ()), str(getattr(value, "dtype", ""))
    return len(shape) == 3 and dtype.endswith("uint8") and _channel_axis(shape) is not None


def _channel_axis(shape: Sequence[int]) -> int | None:
    return 0 if shape[0] in (1, 3, 4) else 2 if shape[2] in (1, 3, 4) else None


def _is_integer(value: Any) -> bool:
    if isinstance(value, (bool, int, np.integer)):
        return True
    return getattr(value, "shape", None) == () and "int" in str(getattr(value, "dtype", ""))


def _kind_of(name: str, value: Any) -> str:
    """label, integer, text, encoded, bytes, picture or tensor."""
    if _is_integer(value):
        return "label" if name == "label" else "integer"
    if isinstance(value, str):
        return "text"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "encoded" if name in _PICTURES else "bytes"
    if _is_picture(value) and (name in _PICTURES or hasattr(value, "getbands")):
        return "picture"
    if name == "mask" and len(getattr(value, "shape", ())) == 2:
        return "picture"
    if isinstance(value, float) or hasattr(value, "__array__") or hasattr(value, "__dlpack__"):
        return "tensor"
    if isinstance(value, (list, tuple)) and np.asarray(value).dtype.kind in "biuf":
        return "tensor"
    raise _UNKNOWN_VALUE.error(
        f"{name} of record 0 is {type(value).__name__}",
        hint="return an array, a tensor, a picture, an integer, text or bytes",
    )


def _crossing(kind: str, value: Any) -> Any:
    """A value as the engine takes it: int, str, bytes or a dense array."""
    if kind in ("label", "integer"):
        return int(value)
    if kind == "text":
        return str(value)
    if kind in ("encoded", "bytes"):
        return bytes(value)
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    if kind == "picture":
        return _picture(value)
    return np.asarray(value, order="C")


def _picture(value: Any) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """(C, H, W) uint8. Pillow's pictures as ``convert("RGB")`` gives them, but palettes stay."""
    if hasattr(value, "getbands") and value.mode not in ("L", "P", "RGB"):
        value = value.convert("RGB")
    array = np.asarray(value)
    if array.ndim == 2:
        array = array[None]
    elif _channel_axis(array.shape) == 2:
        array = array.transpose(2, 0, 1)
    return np.ascontiguousarray(array, dtype=np.uint8)


def _field(name: str, kind: str, value: Any, shape: Iterable[int] | None) -> _core.Field:
    dtypes = _core.DType.__members__
    if kind in ("label", "integer"):
        return _core.make_field(
            name, "label" if kind == "label" else "tensor", dtypes["int64"], [], False
        )
    if kind in ("text", "bytes"):
        return _core.make_field(name, kind, dtypes["uint8"], [], False)
    picture = "mask" if name == "mask" else "image"
    if kind == "encoded":
        return _core.make_field(name, picture, dtypes["uint8"], [-1, -1, -1], True)
    if kind == "picture":
        extents = [value.shape[0], -1, -1]
        return _core.make_field(name, picture, dtypes["uint8"], list(shape or extents), False)
    if value.dtype.name not in dtypes:
        raise _UNKNOWN_VALUE.error(
            f"{name} of record 0 has dtype {value.dtype}", hint="convert it in the object"
        )
    extents = list(value.shape) if shape is None else list(shape)
    return _core.make_field(name, "tensor", dtypes[value.dtype.name], extents, False)
