# SPDX-License-Identifier: Apache-2.0
"""From torch's DataLoader to a Headrace Loader: ``hr.from_dataloader(dataloader)``.

Imports neither torch nor torchvision: their classes are recognized by name.
"""

from __future__ import annotations

from typing import Any

from headrace import _core
from headrace.loader.dataloader_keywords import KEYWORDS
from headrace.migrate.batching import Batching
from headrace.migrate.known_dataset import REFUSED, Dataset, Told
from headrace.migrate.migrated_loader import MigratedLoader
from headrace.migrate.modules import name_of
from headrace.migrate.order import keywords_from
from headrace.migrate.prefetched import opened
from headrace.migrate.report import ADVICE, CHANGED, DROPPED, NATIVE, PYTHON, Report
from headrace.migrate.resolved import resolved
from headrace.migrate.unchanged import relied_on
from headrace.migrate.ways import way_of, way_of_dataset
from headrace.migrate.whole_batches import check_whole_batches

_NAMED = 3  # values that are too large to be compared


def from_dataloader(
    dataloader: Any,
    *,
    check: bool = True,
    trace: bool | float = True,
    python_workers: int = 0,
    collate: str = "same",
    annotations: Any = None,
    allow_outside: bool = False,
    verbose: bool = True,
    **changes: Any,
) -> MigratedLoader:
    """Translates a torch DataLoader to a Loader that gives the same batches, and reports what it
    did.

    Datasets of torchvision (ImageFolder, DatasetFolder, CIFAR10/100, MNIST and similar, SVHN,
    CocoDetection), TensorDataset and Subsets of these become sources, and so does your own dataset
    if it opens an image, transforms it and adds values. Transforms of torchvision (v1 and v2)
    become operators. Transforms without an operator, and all other map-style datasets, run as
    Python transforms, on one thread or in ``python_workers`` processes. Random orders and draws
    differ from torch's but have the same distributions.

    Args:
        dataloader: over a map-style dataset. It is not iterated, except for a sampler of an unknown
            class.
        check: compare 32 records of both, without randomness.
        trace: trace an unknown dataset to find out what it does with files and transforms: its
            ``__getitem__`` is called twice per record, with stand-ins for both, in a forked
            process. A number is the time limit in seconds (default: 60); False: do not trace.
        collate: "same" runs a collate_fn without an equivalent here on the records of each finished
            batch, whose stack is the batch itself; "run" runs any collate_fn; "copy" runs it on
            copies, which it may modify in place; "default" ignores it.
        annotations: CocoDetection's file.
        allow_outside: also read images whose names point outside their folder (absolute, or with
            ".."): only for trusted datasets.
        verbose: print the report, which is also ``loader.report``.
        changes: keywords of Loader that override what was found, such as ``sampler=``.

    Raises ConfigError HR0834 if something cannot be translated, with an alternative, and HR0835 if
    a record differs.
    """
    given = dataloader
    dataloader, prefetched = opened(dataloader)
    if not hasattr(dataloader, "dataset") or not hasattr(dataloader, "collate_fn"):
        raise REFUSED.error(
            f"{type(dataloader).__name__} is not a DataLoader",
            hint="a dataset is hr.from_dataloader(DataLoader(dataset, batch_size=...)), or "
            "hr.Loader(dataset, [...], batch_size=...)",
        )
    report = Report(f"DataLoader over {type(dataloader.dataset).__name__}")
    _refuse_iterable(dataloader)
    check_whole_batches(dataloader, collate)
    batching = Batching(dataloader, prefetched, collate, report)
    lists = batching.lists or changes.get("ragged") == "list"
    dataset, parts = resolved(
        dataloader.dataset,
        Told(annotations, allow_outside, batching.function if batching.runs else None, lists),
        trace,
        report if check else None,
        changes,
    )
    batching.left_out = dataset.left_out
    batching.prefetch(dataset, parts)
    native = not dataset.steps
    report.add(
        f"{dataset.name} ({len(dataset.source):,} records)",
        NATIVE if native else PYTHON,
        dataset.note,
        dataset.cost,
        way_of_dataset(dataset, dataloader.dataset),
    )
    if dataset.skips:
        report.add(
            "except: in __getitem__",
            CHANGED,
            "a file that cannot be read is an error, whereas the dataset may take another record: "
            'on_error="substitute" or "skip"',
        )
    for step, note in parts.listed:
        for name in step.names[:-1]:
            report.add(name, NATIVE if step.native else PYTHON, note)
        way = "; ".join(filter(None, map(way_of, step.transforms)))
        became = NATIVE if step.native else PYTHON
        report.add(step.names[-1], became, note, step.cost, way)
    keywords = keywords_from(dataloader, len(dataset.source), report, changes)
    if "seed" not in {*keywords, *changes} and (parts.draw or keywords.get("shuffle")):
        report.add("seed=0", CHANGED, "torch.manual_seed() does not change it: set seed=N")
    _note_the_rest(dataloader, dataset, report, python_workers)
    steps = parts.pipeline(dataset, steady=False)
    if mixing := batching.steps(dataset, keywords | changes):
        steps = [*steps, *mixing]
    loader = MigratedLoader(
        dataset.source,
        steps,
        **{
            "fields": dataset.fields,
            **batching.options(dataset, changes),
            "python_workers": python_workers,
            **dataset.options,
            **keywords,
            **changes,
        },
    )
    loader.report = report
    loader.node = dataset.node
    loader.casts = parts.casts
    batching.give_to(loader, dataset, steps, check)
    unchanged = relied_on(
        dataloader, given, dataset, parts, batching.runs, keywords, changes, python_workers
    )
    for name in unchanged.left_out[:_NAMED]:
        report.add(name, CHANGED, "too large to be compared: later changes have no effect")
    loader.take_after(dataloader, given, unchanged)
    if verbose:
        print(report)
    return loader


def _refuse_iterable(dataloader: Any) -> None:
    kind = getattr(dataloader, "_dataset_kind", 0)
    if "Iterable" in str(kind) or kind == 1:
        raise REFUSED.error(
            f"{type(dataloader.dataset).__name__} is an IterableDataset, which has no random "
            "access",
            hint="hr.Loader(hr.stream(dataset), transforms, batch_size=...) makes batches of its "
            "records; hr.prefetch(dataloader, device) feeds a GPU from the DataLoader",
        )


def _note_the_rest(dataloader: Any, dataset: Dataset, report: Report, python_workers: int) -> None:
    for name, keyword in KEYWORDS.items():
        value = getattr(dataloader, name, None)
        if keyword.unneeded and value is not None and value not in keyword.usual:
            said = name_of(value) if callable(value) else value
            report.add(f"{name}={said}", DROPPED, keyword.unneeded)
    if report.python and python_workers:
        report.add(
            f"python_workers={python_workers}",
            ADVICE,
            "put the loop over the loader under `if __name__ == '__main__':`",
        )
    elif report.python:
        cores = _core.allowed_cores()
        count = min(cores, getattr(dataloader, "num_workers", 0) or cores)
        if count > 1:
            report.add(
                f"python_workers={count}",
                ADVICE,
                f"runs the Python transforms in {count} processes instead of on one thread",
            )
