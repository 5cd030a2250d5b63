# SPDX-License-Identifier: Apache-2.0
"""The class Source: a dataset with random access. See the package for ways to make one."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, overload

import numpy as np

from headrace import _core
from headrace.errors import declare, did_you_mean
from headrace.sources.recipe import (
    Facts,
    Recipe,
    checked_recipe,
    current_folder,
    made_again,
    makes_sources,
    sampled,
)

NOT_A_SOURCE = declare(
    "HR0154",
    "config",
    "not a source",
    "A source is a path that one of the formats recognizes, an object with len() and [i] (a list, "
    "a torch Dataset), or the result of headrace.open, folder, records, subset, split and "
    "similar functions.",
)
_NO_COLUMN = declare(
    "HR0155",
    "config",
    "unknown column",
    "column() gives all values of a field that is not an image, audio or video file: integers, "
    "floats, tensors, text. lengths() and sizes() read lengths and sizes of files from their "
    "headers.",
)

Progress = Callable[[int, int], object]

# Functions offered as methods of Source (refined.py), by name.
refinements: dict[str, Callable[..., Any]] = {}


class Source:
    """A dataset with random access. ``src[i]`` is a dictionary: image (C, H, W) uint8, label int,
    key str."""

    is_stream = False  # see headrace.stream

    def __init__(
        self,
        engine: _core.Source,
        path: str = "",
        made_of: Iterable[Source] = (),
        *,
        upright: bool = False,
        recipe: Recipe | None = None,
    ) -> None:
        made_of = tuple(made_of)
        self.engine = engine
        self.recipe = recipe  # the call that made it; None: it cannot be pickled
        # Whether its images are rotated by their Exif tag if exif_orientation= is not set.
        self.upright: bool = upright or (
            bool(made_of) and all(source.upright for source in made_of)
        )
        # Python objects that it reads, including those of the sources that it is made from.
        self.readers: list[Any] = [each for source in made_of for each in source.readers]
        self.path = path  # the argument of open(); empty for other sources
        # Paths of this source and of those that it is made from.
        inner = tuple(path for source in made_of for path in source.paths)
        self.paths: tuple[str, ...] = (path, *inner) if path and path not in inner else inner

    def opened(self) -> Source:
        """The source for one loader; a stream gets a separate position."""
        return self

    @property
    def sample(self) -> Source:
        """Numbers of records that represent all others."""
        return self

    def __len__(self) -> int:
        return len(self.engine)

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Source: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | Source:
        if isinstance(index, slice):
            return sliced(self, index.start, index.stop, index.step)
        number = self._number(index)
        stored = self.engine.read(number)
        record = {}
        for field in self.schema:
            value = self._delivered(number, field, stored[field.name])
            if field.kind == "audio" and field.encoded:
                value, record[f"{field.name}_rate"] = value
            record[field.name] = value
        record.setdefault("key", self.engine.key(number))
        return record

    def _delivered(self, number: int, field: _core.Field, value: Any) -> Any:
        """A stored value in readable form; for encoded audio, the samples and their rate. A video
        stays encoded, since all of its frames would be too large.
        """
        if field.kind == "video":
            return value
        if field.encoded and field.kind == "audio":
            samples, rate = _core.decode_audio(value, self.engine, number)
            return np.asarray(samples), rate
        if field.encoded:
            image = _core.decode_field(
                value, str(field.kind), upright=self.upright, source=self.engine, record=number
            )
            return np.asarray(image)
        return np.asarray(value) if isinstance(value, _core.Array) else value

    def _number(self, index: int) -> int:
        """A record's number, counted from 0; negative numbers count from the end."""
        try:
            index = operator.index(index)
        except TypeError:
            raise TypeError(
                f'records are accessed by number (got {index!r}): src[0]["image"], '
                'src.column("label")'
            ) from None
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(f"record {index} of a source of {len(self)} records")
        return number

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[i] for i in range(len(self)))

    @property
    def schema(self) -> list[_core.Field]:
        """The fields: name, kind, dtype, shape of one record's value (-1 where records differ)."""
        return self.engine.schema

    @property
    def classes(self) -> list[str]:
        """Names of the labels 0, 1, 2, ...; empty if the source has none."""
        return self.engine.classes

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The label of each class."""
        return {name: number for number, name in enumerate(self.classes)}

    @property
    def fingerprint(self) -> int:
        """Changes when the records change: part of every resume state."""
        return self.engine.fingerprint

    def with_kinds(self, kinds: Mapping[str, str]) -> Source:
        """The same records, with other kinds for some fields. kinds: kinds by field name. "mask":
        an image of class ids, which is resized without interpolation and never recolored; "image";
        "boxes", "keypoints", "masks": tensors in the coordinates of the record's images, which must
        move with them; "tensor"; "label". Boxes in pixels follow the images if their format is
        declared: "boxes:xyxy", "boxes:xywh" or "boxes:cxcywh", or for rotated ones "boxes:xywhr",
        "boxes:cxcywhr" or "boxes:xyxyxyxy"; normalized boxes ("boxes:cxcywh_normalized" and the
        like) are converted to pixels by ConvertBoundingBoxFormat. Raises ConfigError HR0181 if the
        values cannot have that kind.

        >>> import headrace, numpy as np
        >>> pixels = np.zeros((3, 8, 8), np.uint8)
        >>> src = headrace.open([{"image": pixels, "seg": pixels[0]}])
        >>> src.with_kinds({"seg": "mask"})
        <Source list (1 records); fields image uint8 (3, 8, 8), seg mask uint8 (1, 8, 8)>
        """
        engine = _core.with_kinds(self.engine, listed_kinds(kinds))
        recipe = Recipe(with_kinds, {"src": self, "kinds": dict(kinds)})
        return Source(engine, self.path, made_of=[self], recipe=recipe)

    def with_row_group(self, *fields: str) -> Source:
        """The same records, with fields declared to describe the same objects row by row.

        fields: arrays with one row for each object along their first axis: boxes and their labels,
        areas, masks, keypoints. A transform that drops rows drops them from all of these fields.
        COCO and packs made from it already have their group. Raises ConfigError HR0187 if a field
        has no rows, or has a group.

        >>> import headrace, numpy as np
        >>> from headrace import transforms as T
        >>> boxes, labels = np.float32([[1, 1, 5, 6], [3, 3, 3, 3]]), np.int64([7, 8])
        >>> record = {"image": np.zeros((3, 8, 8), np.uint8), "boxes": boxes, "labels": labels}
        >>> src = headrace.open([record], kinds={"boxes": "boxes:xyxy"})
        >>> src = src.with_row_group("boxes", "labels")
        >>> steps = [T.SanitizeBoundingBoxes()]
        >>> next(iter(headrace.Loader(src, steps, batch_size=1, ragged="list"))).labels
        [array([7])]
        """
        engine = _core.with_row_group(self.engine, list(fields))
        recipe = Recipe(with_row_group, {"src": self, "fields": list(fields)})
        return Source(engine, self.path, made_of=[self], recipe=recipe)

    def key(self, index: int) -> str:
        """A readable name of the record: a path, a member of an archive.

        index: negative ones count from the end. Raises IndexError if there is no such record.
        """
        return self.engine.key(self._number(index))

    def column(self, name: str) -> Any:
        """All values of a field, without reading an image, audio or video: an array of its dtype
        with one row per record; a list for text and for values that differ in shape.

        In integer fields, a bad record has -1; in other fields, its error is raised.
        """
        field = self._field(name)
        if field.encoded:
            raise _NO_COLUMN.error(
                f"{name!r} is a field of {field.kind} files",
                hint=f"src.lengths({name!r}) reads their headers, src[i][{name!r}] one value",
            )
        if field.dtype == "int64" and field.shape == ():
            values = np.array(self.engine.integer_column(name))
            if len(values) == len(self):
                return values
        values = self.engine.values(name)
        return values if isinstance(values, list) else np.array(values)

    def _field(self, name: str) -> _core.Field:
        found = next((field for field in self.schema if field.name == name), None)
        if found is None:
            names = [field.name for field in self.schema]
            raise _NO_COLUMN.error(f"{name!r} is not a field", hint=did_you_mean(name, names))
        return found

    def _numbers(self, name: str) -> np.ndarray[Any, Any]:
        """All values of a field with a single number per record."""
        field = self._field(name)
        if field.encoded or field.shape != () or field.kind in ("text", "bytes"):
            raise _NO_COLUMN.error(f"{name!r} does not have one number per record")
        values: np.ndarray[Any, Any] = self.column(name)
        return values.astype(np.float64) if values.dtype.kind == "f" else values.astype(np.int64)

    def lengths(self, name: str, progress: Progress | None = None) -> np.ndarray[Any, Any]:
        """The lengths or sizes of a field's values: frames of audio and pixels of images, from
        their headers (-1 for a bad record); characters of text; the values themselves for a scalar
        field; elements of one-dimensional values (the tokens of documents).

        Headers are read once and cached for later runs.
        """
        if self._has_sounds(name):
            return np.array(self.engine.sound_forms(name, progress))[:, 0]
        field = self._field(name)
        if field.is_picture and field.encoded:
            sizes = self.sizes(name, progress)
            return np.where(sizes[:, 0] < 0, -1, sizes[:, 0] * sizes[:, 1])
        if field.kind == "text":
            return np.array([len(value) for value in self.column(name)], np.int64)
        if len(field.shape) == 1 and not field.encoded and field.kind != "bytes":
            return np.array(self.engine.value_lengths(name, progress))
        return self._numbers(name)

    def sizes(self, name: str = "image", progress: Progress | None = None) -> Any:
        """Height and width of a field's images, from their headers: int64 of shape (N, 2); -1 for a
        bad record. Headers are read once and cached for later runs.
        """
        field = self._field(name)
        if not field.is_picture:
            raise _NO_COLUMN.error(f"{name!r} is not a field of images")
        if not field.encoded:
            if -1 not in field.shape:
                return np.tile(np.array(field.shape[-2:], np.int64), (len(self), 1))
            shapes = [np.shape(value)[-2:] for value in self.engine.values(name)]
            return np.array(shapes, np.int64).reshape(-1, 2)
        return header_sizes(self, name, self.upright, progress)

    def durations(
        self, name: str, progress: Callable[[int, int], object] | None = None
    ) -> np.ndarray[Any, Any]:
        """Durations of a field's audio clips in seconds, from their headers; 0 for a bad record.

        Reads every record once. For other fields, the same as ``lengths``.
        """
        if not self._has_sounds(name):
            return self.lengths(name, progress)
        frames, rates, _ = np.array(self.engine.sound_forms(name, progress)).reshape(-1, 3).T
        seconds: np.ndarray[Any, Any] = np.maximum(frames, 0) / np.maximum(rates, 1)
        return seconds

    def _has_sounds(self, name: str) -> bool:
        return any(f.name == name and f.kind == "audio" and f.encoded for f in self.schema)

    def filter(self, where: Any) -> Source:
        """The records for which ``where`` is true, in their order.

        where: an expression of fields as text; a function of the record, a mapping that reads a
        field when it is accessed; or an array of booleans. Images are not read unless a function
        accesses them. Raises ConfigError HR0145 if no record is left, HR0144 for an invalid
        expression.

        >>> import headrace
        >>> src = headrace.records(x=[0.2, 0.7, 0.9], label=["cat", "dog", "cat"])
        >>> src.filter("x > 0.5 and label == 'cat'").column("x").tolist()
        [0.9]
        >>> len(src.filter(lambda record: record["x"] < 0.8))
        2
        """
        made: Source = refinements["filtered"](self, where)
        return made

    def sort_by(self, key: Any, *, reverse: bool = False) -> Source:
        """The records in the order of ``key``: an expression as text, a function or an array, as in
        ``filter``. Records with equal keys keep their order.
        """
        made: Source = refinements["sorted_by"](self, key, bool(reverse))
        return made

    def map(self, function: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Source:
        """The same records with more fields: what ``function(record)`` returns for each.

        The function is called once per record, immediately, and its results are kept in memory;
        functions that compute pixels belong in the loader's list of transforms. Raises ConfigError
        HR0145 if the function fails, or does not return the same new fields for every record.

        >>> import headrace
        >>> src = headrace.open({"text": ["a b", "c"], "label": [0, 1]})
        >>> src.map(lambda record: {"words": len(record["text"].split())}).column("words").tolist()
        [2, 1]
        """
        made: Source = refinements["mapped"](self, function)
        return made

    def with_columns(self, **columns: Any) -> Source:
        """The same records with more fields: columns as ``hr.records`` takes them."""
        made: Source = refinements["with_columns"](self, columns)
        return made

    def to_arrow(self, fields: Iterable[str] | str | None = None) -> Any:
        """A ``pyarrow.Table`` of the fields; None: all except images, audio and video. If these are
        listed, they are delivered as encoded bytes.
        """
        made: Source = refinements["arrow_table"](self, fields)
        return made

    def facts(self) -> Facts:
        """Facts that must be equal for a copy in another process."""
        return Facts(
            text=described(self),
            records=len(self),
            fields=tuple(map(_schema_text, self.schema)),
            classes=tuple(self.classes),
            keys={number: self.engine.key(number) for number in sampled(len(self))},
            fingerprint=self.fingerprint,
            folder=current_folder(),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as the call that made it, and checked when it is recreated. Raises ConfigError
        HR0171 if that is impossible, HR0172 if the other process finds other records.
        """
        return made_again, (checked_recipe(self), self.facts())

    def __repr__(self) -> str:
        fields = ", ".join(map(_schema_text, self.schema))
        return f"<Source {described(self)}; fields {fields}>"


@makes_sources
def sliced(src: Source, start: Any, stop: Any, step: Any) -> Source:
    """``src[start:stop:step]``."""
    chosen = range(len(src))[start:stop:step]
    numbers = np.arange(chosen.start, chosen.stop, chosen.step, dtype=np.int64)
    recipe = Recipe(sliced, {"src": src, "start": start, "stop": stop, "step": step})
    return Source(_core.subset(src.engine, numbers), made_of=[src], recipe=recipe)


@makes_sources
def with_kinds(src: Source, kinds: Mapping[str, str]) -> Source:
    """``src.with_kinds(kinds)``."""
    return src.with_kinds(kinds)


@makes_sources
def with_row_group(src: Source, fields: Iterable[str]) -> Source:
    """``src.with_row_group(*fields)``."""
    return src.with_row_group(*fields)


def header_sizes(source: Source, name: str, upright: bool, progress: Progress | None) -> Any:
    """Height and width of a field's encoded images, from their headers; -1 where unreadable.

    upright: whether images are rotated by their Exif orientation.
    """
    threads = min(16, _core.allowed_cores())
    found = np.array(source.engine.image_sizes(name, threads, progress))
    turned = (found[:, 2] >= 5) & upright
    return np.where(turned[:, None], found[:, 1::-1], found[:, :2])


def described(source: Source) -> str:
    """The engine's description of the source, on one line: "folder train (8 records, 2
    classes)"."""
    return ", ".join(source.engine.description.split("\n"))


def _schema_text(field: _core.Field) -> str:
    """ "image", "label int64", "boxes float32 (?, 4) xyxy", "story text"."""
    words = [field.name]
    if field.kind in ("label", "tensor") or not (field.encoded or field.kind in ("text", "bytes")):
        words.append(str(field.dtype))
        if field.shape:
            words.append("(" + ", ".join("?" if n < 0 else str(n) for n in field.shape) + ")")
    if field.kind not in (field.name, "label", "tensor"):
        words.insert(1, str(field.kind))
    if field.box_format:
        words.append(field.box_format)
    return " ".join(words)


def listed_kinds(kinds: Mapping[str, str] | None) -> list[str]:
    """{"seg": "mask"} in the engine's form: ["seg=mask"]."""
    if kinds is not None and not isinstance(kinds, Mapping):
        raise NOT_A_SOURCE.error(
            f"kinds= is {type(kinds).__name__}", hint='kinds={"seg": "mask", "boxes": "boxes"}'
        )
    return [f"{name}={kind}" for name, kind in (kinds or {}).items()]
