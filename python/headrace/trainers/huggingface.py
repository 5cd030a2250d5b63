# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's Trainer with Headrace loaders instead of datasets.

    class Trainer(huggingface.Loaders, transformers.Trainer): ...

    trainer = Trainer(model, args, train_dataset=train, eval_dataset=evaluation)

Tested with transformers 5.24 and accelerate 1.15.
"""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback
from transformers.trainer_callback import ExportableState

from headrace.frameworks.torch_view import TorchBatches
from headrace.loader import Loader
from headrace.loader.viewed import left_for_last_batch
from headrace.loader.views import Delivered
from headrace.migrate.migrated_loader import MigratedLoader
from headrace.trainers import MISFIT
from headrace.trainers.waiting import WaitShare


class Loaders:
    """A base class to put before ``transformers.Trainer``: its train_dataset, eval_dataset (also in
    a dictionary, or in evaluate()) and test_dataset may then be a loader, or the result of its
    ``.torch(batch="dict")``. Other datasets work as before. ``train(resume_from_checkpoint=...)``
    continues with the next batch, on any number of ranks with the same global batch, and rejects a
    checkpoint of different data, order or global batch (HR0711). Each log of the loss has
    ``data_wait_share``: the share of the time since the previous log that the loop waited for
    batches.
    """

    train_dataset: Any
    eval_dataset: Any
    args: Any
    _wait_share: WaitShare | None = None

    def get_train_dataloader(self) -> Any:
        view = _view(self.train_dataset, self.args.device)
        if view is None:
            return super().get_train_dataloader()  # type: ignore[misc]
        _check_size(view, self.args.train_batch_size, "per_device_train_batch_size")
        trainer: Any = self
        callbacks = trainer.callback_handler.callbacks
        if not any(isinstance(callback, Checkpoint) for callback in callbacks):
            trainer.add_callback(Checkpoint())
        if self._wait_share is not None:
            self._wait_share.close()
        self._wait_share = WaitShare(view)
        return view

    def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
        chosen = self.eval_dataset if eval_dataset is None else eval_dataset
        if isinstance(eval_dataset, str):
            chosen = self.eval_dataset[eval_dataset]
        view = _view(chosen, self.args.device)
        if view is None:
            return super().get_eval_dataloader(eval_dataset)  # type: ignore[misc]
        return _checked_for_gathering(view, self.args.eval_batch_size)

    def get_test_dataloader(self, test_dataset: Any) -> Any:
        view = _view(test_dataset, self.args.device)
        if view is None:
            return super().get_test_dataloader(test_dataset)  # type: ignore[misc]
        return _checked_for_gathering(view, self.args.eval_batch_size)

    def log(self, logs: dict[str, float], *more: Any, **named: Any) -> None:
        if self._wait_share is not None and "loss" in logs:
            share = self._wait_share.since_last()
            if share is not None:
                logs["data_wait_share"] = round(share, 4)
        super().log(logs, *more, **named)  # type: ignore[misc]


class Checkpoint(TrainerCallback, ExportableState):  # type: ignore[misc]
    """Stores the loader's state in the Trainer's checkpoints, and compares it when one is resumed.
    ``Loaders`` adds it; if you override ``get_train_dataloader``, add it to the Trainer's
    ``callbacks``. Raises ConfigError HR0711 for a checkpoint of different records, a different
    order or another global batch, HR0850 if the Trainer would continue at another position.
    """

    def __init__(self) -> None:
        self.saved: dict[str, int] | None = None
        self._view: Any = None

    def state(self) -> dict[str, Any]:
        """The state that the Trainer writes into trainer_state.json."""
        if self._view is not None:
            self.saved = self._view.state_dict()
        return {"args": {}, "attributes": {"saved": self.saved}}

    def on_train_begin(self, args: Any, state: Any, control: Any, **known: Any) -> None:
        view = known["train_dataloader"]
        if not isinstance(view, TorchBatches):
            return
        name = type(self).__name__
        found = state.stateful_callbacks.get(name) if state.global_step else None
        saved = found["attributes"]["saved"] if found else None
        if saved is not None:
            view.load_state_dict(saved)
            if not args.ignore_data_skip:
                _check_place(saved, state.global_step, args.gradient_accumulation_steps, len(view))
        self._view = view
        state.stateful_callbacks[name] = (
            self.state()
        )  # a checkpoint made without this callback has no entry


def _view(dataset: Any, device: Any) -> Any:
    """The view to iterate; None for objects other than loaders and views."""
    if isinstance(dataset, MigratedLoader):
        return dataset.torch(device)  # like the batches of its DataLoader
    if isinstance(dataset, Loader):
        return dataset.torch(device, batch="dict")
    if isinstance(dataset, Delivered) and not isinstance(dataset, TorchBatches):
        raise MISFIT.error(
            f"a {type(dataset).__name__} does not deliver torch tensors",
            hint='pass the loader itself, or its .torch(batch="dict")',
        )
    return dataset if isinstance(dataset, TorchBatches) else None


def _varies(view: Any) -> bool:
    """Whether the sampler decides the sizes of batches."""
    given = view.assembly.given
    return given["batch_size"] is None and given["global_batch_size"] is None


def _check_size(view: Any, expected: int, argument: str) -> None:
    if not _varies(view) and view.batch_size != expected:
        raise MISFIT.error(
            f"the loader has {view.batch_size} records per batch and rank, TrainingArguments has "
            f"{expected}",
            hint=f"{argument}={view.batch_size}, which the Trainer uses to count steps and weight "
            "metrics",
        )


def _checked_for_gathering(view: Any, batch_size: int) -> Any:
    """Returns the view; raises HR0850 unless its batches have the same number of rows on all ranks
    (full, or padded by last_batch="pad").
    """
    _check_size(view, batch_size, "per_device_eval_batch_size")
    if _varies(view):
        _check_each(view)
        return view
    together, ranks = view.present_state()["global_batch"], view.assembly.shard.world_size
    left = left_for_last_batch(view)
    if together % ranks or (view.assembly.given["last_batch"] == "keep" and left % ranks):
        rows = together if together % ranks else left
        raise MISFIT.error(
            f"{ranks} ranks have different numbers of the {rows} records in an evaluation batch, "
            "but gathering needs equal numbers",
            hint='last_batch="pad", and a global_batch_size divisible by the number of ranks',
        )
    return view


def _check_each(view: Any) -> None:
    """The same for batches of varying sizes, which do not depend on the epoch."""
    engine = view.assembly.engine()
    uneven = [number for number in range(len(view)) if engine.weight(number) != 1]
    if uneven:
        raise MISFIT.error(
            f"{view.assembly.shard.world_size} ranks have different numbers of records in "
            f"{len(uneven):,} of {len(view):,} evaluation batches, the first of which is number "
            f"{uneven[0]}, but gathering needs equal numbers",
            hint='batches of one size (batch_size=, last_batch="pad"), or evaluation on one rank',
        )


def _check_place(saved: dict[str, int], step: int, accumulation: int, batches: int) -> None:
    """Raises ConfigError HR0850 if the Trainer, which counts steps, would resume at another
    position.
    """
    steps = -(-batches // accumulation)  # optimizer steps per epoch
    there = step // steps, step % steps * accumulation
    stands = saved["epoch"], saved["batch"]
    if saved["batch"] >= batches:
        stands = saved["epoch"] + 1, 0
    if there != stands:
        raise MISFIT.error(
            f"the checkpoint's loader is at batch {stands[1]} of epoch {stands[0]}, but the "
            f"Trainer would continue with batch {there[1]} of epoch {there[0]}: "
            f"gradient_accumulation_steps={accumulation} differs from the checkpoint's",
            hint="use the same gradient_accumulation_steps, or ignore_data_skip=True for a new "
            "epoch",
        )
