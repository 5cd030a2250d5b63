# SPDX-License-Identifier: Apache-2.0
"""Ranks of a gloo group that make, or move, their loaders differently. See forked.py.

Each argument is the name of a function below, which runs on all ranks and returns what the loader
gave. Prints, per rank, the result, or the code and message of the error.
"""

import datetime
import functools
import importlib
import os
import sys
import threading

import numpy as np
import torch
import torch.distributed as dist
from forked import ranks

import headrace as hr
from headrace import transforms as T

agreement = importlib.import_module("headrace.loader.agreement")
FOREVER = 250.0  # seconds: longer than any run takes


def loader(**given: object) -> hr.Loader:
    given = {"batch_size": 4, "shuffle": True, "seed": 1, **given}
    start = given.pop("start", 0)
    steps = given.pop("steps", ())
    records = given.pop("records", 64)
    pixels = np.full((records, 3, 8, 8), 7, np.uint8)
    source = hr.records(x=np.arange(start, start + records), image=pixels)
    return hr.Loader(source, steps, **given)


def run_of(made: hr.Loader) -> int:
    return len([batch.x for batch in made])


def odd(value: object, otherwise: object) -> object:
    """The value on rank 1."""
    return value if dist.get_rank() == 1 else otherwise


# Loaders that differ. All ranks raise HR0733.


def data() -> int:
    return run_of(loader(start=odd(1, 0)))


def seed() -> int:
    return run_of(loader(seed=dist.get_rank()))


def order() -> int:
    return run_of(loader(shuffle=odd(False, True)))


def batch_size() -> int:
    return run_of(loader(batch_size=odd(8, 4)))


def sampler() -> int:
    lengths = np.arange(64) % 7 + 1
    order = hr.sampling.buckets(lengths, batch_size=8, pool=odd(3, 4))
    return run_of(loader(shuffle=False, batch_size=None, global_batch_size=8, sampler=order))


def transforms() -> int:
    return run_of(loader(steps=[T.RandomHorizontalFlip(p=odd(0.25, 0.5))]))


def options() -> int:
    return run_of(loader(on_error="substitute", error_budget=(3, 1.0), strict=odd(True, False)))


def world_size() -> int:
    made = loader()
    if dist.get_rank() == 1:  # has begun before there was a group
        made.assembly.is_settled = True
        made.assembly.shard = made.assembly.shard._replace(rank=0, world_size=1)
    return run_of(made)


def position() -> int:
    made = loader()
    made.load_state_dict({**made.state_dict(), "batch": odd(3, 2)})
    return run_of(made)


def position_after_seek() -> int:
    made = loader()
    iterator = iter(made)
    next(iterator)
    made.seek(odd(5, 4))
    return len(list(iterator))


def checkpoint_on_one_rank() -> int:
    made = loader()
    if dist.get_rank() == 1:
        made.load_state_dict({**made.state_dict(), "batch": 3})
    return run_of(made)


def streamed(lengths: list[int]) -> hr.Loader:
    """A loader of a stream that has these numbers of records, epoch by epoch."""

    def numbers(epoch: int) -> object:
        yield from ({"x": x} for x in range(lengths[epoch]))

    return hr.Loader(hr.stream(numbers), global_batch_size=4)


def stream_ends() -> int:
    return run_of(streamed([odd(8, 40)]))


def stream_tail() -> int:
    return run_of(streamed([odd(10, 8)]))


def stream_second_epoch() -> int:
    made = streamed([12, odd(6, 7)])
    return run_of(made) + run_of(made)


def stream_in_a_collective() -> int:
    """Rank 0 waits for rank 1 in a batch that rank 1 does not have."""
    made = streamed([odd(8, 12)])
    for number, _ in enumerate(made):
        if dist.get_rank() == 1 or number < 2:
            continue
        while not STORES[0].check(["the end of rank 1"]):
            threading.Event().wait(0.02)
    return 0


# Loaders that agree, in ways that could be taken for a disagreement.


def nothing() -> int:
    return run_of(loader())


def peek() -> int:
    made = loader()
    if dist.get_rank() == 0:
        made.peek()
        made.batch(3, 1)
        first = next(iter(made))  # a look at a batch before training begins
        assert len(first.x) == 4
        made.load_state_dict({**made.state_dict(), "batch": 0})
    dist.barrier()
    return run_of(made)


def peek_before_resume() -> int:
    """Rank 0 looks at a batch while the other rank is already where both continue."""
    made = loader()
    if dist.get_rank() == 0:
        next(iter(made))
    made.load_state_dict({**made.state_dict(), "batch": 5})
    return run_of(made)


def equal_values() -> int:
    """A set's order differs between processes, and a number may be NumPy's."""
    names = ["x", "id", "key", "image"]
    fields = set(odd(names[::-1], names))
    return run_of(loader(fields=fields, batch_size=odd(np.int64(4), 4)))


def functions() -> int:
    """What a function of an order is given says nothing about the order."""

    def order(epoch: int, rank: int) -> np.ndarray:
        return np.arange(64)

    partial = functools.partial(order, rank=dist.get_rank())
    return run_of(loader(shuffle=False, sampler=hr.sampling.per_epoch(partial)))


def retry() -> int:
    made = loader()
    done = 0
    for trial in range(odd(3, 1)):
        made.seek(2)
        done = run_of(made) if trial == odd(2, 0) else len(next(iter(made)).x)
    return done


def behind() -> int:
    """A rank repeats from a checkpoint what the other one has behind it."""
    made = loader()
    iterator = iter(made)
    state = made.state_dict()
    next(iterator)
    made.load_state_dict(made.state_dict())
    next(iter(made))
    dist.barrier()
    if dist.get_rank() == 1:
        made.load_state_dict(state)
    return run_of(made)


def evaluation_on_one_rank() -> int:
    train, total = loader(), 0
    for epoch in range(2):
        total += run_of(train)
        if dist.get_rank() == 0:
            total += 0 * run_of(loader(start=100 + epoch))
            total += 0 * run_of(loader(start=200, shard=False))
        dist.barrier()
    return total


def other_order() -> int:
    names = [0, 100] if dist.get_rank() == 0 else [100, 0]
    made = {start: loader(start=start) for start in names}
    return sum(run_of(made[start]) for start in names)


def threads() -> int:
    counts = []
    names = [0, 100] if dist.get_rank() == 0 else [100, 0]

    def begin(start: int) -> None:
        counts.append(run_of(loader(start=start)))

    running = [threading.Thread(target=begin, args=[start]) for start in names]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return sum(counts)


def own_parts() -> int:
    """Each rank has its own records, as it says."""
    rank = dist.get_rank()
    total = run_of(loader(start=rank, shard=False)) + run_of(loader(seed=rank, shard=(0, 2)))
    return total


def group() -> int:
    """Ranks 0 and 2 divide batches of a group, rank 1 has other data."""
    return run_of(in_group(seed=odd(1, 5)))


def seed_in_group() -> int:
    return run_of(in_group(seed=dist.get_rank()))


def in_group(seed: object) -> hr.Loader:
    pair = dist.new_group([0, 2])
    own = odd(False, pair)
    return loader(seed=seed, batch_size=None, global_batch_size=4, shard=own)


def second_group() -> int:
    first = run_of(loader(seed=5))
    dist.destroy_process_group()
    dist.init_process_group("gloo", store=store_of("second"), rank=RANK[0], world_size=RANK[1])
    return first + run_of(loader(seed=6))


def group_without_a_loader() -> int:
    """In the first group, rank 1 iterates nothing; in the second one both ranks are compared."""
    agreement.PATIENCE = 0.1
    if dist.get_rank() == 0:
        run_of(loader(seed=5))
    dist.barrier()
    dist.destroy_process_group()
    dist.init_process_group("gloo", store=store_of("next"), rank=RANK[0], world_size=RANK[1])
    agreement.PATIENCE = FOREVER
    return run_of(loader(seed=dist.get_rank()))


def stream() -> int:
    made = streamed([12, 10, 3])
    return run_of(made) + run_of(made) + run_of(made)


def stream_peek() -> int:
    made = streamed([10, 7])
    if dist.get_rank() == 0:
        next(iter(made))
        made.set_epoch(0)
    dist.barrier()
    return run_of(made) + run_of(made)


def stream_slow() -> int:
    """Rank 0 comes to the end when rank 1 no longer waits."""
    made = streamed([8, 8])
    done = 0
    for _ in range(2):
        for _ in made:
            done += 1
            if dist.get_rank() == 0 and done % 2 == 0:
                dist.barrier()
        if dist.get_rank() == 1:
            dist.barrier()
    return done


def stream_again() -> int:
    """An epoch that is longer when it is read again, on all ranks."""
    lengths = [8]
    made = streamed(lengths)
    done = run_of(made)
    lengths[0] = 16
    made.set_epoch(0)
    return done + run_of(made)


def streams_of_one_line() -> int:
    return sum(run_of(streamed([length])) for length in (8, 20, 3))


RANK = [0, 1]


def restart() -> int:
    """torchrun's store outlives the ranks: what they wrote before a restart is not compared."""
    store, done = store_of("torchrun's"), 0
    dist.distributed_c10d._get_default_store = lambda: store
    for attempt in range(2):
        os.environ["TORCHELASTIC_RESTART_COUNT"] = str(attempt)
        agreement.PATIENCE = FOREVER if attempt else 0.1
        if attempt or dist.get_rank() == 0:
            done = run_of(loader(seed=attempt))
        if not attempt:
            dist.barrier()
            dist.destroy_process_group()
            dist.init_process_group("gloo", store=store_of("2"), rank=RANK[0], world_size=RANK[1])
    return done


def store_of(prefix: str) -> dist.Store:
    return dist.PrefixStore(prefix, STORES[0])


STORES: list[dist.Store] = []


def run() -> None:
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=FOREVER))
    RANK[:] = dist.get_rank(), dist.get_world_size()
    STORES.append(dist.distributed_c10d._get_default_store())
    try:
        result = str(globals()[NAME]())
    except hr.ConfigError as error:
        result = f"{error.code}: " + " | ".join(str(error).splitlines())
    try:
        if NAME == "stream_in_a_collective" and RANK[0] == 1:
            STORES[0].set("the end of rank 1", "1")
        sys.stdout.write(f"{NAME} rank {RANK[0]}: {result}\n")
        sys.stdout.flush()
    finally:
        STORES[0].add("done", 1)
        while RANK[0] == 0 and STORES[0].add("done", 0) < RANK[1]:
            threading.Event().wait(0.02)


torch.set_num_threads(1)
for NAME in sys.argv[2:]:
    short = (
        "peek",
        "evaluation_on_one_rank",
        "checkpoint_on_one_rank",
        "stream_peek",
        "stream_slow",
    )
    agreement.PATIENCE = 0.1 if NAME in short else FOREVER
    agreement.GRACE = FOREVER if NAME == "threads" else 0.1
    print(NAME, ranks(run, int(sys.argv[1])))
