# SPDX-License-Identifier: Apache-2.0
"""Three ranks, the second of which finds a bad record: what happens to the others. See forked.py.

The argument says what the others do meanwhile: "python", "collective", "stuck" or "late", which is
"python", except that the last rank looks for a message when the rank with the store may have
exited. With "nothing" there is no bad record; with "restart" the ranks run again, and their store
is that of the run that failed, as torchrun's.
"""

import functools
import importlib
import os
import sys
import time

import numpy as np
import torch
import torch.distributed as dist
from forked import ranks

import headrace as hr

what = sys.argv[1]


class Records:
    def __len__(self) -> int:
        return 30

    def __getitem__(self, index: int) -> dict[str, object]:
        if index == 8 and what != "nothing":
            raise ValueError("a shelf of the archive is missing")
        return {"x": np.float32([index])}


def run() -> None:
    dist.init_process_group("gloo")
    if what == "late" and dist.get_rank() == 2:
        importlib.import_module("headrace.fail_together")._POLL = 4
    loader = hr.Loader(Records(), batch_size=2)  # record 8 is the second rank's
    try:
        with hr.fail_together(grace=120):  # only reached if something hangs
            for batch in loader.torch():
                if what in ("python", "late"):
                    time.sleep(0.05 if dist.get_rank() == 1 else 600)  # longer than a run may take
                else:
                    dist.all_reduce(batch.x.sum())
        print(f"rank {dist.get_rank()} is done", flush=True)
    except hr.Error as error:
        print(f"rank {dist.get_rank()}: {type(error).__name__} {error.code}: {error}", flush=True)
        raise SystemExit(3) from None


def wait_for_ever() -> None:
    """A rank that cannot be interrupted, as in NCCL."""
    import ctypes

    dist.init_process_group("gloo")
    with hr.fail_together(grace=1):
        if dist.get_rank() == 1:
            raise MemoryError("no room")
        ctypes.CDLL(None).sleep(600)


def run_again(attempt: int) -> None:
    store = dist.TCPStore("127.0.0.1", KEPT.port, is_master=False)
    os.environ["TORCHELASTIC_RESTART_COUNT"] = str(attempt)
    dist.init_process_group("gloo")
    dist.distributed_c10d._get_default_store = lambda: store
    with hr.fail_together(grace=120):
        if attempt == 0:
            time.sleep(600 if dist.get_rank() else 0)
            raise ValueError("the first attempt")
        time.sleep(2)  # longer than two looks
    print(f"rank {dist.get_rank()} is done", flush=True)


torch.set_num_threads(1)
if what == "stuck":
    print(ranks(wait_for_ever, 2))
elif what == "restart":
    KEPT = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    print(*(ranks(functools.partial(run_again, attempt), 2) for attempt in range(2)))
else:
    print(ranks(run, 3))
