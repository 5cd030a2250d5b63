# SPDX-License-Identifier: Apache-2.0
"""A loader in Grain's pipeline on two ranks, over epochs without an end: uninterrupted, killed in
mid-epoch, resumed from the state in its checkpoint, and resumed by one rank; and Grain's DataLoader
over a source of ours, killed and resumed. See forked.py.

Called with a folder.
"""

import functools
import json
import os
import sys
from pathlib import Path
from typing import Any

import grain
import numpy as np
from forked import Notes, kill_this_rank, ranks

import headrace as hr

RECORDS, GLOBAL, STEPS, SAVED, KILLED = 20, 4, 12, 7, 9  # an epoch has 5 steps
folder = Path(sys.argv[1])


def jitter(x: Any, rng: np.random.Generator) -> Any:
    return x + rng.integers(0, 1000, dtype=np.int64) / 1000


def batches() -> Any:
    step = hr.transforms.Python(jitter, returns={"x": ("float64", ())}, fields="x")
    loader = hr.Loader(
        hr.records(x=np.arange(RECORDS)),
        [step],
        global_batch_size=GLOBAL,
        shuffle=True,
        seed=4,
        shard=(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])),
    )
    return hr.grain(loader, epochs=None).map(lambda batch: batch["x"] * 2)


def records() -> Any:
    rank, count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    sampler = grain.samplers.IndexSampler(RECORDS, shuffle=True, seed=3, num_epochs=3)
    return grain.DataLoader(
        data_source=hr.records(x=np.arange(RECORDS)),
        sampler=sampler,
        operations=[grain.transforms.Batch(2)],
        shard_options=grain.sharding.ShardOptions(rank, count, drop_remainder=True),
    )


def run(name: str, make: Any, resumed: str | None = None, kill: bool = False) -> None:
    iterator, notes, step = iter(make()), Notes(folder, name), 0
    is_shared = make is batches  # one state for all ranks; Grain's DataLoader has one for each
    own = 0 if is_shared else os.environ["RANK"]
    if resumed is not None:
        step = SAVED
        saved = json.loads((folder / f"{resumed}.{own}.json").read_text())
        iterator.set_state(saved if is_shared else saved.encode())
    while step < STEPS:
        batch = next(iterator)
        step += 1
        notes.add((batch if is_shared else batch["x"]).tolist())
        if kill and step == SAVED and os.environ["RANK"] == str(own):
            state = iterator.get_state() if is_shared else iterator.get_state().decode()
            (folder / f"{name}.{own}.json").write_text(json.dumps(state))
        if kill and step == KILLED:
            kill_this_rank()


for kind, make in (("grain", batches), ("dataloader", records)):
    of = functools.partial(functools.partial, run)
    assert ranks(of(f"{kind}_whole", make)) == [0, 0]
    assert ranks(of(f"{kind}_killed", make, kill=True)) == [-9, -9]
    assert ranks(of(f"{kind}_resumed", make, f"{kind}_killed")) == [0, 0]
assert ranks(functools.partial(run, "alone", batches, "grain_killed"), 1) == [0]
