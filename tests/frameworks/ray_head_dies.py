# SPDX-License-Identifier: Apache-2.0
"""A trainer whose Ray head is killed in mid-epoch: `ray_head_dies.py FOLDER gcs|node`.

gcs: the head's control service alone. node: its raylet, too, which carries this process's objects.
Prints "killed", then JSON: whether the batches are right, the longest wait, seconds that close()
took.
"""

from __future__ import annotations

import json
import os
import sys
import time

import psutil
from ray_cluster import two_nodes
from test_ray import FAR, GIVEN, STEPS, hashes, wait_for_actors

import headrace as hr

folder, killed = sys.argv[1:]
names = {"gcs": ["gcs_server"], "node": ["gcs_server", "raylet"]}[killed]
with hr.Loader(folder, STEPS, **GIVEN) as alone:
    wanted = list(hashes(alone, 6))
with two_nodes() as nodes:
    loader = hr.Loader(folder, STEPS, **GIVEN, workers=hr.ray.pool(cpus=1, **FAR))
    got, waits, died = [], [], False
    begin = time.perf_counter()
    for found in hashes(loader, 6):
        waits.append(time.perf_counter() - begin)
        got.append(found)
        if len(got) == 4:
            wait_for_actors(loader, 1)
        if len(got) == 8:
            head = {nodes.head_node.all_processes[name][0].process.pid for name in names}
            for process in map(psutil.Process, head):
                process.kill()
            print("killed", flush=True)
        time.sleep(0.3)  # a training step; several pass before the failure is noticed
        begin = time.perf_counter()
    end = time.monotonic() + 120
    while killed == "node" and "HR0838" not in loader.stats().remote["summary"]:
        if time.monotonic() > end:
            break
        for _ in loader:  # until the failure is noticed
            pass
    remote = loader.stats().remote
    begin = time.perf_counter()
    loader.close()
    report = {
        "right": got == wanted,
        "wait": max(waits[8:]),
        "close": time.perf_counter() - begin,
        "received": remote["received"],
        "summary": remote["summary"],
    }
    print(json.dumps(report), flush=True)
    # Ray's own shutdown would wait for the head.
    for process in psutil.Process().children(recursive=True):
        process.kill()
    os._exit(0)
