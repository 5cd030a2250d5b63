# SPDX-License-Identifier: Apache-2.0
"""Two ranks under hr.watch, the second of which waits for its data. Prints the output of the first.

See forked.py.
"""

import time

import torch.distributed as dist
from forked import ranks

import headrace as hr


class Batches:
    def __init__(self, pause: float) -> None:
        self.pause = pause

    def __iter__(self) -> object:
        while True:
            time.sleep(self.pause)
            yield [0, 1]


def run() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    loader = Batches(0.2 if rank == 1 else 0.0)
    with hr.watch(loader, every=None, warn=None) as seen:
        for _ in loader:
            time.sleep(0.02)
            compared = seen.stats()["ranks"]
            heard = compared is not None and compared["heard"] == 2
            if rank == 1 and dist.distributed_c10d._get_default_store().check(["done"]):
                break
            if rank == 0 and heard and compared["slowest"] == 1:
                print(compared["slowest"], compared["wait_share"]["max"] > 0.5, seen.status())
                dist.distributed_c10d._get_default_store().set("done", "")
                break
    dist.barrier()  # the first rank holds the store


print(ranks(run))
