# SPDX-License-Identifier: Apache-2.0
"""The function that Ray Train runs on a number of workers that changes.

Steps are logged as in elastic_log. The worker of rank 1 is killed once, after STEPS_TO_DEATH steps.
If two workers continue, they pause after the same number of steps: Ray ends them as soon as a third
worker is available.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import ray.train
from elastic_log import GLOBAL, begin_log, note, position, range_of_numbers

import headrace as hr

EPOCHS, STEPS_TO_DEATH = 3, 5
MOST_WORKERS, LONG = 3, 120


def loop(config: dict[str, Any]) -> None:
    loader = hr.Loader(
        range_of_numbers(),
        global_batch_size=GLOBAL,
        shuffle=True,
        seed=3,
        last_batch="pad",
        uneven="pad",
        fields=("number", "valid"),
    )
    if checkpoint := ray.train.get_checkpoint():
        with checkpoint.as_directory() as folder:
            loader.load_state_dict(json.loads(Path(folder, "loader.json").read_text()))
    context = ray.train.get_context()
    rank, world = context.get_world_rank(), context.get_world_size()
    dead, steps = Path(config["log"], "dead"), 0
    with begin_log(Path(config["log"]), loader) as log:
        while loader.epoch < EPOCHS:
            for batch in loader:
                epoch, number = position(loader)
                ids = batch.number[batch.valid].tolist()
                note(log, epoch, number - 1, ids, len(batch.number))
                steps += 1
                if steps % 2 == 0:
                    report(loader, rank)
                if steps == STEPS_TO_DEATH and rank == 1 and not dead.exists():
                    dead.touch()
                    os.kill(os.getpid(), signal.SIGKILL)
                if steps == STEPS_TO_DEATH and world < MOST_WORKERS and dead.exists():
                    time.sleep(LONG)


def report(loader: hr.Loader, rank: int) -> None:
    """One state for all ranks, with which Ray commits the step."""
    with tempfile.TemporaryDirectory() as folder:
        saved = None
        if rank == 0:
            Path(folder, "loader.json").write_text(json.dumps(loader.state_dict()))
            saved = ray.train.Checkpoint.from_directory(folder)
        ray.train.report({"epoch": loader.epoch}, checkpoint=saved)
