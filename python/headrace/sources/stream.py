# SPDX-License-Identifier: Apache-2.0
"""Streams: records that an iterable yields in order, without random access.

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
from headrace.sources.stream_origin import Origin, Pass, Shares
from headrace.sources.stream_reader import ENDLESS, StreamReader

NO_NUMBERS = declare(
    "HR0690",
    "config",
    "stream has no random access",
    "A stream returns its records in order, once per epoch; their number is only known at the "
    "end. Access to a record or batch by number, and the number of records, require a list, files "
    "of a supported format, or length=.",
)
_LOOKED_AT = 8  # records to inspect if the first one has an image, to compare shapes


def stream(
    records: Any,
    *,
    shuffle_buffer: int = 0,
    length: int | None = None,
    sharded: bool | None = None,
    replay: bool = True,
    kinds: Mapping[str, str] | None = None,
    names: Sequence[str] = (),
    shapes: Mapping[str, Sequence[int]] | None = None,
    classes: Sequence[str] = (),
) -> Stream:
    """A source over an iterable: a generator function, a streaming dataset of Hugging Face, an
    IterableDataset of torch, a WebDataset pipeline. A Loader takes it, and gives the same batches
    as for a list of its records.

    records: a function that returns an iterable, called in each epoch with those of ``epoch``,
    ``rank`` and ``world_size`` that it accepts; an iterable, whose ``set_epoch(epoch)`` is called
    if it has one; or an iterator, which lasts for one epoch. Records are like items of
    a list: dictionaries, tuples or values. The first one (the first eight, if it has images) is
    read immediately, and determines the fields.
    shuffle_buffer: about this many records (at most twice as many) are held, and delivered in an
    order drawn from the loader's seed and the epoch. 0: the iterable's own order.
    length: records per epoch over all ranks. Records beyond it are not read; fewer are an error
    (HR0692). None: until the iterable ends, and ``len(loader)`` is a TypeError.
    sharded: whether each rank's iterable yields different records; ``length`` is then required,
    so that ranks have the same number of batches. False: all ranks read the same records,
    and each rank keeps its part of every global batch. None: True for a function that takes
    ``rank``.
    replay: an iterable that has ``state_dict()`` and ``load_state_dict()`` resumes exactly. Others
    are read again up to the position of the run, with a warning that states the number of records.
    False: raises ConfigError HR0695 instead of reading them again. kinds, names, shapes, classes:
    as in ``hr.open`` for a list. Raises DataError HR0691 if the iterable raises an exception,
    HR0694 if it yields no record.

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
        sharded,
        switch("replay", replay),
        {"shapes": shapes or {}, "names": tuple(names), "said": kinds or {}},
        classes,
    )


def int_or_none(name: str, value: int | None) -> int | None:
    return None if value is None else integer(name, value, 1, ENDLESS - 1)


_Dress = Callable[[_core.Source], _core.Source]


class Stream(Source):
    """Records in the order of an iterable. ``headrace.stream`` makes it, ``headrace.Loader`` reads
    it; access by index, columns and views need a source with numbered records.
    """

    is_stream = True

    def __init__(
        self,
        origin: Origin,
        length: int | None,
        shuffle_buffer: int,
        sharded: bool | None,
        replay: bool,
        of_fields: Mapping[str, Any],
        classes: Sequence[str],
        made_by: str = "",
    ) -> None:
        self.length, self.shuffle_buffer = length, shuffle_buffer
        self.shards_itself = origin.asks_for_rank if sharded is None else switch("sharded", sharded)
        self.recipe, self.path, self.paths = None, "", ()
        self._origin, self._of_fields = origin, of_fields
        self._made_by = made_by  # what else determines its records: part of the fingerprint
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
        text += self._made_by
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
        """The name of the iterable."""
        return self._origin.name

    @property
    def reader(self) -> StreamReader:
        reader: StreamReader = self.readers[0]
        return reader

    @property
    def sample(self) -> Source:
        """The inspected records, as a source with numbered records."""
        return self.source_of(self._looked_at.records)

    def source_of(self, records: Sequence[Any]) -> Source:
        """Some of its records, as a source with numbered records."""
        call = {("kinds" if name == "said" else name): v for name, v in self._of_fields.items()}
        made = source_from_object(list(records), **call)
        made.upright = self.upright
        for dress in self._dress[1:]:  # the kind is already known
            made = Source(dress(made.engine), made_of=[made])
        return made

    @property
    def replays(self) -> bool:
        """``replay=``."""
        return self._looked_at.replay

    def open_pass(self, shares: Shares, state: Any = None) -> tuple[Pass, tuple[Any, ...]]:
        """``Looked.open_pass``, for sources made from its records."""
        return self._looked_at.open_pass(shares, state)

    def opened(self) -> OpenedStream:
        """The same stream for one loader, with its own position."""
        made = OpenedStream.__new__(OpenedStream)
        made.__dict__.update(self.__dict__)
        made.records = self.length or ENDLESS
        made.readers = [made._new_reader()]
        return made

    @property
    def engine(self) -> _core.Source:  # type: ignore[override]
        self.refuse("it can only be read in order, by a Loader")

    def refuse(self, what: str) -> NoReturn:
        """Raises ConfigError HR0690 with this reason: the operation needs numbered records."""
        raise NO_NUMBERS.error(
            f"{self._origin.name}: {what}",
            hint="hr.open(list(itertools.islice(records, 1000))) gives random access to its "
            "first records",
        )

    def __len__(self) -> int:
        if self.length is None:
            self.refuse("the number of records is known only at its end, or by length=")
        return self.length

    def __bool__(self) -> bool:
        return True

    @property
    def schema(self) -> list[_core.Field]:
        """The fields, from the first record."""
        return self._known.schema

    @property
    def classes(self) -> list[str]:
        """Names of the labels from ``classes=``; empty without it."""
        return self._known.classes

    @property
    def fingerprint(self) -> int:
        """A fingerprint of what is known about it: name, fields, shuffle buffer and length."""
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
    """A stream read by a loader. records: the length of an epoch for the engine."""

    records: int

    @property
    def engine(self) -> _core.Source:  # type: ignore[override]
        return self._engine(self.records)
