# SPDX-License-Identifier: Apache-2.0
"""Ray Train with a number of workers that changes: each keeps one position for all, in the
checkpoint that Ray commits.

    python examples/ray/elastic.py train/ --workers 2 4
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from typing import Any

import ray
import ray.train
from ray.train.torch import TorchTrainer

import headrace as hr
from headrace import transforms as T


def train(config: dict[str, Any]) -> None:
    # shard="auto" sees the process group that Ray Train has made.
    loader = hr.Loader(
        config["data"],
        [T.RandomResizedCrop(64), T.RandomHorizontalFlip()],
        global_batch_size=config["global_batch_size"],
        shuffle=True,
        last_batch="drop",
    )
    checkpoint = ray.train.get_checkpoint()
    if checkpoint:
        with checkpoint.as_directory() as folder, open(f"{folder}/loader.json") as file:
            loader.load_state_dict(json.load(file))
    rank = ray.train.get_context().get_world_rank()
    while loader.epoch < config["epochs"]:
        for number, _batch in enumerate(loader):
            ...  # a training step
            if number % config["every"]:
                continue
            with tempfile.TemporaryDirectory() as folder:
                if rank == 0:  # one state for all ranks, beside the model
                    with open(os.path.join(folder, "loader.json"), "w") as file:
                        json.dump(loader.state_dict(), file)
                saved = ray.train.Checkpoint.from_directory(folder) if rank == 0 else None
                ray.train.report({"epoch": loader.epoch}, checkpoint=saved)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="what headrace.open takes")
    parser.add_argument("--workers", type=int, nargs=2, default=(1, 2), help="least and most")
    arguments = parser.parse_args()
    trainer = TorchTrainer(
        train,
        train_loop_config={
            "data": os.path.abspath(arguments.data),
            "global_batch_size": 64,  # every number of workers must divide it
            "epochs": 2,
            "every": 20,
        },
        scaling_config=ray.train.ScalingConfig(num_workers=tuple(arguments.workers)),
        run_config=ray.train.RunConfig(failure_config=ray.train.FailureConfig(max_failures=-1)),
    )
    print(trainer.fit())


if __name__ == "__main__":
    main()
