# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's Trainer on two ranks: uninterrupted, killed in mid-epoch, resumed, evaluated.

Called with a folder, in which each run notes the records of its batches. See forked.py.
"""

import functools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from forked import Notes, kill_this_rank, ranks
from headrace.trainers import huggingface
from transformers import TrainingArguments

import headrace as hr

RECORDS, BATCH, EPOCHS, SAVED, KILLED = 45, 4, 3, 7, 11
folder = Path(sys.argv[1])


class Trainer(huggingface.Loaders, transformers.Trainer):  # type: ignore[misc]
    pass


class Kill(transformers.TrainerCallback):  # type: ignore[misc]
    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == KILLED:
            kill_this_rank()


class Model(torch.nn.Module):
    def __init__(self, notes: Notes) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.net = torch.nn.Linear(2, RECORDS)
        self.notes = notes

    def forward(self, x: Any, labels: Any) -> Any:
        if self.training:
            self.notes.add(labels.tolist())
        logits = self.net(x / 50)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


def records() -> hr.Source:
    x = np.arange(RECORDS * 2, dtype=np.float32).reshape(RECORDS, 2)
    return hr.records(x=x, labels=np.arange(RECORDS))


def accuracy(given: Any) -> dict[str, float]:
    seen = sorted(given.label_ids.tolist())
    return {"all_once": float(seen == list(range(RECORDS)))}


def trainer_of(name: str, callbacks: Any = ()) -> Any:
    arguments = TrainingArguments(
        output_dir=str(folder / name),
        num_train_epochs=EPOCHS,
        per_device_train_batch_size=BATCH,
        per_device_eval_batch_size=BATCH,
        save_strategy="steps",
        save_steps=SAVED,
        logging_steps=2,
        report_to=[],
        use_cpu=True,
        ddp_backend="gloo",
        disable_tqdm=True,
    )
    train = hr.Loader(records(), batch_size=BATCH, shuffle=True, seed=3, last_batch="drop")
    evaluation = hr.Loader(records(), batch_size=BATCH, last_batch="pad")
    return Trainer(
        model=Model(Notes(folder, name)),
        args=arguments,
        train_dataset=train,
        eval_dataset=evaluation,
        compute_metrics=accuracy,
        callbacks=list(callbacks),
    )


def run(name: str, checkpoint: str | None = None, callbacks: Any = ()) -> None:
    trainer = trainer_of(name, callbacks)
    trainer.train(resume_from_checkpoint=checkpoint)
    notes = Notes(folder, f"{name}_ended")
    notes.add([parameter.tolist() for parameter in trainer.model.parameters()])
    logs = [log for log in trainer.state.log_history if "loss" in log]
    notes.add([log.get("data_wait_share") for log in logs])
    notes.add(trainer.evaluate())
    torch.distributed.destroy_process_group()


assert ranks(functools.partial(run, "whole")) == [0, 0]
assert ranks(functools.partial(run, "killed", None, [Kill()])) == [-9, -9]
checkpoint = str(folder / "killed" / f"checkpoint-{SAVED}")
assert ranks(functools.partial(run, "resumed", checkpoint)) == [0, 0]
