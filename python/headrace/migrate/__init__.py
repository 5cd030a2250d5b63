# SPDX-License-Identifier: Apache-2.0
"""From torch's DataLoader to a Headrace Loader: ``hr.from_dataloader(dataloader)``.

Imports neither torch nor torchvision: their classes are recognized by name.
"""

from __future__ import annotations

from typing import Any

from headrace import _core
from headrace import transforms as T
from headrace.loader.dataloader_keywords import KEYWORDS
from headrace.migrate import check as comparison
from headrace.migrate import dataset as datasets
from headrace.migrate.batching import Batching
from headrace.migrate.known_dataset import REFUSED, Dataset, Told
from headrace.migrate.migrated_loader import MigratedLoader
from headrace.migrate.order import keywords_from
from headrace.migrate.originals import OnTarget, described, name_of, seeded, value_crossing
from headrace.migrate.report import ADVICE, DROPPED, NATIVE, PYTHON, Report
from headrace.migrate.transform_list import translate
from headrace.migrate.translations.registry import Form, NoOperator, Translated, shown


def from_dataloader(
    dataloader: Any,
    *,
    check: bool = True,
    python_workers: int = 0,
    collate: str = "same",
    annotations: Any = None,
    outside: bool = False,
    verbose: bool = True,
    **changes: Any,
) -> MigratedLoader:
    """A Loader that gives the batches of a torch DataLoader, and a report of what became of it.

    Datasets of torchvision (ImageFolder, DatasetFolder, CIFAR10/100, MNIST and its kin, SVHN,
    CocoDetection), TensorDataset and Subsets of them become sources, transforms of torchvision
    (v1 and v2) operators. What has no operator, and every other map-style dataset, runs as a step
    in Python, on one thread or in ``python_workers`` processes. Random orders and draws are others
    than torch's, from the same distributions.

    Args:
        dataloader: over a map-style dataset. It is not iterated, apart from a sampler that
            Headrace does not know.
        check: compare 32 records of both, without what is random.
        collate: "same" runs a collate_fn that has no form of ours on the records of each finished
            batch, whose stack is the batch itself; "run" runs every one; "copy" runs it on copies,
            which it may change in place; "default" leaves it out.
        annotations: CocoDetection's file.
        outside: read pictures that it names outside of their folder, too (absolute names, or
            with ".."): of datasets that you trust.
        verbose: print the report, which is also ``loader.report``.
        changes: keywords of Loader that replace what was found, such as ``sampler=``.

    Raises ConfigError HR0834 for what cannot be translated, with the way out, and HR0835 where a
    record differs.
    """
    if not hasattr(dataloader, "dataset") or not hasattr(dataloader, "collate_fn"):
        raise REFUSED.error(
            f"{type(dataloader).__name__} is no DataLoader",
            hint="a dataset is hr.from_dataloader(DataLoader(dataset, batch_size=...)), or "
            "hr.Loader(dataset, [...], batch_size=...)",
        )
    report = Report(f"DataLoader over {type(dataloader.dataset).__name__}")
    _refuse_iterable(dataloader)
    batching = Batching(dataloader, collate, report)
    dataset = datasets.translate(dataloader.dataset, Told(annotations, outside))
    try:
        image_steps = _image_steps(dataset)
    except NoOperator as reason:
        joint = f"its transforms take image and target together, and {reason}"
        dataset, image_steps = datasets.asked(dataloader.dataset, joint), []
    if (wanted := changes.get("fields")) is not None:
        # What is not delivered need not be compared, or move along.
        wanted = (wanted,) if isinstance(wanted, str) else wanted
        dataset.fields = tuple(name for name in dataset.fields if name in wanted)
    native = not dataset.steps
    report.add(
        f"{dataset.name} ({len(dataset.source):,} records)",
        NATIVE if native else PYTHON,
        dataset.note,
    )
    label_step = _label_step(dataset)
    for step in [*image_steps, *([label_step] if label_step else [])]:
        for name in step.names:
            report.add(name, NATIVE if step.native else PYTHON, step.note)
    keywords = keywords_from(dataloader, len(dataset.source), report, changes)
    _note_the_rest(dataloader, dataset, report, python_workers)
    if check:
        comparison.compare(dataset, image_steps, label_step, report, changes)
    steps = [*dataset.steps, *(step for part in image_steps for step in part.step)]
    if label_step:
        steps += label_step.step
    steps += batching.steps(dataset, keywords | changes)
    loader = MigratedLoader(
        dataset.source,
        steps,
        **{
            "fields": dataset.fields,
            "ragged": "list" if dataset.ragged or batching.runs else None,
            "python_workers": python_workers,
            **keywords,
            **changes,
        },
    )
    loader.report = report
    loader.node = dataset.node
    batching.give_to(loader, dataset, steps, check)
    loader.take_after(dataloader)
    if verbose:
        print(report)
    return loader


def _refuse_iterable(dataloader: Any) -> None:
    kind = getattr(dataloader, "_dataset_kind", 0)
    if "Iterable" in str(kind) or kind == 1:
        raise REFUSED.error(
            f"{type(dataloader.dataset).__name__} is an IterableDataset, whose records have no "
            "numbers",
            hint="hr.prefetch(dataloader, device) feeds a GPU from it; hr.open() reads shards",
        )


def _image_steps(dataset: Dataset) -> list[Translated]:
    if dataset.transform is None:
        return []
    numbers = (0, len(dataset.source) // 2, len(dataset.source) - 1)
    records = [dataset.raw(i) for i in numbers]
    probes = records if dataset.together else [record["image"] for record in records]
    return translate(dataset.transform, Form("pil", "uint8", dataset.fixed, probes))


def _label_step(dataset: Dataset) -> Translated | None:
    transform = dataset.target_transform
    if transform is None:
        return None

    def steadily(label: Any) -> Any:
        with seeded(0):
            return transform(label)

    given = steadily(dataset.raw(0)["label"])
    value = value_crossing(given)
    returns = None
    if not isinstance(value, (str, bytes)) and value.dtype.name not in _core.DType.__members__:
        raise REFUSED.error(
            f"target_transform makes the label {described(given)}",
            hint="a number, an array, a tensor or text; a label that is not there is -1, say",
        )
    if isinstance(value, (str, bytes)) or (value.dtype, value.shape) != ("int64", ()):
        returns = {"label": datasets.declared("label", [value])}
    return Translated(
        [f"target_transform {shown(transform)}"],
        [T.Python(OnTarget(transform), returns, fields="label")],
        [T.Python(OnTarget(transform, steady=True), returns, fields="label")],
        steadily,
        False,
        "a callable of your own",
    )


def _note_the_rest(dataloader: Any, dataset: Dataset, report: Report, python_workers: int) -> None:
    for name, keyword in KEYWORDS.items():
        value = getattr(dataloader, name, None)
        if keyword.unneeded and value is not None and value not in keyword.usual:
            said = name_of(value) if callable(value) else value
            report.add(f"{name}={said}", DROPPED, keyword.unneeded)
    if dataset.named:
        report.add('.torch(batch="dict")', ADVICE, "gives batches as dictionaries")
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
                f"runs the steps in Python in {count} processes; now they have one thread",
            )
