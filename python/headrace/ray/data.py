# SPDX-License-Identifier: Apache-2.0
"""For Ray Data: a loader's batches as blocks, and transforms for ``map_batches``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from headrace.arguments import integer, size_in_bytes
from headrace.loader import Loader
from headrace.ray.parcel import packed
from headrace.sources import open as open_source
from headrace.sources import records


def datasource(
    src: Any,
    transforms: Any = (),
    *,
    batch_size: int = 64,
    block: int | str = "16 MiB",
    epoch: int = 0,
    **keywords: Any,
) -> Any:
    """For ``ray.data.read_datasource``: the batches of ``Loader(src, transforms, ...)``, in order.

    Rows are the same as from a single loader for any number of tasks, including random transforms
    and shuffle=. batch_size: records that are made at once. block: bytes of rows per read task.
    epoch: the epoch whose order and draws to use. keywords: keywords of Loader.

    Each task opens the source again, so store its index where all machines can read it.
    """
    import ray
    from ray.data.block import BlockAccessor, BlockMetadata
    from ray.data.datasource import Datasource, ReadTask

    src = open_source(src)
    keywords = {"threads": 1, **keywords, "batch_size": integer("batch_size", batch_size, 1)}
    keywords["shard"] = False
    wanted_bytes = size_in_bytes("block", block)
    with Loader(src, transforms, **keywords) as loader:
        batches, sample = len(loader), _columns(next(iter(loader), None))
        state = loader.state_dict()
    row_bytes = sum(map(_bytes_of, sample.values())) / max(1, len(next(iter(sample.values()), ())))
    parcel = ray.put(packed((src, transforms, keywords)))

    def read(first: int, end: int) -> Iterator[Any]:
        source, steps, given = ray.get(parcel).opened()
        with Loader(source, steps, **given) as part:
            part.load_state_dict({**state, "epoch": epoch, "batch": first, "bad_records": 0})
            for batch in batches_before(end, part):
                yield BlockAccessor.batch_to_block(_columns(batch))

    class HeadraceDatasource(Datasource):  # type: ignore[misc]
        """Tasks of whole batches."""

        def get_name(self) -> str:
            return "Headrace"

        def estimate_inmemory_data_size(self) -> int:
            return int(row_bytes * len(src))

        def get_read_tasks(
            self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
        ) -> list[Any]:
            a_task = max(1, int(wanted_bytes // max(1.0, row_bytes * batch_size)))
            tasks = []
            for first, end in divided(batches, a_task, parallelism):
                rows = (end - first) * batch_size
                metadata = BlockMetadata(
                    num_rows=None,  # only known once they are read: bad records may be skipped
                    size_bytes=int(rows * row_bytes),
                    input_files=None,
                    exec_stats=None,
                )
                tasks.append(ReadTask(_reader(read, first, end), metadata))
            return tasks

    return HeadraceDatasource()


def divided(batches: int, most: int, tasks: int) -> list[tuple[int, int]]:
    """The first batch of each task, and the one after its last: at most ``most`` batches per task,
    and if there are enough of them, at least this many tasks."""
    size = max(1, min(most, -(-batches // max(1, tasks))))
    return [(first, min(batches, first + size)) for first in range(0, batches, size)]


def batches_before(end: int, loader: Loader) -> Iterator[Any]:
    """The batches of a loader from its position up to this number. Batches without a good record
    have a number, but are not delivered: with on_error="skip", counting those that arrive would
    continue into the next task's.
    """
    if loader.present_state()["batch"] >= end:
        return
    for batch in loader:
        received = loader.present_state()["batch"]
        if received <= end:
            yield batch
        if received >= end:
            return


def _reader(
    read: Callable[[int, int], Iterator[Any]], first: int, end: int
) -> Callable[[], Iterator[Any]]:
    return lambda: read(first, end)


def _columns(batch: Any) -> dict[str, Any]:
    """A batch as columns for Ray Data; values of different shape become objects."""
    if batch is None:
        return {}
    return {name: _column(value) for name, value in zip(batch._fields, batch, strict=True)}


def _column(value: Any) -> Any:
    if not isinstance(value, list):
        return np.asarray(value)
    out = np.empty(len(value), object)
    out[:] = value
    return out


def _bytes_of(column: Any) -> int:
    if column.dtype.hasobject:
        return sum(int(getattr(value, "nbytes", len(value))) for value in column)
    return int(column.nbytes)


def transform(
    transforms: Any,
    *,
    rename: Mapping[str, str] | None = None,
    kinds: Mapping[str, str] | None = None,
    seed: int = 0,
    **keywords: Any,
) -> Transform:
    """For ``ds.map_batches``: transforms on rows whose bytes come from elsewhere.

    Encoded files or arrays: ``ds.map_batches(hr.ray.transform(steps, rename={"bytes": "image"}))``.
    rename: columns to fields; fields keep their names afterwards. kinds: as in hr.records. seed:
    random draws depend on it and on the batch's own values, so they repeat wherever a batch is
    made.
    keywords: of Loader, such as ragged=. To read files, ``datasource`` is three times as fast.
    """
    return Transform(transforms, dict(rename or {}), dict(kinds or {}), seed, keywords)


class Transform:
    """A function of a batch, from columns to columns."""

    def __init__(
        self,
        transforms: Any,
        rename: Mapping[str, str],
        kinds: Mapping[str, str],
        seed: int,
        keywords: Mapping[str, Any],
    ) -> None:
        self.transforms, self.rename, self.kinds = transforms, rename, kinds
        self.seed, self.keywords = seed, keywords

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        if not batch or not len(next(iter(batch.values()))):
            return dict(batch)
        columns = {self.rename.get(name, name): values for name, values in batch.items()}
        columns = {name: _as_given(values) for name, values in columns.items()}
        source = records(kinds=self.kinds or None, **columns)
        given = {"threads": 1, **self.keywords, "shard": False, "seed": self._seed(columns)}
        with Loader(source, self.transforms, batch_size=len(source), **given) as loader:
            return _columns(next(iter(loader)))

    def _seed(self, columns: Mapping[str, Any]) -> int:
        import hashlib

        found = hashlib.blake2b(str(self.seed).encode(), digest_size=7)
        for values in columns.values():
            for value in values if isinstance(values, list) else [values]:
                found.update(value if isinstance(value, bytes) else np.asarray(value).tobytes())
        return int.from_bytes(found.digest(), "little")


def _as_given(values: Any) -> Any:
    """A column in the form for hr.records: bytes and text as lists, arrays of one shape stacked."""
    if not isinstance(values, np.ndarray) or not (
        values.dtype.hasobject or values.dtype.kind in "US"
    ):
        return values
    if len(values) and isinstance(values[0], np.ndarray):
        return np.stack(list(values))
    return values.tolist()
