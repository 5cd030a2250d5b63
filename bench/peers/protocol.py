# SPDX-License-Identifier: Apache-2.0
"""The protocol between a peer and compare.py: a job as a JSON file, then one line per command.

compare.py measures time outside the peer, CPU and memory from /proc; a peer only runs epochs:
`epoch` -> {"images": ..., "seconds": ..., "first_batch_seconds": ...}, `quit` ends it. A peer with
its own format writes it when run with the argument `prepare`. This file and the peers do not import
Headrace: they run in other environments.
"""

import json
import sys
import time

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
CIFAR_MEAN, CIFAR_STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


class Job:
    """What to do: `workload` (results.py describes each), `variant`, `files`, ...

    `originals` are the pictures, each once; `files` lists them `repeat` times. `prepared` is this
    peer's own folder. For "records", `photos` is a container, read in the `order` "file" or
    "random".
    """

    def __init__(self, fields):
        self.workload = fields["workload"]
        self.variant = fields["variant"]
        self.photos = fields["photos"]
        self.prepared = fields["prepared"]
        self.threads = fields["threads"]
        self.batch_size = fields["batch_size"]
        self.repeat = fields["repeat"]
        self.cold = fields["cold"]
        self.order = fields.get("order", "random")
        self.annotations = fields.get("annotations")  # a COCO file of the pictures
        self.originals = fields["files"]
        self.files = [path for path, _ in self.originals] * self.repeat
        self.labels = [label for _, label in self.originals] * self.repeat
        self.crop = 32 if self.workload in ("cifar10", "records") else 224
        self.mean, self.std = (MEAN, STD) if self.crop == 224 else (CIFAR_MEAN, CIFAR_STD)


def serve(make_batches, prepare=None):
    """Runs a peer. `make_batches(job)` returns a function that gives one epoch's (size, ...) steps.

    That function returns an iterable of batch sizes; each is yielded once its batch is complete in
    memory. The first answer means that the peer is ready. `prepare(job)` fills job.prepared, and
    may return details for the report.
    """
    with open(sys.argv[1]) as file:
        job = Job(json.load(file))
    begin = time.perf_counter()
    if sys.argv[2:] == ["prepare"]:
        details = prepare(job) or {}
        answer({"prepare_seconds": time.perf_counter() - begin, "details": details})
        return
    epoch = make_batches(job)
    answer({"built_seconds": time.perf_counter() - begin})
    for line in sys.stdin:
        if line.strip() != "epoch":
            break
        start = time.perf_counter()
        first, images = None, 0
        for size in epoch():
            if first is None:
                first = time.perf_counter() - start
            images += size
        seconds = time.perf_counter() - start
        answer({"images": images, "seconds": seconds, "first_batch_seconds": first})


def answer(fields):
    print(json.dumps(fields), flush=True)
