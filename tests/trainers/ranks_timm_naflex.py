# SPDX-License-Identifier: Apache-2.0
"""Our create_naflex_loader for timm on two ranks: uninterrupted, killed in mid-epoch, resumed.

Called with a folder of results and one of images. See forked.py.
"""

import functools
import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from forked import Notes, kill_this_rank, ranks
from headrace.trainers.timm import create_naflex_loader
from timm.data import create_dataset

folder, root = Path(sys.argv[1]), sys.argv[2]
EPOCHS, SAVED, KILLED = 2, 4, 7


def run(name: str, resumed: str | None = None, kill: bool = False) -> None:
    dist.init_process_group("gloo")
    train = create_naflex_loader(
        create_dataset("", root, split="train", is_training=True),
        patch_size_choices=[8, 16],
        train_seq_lens=(16, 32),
        batch_size=4,
        is_training=True,
        re_prob=0.25,
        num_workers=0,
        distributed=True,
        rank=dist.get_rank(),
        world_size=dist.get_world_size(),
        pin_memory=False,
        device=torch.device("cpu"),
        verbose=False,
    )
    notes, step = Notes(folder, name), 0
    if resumed is not None:
        train.load_state_dict(json.loads((folder / resumed).read_text()))
    for epoch in range(train.epoch, EPOCHS):
        train.dataset.set_epoch(epoch)
        for batch, labels in train:
            pixels = batch["patches"].double().sum().item()
            notes.add([batch["seq_len"], labels.tolist(), pixels])
            step += 1
            if resumed is None and step == SAVED and dist.get_rank() == 0:
                (folder / f"{name}.json").write_text(json.dumps(train.state_dict()))
            if kill and step == KILLED:
                kill_this_rank()


torch.set_num_threads(1)
assert ranks(functools.partial(run, "whole")) == [0, 0]
assert ranks(functools.partial(run, "killed", kill=True)) == [-9, -9]
assert ranks(functools.partial(run, "resumed", "killed.json")) == [0, 0]
