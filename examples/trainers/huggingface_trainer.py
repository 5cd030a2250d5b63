# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's Trainer: `python examples/trainers/huggingface_trainer.py`, or on two CPUs
`torchrun --nproc-per-node 2 examples/trainers/huggingface_trainer.py`.

Loaders take the place of datasets; the Trainer is unchanged. It is stopped in the middle of an
epoch here, and resumed from its checkpoint with the next batch.
"""

import tempfile
from pathlib import Path

import torch
import transformers
from headrace.trainers import huggingface

import headrace as hr

files = sorted(Path(__file__).parent.glob("../images/*.jpg"))
columns = {"pixel_values": [str(file) for file in files], "labels": list(range(len(files)))}
source = hr.records(**columns, kinds={"pixel_values": "image"})
train = hr.Loader(
    hr.subset(source, list(range(len(files))) * 16),
    hr.presets.imagenet_train(64),
    global_batch_size=32,
    shuffle=True,
)
evaluation = hr.Loader(source, hr.presets.imagenet_eval(64), global_batch_size=32, last_batch="pad")


class Trainer(huggingface.Loaders, transformers.Trainer):
    pass


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(
            torch.nn.Conv2d(3, 16, 8, stride=8),
            torch.nn.ReLU(),
            torch.nn.AdaptiveAvgPool2d(2),
            torch.nn.Flatten(),
            torch.nn.Linear(64, len(files)),
        )

    def forward(self, pixel_values, labels):
        logits = self.body(pixel_values)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


class StopAt(transformers.TrainerCallback):
    def on_step_end(self, args, state, control, **_):
        control.should_training_stop = state.global_step == 6


with tempfile.TemporaryDirectory() as folder:
    arguments = transformers.TrainingArguments(
        output_dir=folder,
        per_device_train_batch_size=train.batch_size,
        per_device_eval_batch_size=evaluation.batch_size,
        num_train_epochs=5,
        learning_rate=0.01,
        save_steps=6,
        logging_steps=4,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    torch.manual_seed(0)
    begun = Trainer(Net(), arguments, train_dataset=train, callbacks=[StopAt()])
    begun.train()
    resumed = Trainer(Net(), arguments, train_dataset=train, eval_dataset=evaluation)
    resumed.train(resume_from_checkpoint=f"{folder}/checkpoint-6")
    print(f"evaluated: loss {resumed.evaluate()['eval_loss']:.3f}")
