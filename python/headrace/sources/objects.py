# SPDX-License-Identifier: Apache-2.0
"""Sources over Python objects: a list, a torch Dataset, anything with ``len()`` and ``[i]``.

What record 0 holds decides the fields; pictures have a fixed shape where those of the first, the
middle and the last record agree. Dictionaries and namedtuples name them; the values of a
plain tuple are called image (or data), label, and so on, or as ``names=`` says. ``kinds=`` says
what they mean, where the name does not. The engine reads on its one Python thread, many records for
each time that it takes the GIL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from headrace import _core
from headrace.errors import declare
from headrace.sources.source import Source, listed_kinds
from headrace.steps import describe

_UNKNOWN_VALUE = declare(
    "HR0614",
    "config",
    "a record that has no fields",
    "Record 0 of a Python object decides the fields. It may be a dictionary, a tuple or one value; "
    "values may be integers, floats, strings, bytes, pictures of Pillow, and arrays or tensors of "
    "numbers. Anything else must be turned into one of these by the object.",
)

_WHICH_IS_WHICH = declare(
    "HR0681",
    "config",
    "values of a tuple that need names",
    "Record 0 is a plain tuple with more than one value in the coordinates of a picture. Only you "
    "know whether the second is a mask of class ids or another picture, and a step that moves the "
    'first must move it too: names=("image", "mask"), or a Dataset that returns dictionaries. '
    'Names other than image and mask need kinds={"depth": "tensor"} beside them.',
)
_WIDE_PICTURE = declare(
    "HR0685",
    "config",
    "a picture that no dtype of pictures holds",
    "Pictures are uint8, uint16, float32 or float16; Pillow's modes I;16 and F are the second and "
    "the third. A Pillow picture of mode I, or an array of another dtype with values below 0, "
    "above 255 or between whole numbers, would be clipped or wrapped, so it is refused. Convert it "
    "in the object, or return it as an array under another name than image or mask: it is then a "
    "tensor, and keeps its dtype.",
)
_NARROW = "convert it in the object, or return an array under another name: a tensor"

_PICTURES = ("image", "mask")  # fields of these names
_DTYPES = ("uint8", "uint16", "float32", "float16")  # of pictures
_WIDE_MODES = {"I;16": np.uint16, "I;16L": np.uint16, "I;16B": np.uint16, "F": np.float32}


def source_from_object(
    records: Any,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    classes: Sequence[str] = (),
    names: Sequence[str] = (),
    kinds: Mapping[str, str] | None = None,
) -> Source:
    """A source over ``records``.

    names: of the values, where records are plain tuples. kinds: what fields mean, see
    ``Source.with_kinds``. shapes: of fields whose records differ in shape, with -1 for the axes
    that do: ``shapes={"boxes": (-1, 4)}``. classes: names of the labels; default, the object's own.
    """
    reader = ObjectReader(records, shapes or {}, tuple(names), kinds or {})
    labels = list(classes) or [str(name) for name in getattr(records, "classes", [])]
    described = type(records).__name__
    text = repr((type(records).__qualname__, len(records), reader.kinds))
    import hashlib

    fingerprint = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
    description = f"{described} ({len(records):,} records)"
    engine = _core.python_source(
        reader, len(records), list(reader.fields), labels, fingerprint, description
    )
    return Source(_core.with_evident_kinds(engine, listed_kinds(kinds)))


class ObjectReader:
    """Maps an object's records to fields; the engine calls read, key and integer_column."""

    def __init__(
        self,
        records: Any,
        shapes: Mapping[str, Sequence[int]],
        names: tuple[str, ...] = (),
        said: Mapping[str, str] | None = None,
    ) -> None:
        self.records = records
        self.names = names
        said = said or {}
        first = self._first() if len(records) else {}
        self.kinds = {name: _kind_of(name, v, said.get(name, "")) for name, v in first.items()}
        self.fields = []
        values = {name: _crossing(kind, first[name]) for name, kind in self.kinds.items()}
        planes = {values[n].shape[1:] for n, kind in self.kinds.items() if kind == "picture"}
        for name, kind in self.kinds.items():
            shape = shapes.get(name)
            if kind == "picture" and shape is None and self._are_like(name, values[name].shape):
                shape = values[name].shape
            meaning = said.get(name) or _meaning(name, kind, values[name], planes)
            self.fields.append(_field(name, kind, meaning, values[name], shape))

    def _first(self) -> dict[str, Any]:
        """Record 0. ConfigError where nobody can know which of its values is which."""
        record = self.records[0]
        if not _is_plain(record):
            if self.names:
                raise _WHICH_IS_WHICH.error(
                    f"names= is for plain tuples, and record 0 is a {type(record).__name__}",
                    hint="kinds={...} says what its fields are",
                )
            return named_values(record)
        if self.names and len(self.names) != len(record):
            raise _WHICH_IS_WHICH.error(
                f"names= has {len(self.names)} names, record 0 has {len(record)} values"
            )
        spatial = [n for n, v in named_values(record).items() if _is_over(v, record[0])]
        if not self.names and len(spatial) > 1:
            raise _WHICH_IS_WHICH.error(
                f"record 0 is a tuple of {len(record)} values, {len(spatial)} of them pictures "
                "or maps of one size",
                hint='hr.open(dataset, names=("image", "mask")); a name for each value. Of two '
                'views of one picture: names=("image", "view"), kinds={"view": "image"}',
            )
        return named_values(record, self.names)

    def _are_like(self, name: str, shape: tuple[int, ...]) -> bool:
        """Whether the middle and the last picture have record 0's shape: then all must."""
        probes = {len(self.records) // 2, len(self.records) - 1}
        try:
            return all(
                _crossing("picture", named_values(self.records[i], self.names)[name]).shape == shape
                for i in probes
            )
        except Exception:  # a bad record is found, and named, when its turn comes
            return False

    def read(self, indices: list[int], wanted: list[bool]) -> list[Any]:
        """For each index the values by field (None where not wanted), or what went wrong."""
        return [self._read_one(index, wanted) for index in indices]

    def _read_one(self, index: int, wanted: list[bool]) -> list[Any] | str:
        try:
            values = named_values(self.records[index], self.names)
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
        return [self._integer(i, name) for i in range(len(self.records))]

    def _integer(self, index: int, name: str) -> int:
        """-1 of a bad record, which says what is wrong with it when it is read."""
        try:
            value = int(named_values(self.records[index], self.names)[name])
        except Exception:
            return -1
        return value if -(1 << 63) <= value < 1 << 63 else -1


def _is_plain(record: Any) -> bool:
    """A tuple or list, whose values have no names."""
    return isinstance(record, (tuple, list)) and not hasattr(record, "_fields")


def named_values(record: Any, names: Sequence[str] = ()) -> dict[str, Any]:
    """A record's values by field name; names: of a plain tuple's."""
    if names and _is_plain(record):
        return dict(zip(names, record, strict=True))
    if isinstance(record, Mapping):
        return {str(name): value for name, value in record.items()}
    if isinstance(record, tuple) and hasattr(record, "_fields"):
        return dict(zip(record._fields, record, strict=True))
    if not isinstance(record, (tuple, list)):
        return {_first_name(record): record}
    found = [_first_name(record[0])] if record else []
    for value in record[1:]:
        base = "label" if is_integer(value) else "image" if is_picture(value) else "data"
        taken = sum(name.rstrip("0123456789") == base for name in found)
        found.append(base if not taken else f"{base}{taken + 1}")
    return dict(zip(found, record, strict=True))


def _first_name(value: Any) -> str:
    return "image" if is_picture(value) else "data"


def is_picture(value: Any) -> bool:
    """A picture of Pillow's, or an array that looks like one."""
    if hasattr(value, "getbands"):
        return True
    shape, dtype = getattr(value, "shape", ()), str(getattr(value, "dtype", ""))
    return len(shape) == 3 and dtype.endswith("uint8") and _channel_axis(shape) is not None


def _is_wide_picture(value: Any, shape: Sequence[int], is_said: bool) -> bool:
    """An array of samples that no byte holds; or, where somebody says so, of more channels."""
    dtype = getattr(value, "dtype", None)  # NumPy's has a name, in whichever order its bytes are
    name = str(getattr(dtype, "name", dtype)).removeprefix("torch.")
    if name not in _DTYPES or len(shape) != 3:
        return False
    return _channel_axis(shape) is not None or (is_said and 1 <= shape[0] <= 16)


def _plane(picture: Any) -> tuple[int, ...]:
    """(H, W) of a picture."""
    if hasattr(picture, "getbands"):
        return (picture.height, picture.width)
    shape = tuple(picture.shape)
    return shape[:2] if _channel_axis(shape) == 2 else shape[1:]


def _is_over(value: Any, picture: Any) -> bool:
    """Whether it is a picture, or has a number for each pixel of one."""
    if is_picture(value) or not is_picture(picture):
        return is_picture(value)
    shape = tuple(getattr(value, "shape", ()))
    return len(shape) >= 2 and _plane(picture) in (shape[-2:], shape[:2])


def _meaning(name: str, kind: str, value: Any, planes: set[tuple[int, ...]]) -> str:
    """The field's kind, where nobody says it; planes: (H, W) of the record's pictures."""
    if kind in ("picture", "encoded"):
        return "mask" if name == "mask" else "image"
    if kind == "tensor" and value.shape[-2:] in planes and min(value.shape[-2:]) > 1:
        return "masks"
    return "tensor" if kind == "integer" else kind


def _channel_axis(shape: Sequence[int]) -> int | None:
    return 0 if shape[0] in (1, 3, 4) else 2 if shape[2] in (1, 3, 4) else None


def is_integer(value: Any) -> bool:
    """A number of Python's or NumPy's, or a tensor that holds just one."""
    if isinstance(value, (bool, int, np.integer)):
        return True
    return getattr(value, "shape", None) == () and "int" in str(getattr(value, "dtype", ""))


def _kind_of(name: str, value: Any, said: str = "") -> str:
    """label, integer, text, encoded, bytes, picture or tensor: how its values cross."""
    picture_kinds = _core.picture_kinds()
    pictured = said in picture_kinds or (not said and name in _PICTURES)
    if is_integer(value):
        return "label" if (said or name) == "label" else "integer"
    if isinstance(value, str):
        return "text"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "encoded" if pictured else "bytes"
    if hasattr(value, "getbands") and said in ("", *picture_kinds):
        return "picture"
    shape = tuple(getattr(value, "shape", ()))
    if pictured and (is_picture(value) or _is_wide_picture(value, shape, bool(said))):
        return "picture"
    plane = len(shape) == 2 or (len(shape) == 3 and shape[0] == 1)
    if plane and (said in picture_kinds or (not said and name == "mask")):
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
    return _native(np.asarray(value, order="C"))


def _native(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same values in the machine's order of bytes."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _picture(value: Any) -> np.ndarray[Any, Any]:
    """(C, H, W) of a dtype of pictures. Pillow's pictures as ``convert("RGB")`` gives them, but
    palettes, 16 bits and floats stay.

    That drops alpha, and nothing else: what no dtype of pictures holds is refused.
    """
    mode = getattr(value, "mode", "")
    if hasattr(value, "getbands") and mode[:1] == "I" and mode not in _WIDE_MODES:  # clipped else
        raise _WIDE_PICTURE.error(f"a Pillow picture of mode {mode!r}", hint=_NARROW)
    if hasattr(value, "getbands") and mode not in ("L", "P", "RGB", *_WIDE_MODES):
        value = value.convert("RGB")
    array = _native(np.asarray(value))
    if mode in _WIDE_MODES:
        array = array.astype(_WIDE_MODES[mode])
    if array.ndim == 2:
        array = array[None]
    elif _channel_axis(array.shape) == 2:
        array = array.transpose(2, 0, 1)
    if array.dtype.name not in _DTYPES:
        array = _as_bytes(array)
    return np.ascontiguousarray(array)


def _as_bytes(array: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The same values in uint8: class ids of a mask often come as int64. Others are refused."""
    if array.dtype == np.uint8:
        return array
    with np.errstate(invalid="ignore"):  # NaN, which is not equal to anything
        narrow = array.astype(np.uint8)
    if not np.array_equal(narrow, array):
        raise _WIDE_PICTURE.error(
            f"a picture of {array.dtype} with values from {array.min()} to {array.max()}",
            hint=_NARROW,
        )
    return narrow


def _field(
    name: str, kind: str, meaning: str, value: Any, shape: Iterable[int] | None
) -> _core.Field:
    dtypes = _core.DType.__members__
    if kind in ("label", "integer"):
        return _core.make_field(
            name, "label" if kind == "label" else "tensor", dtypes["int64"], [], False
        )
    if kind in ("text", "bytes"):
        return _core.make_field(name, kind, dtypes["uint8"], [], False)
    if kind == "encoded":
        return _core.make_field(name, meaning, dtypes["uint8"], [-1, -1, -1], True)
    if kind == "picture":
        extents = [value.shape[0], -1, -1]
        dtype = dtypes[value.dtype.name]
        return _core.make_field(name, meaning, dtype, list(shape or extents), False)
    if value.dtype.name not in dtypes:
        raise _UNKNOWN_VALUE.error(
            f"{name} of record 0 has dtype {value.dtype}", hint="convert it in the object"
        )
    extents = list(value.shape) if shape is None else list(shape)
    of_pixels = "masks" if meaning == "masks" else "tensor"  # others are for the engine to check
    return _core.make_field(name, of_pixels, dtypes[value.dtype.name], extents, False)
