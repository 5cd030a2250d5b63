# SPDX-License-Identifier: Apache-2.0
"""State that a translation relies on: changing the DataLoader afterwards is an error.

Code that runs in Python follows the script's changes, and is not checked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from headrace.errors import declare
from headrace.migrate.known_dataset import Dataset
from headrace.migrate.look.outside import Outside
from headrace.migrate.order import batches_of, is_torchs, sampler_of
from headrace.migrate.pipeline import Parts
from headrace.migrate.samplers import Asked
from headrace.migrate.snapshot import Snapshot

_CHANGED = declare(
    "HR0836",
    "config",
    "DataLoader changed after from_dataloader",
    "from_dataloader() reads a DataLoader once: paths and labels become columns, transforms "
    "become operators, a sampler becomes a Headrace sampler. Later changes by the script, such as "
    "dataset.labels[i], transform.transforms[0].size or sampler.weights, would have no effect, so "
    "they are an error when the next iteration begins. Call from_dataloader() again after such a "
    "change. Datasets, transforms and samplers that run in Python follow every change.",
)

Roots = dict[str, Callable[[], Any]]


class Unchanged:
    """The objects from which a loader was made, checked for changes."""

    def __init__(
        self, roots: Roots, current: list[Any], outside: Outside, without: tuple[str, ...] = ()
    ) -> None:
        self._snapshot = Snapshot(roots, current, without)
        self._outside = outside
        self.left_out = [*self._snapshot.left_out, *outside.left_out]

    def check(self) -> None:
        """Raises ConfigError HR0836 if something has changed."""
        if change := self._snapshot.change() or self._outside.change():
            raise _CHANGED.error(
                change,
                hint="call hr.from_dataloader(dataloader) again after the change, or make it "
                "before the first call",
            )


def relied_on(
    dataloader: Any,
    given: Any,
    dataset: Dataset,
    parts: Parts,
    runs: bool,
    keywords: Mapping[str, Any],
    changes: Mapping[str, Any],
    workers: int = 0,
) -> Unchanged:
    """The objects that a loader relies on. given: the DataLoader, or its wrapper. runs: whether its
    collate_fn is called. keywords: the derived ones; changes: the caller's replacements. workers:
    processes with copies of Python code, which do not follow changes.
    """
    current = [*([] if workers else _in_python(parts)), *dataset.current]
    roots: Roots = {"collate_fn": lambda: dataloader.collate_fn}
    if runs:
        current.append(dataloader.collate_fn)
    if dataset.steps:
        roots.update(_of_subsets(dataloader.dataset))
        base = _base_of(dataloader.dataset)
        if workers:
            roots[type(base).__name__] = lambda: base
        else:
            current.append(base)
    else:
        roots[type(dataloader.dataset).__name__] = lambda: dataloader.dataset
        roots["torch.get_default_dtype()"] = _default_dtype
    roots.update(dataset.beside)
    if given is not dataloader:
        around = _attributes_of(given, ("img_dtype", "mean", "std", "random_erasing"))
        roots.update((f"{type(given).__name__}{name}", each) for name, each in around.items())
    sampler = sampler_of(dataloader)
    if isinstance(keywords.get("sampler"), Asked):
        current.append(keywords["sampler"].sampler)
    elif not {"shuffle", "sampler"} & changes.keys():
        roots[type(sampler).__name__] = lambda: sampler
    batches = batches_of(dataloader)
    if is_torchs(batches, "BatchSampler") and "batch_size" in keywords:
        own = _attributes_of(batches, ("batch_size", "drop_last", "sampler"))
        roots.update((f"BatchSampler{name}", each) for name, each in own.items())
    epoch = f"{type(sampler).__name__}.epoch"
    return Unchanged(roots, current, dataset.outside, (epoch,))


def _default_dtype() -> Any:
    """Default dtype of tensors that a dataset or a transform makes from numbers."""
    return sys.modules["torch"].get_default_dtype()


def _attributes_of(owner: Any, names: tuple[str, ...]) -> Roots:
    def reader(name: str) -> Callable[[], Any]:
        return lambda: getattr(owner, name)

    return {f".{name}": reader(name) for name in names}


def _in_python(parts: Parts) -> list[Any]:
    """Transforms that are called unchanged."""
    called = [each for step in parts.all if not step.native for each in step.transforms]
    return [*called, *(getattr(each, "transform", None) for each in called)]


def _base_of(dataset: Any) -> Any:
    while _is_subset(dataset):
        dataset = dataset.dataset
    return dataset


def _of_subsets(dataset: Any) -> Roots:
    """For a dataset that is called for its records: the set of record numbers."""
    out: Roots = {}
    name = "Subset"
    while _is_subset(dataset):
        own = _attributes_of(dataset, ("indices", "dataset"))
        out.update((f"{name}{part}", each) for part, each in own.items())
        name, dataset = f"{name}.dataset", dataset.dataset
    base = dataset
    out[f"len({type(base).__name__})"] = lambda: len(base)
    return out


def _is_subset(dataset: Any) -> bool:
    kind = type(dataset)
    return kind.__name__ == "Subset" and kind.__module__.startswith("torch.")
