# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed with ZeRO: uninterrupted, killed, resumed, and resumed by a different number of ranks;
and two pipelines of two stages. See forked.py.

Called with a folder.
"""

import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deepspeed
import numpy as np
import torch
from deepspeed.pipe import PipelineModule
from deepspeed.runtime.dataloader import RepeatingLoader
from forked import Notes, kill_this_rank, ranks

import headrace as hr

RECORDS, GLOBAL, STEPS, SAVED, KILLED = 30, 6, 8, 3, 6
folder = Path(sys.argv[1])


def layers() -> list[torch.nn.Module]:
    torch.manual_seed(0)
    return [torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)]


def make_loader(engine: Any) -> hr.Loader:
    x = np.random.default_rng(1).standard_normal((RECORDS, 4), np.float32)
    return hr.Loader(
        hr.records(x=x, y=x.sum(1, keepdims=True), number=np.arange(RECORDS)),
        global_batch_size=GLOBAL,
        shuffle=True,
        seed=5,
        last_batch="drop",
        shard=engine.data_parallel_group,
    )


def run(name: str, zero: int, resumed: str | None = None, kill: bool = False) -> None:
    deepspeed.init_distributed("gloo", verbose=False)
    model = torch.nn.Sequential(*layers())
    engine, *_ = deepspeed.initialize(
        model=model,
        optimizer=torch.optim.Adam(model.parameters(), lr=0.01),
        config={
            "train_batch_size": GLOBAL,
            "gradient_accumulation_steps": 1,
            "zero_optimization": {"stage": zero},
            "zero_allow_untested_optimizer": True,
        },
    )
    loader = make_loader(engine)
    assert loader.batch_size == engine.train_micro_batch_size_per_gpu()
    if resumed is not None:
        _, client = engine.load_checkpoint(str(folder / resumed))
        loader.load_state_dict(client["loader"])
        assert engine.global_steps == SAVED
    notes = Notes(folder, name)
    for batch in RepeatingLoader(loader.torch(engine.device)):
        notes.add(batch.number.tolist())
        engine.backward(torch.nn.functional.mse_loss(engine(batch.x), batch.y))
        engine.step()
        if resumed is None and engine.global_steps == SAVED:
            state = {"loader": loader.state_dict()}
            engine.save_checkpoint(str(folder / f"{name}_saved"), client_state=state)
        if kill and engine.global_steps == KILLED:
            kill_this_rank()
        if engine.global_steps == STEPS:
            break
    notes.add([parameter.tolist() for parameter in engine.module.parameters()])


def run_stages() -> None:
    """Each optimizer step takes two micro-batches."""
    deepspeed.init_distributed("gloo", verbose=False)
    model = PipelineModule(layers(), num_stages=2, loss_fn=torch.nn.functional.mse_loss)
    engine, *_ = deepspeed.initialize(
        model=model,
        optimizer=torch.optim.Adam(model.parameters(), lr=0.01),
        config={"train_micro_batch_size_per_gpu": GLOBAL // 2, "gradient_accumulation_steps": 2},
    )
    notes = Notes(folder, "stages")

    def batches() -> Iterator[Any]:
        for batch in RepeatingLoader(make_loader(engine).torch()):
            notes.add(batch.number.tolist())
            yield batch.x, batch.y

    batch = batches()
    for _ in range(STEPS // 2):
        engine.train_batch(batch)


deepspeed.ops.__compatible_ops__.clear()  # it would compile one of them, for a minute
torch.set_num_threads(1)
assert ranks(functools.partial(run, "whole", 1)) == [0, 0]
assert ranks(functools.partial(run, "killed", 1, kill=True)) == [-9, -9]
assert ranks(functools.partial(run, "resumed", 1, "killed_saved")) == [0, 0]
assert ranks(functools.partial(run, "replicated", 0, kill=True)) == [-9, -9]
assert ranks(functools.partial(run, "others", 0, "replicated_saved"), 3) == [0] * 3
assert ranks(run_stages, 4) == [0] * 4
