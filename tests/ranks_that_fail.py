# SPDX-License-Identifier: Apache-2.0
"""Three ranks, the second of which finds a bad record: what happens to the others. See forked.py.

The argument says what the others do meanwhile: "python", "collective", "stuck" or "late", which is
"python", except that the last rank looks for a message when the rank with the store may have
exited. With "nothing" there is no bad record.
"""

import importlib
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


torch.set_num_threads(1)
if what == "stuck":
    print(ranks(wait_for_ever, 2))
else:
    print(ranks(run, 3))
