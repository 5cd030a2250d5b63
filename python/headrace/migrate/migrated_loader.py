# SPDX-License-Identifier: Apache-2.0
"""The result of from_dataloader: a Loader that replaces a DataLoader in its script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headrace.frameworks.torch_view import TorchBatches
from headrace.loader import Loader
from headrace.loader.form import Cast, Form
from headrace.migrate.collated import Collated, CollatedForm
from headrace.migrate.nested_batches import NestedForm
from headrace.migrate.nesting import Node
from headrace.migrate.order import batches_of
from headrace.migrate.padded import Padded
from headrace.migrate.report import Report
from headrace.migrate.samplers import Asked, Followed
from headrace.migrate.transposed import Transposed
from headrace.migrate.unchanged import Unchanged


class MigratedLoader(Loader):
    """A Loader whose ``report`` lists how each part of the DataLoader was translated. It follows
    the epochs that a script sets on the DataLoader's sampler.
    """

    report: Report
    node: Node | None = None  # how its records nest; None: batches only have fields
    transposed = False  # nested values are returned as a tuple of records
    casts: Mapping[str, Cast] = {}  # dtypes of fields that differ in the engine
    # Makes its torch batches; None: they are its fields.
    collated: Collated | Padded | Transposed | None = None

    def take_after(self, dataloader: Any, given: Any, unchanged: Unchanged) -> None:
        """Sets the DataLoader that it replaces. given: its arguments. unchanged: the objects from
        which it was made.
        """
        self._given = given
        self._unchanged = unchanged
        sampler = self.assembly.given["sampler"]
        self._asked = sampler if isinstance(sampler, Asked) else None
        batches = batches_of(dataloader)
        self.original = dataloader
        self._followed = Followed(dataloader.sampler if batches is None else batches)
        self._follow()

    def _follow(self) -> None:
        """The DataLoader's current state. Raises ConfigError HR0836 if it cannot be followed."""
        self._unchanged.check()
        if (epoch := self._followed.news()) is not None:
            self.set_epoch(epoch)

    def iterate_as(self, form: Form) -> Iterator[Any]:
        """``iter`` for a view: batches in its form."""
        self._follow()
        if self._asked is not None:
            self._asked.forget()
        form.casts = self.casts
        return super().iterate_as(self._nested(form))

    def batch_as(self, epoch: int, index: int, form: Form) -> Any:
        """``batch`` for a view: in its form."""
        self._unchanged.check()
        form.casts = self.casts
        return super().batch_as(epoch, index, self._nested(form))

    @property
    def mixup_enabled(self) -> bool:
        """timm's PrefetchLoader attribute: whether its FastCollateMixup mixes."""
        return bool(self._given.mixup_enabled)

    @mixup_enabled.setter
    def mixup_enabled(self, enabled: bool) -> None:
        self._given.mixup_enabled = enabled

    def torch(self, device: Any = None, batch: str | None = None, depth: int = 2) -> TorchBatches:
        """Batches as torch tensors, like Loader.torch; if a collate_fn is run, its results on
        ``device``. batch: None gives dictionaries if records are dictionaries."""
        if batch is None:
            batch = "dict" if self.node is not None and self.node.how == "dict" else "tuple"
        if self.collated is None:
            return super().torch(device, batch, depth)
        view = super().torch(None, batch)
        view.form = CollatedForm(view.form, self.collated, self.assembly, device)
        return view

    def _nested(self, form: Form) -> Form:
        if self.node is None or self.node.is_flat or isinstance(form, (NestedForm, CollatedForm)):
            return form
        return NestedForm(form, self.node, self.transposed)

    def place(self) -> None:
        """Moves the engine's loader to where the iteration will begin."""
        self._follow()
        super().place()
