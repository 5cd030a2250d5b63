# SPDX-License-Identifier: Apache-2.0
"""Records of Parquet files whose row groups are decoded when one of their records is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import _core
from headrace.sources.arrow_files.columns import (
    TABLE,
    Column,
    Place,
    add_column,
    is_bytes,
    is_text,
    refused,
)
from headrace.sources.arrow_files.row_groups import RowGroups


class OnDemand:
    """Decodes row groups for the engine, which requests their bytes and keeps the last ones. Each
    group becomes an in-memory source, so that its records are the same as there.
    """

    def __init__(self, groups: RowGroups, chosen: Sequence[Column], place: Place) -> None:
        self._groups, self._place = groups, place
        for column in chosen:
            if column.name == "label" and is_text(groups.schema().field(column.column).type):
                raise refused(
                    column,
                    "holds class names, which requires reading all rows",
                    'raise memory=, or read it as text: fields=["class_name=' + column.column,
                )
        self._columns = [column.column for column in chosen]
        self._chosen = self._with_media(chosen)
        self.fields = list(self._source(groups.schema().empty_table()).schema)
        self._kinds = [_facts(field) for field in self.fields]

    def source(self, classes: list[str], fingerprint: int, title: str) -> _core.Source:
        groups = self._groups
        rows = groups.starts[-1]
        return _core.source_of_groups(
            groups.files.files,
            [
                (end, groups.ranges(i, self._columns), groups.decoded_bytes(i, self._columns))
                for i, end in enumerate(groups.starts[1:])
            ],
            groups.memory(self._columns),
            self.fields,
            classes,
            fingerprint,
            f"{title} ({rows:,} records, on demand)",
            self._decode,
            self._integer_column,
        )

    def _with_media(self, chosen: Sequence[Column]) -> list[Column]:
        """The content of binary columns, from the dataset's features or the first row group."""
        schema = self._groups.schema()
        unknown = [c for c in chosen if not c.media and is_bytes(schema.field(c.column).type)]
        names = [column.column for column in unknown]
        filled = (i for i, rows in enumerate(self._groups.rows()) if rows)
        first = next(filled, None)
        if not unknown or first is None:
            return list(chosen)
        parts = self._groups.files.read(self._groups.ranges(first, names))
        table = self._groups.read(first, names, parts)
        media: dict[str, str] = {}
        for column in unknown:
            columns = _core.ColumnList()
            add_column(columns, column, table.column(column.column), self._place)
            media[column.column] = columns.source("").schema[0].kind
        return [column._replace(media=media.get(column.column, column.media)) for column in chosen]

    def _source(self, table: Any) -> _core.Source:
        columns = _core.ColumnList()
        for column in self._chosen:
            add_column(
                columns, column, table.column(column.column), self._place, media=column.media
            )
        return columns.source("")

    def _decode(self, group: int, parts: Sequence[Any]) -> _core.Source:
        source = self._source(self._groups.read(group, self._columns, parts))
        if [_facts(field) for field in source.schema] != self._kinds:
            raise TABLE.error(
                f"row group {group} has different fields from the first one",
                hint="write the file again, with the same types in every row",
            )
        return source

    def _integer_column(self, name: str) -> list[int]:
        columns = [column.column for column in self._chosen if column.name == name]
        if not columns or not any(f.name == name and f.dtype == "int64" for f in self.fields):
            return []
        values: list[int] = []
        for table in self._groups.each(columns):
            values += table.column(0).to_pylist()
        return [-1 if value is None else value for value in values]  # a bad record, as elsewhere


def _facts(field: _core.Field) -> tuple[Any, ...]:
    return field.name, field.kind, str(field.dtype), tuple(field.shape or ()), field.encoded
