# SPDX-License-Identifier: Apache-2.0
"""Sources over Python objects: a list, a torch Dataset, anything with ``len()`` and ``[i]``.

Record 0 determines the fields; images have a fixed shape if those of the first, the middle and the
last record agree. Dictionaries and namedtuples name the fields; the values of a plain tuple are
named image (or data), label, and so on, or by ``names=``. ``kinds=`` gives kinds that the names do
not determine. The engine reads on its single Python thread, many records each time it takes the
GIL, and copies each record before it requests the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from headrace import _core
from headrace.errors import Error, declare, warn
from headrace.sources.fingerprint import fingerprint_of
from headrace.sources.media_paths import FILE_FIELDS, kind_by_suffix
from headrace.sources.own_labels import changes_labels, own_labels
from headrace.sources.pictures import PictureForm, check_palette, is_over, picture_form
from headrace.sources.recipe import Recipe, makes_sources
from headrace.sources.source import Source, listed_kinds
from headrace.sources.values import (
    UNKNOWN_VALUE,
    crossing,
    is_plain,
    kind_of,
    named_values,
    of_dtype,
    whole_number,
)
from headrace.steps import describe
from headrace.surroundings import Surroundings

_WHICH_IS_WHICH = declare(
    "HR0681",
    "config",
    "tuple values need names",
    "Record 0 is a plain tuple with more than one value in image coordinates. The second may be a "
    "mask of class ids or another image, and a transform that moves the first must move it too. "
    'Name them: names=("image", "mask"), or return dictionaries from the Dataset. Names other '
    'than image and mask also need kinds={"depth": "tensor"}.',
)


@makes_sources
def source_from_object(
    records: Any,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    classes: Sequence[str] = (),
    names: Sequence[str] = (),
    kinds: Mapping[str, str] | None = None,
    labels: Any = None,
) -> Source:
    """A source over ``records``.

    names: names of the values, if records are plain tuples. kinds: kinds of fields, see
    ``Source.with_kinds``. shapes: shapes of fields whose records differ, with -1 for the axes that
    do: ``shapes={"boxes": (-1, 4)}``. classes: names of the labels; default: the object's own.
    labels: labels of all records, so that balanced sampling and stratified splits need not read
    them; a record with another label is a bad record.
    """
    reader = ObjectReader(records, shapes or {}, tuple(names), kinds or {}, labels)
    if reader.drawn:
        warn(
            f"record 0 of {type(records).__name__} differs when it is read again "
            f"({', '.join(reader.drawn)}): the dataset draws its own random numbers, so seed= "
            "and resume do not apply to it. Random transforms in the loader's list follow seed="
        )
    own = [] if changes_labels(records) else getattr(records, "classes", [])
    class_names = list(classes) or [str(name) for name in own]
    described = type(records).__name__
    text = repr((type(records).__qualname__, len(records), reader.kinds))
    fingerprint = fingerprint_of(text)
    description = f"{described} ({len(records):,} records)"
    engine = _core.python_source(
        reader, len(records), list(reader.fields), class_names, fingerprint, description
    )
    call = {
        "records": records,
        "shapes": shapes,
        "classes": classes,
        "names": names,
        "kinds": kinds,
        "labels": labels,
    }
    source = Source(
        _core.with_evident_kinds(engine, listed_kinds(reader.files | dict(kinds or {}))),
        recipe=Recipe(source_from_object, call),
    )
    source.readers.append(reader)
    return source


class ObjectReader:
    """Converts an object's records to fields; the engine calls read, key and integer_column."""

    def __init__(
        self,
        records: Any,
        shapes: Mapping[str, Sequence[int]],
        names: tuple[str, ...] = (),
        said: Mapping[str, str] | None = None,
        labels: Any = None,
    ) -> None:
        self.records = records
        self.names = names
        self.surroundings = Surroundings()  # those of the loader that was iterated last
        said = said or {}
        first = self._first() if len(records) else {}
        self.kinds = {name: kind_of(name, v, said.get(name, "")) for name, v in first.items()}
        self.labels = _listed_labels(labels, self.kinds, len(records))
        self.forms: dict[str, PictureForm] = {}
        self.files = {  # kinds of the files of path fields
            name: FILE_FIELDS.get(name) or kind_by_suffix(first[name])
            for name, kind in self.kinds.items()
            if kind == "file" and name not in said
        }
        others = self._middle_and_last() if "picture" in self.kinds.values() else []
        for name, kind in self.kinds.items():
            if kind == "picture":
                seen = [first[name], *(other[name] for other in others if name in other)]
                check_palette(name, first[name], said.get(name, ""))
                self.forms[name] = picture_form(
                    name,
                    seen[:1] if name in shapes else seen,
                    shapes.get(name),
                    is_said=name in said,
                    is_mask=(said.get(name) or name) == "mask",
                )
        values = {name: self._at_first(name, value) for name, value in first.items()}
        planes = {values[n].shape[1:] for n, kind in self.kinds.items() if kind == "picture"}
        self.drawn = self._drawn(values) if values else []
        self.fields = []
        for name, kind in self.kinds.items():
            shape = shapes.get(name)
            if kind == "picture" and shape is None and self._are_like(name, values[name], others):
                shape = values[name].shape
            meaning = said.get(name) or _meaning(name, kind, values[name], planes)
            self.fields.append(_field(name, kind, meaning, values[name], shape))

    def _first(self) -> dict[str, Any]:
        """Record 0. Raises ConfigError if the meaning of its values is ambiguous."""
        record = self.records[0]
        if not is_plain(record):
            if self.names:
                raise _WHICH_IS_WHICH.error(
                    f"names= is for plain tuples, but record 0 is a {type(record).__name__}",
                    hint="set the kinds of its fields with kinds={...}",
                )
            return named_values(record)
        if self.names and len(self.names) != len(record):
            raise _WHICH_IS_WHICH.error(
                f"names= has {len(self.names)} names, but record 0 has {len(record)} values"
            )
        spatial = [n for n, v in named_values(record).items() if is_over(v, record[0])]
        if not self.names and len(spatial) > 1:
            raise _WHICH_IS_WHICH.error(
                f"record 0 is a tuple of {len(record)} values, {len(spatial)} of them images "
                "or maps of the same size",
                hint='hr.open(dataset, names=("image", "mask")); one name per value. For two views '
                'of one image: names=("image", "view"), kinds={"view": "image"}',
            )
        return named_values(record, self.names)

    def _middle_and_last(self) -> list[dict[str, Any]]:
        """Further records that are inspected, without those that cannot be read."""
        found = []
        for index in sorted({len(self.records) // 2, len(self.records) - 1} - {0}):
            try:
                found.append(named_values(self.records[index], self.names))
            except Exception:  # a bad record is reported when it is read
                found.append({})
        return found

    def _crossing(self, name: str, value: Any) -> Any:
        return crossing(self.kinds[name], name, value, self.forms.get(name, PictureForm()))

    def _at_first(self, name: str, value: Any) -> Any:
        """Record 0's value. Raises ConfigError if it cannot be passed to the engine."""
        try:
            return self._crossing(name, value)
        except Error:
            raise
        except (TypeError, ValueError, OSError) as failure:
            raise UNKNOWN_VALUE.error(f"{name} of record 0: {failure}") from failure

    def _drawn(self, values: Mapping[str, Any]) -> list[str]:
        """Fields of record 0 that are not the same when it is read again."""
        try:
            again = named_values(self.records[0], self.names)
            return [n for n, v in values.items() if not _is_same(v, self._crossing(n, again[n]))]
        except Exception:  # it can only be read once, or only sometimes
            return []

    def _are_like(self, name: str, first: Any, others: Sequence[Mapping[str, Any]]) -> bool:
        """Whether the middle and the last image have record 0's shape: then all must."""
        try:
            return all(self._crossing(name, other[name]).shape == first.shape for other in others)
        except Exception:  # as for record 0
            return False

    def read(self, indices: list[int], wanted: list[bool]) -> Iterator[list[Any] | str]:
        """For each index, the values by field (None if not requested), or an error text. Each
        record is copied before the next one is requested, since an object may reuse its arrays.
        """
        return self.surroundings.within(lambda: (self._read_one(i, wanted) for i in indices))

    def _read_one(self, index: int, wanted: list[bool]) -> list[Any] | str:
        try:
            return self.crossed(self.records[index], index, wanted)
        except KeyboardInterrupt:
            raise
        except BaseException as failure:
            return describe(failure)

    def crossed(self, record: Any, index: int, wanted: list[bool]) -> list[Any]:
        """A record's values by field, in the engine's form."""
        values = named_values(record, self.names)
        out: list[Any] = []
        for field, asked in zip(self.fields, wanted, strict=True):
            out.append(self._checked(field, index, values) if asked else None)
        return out

    def _checked(self, field: _core.Field, index: int, values: Mapping[str, Any]) -> Any:
        if field.name not in values:
            names = ", ".join(values)
            raise ValueError(f"no field {field.name}, which record 0 has; it has {names}")
        value = self._crossing(field.name, values[field.name])
        if isinstance(value, np.ndarray):
            value = of_dtype(field.name, value, str(field.dtype))
            _check_shape(field, value.shape)
        elif field.name == "label" and self.labels is not None and value != self.labels[index]:
            raise ValueError(f"label is {value}, but labels= has {self.labels[index]}")
        return value

    def key(self, index: int) -> str:
        return str(index)

    def integer_column(self, name: str) -> list[int]:
        """The labels: from ``labels=``, otherwise from the object's own list, otherwise from every
        record.
        """
        if name == "label":
            known = own_labels(self.records) if self.labels is None else self.labels
            if known is not None:
                return known
        return [self._integer(i, name) for i in range(len(self.records))]

    def _integer(self, index: int, name: str) -> int:
        """-1 for a bad record, whose error is reported when it is read."""
        try:
            value = whole_number(name, named_values(self.records[index], self.names)[name])
        except Exception:
            return -1
        return value if -(1 << 63) <= value < 1 << 63 else -1


def _is_same(value: Any, other: Any) -> bool:
    if not isinstance(value, np.ndarray):
        return bool(value == other)
    return bool(value.shape == other.shape and value.tobytes() == other.tobytes())


def _listed_labels(labels: Any, kinds: Mapping[str, str], records: int) -> list[int] | None:
    if labels is None:
        return None
    if kinds.get("label") != "label" or len(labels) != records:
        raise UNKNOWN_VALUE.error(
            f"labels= has {len(labels):,} labels for {records:,} records, "
            f"{'each with a label' if 'label' in kinds else 'none of which has a field label'}"
        )
    return [whole_number("labels=", label) for label in labels]


def _check_shape(field: _core.Field, shape: tuple[int, ...]) -> None:
    """Raises ValueError, with advice, if a record's shape does not match the field's."""
    wanted = tuple(field.shape)
    if len(shape) == len(wanted) and all(
        want in (-1, have) for want, have in zip(wanted, shape, strict=True)
    ):
        return
    what = f"{field.name} has shape {shape}, but record 0 has {wanted}"
    if len(shape) != len(wanted):
        raise ValueError(f"{what}: a different number of axes")
    if field.is_picture and shape[0] != wanted[0]:
        mode = "RGB" if 3 in (shape[0], wanted[0]) else "L"
        raise ValueError(f'{what}: return .convert("{mode}") of every Pillow image')
    open_axes = tuple(
        want if want == have else -1 for want, have in zip(wanted, shape, strict=True)
    )
    raise ValueError(f'{what}; hr.open(..., shapes={{"{field.name}": {open_axes}}}) allows both')


def _meaning(name: str, kind: str, value: Any, planes: set[tuple[int, ...]]) -> str:
    """The default kind of a field; planes: (H, W) of the record's images."""
    if kind in ("picture", "encoded"):
        return "mask" if name == "mask" else "image"
    if kind == "tensor" and value.shape[-2:] in planes and min(value.shape[-2:]) > 1:
        return "masks"
    return "tensor" if kind == "integer" else kind


def _field(
    name: str, kind: str, meaning: str, value: Any, shape: Iterable[int] | None
) -> _core.Field:
    dtypes = _core.DType.__members__
    if kind in ("label", "integer"):
        return _core.make_field(
            name, "label" if kind == "label" else "tensor", dtypes["int64"], [], False
        )
    if kind in ("text", "bytes", "file"):
        stored = "bytes" if kind == "file" else kind
        return _core.make_field(name, stored, dtypes["uint8"], [], False)
    if kind == "encoded":
        return _core.make_field(name, meaning, dtypes["uint8"], [-1, -1, -1], True)
    if kind == "picture":
        extents = [value.shape[0], -1, -1]
        dtype = dtypes[value.dtype.name]
        return _core.make_field(name, meaning, dtype, list(shape or extents), False)
    if value.dtype.name not in dtypes:
        raise UNKNOWN_VALUE.error(
            f"{name} of record 0 has dtype {value.dtype}", hint="convert it in the object"
        )
    extents = list(value.shape) if shape is None else list(shape)
    of_pixels = "masks" if meaning == "masks" else "tensor"  # others are checked by the engine
    return _core.make_field(name, of_pixels, dtypes[value.dtype.name], extents, False)
