# SPDX-License-Identifier: Apache-2.0
"""Lightning with Headrace loaders: a data module, and the fraction of time spent waiting for
batches in the log.

    trainer.fit(model, datamodule=lightning.DataModule(train=train, val=val))

Tested with lightning 2.6.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lightning.pytorch import Callback, LightningDataModule

from headrace.loader import Loader
from headrace.loader.views import Delivered
from headrace.trainers.waiting import WaitShare as Share


class DataModule(LightningDataModule):  # type: ignore[misc]
    """A Lightning data module of loaders, whose batches are delivered on the trainer's device. Each
    argument is a headrace.Loader, or a list or dictionary of them, which Lightning combines; a view
    or another framework's loader is passed on unchanged. Lightning stores the training loader's
    state in its checkpoints.
    """

    def __init__(
        self, train: Any = None, val: Any = None, test: Any = None, predict: Any = None
    ) -> None:
        super().__init__()
        self._given = {"train": train, "val": val, "test": test, "predict": predict}
        for name, loaders in self._given.items():
            if loaders is None:  # Lightning checks whether the method exists
                setattr(self, f"{name}_dataloader", super().__getattribute__(f"{name}_dataloader"))

    def train_dataloader(self) -> Any:
        return self._on_device(self._given["train"])

    def val_dataloader(self) -> Any:
        return self._on_device(self._given["val"])

    def test_dataloader(self) -> Any:
        return self._on_device(self._given["test"])

    def predict_dataloader(self) -> Any:
        return self._on_device(self._given["predict"])

    def _on_device(self, loaders: Any) -> Any:
        if isinstance(loaders, Loader):
            trainer = self.trainer
            return loaders.torch(None if trainer is None else trainer.strategy.root_device)
        if isinstance(loaders, Mapping):
            return {name: self._on_device(loader) for name, loader in loaders.items()}
        if isinstance(loaders, (list, tuple)):
            return [self._on_device(loader) for loader in loaders]
        return loaders


class WaitShare(Callback):  # type: ignore[misc]
    """Logs ``data_wait_share`` with the training step's values: the share of the time since the
    previous log, from 0 to 1, that the loop waited for the training loader."""

    def __init__(self) -> None:
        self._shares: list[Share] = []

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._shares = [Share(loader) for loader in _ours(trainer.train_dataloader)]

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        if self._shares and trainer.global_step % trainer.log_every_n_steps == 0:
            shares = [share.since_last() for share in self._shares]
            known = [share for share in shares if share is not None]
            if known:
                self.log("data_wait_share", max(known), on_step=True, on_epoch=False)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        for share in self._shares:
            share.close()
        self._shares = []


def _ours(loaders: Any) -> Iterator[Any]:
    """The Headrace loaders among those that Lightning combines."""
    if isinstance(loaders, (Loader, Delivered)):
        yield loaders
    elif isinstance(loaders, Mapping):
        yield from (each for loader in loaders.values() for each in _ours(loader))
    elif isinstance(loaders, (list, tuple)):
        yield from (each for loader in loaders for each in _ours(loader))
