# SPDX-License-Identifier: Apache-2.0
"""Keeps an examined script from reporting to trackers and from overwriting checkpoints. Trackers
are disabled by their own environment variables; their modules are not changed. torch.save opens its
file in C++, unseen by Python, so the journal is notified first.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator
from typing import Any

from headrace.insight.examination.after_import import when_imported
from headrace.insight.scripts.journal import SAVED, Journal

TRACKERS = {  # {folder}: a temporary folder, which is removed afterwards
    "Weights & Biases": {"WANDB_MODE": "disabled", "WANDB_DIR": "{folder}"},
    "MLflow": {
        "MLFLOW_TRACKING_URI": "file://{folder}/mlruns",
        "MLFLOW_ALLOW_FILE_STORE": "true",
    },
    "Comet": {"COMET_AUTO_LOG_DISABLE": "1", "COMET_OFFLINE_DIRECTORY": "{folder}"},
    "Neptune": {"NEPTUNE_MODE": "debug", "NEPTUNE_DATA_DIRECTORY": "{folder}"},
    "ClearML": {"CLEARML_OFFLINE_MODE": "1", "CLEARML_CACHE_DIR": "{folder}"},
}


@contextlib.contextmanager
def harmless(folder: str, journal: Journal) -> Iterator[None]:
    """Disables experiment trackers and records checkpoints in the journal, until the block ends."""
    with contextlib.ExitStack() as undo:
        for variables in TRACKERS.values():
            for name, value in variables.items():
                undo.callback(_set_variable, name, os.environ.get(name))
                os.environ[name] = value.format(folder=folder)

        def announce(torch: Any) -> None:
            original = torch.save

            @functools.wraps(original)
            def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
                journal.take(SAVED, (f,))
                return original(obj, f, *args, **kwargs)

            torch.save = save
            undo.callback(setattr, torch, "save", original)

        undo.enter_context(when_imported({"torch": announce}))
        yield


def _set_variable(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
