# SPDX-License-Identifier: Apache-2.0
"""Ray Train with a changing number of workers. The checkpoint that Ray commits has the model
and one position for all workers, whose number need not divide the batch.

    python examples/ray/elastic.py train/ --workers 2 4 --storage /shared/runs
"""

from __future__ import annotations

import argparse
import os
import tempfile
from typing import Any

import ray.train
import torch
from ray.train.torch import TorchTrainer, prepare_model

import headrace as hr
from headrace import transforms as T


def train(config: dict[str, Any]) -> None:
    # shard="auto" uses the process group that Ray Train has created.
    loader = hr.Loader(
        config["data"],
        [T.RandomResizedCrop(64), T.RandomHorizontalFlip(), T.ToDtype("float32", scale=True)],
        global_batch_size=config["global_batch_size"],
        shuffle=True,
        last_batch="drop",
        uneven=True,  # slices of two sizes if the batch is not divisible by the number of workers
    ).torch()
    model = prepare_model(torch.nn.Linear(3, config["classes"]))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    records = 0  # that all workers have trained on, by the steps that are in a checkpoint
    if checkpoint := ray.train.get_checkpoint():
        with checkpoint.as_directory() as folder:
            saved = torch.load(os.path.join(folder, "run.pt"))
        model.load_state_dict(saved["model"])
        loader.load_state_dict(saved["loader"])
        records = saved["records"]
    rank = ray.train.get_context().get_world_rank()
    while loader.epoch < config["epochs"]:
        for step, batch in enumerate(loader, 1):
            loss = torch.nn.functional.cross_entropy(model(batch.image.mean((2, 3))), batch.label)
            optimizer.zero_grad()
            (batch.weight * loss).backward()  # the mean over ranks is the global batch's
            optimizer.step()
            trained = torch.tensor(len(batch.label))
            torch.distributed.all_reduce(trained)
            records += int(trained)
            if step % config["every"] and step < len(loader):
                continue
            with tempfile.TemporaryDirectory() as folder:
                saved = None
                if rank == 0:  # one state for all ranks, with the model of the same step
                    run = {
                        "model": model.state_dict(),
                        "loader": loader.state_dict(),
                        "records": records,
                    }
                    torch.save(run, os.path.join(folder, "run.pt"))
                    saved = ray.train.Checkpoint.from_directory(folder)
                ray.train.report({"records": records, "loss": loss.item()}, checkpoint=saved)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="a path or URL that headrace.open() accepts")
    parser.add_argument(
        "--workers", type=int, nargs=2, default=(1, 2), help="minimum and maximum number"
    )
    parser.add_argument("--storage", help="a folder for checkpoints that all machines see")
    parser.add_argument("--global-batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=2)
    arguments = parser.parse_args()
    trainer = TorchTrainer(
        train,
        train_loop_config={
            "data": os.path.abspath(arguments.data),
            "classes": len(hr.open(arguments.data).classes),
            "global_batch_size": arguments.global_batch_size,
            "epochs": arguments.epochs,
            "every": 20,
        },
        scaling_config=ray.train.ScalingConfig(num_workers=tuple(arguments.workers)),
        run_config=ray.train.RunConfig(
            storage_path=arguments.storage and os.path.abspath(arguments.storage),
            failure_config=ray.train.FailureConfig(max_failures=-1),
        ),
    )
    found = trainer.fit().metrics
    print(f"{found['records']} records in {arguments.epochs} epochs, loss {found['loss']:.3f}")


if __name__ == "__main__":
    main()
