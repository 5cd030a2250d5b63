# SPDX-License-Identifier: Apache-2.0
"""Translates a DataLoader's collate_fn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from headrace.arguments import one_of
from headrace.loader import Loader
from headrace.migrate import collate as collates
from headrace.migrate import fast_mixup, padded
from headrace.migrate.collated import Collated
from headrace.migrate.generators import generators_in
from headrace.migrate.known_dataset import REFUSED, Dataset
from headrace.migrate.migrated_loader import MigratedLoader
from headrace.migrate.modules import name_of
from headrace.migrate.pipeline import Parts
from headrace.migrate.prefetched import Prefetched
from headrace.migrate.report import CHANGED, NATIVE, PYTHON, Report
from headrace.migrate.samples import NoSamples, Samples
from headrace.migrate.seeding import seeded
from headrace.migrate.translations.registry import NoOperator, shown
from headrace.migrate.transposed import Transposed
from headrace.sources import subset

_TRIED = 8  # sampled records
_STATE = "its calls change its state, which is not in state_dict(): a resumed run starts without it"


class Batching:
    """How samples become a batch. ``how``: "stack", "mix" (one of our steps), "transpose" (a tuple
    per field), "pad" (two fields), or "run": the function itself, on the records of the finished
    batch.
    """

    def __init__(
        self, dataloader: Any, prefetched: Prefetched | None, collate: str, report: Report
    ) -> None:
        one_of("collate", collate, ("same", "run", "copy", "default"))
        self.function = dataloader.collate_fn
        self.name = f"collate_fn={name_of(self.function)}"
        self._dataset = dataloader.dataset
        self._report = report
        self._copies = collate == "copy"
        self._mixing: Any = None
        self.left_out: frozenset[str] = frozenset()  # for records that no function reads
        self._prefetched = prefetched
        self.how = "run"
        if collate in ("run", "copy"):
            return
        if collates.is_default(self.function):
            self.how = "stack"
        elif collate == "default":
            self.how = "stack"
            report.add(self.name, CHANGED, "omitted: fields are stacked")
        elif self._stacks_bytes():
            self.how = "stack"
            report.add(self.name, NATIVE)
        elif collates.is_transposing(self.function):
            self.how = "transpose"
        elif padded.is_padding(self.function):
            self.how = "pad"
        elif (mixing := collates.mixing_of(self.function)) is not None:
            self.how, self._mixing = "mix", mixing

    @property
    def runs(self) -> bool:
        """Whether the function is called."""
        return self.how in ("run", "transpose")

    @property
    def lists(self) -> bool:
        """Whether records may have any shape."""
        return self.runs or self.how == "pad"

    def options(self, dataset: Dataset, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Options for the Loader. Fields that cannot be padded are passed to the function."""
        if self.how == "pad" and ({"ragged", "fields"} & {*changes} or not self._pads(dataset)):
            self.how = "run"
        if self.how == "pad":
            # Images and masks that the engine reads are padded by default.
            values = dict(zip(dataset.fields, padded.FILLS, strict=True)) if dataset.steps else None
            return {"ragged": "pad", "pad_value": values}
        return {"ragged": "list" if dataset.ragged or self.runs else None}

    def _pads(self, dataset: Dataset) -> bool:
        """Whether a record consists of two tensors, which are its fields in this order."""
        try:
            sample = self._sample()
        except NoSamples:
            return False
        if not isinstance(sample, tuple) or len(sample) != 2 or len(dataset.fields) != 2:
            return False
        return all(hasattr(each, "detach") and each.ndim >= 2 for each in sample) and (
            bool(dataset.steps) or dataset.fields == ("image", "mask")
        )

    def _stacks_bytes(self) -> bool:
        """Whether it is timm's fast_collate on uint8 images and class indices."""
        home = str(getattr(self.function, "__module__", ""))
        if name_of(self.function) != "fast_collate" or not home.startswith("timm."):
            return False
        try:
            image, label = self._sample()
        except (NoSamples, ValueError, TypeError):
            return False
        return isinstance(label, int) and str(getattr(image, "dtype", "")).endswith("uint8")

    def prefetch(self, dataset: Dataset, parts: Parts) -> None:
        """Adds the work of timm's PrefetchLoader to the steps of images; without steps, or if the
        function is run, it is done on the function's batches.
        """
        prefetched = self._prefetched
        if prefetched is None:
            return
        reason = "done to the batches of its collate_fn"
        if self.how == "stack" and "image" in dataset.fields and {*parts.pictures} <= {"image"}:
            try:
                parts.pictures.setdefault("image", []).extend(prefetched.steps(self._sample()[0]))
                return
            except NoOperator as why:
                reason = f"{reason}: {why}"
        self._report.add(prefetched.name, PYTHON, reason)
        self.how = "run"

    def steps(self, dataset: Dataset, keywords: Mapping[str, Any]) -> list[Any]:
        """Steps that mix the records of a batch; a function without an equivalent is run."""
        if self.how != "mix":
            return []
        group = keywords.get("batch_size") or keywords.get("global_batch_size")
        if group and set(dataset.fields) == {"image", "label"}:
            try:
                step = collates.mixing_step(self._mixing, int(group))
            except NoOperator:
                pass
            else:
                note = f"one draw for each {group} positions"
                self._report.add(f"collate_fn: {shown(self._mixing)}", NATIVE, note)
                return [step]
        self.how = "run"
        return []

    def give_to(
        self, loader: MigratedLoader, dataset: Dataset, steps: list[Any], check: bool
    ) -> None:
        """Gives the loader's torch batches the function's structure. steps: the loader's
        transforms.
        """
        loader.transposed = self.how == "transpose"
        if self.how == "pad":
            loader.collated = padded.Padded(dataset.fields)
            fills = zip(dataset.fields, padded.FILLS, strict=True)
            said = ", ".join(f"{name} with {fill}" for name, fill in fills)
            self._report.add(self.name, NATIVE, f"padded to the largest of the batch: {said}")
            return
        if not self.runs:
            return
        try:
            samples = Samples(self._sample(), loader.assembly.field_names(), dataset.node)
        except NoSamples as reason:
            if self.how == "transpose":
                note = "fields that differ in shape are lists; batch.per_record() of the targets' "
                self._report.add(self.name, NATIVE, note + "fields is the list of targets")
                return
            raise self._refused(str(reason)) from None
        if self.how == "transpose":
            loader.collated = Transposed(self.function, samples)
            note = "the records' parts, each as a tuple or list of all records"
            self._report.add(self.name, NATIVE, note)
            return
        after = self._prefetched
        fast = None if self._copies else fast_mixup.of(self.function, samples, after)
        loader.collated = fast or Collated(self.function, samples, self._copies, after)
        cost = self._cost(loader, dataset, steps) if check else ""
        copies = ", on copies of its records" if loader.collated.copies else ""
        if state := loader.collated.state:
            self._report.add(f"state of {self.name}", CHANGED, f"{state}: {_STATE}")
        note = f"run on each finished batch of .torch(){copies}{cost}"
        self._report.add(self.name, PYTHON, note)

    def _sample(self) -> Any:
        """The first record, as the dataset returns it."""
        try:
            with seeded(0, generators_in(self._dataset)):
                record = self._dataset[0]
        except Exception as reason:
            raise NoSamples(f"record 0 of the dataset raised {reason!r}") from reason
        if not self.left_out:
            return record
        return {name: value for name, value in record.items() if name not in self.left_out}

    def _cost(self, loader: MigratedLoader, dataset: Dataset, steps: list[Any]) -> str:
        collated = loader.collated
        assert isinstance(collated, Collated)
        count = min(_TRIED, len(dataset.source), loader.batch_size)
        given = {**loader.assembly.given, "batch_size": count, "global_batch_size": None}
        given.update(sampler=None, shuffle=False, shard=False, index=False, quarantine=None)
        given.update(last_batch="keep", python_workers=0)
        with Loader(subset(dataset.source, np.arange(count)), steps, **given) as few:
            batch = next(iter(few.torch()))
            try:
                seconds = collated.tried(few.assembly.layout(), batch._asdict())
            except Exception as reason:
                raise self._refused(f"{type(reason).__name__}: {reason}") from reason
        size = loader.batch_size
        return f": {seconds * size * 1e3:.2g} ms of CPU per batch of {size}"

    def _refused(self, reason: str) -> Exception:
        return REFUSED.error(
            f"its {self.name} cannot be run on records of finished batches: {reason}",
            hint='collate="default" omits it: fields are stacked, or lists with ragged="list". '
            "Move work on single records to a function in the list of transforms, and work on "
            "batches to the loop",
        )
