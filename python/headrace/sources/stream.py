# SPDX-License-Identifier: Apache-2.0
"""Streams: records that an iterable gives one after the other, of which only the order is known.

>>> import headrace as hr
>>> def numbers():
...     yield from ({"x": float(i)} for i in range(5))
>>> [batch.x.tolist() for batch in hr.Loader(hr.stream(numbers), batch_size=2)]
[[0.0, 1.0], [2.0, 3.0], [4.0]]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from headrace import _core
from headrace.arguments import INT32, integer, switch
from headrace.errors import declare
from headrace.sources.fingerprint import fingerprint_of
from headrace.sources.objects import ObjectReader, source_from_object
from headrace.sources.source import Source, listed_kinds
from headrace.sources.stream_look import Looked
from headrace.sources.stream_origin import Origin
from headrace.sources.stream_reader import ENDLESS, StreamReader

NO_NUMBERS = declare(
    "HR0690",
    "config",
    "stream has no numbers",
    "A stream gives its records in order, once in an epoch; how many there are is known at the "
    "end. What asks for a record or a batch by its number, or for their count, needs a list, files "
    "that a format reads, or length=.",
)
_LOOKED_AT = 8  # records, where the first has an image: do their shapes agree?


def stream(
    records: Any,
    *,
    shuffle_buffer: int = 0,
    length: int | None = None,
    shard_itself: bool | None = None,
    replay: bool = True,
    kinds: Mapping[str, str] | None = None,
    names: Sequence[str] = (),
    shapes: Mapping[str, Sequence[int]] | None = None,
    classes: Sequence[str] = (),
) -> Stream:
    """A source over an iterable: a generator function, a streaming dataset of Hugging Face, an
    IterableDataset of torch, a WebDataset pipeline. A Loader takes it; its batches are those of the
    list of its records.

    records: a function that is called in each epoch, with what it takes of ``epoch``, ``rank`` and
    ``world_size``, and returns an iterable; an iterable, whose ``set_epoch(epoch)`` is called if it
    has one; or an iterator, which is good for one epoch. A record is what an item of a list is:
    a dictionary, a tuple, a value. The first one (the first eight, if there are images in it) is
    read now, and says what the fields are.
    shuffle_buffer: about so many records are held, never more than twice as many, and given in an
    order drawn from the loader's seed and the epoch. 0: the order as it comes.
    length: records of an epoch, on all ranks together. What comes after them is not read; fewer are
    an error (HR0692). None: until the iterable ends, and ``len(loader)`` is a TypeError.
    shard_itself: whether each rank's iterable gives records of its own; then ``length`` is needed,
    so that ranks have equally many batches. False: all give the same, every rank reads all, and
    keeps its part of each global batch. None: True for a function that takes ``rank``.
    replay: an iterable that has ``state_dict()`` and ``load_state_dict()`` resumes exactly. Others
    are read again up to where the run was, with a warning that has the number of records; or,
    with False, ConfigError HR0695.
    kinds, names, shapes, classes: of the fields, as ``hr.open`` has them for a list.

    DataError HR0691 where the iterable raises, HR0694 where it gives nothing.

    >>> import headrace as hr
    >>> def lines(epoch):
    ...     yield from ({"text": f"{epoch}.{number}"} for number in range(3))
    >>> loader = hr.Loader(hr.stream(lines), batch_size=2)
    >>> [batch.text for batch in loader], [batch.text for batch in loader]
    ([['0.0', '0.1'], ['0.2']], [['1.0', '1.1'], ['1.2']])
    """
    return Stream(
        Origin(records),
        int_or_none("length", length),
        integer("shuffle_buffer", shuffle_buffer, 0, INT32),
        shard_itself,
        switch("replay", replay),
        {"shapes": shapes or {}, "names": tuple(names), "said": kinds or {}},
        classes,
    )


def int_or_none(name: str, value: int | None) -> int | None:
    return None if value is None else integer(name, value, 1, ENDLESS - 1)


_Dress = Callable[[_core.Source], _core.Source]


class Stream(Source):
    """Records in the order of an iterable. ``headrace.stream`` makes it, ``headrace.Loader`` reads
    it; records by number, columns and views need a source that has numbers."""

    is_stream = True

    def __init__(
        self,
        origin: Origin,
        length: int | None,
        shuffle_buffer: int,
        shard_itself: bool | None,
        replay: bool,
        of_fields: Mapping[str, Any],
        classes: Sequence[str],
    ) -> None:
        self.length, self.shuffle_buffer = length, shuffle_buffer
        self.shards_itself = (
            origin.asks_for_rank if shard_itself is None else switch("shard_itself", shard_itself)
        )
        self.recipe, self.path, self.paths = None, "", ()
        self._origin, self._of_fields = origin, of_fields
        looked_at = Looked(origin, replay)
        self._rows = ObjectReader(looked_at.records, **of_fields)
        if "picture" in self._rows.kinds.values():
            looked_at.look_on(_LOOKED_AT)
            self._rows = ObjectReader(looked_at.records, **of_fields)
        self._looked_at = looked_at
        self.upright = origin.is_upright
        self._classes = list(classes) or origin.classes
        self._dress: tuple[_Dress, ...] = (self._evident,)
        self.readers = [self._new_reader()]
        self._known = self._engine(ENDLESS)

    def _new_reader(self) -> StreamReader:
        return StreamReader(
            self._origin, self._rows, self._looked_at, self.shuffle_buffer, self.length
        )

    def _evident(self, engine: _core.Source) -> _core.Source:
        said = dict(self._of_fields["said"])
        return _core.with_evident_kinds(engine, listed_kinds(self._rows.files | said))

    def _engine(self, records: int) -> _core.Source:
        text = repr((self._origin.name, self._rows.kinds, self.shuffle_buffer, self.length))
        engine = _core.python_source(
            self.reader,
            records,
            list(self._rows.fields),
            self._classes,
            fingerprint_of(text),
            f"stream of {self._origin.name}",
        )
        for dress in self._dress:
            engine = dress(engine)
        return engine

    @property
    def name(self) -> str:
        """What the iterable is called."""
        return self._origin.name

    @property
    def reader(self) -> StreamReader:
        reader: StreamReader = self.readers[0]
        return reader

    @property
    def sample(self) -> Source:
        """The records that were looked at, as a source with numbers."""
        call = {("kinds" if name == "said" else name): v for name, v in self._of_fields.items()}
        return source_from_object(list(self._looked_at.records), **call)

    def opened(self) -> OpenedStream:
        """The same for one loader, with a position of its own."""
        made = OpenedStream.__new__(OpenedStream)
        made.__dict__.update(self.__dict__)
        made.records = self.length or ENDLESS
        made.readers = [made._new_reader()]
        return made

    @property
    def engine(self) -> _core.Source:  # type: ignore[override]
        self.refuse("it is read by a Loader, from the front")

    def refuse(self, what: str) -> NoReturn:
        """ConfigError HR0690."""
        raise NO_NUMBERS.error(
            f"{self._origin.name}: {what}",
            hint="hr.open(list(itertools.islice(records, 1000))) has numbers, of its first records",
        )

    def __len__(self) -> int:
        if self.length is None:
            self.refuse("how many records there are is known at its end, or by length=")
        return self.length

    def __bool__(self) -> bool:
        return True

    @property
    def schema(self) -> list[_core.Field]:
        """The fields, by the first record."""
        return self._known.schema

    @property
    def classes(self) -> list[str]:
        """Names of the labels, as ``classes=`` gave them; empty where it did not."""
        return self._known.classes

    @property
    def fingerprint(self) -> int:
        """Of what is known of it: its name, fields, shuffle buffer and length."""
        return self._known.fingerprint

    def with_kinds(self, kinds: Mapping[str, str]) -> Stream:
        """See Source.with_kinds."""
        listed = listed_kinds(kinds)
        return self._dressed(lambda engine: _core.with_kinds(engine, listed))

    def with_row_group(self, *fields: str) -> Stream:
        """See Source.with_row_group."""
        return self._dressed(lambda engine: _core.with_row_group(engine, list(fields)))

    def _dressed(self, dress: _Dress) -> Stream:
        made = Stream.__new__(Stream)
        made.__dict__.update(self.__dict__)
        made._dress = (*self._dress, dress)
        made._known = made._engine(ENDLESS)
        return made

    def __repr__(self) -> str:
        fields = ", ".join(f"{field.name} {field.kind}" for field in self.schema)
        count = "unknown length" if self.length is None else f"{self.length:,} records"
        buffer = f", shuffle buffer of {self.shuffle_buffer:,}" if self.shuffle_buffer else ""
        return f"<Stream {self._origin.name} ({count}{buffer}); fields {fields}>"


class OpenedStream(Stream):
    """A stream that a loader reads. records: what its engine takes for the length of an epoch."""

    records: int

    @property
    def engine(self) -> _core.Source:  # type: ignore[override]
        return self._engine(self.records)
