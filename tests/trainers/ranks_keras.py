# SPDX-License-Identifier: Apache-2.0
"""Keras' fit on a loader: uninterrupted, killed in mid-epoch, resumed from weights and state that a
callback saved. See forked.py.

Called with a folder.
"""

import functools
import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "torch")
import keras
import numpy as np
import torch
from forked import Notes, kill_this_rank, ranks

import headrace as hr

RECORDS, EPOCHS, SAVED, KILLED = 22, 3, 8, 10  # an epoch has 6 steps
folder = Path(sys.argv[1])


class Seen(keras.layers.Layer):  # type: ignore[misc, name-defined]
    """Notes the values that pass through it."""

    def __init__(self, notes: Notes) -> None:
        super().__init__()
        self.notes = notes

    def call(self, x: Any) -> Any:
        if hasattr(x, "tolist") and x.device.type != "meta":
            self.notes.add([row[0] for row in x.tolist()])
        return x


class Checkpoint(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
    """Saves weights and position after a step, and is killed after a later one."""

    def __init__(self, loader: hr.Loader, kill: bool) -> None:
        super().__init__()
        self.loader, self.kill, self.step = loader, kill, 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.step += 1
        if self.kill and self.step == SAVED:
            self.model.save_weights(folder / "killed.weights.h5")
            (folder / "killed.json").write_text(json.dumps(self.loader.state_dict()))
        if self.kill and self.step == KILLED:
            kill_this_rank()


def run(name: str, resumed: bool = False, kill: bool = False) -> None:
    x = np.arange(RECORDS, dtype=np.float32)[:, None]
    loader = hr.Loader(hr.records(x=x / 10, y=x), batch_size=4, shuffle=True, seed=5)
    notes = Notes(folder, name)
    model = keras.Sequential(
        [Seen(notes), keras.layers.Dense(1, kernel_initializer="ones", bias_initializer="zeros")]
    )
    model.compile(optimizer="sgd", loss="mse", run_eagerly=True)
    start = 0
    if resumed:
        model.build((None, 1))
        model.load_weights(folder / "killed.weights.h5")
        state = json.loads((folder / "killed.json").read_text())
        loader.load_state_dict(state)
        start = state["epoch"]
    saves = [Checkpoint(loader, kill)]
    for epoch in range(start, EPOCHS):  # a new train.keras() for each: the first may be shorter
        model.fit(loader.keras(), initial_epoch=epoch, epochs=epoch + 1, verbose=0, callbacks=saves)
    notes.add([weight.tolist() for weight in model.get_weights()])


torch.set_num_threads(1)
assert ranks(functools.partial(run, "whole"), 0) == [0]
assert ranks(functools.partial(run, "killed", kill=True), 0) == [-9]
assert ranks(functools.partial(run, "resumed", resumed=True), 0) == [0]
