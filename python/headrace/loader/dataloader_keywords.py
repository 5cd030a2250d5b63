# SPDX-License-Identifier: Apache-2.0
"""The keywords of torch's DataLoader, and the replacement of each, in one table.

The table gives the message for a keyword of DataLoader (HR0158), the lines on unneeded keywords in
the report of ``from_dataloader``, and the table in docs/start/migrating/dataloader-arguments.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class DataLoaderKeyword(NamedTuple):
    """rows: rows of the page's table, DataLoader's way and Loader's. hint: Loader's message for it;
    empty if it has the same keyword. unneeded: the reason, for the report of a translated
    DataLoader whose value is not among ``usual``; empty if it is translated.
    """

    rows: tuple[tuple[str, str], ...]
    hint: str = ""
    unneeded: str = ""
    usual: tuple[Any, ...] = ()


_NO_PROCESSES = "there are no worker processes"

KEYWORDS = {
    "dataset": DataLoaderKeyword(
        (
            ("`dataset`", "the source, and its transforms as the list `transforms`"),
            (
                "an `IterableDataset`",
                "not translated (`from_dataloader` raises HR0834). Use `hr.Loader(dataset, ...)` "
                "or `hr.stream(dataset)` ([Streams](../../guide/data/streams.md)), or keep the "
                "DataLoader and copy its batches ahead with `hr.prefetch(dataloader, device)`",
            ),
        ),
        "the first argument is the source: hr.Loader(dataset, ...)",
    ),
    "batch_size": DataLoaderKeyword(
        (("`batch_size`", "`batch_size`, also per rank; or `global_batch_size`"),)
    ),
    "shuffle": DataLoaderKeyword(
        (
            (
                "`shuffle=True`",
                "`shuffle=True`: each epoch in a different order, a function of `seed` and epoch",
            ),
        )
    ),
    "drop_last": DataLoaderKeyword(
        (("`drop_last=True`", '`last_batch="drop"`'),),
        'last_batch="drop" drops the incomplete batch, "keep" (the default) keeps it',
    ),
    "sampler": DataLoaderKeyword(
        (
            (
                "`sampler=DistributedSampler(...)`",
                '`shard="auto"`, `shuffle=`, `seed=`; `set_epoch()` is not needed, and an epoch '
                "that the script sets is followed. If ranks do not divide the records, or it was "
                "made for "
                "another dataset, it is called like any other sampler",
            ),
            (
                "`sampler=WeightedRandomSampler(...)`",
                "`sampler=hr.sampling.weighted(weights, draws)`",
            ),
            ("`sampler=SubsetRandomSampler(indices)`", "`sampler=indices, shuffle=True`"),
            (
                "`sampler=RandomSampler(replacement=True)`",
                "`hr.sampling.weighted()` with equal weights",
            ),
            (
                "another sampler",
                "it is called before each epoch, in its current state, with "
                "`set_epoch()` and with generators seeded by seed and epoch. One that has `rank`, "
                "`num_replicas` or "
                "`world_size` gives this rank's records, which are "
                "not divided again. HR0834 where it never ends, or its random draws cannot be "
                "seeded",
            ),
        )
    ),
    "batch_sampler": DataLoaderKeyword(
        (
            (
                "`batch_sampler`",
                "torch's `BatchSampler` becomes its sampler and `batch_size`; another one is "
                "called for its batches. These may differ in size, but must be the same sizes in "
                "every epoch",
            ),
            (
                "`sampler=BatchSampler(...), batch_size=None`",
                "the same as `batch_sampler=BatchSampler(...)`, if `dataset[indices]` is what "
                "`default_collate` makes of these records, which is tried with two; otherwise "
                "HR0834",
            ),
        ),
        "sampler= orders the records, batch_size= groups them",
    ),
    "collate_fn": DataLoaderKeyword(
        (
            (
                "`collate_fn`",
                "one that applies torchvision's MixUp, CutMix or a RandomChoice of them, as its "
                "reference scripts do (`mix(*default_collate(batch))`, even with their RandomMixup "
                "and RandomCutmix for v1, which are verified by their results), becomes a "
                "transform; that of its segmentation script, with its `cat_list` as published, "
                "becomes padding by the engine; any other is called on the records of each "
                "finished batch of `.torch()` ([Collate functions](collate-functions.md)), and "
                '`collate="default"` omits it: fields are stacked; those that '
                "differ in shape are padded, packed or delivered as lists, depending on "
                '`ragged=`, and `batch.per_record("boxes", "labels")` is a list of dictionaries',
            ),
        ),
        'not needed: batches are assembled in place; ragged="pad", "packed" or "list" delivers '
        "fields that differ in shape, and a function in the list of transforms changes records",
    ),
    "num_workers": DataLoaderKeyword(
        (
            (
                "`num_workers`",
                "none: native threads. For Python transforms, `python_workers=`",
            ),
        ),
        "not needed: records are processed by native threads; threads=N sets how many",
        "records are processed by native threads; threads=N sets how many",
        (0,),
    ),
    "pin_memory": DataLoaderKeyword(
        (("`pin_memory`", '`.torch("cuda")`'),),
        'not needed; .torch("cuda") delivers on the device',
        'loader.torch("cuda") delivers on the device',
        (False,),
    ),
    "pin_memory_device": DataLoaderKeyword(
        (("`pin_memory_device`", '`.torch("cuda:1")`'),),
        'not needed; .torch("cuda:1") names the device',
        'loader.torch("cuda:1") names the device',
        ("", None),
    ),
    "prefetch_factor": DataLoaderKeyword(
        (("`prefetch_factor`", "none: `memory_limit=` bounds how far the engine runs ahead"),),
        "not needed; memory_limit= bounds how far the engine runs ahead",
        "memory_limit= bounds how far the engine runs ahead",
        (None, 2),
    ),
    "persistent_workers": DataLoaderKeyword(
        (("`persistent_workers`", "none: threads live as long as the process"),),
        "not needed: threads live as long as the process",
        "threads live as long as the process",
        (False,),
    ),
    "timeout": DataLoaderKeyword(
        (
            (
                "`timeout`",
                "none: a wait of more than `patience=` seconds is reported, with its cause",
            ),
        ),
        "not needed: a record that hangs for patience= seconds is reported by name",
        "a hanging transform is reported by name",
        (0,),
    ),
    "worker_init_fn": DataLoaderKeyword(
        (("`worker_init_fn`", "none: Python transforms are seeded for each record"),),
        f"not needed: {_NO_PROCESSES}; a Python transform gets its own random generator as the "
        "argument rng",
        "Python transforms are seeded for each record, in any process",
        (None,),
    ),
    "multiprocessing_context": DataLoaderKeyword(
        (("`multiprocessing_context`", "none: the processes of `python_workers=` are spawned"),),
        f"not needed: {_NO_PROCESSES}",
        f"{_NO_PROCESSES} except for python_workers=, which are spawned",
        (None,),
    ),
    "in_order": DataLoaderKeyword(
        (("`in_order`", "none: batches always come in order"),),
        "batches always come in order",
        "batches always come in order",
        (True,),
    ),
    "generator": DataLoaderKeyword(
        (("`generator`", "`seed=`, taken from its initial seed"),),
        "seed=N; all orders and random draws are functions of it",
    ),
}
# Arguments of torchvision's datasets, which are often passed to the loader.
HINTS = {
    **{name: keyword.hint for name, keyword in KEYWORDS.items() if keyword.hint},
    "transform": "transforms=[...], a list",
}


def page_table() -> str:
    """The table of docs/start/migrating/dataloader-arguments.md."""
    rows = [row for keyword in KEYWORDS.values() for row in keyword.rows]
    return "\n".join(["| DataLoader | Loader |", "|---|---|", *(f"| {a} | {b} |" for a, b in rows)])
