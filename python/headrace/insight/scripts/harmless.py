# SPDX-License-Identifier: Apache-2.0
"""What a script that is only examined must not do: store checkpoints, report to trackers.

Everything is switched off by environment variables, or in modules when the script imports them;
nothing is imported for it. What is off is a row of a table here.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from headrace.insight.examination.after_import import Change, when_imported


class Tracker(NamedTuple):
    """How one is kept from reporting: variables, and arguments that are forced on a call.

    In values, "{folder}" is a temporary folder, which is removed afterwards.
    """

    name: str
    variables: dict[str, str]
    forced: dict[str, dict[str, str]]  # "module:Class.method" -> its arguments


TRACKERS = (
    Tracker(
        "TensorBoard",
        {},
        {
            "tensorboard.summary.writer.event_file_writer:EventFileWriter.__init__": {
                "logdir": "{folder}"
            },
            "tensorboardX.writer:SummaryWriter.__init__": {"logdir": "{folder}"},
        },
    ),
    Tracker(
        "Weights & Biases",
        {"WANDB_MODE": "disabled", "WANDB_DIR": "{folder}"},
        {"wandb:init": {"mode": "disabled"}},
    ),
    Tracker(
        "MLflow",
        {"MLFLOW_TRACKING_URI": "file://{folder}/mlruns", "MLFLOW_ALLOW_FILE_STORE": "true"},
        {
            "mlflow.tracking._tracking_service.utils:set_tracking_uri": {
                "uri": "file://{folder}/mlruns"
            }
        },
    ),
    Tracker("Comet", {"COMET_AUTO_LOG_DISABLE": "1", "COMET_OFFLINE_DIRECTORY": "{folder}"}, {}),
    Tracker(
        "Neptune",
        {"NEPTUNE_MODE": "debug", "NEPTUNE_DATA_DIRECTORY": "{folder}"},
        {
            "neptune.metadata_containers.run:Run.__init__": {"mode": "debug"},
            "neptune_scale.api.run:Run.__init__": {"mode": "disabled"},
        },
    ),
    Tracker("ClearML", {"CLEARML_OFFLINE_MODE": "1", "CLEARML_CACHE_DIR": "{folder}"}, {}),
    Tracker("Aim", {}, {"aim.sdk.base_run:BaseRun.__init__": {"repo": "{folder}"}}),
)
# Where checkpoints are stored, and the argument that says to which file.
SAVERS = {
    "torch:save": "f",
    "torch.jit:save": "f",
    "safetensors.torch:save_file": "filename",
    "safetensors.torch:save_model": "filename",
    "torch.distributed.checkpoint.state_dict_saver:save": "checkpoint_id",
    "lightning.fabric.utilities.cloud_io:_atomic_save": "filepath",
    "lightning_fabric.utilities.cloud_io:_atomic_save": "filepath",
}


def off() -> str:
    """What is switched off, for people."""
    names = ", ".join(tracker.name for tracker in TRACKERS)
    return f"torch.save and safetensors (checkpoints go nowhere); {names}"


class Stored:
    """The checkpoints that were not stored, by the names that the script gave them."""

    def __init__(self) -> None:
        self.count = 0
        self.names: list[str] = []

    def add(self, where: object) -> None:
        self.count += 1
        name = where if isinstance(where, (str, os.PathLike)) else getattr(where, "name", "")
        text = os.fspath(name) if isinstance(name, (str, os.PathLike)) else ""
        if isinstance(text, str) and text and text not in self.names:
            self.names.append(text)


@contextlib.contextmanager
def harmless(folder: str) -> Iterator[Stored]:
    """While it lasts, checkpoints go nowhere and trackers report nothing."""
    stored = Stored()
    changes: dict[str, list[tuple[str, Callable[[Any], Any]]]] = {}

    def plan(place: str, wrap: Callable[[Any], Any]) -> None:
        module, _, attribute = place.partition(":")
        changes.setdefault(module, []).append((attribute, wrap))

    for place, argument in SAVERS.items():
        plan(place, functools.partial(_nowhere, argument=argument, stored=stored))
    for tracker in TRACKERS:
        for place, values in tracker.forced.items():
            values = {name: value.format(folder=folder) for name, value in values.items()}
            plan(place, functools.partial(_forced, values=values))
    undo = contextlib.ExitStack()
    with undo:
        for tracker in TRACKERS:
            for name, value in tracker.variables.items():
                undo.callback(_set_variable, name, os.environ.get(name))
                os.environ[name] = value.format(folder=folder)
        undo.enter_context(when_imported({m: _change(undo, c) for m, c in changes.items()}))
        yield stored


def _change(undo: contextlib.ExitStack, calls: list[tuple[str, Callable[[Any], Any]]]) -> Change:
    """Replaces functions of a module, and methods of its classes, until ``undo``."""

    def change(module: Any) -> None:
        for path, wrap in calls:
            *classes, name = path.split(".")
            owner = module
            for part in classes:
                owner = getattr(owner, part, None)
            original = getattr(owner, name, None)
            if original is not None:
                setattr(owner, name, wrap(original))
                undo.callback(setattr, owner, name, original)

    return change


def _set_variable(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def _nowhere(save: Callable[..., Any], argument: str, stored: Stored) -> Callable[..., Any]:
    """``save`` for what stays in memory only; what would be a file is counted instead."""
    signature = inspect.signature(save)

    @functools.wraps(save)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            where = signature.bind(*args, **kwargs).arguments.get(argument)
        except TypeError:
            return save(*args, **kwargs)  # which says what is wrong
        if isinstance(where, io.BytesIO):
            return save(*args, **kwargs)
        stored.add(where)
        return None

    return run


def _forced(call: Callable[..., Any], values: dict[str, str]) -> Callable[..., Any]:
    """``call`` with these arguments, whatever it is given for them."""
    signature = inspect.signature(call)
    named = {n: v for n, v in values.items() if n in signature.parameters}
    others = {n: v for n, v in values.items() if n not in signature.parameters}

    @functools.wraps(call)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **{**kwargs, **others})
        except TypeError:
            return call(*args, **kwargs)  # which says what is wrong
        bound.arguments.update(named)
        return call(*bound.args, **bound.kwargs)

    return run
