# SPDX-License-Identifier: Apache-2.0
"""PHOTOS KILLS SECONDS SEED: epochs whose rows Ray actors make, while these are killed at random.

Prints a line for each kill, for each batch with the seconds until it arrived, and for each epoch
with other batches than those of one process.
"""

from __future__ import annotations

import hashlib
import random
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[3] / "tests" / "frameworks"))
import ray_steps
from ray_cluster import makers, two_nodes

import headrace as hr
from headrace import transforms as T

STEPS = [T.RandomResizedCrop(160), T.RandomHorizontalFlip(), ray_steps.slowly]
GIVEN: dict[str, Any] = {"batch_size": 16, "shuffle": True, "seed": 3, "threads": 1}
PATIENCE = 300.0  # seconds until actors have made rows
FAR: dict[str, Any] = {"cpus_per_actor": 0, "resources": {"far": 1}, "offload": "always"}


def digest(batch: Any) -> str:
    found = hashlib.blake2b(digest_size=8)
    for value in batch:
        found.update(np.ascontiguousarray(value))
    return found.hexdigest()


def tell(line: str) -> None:
    """In one call: two threads print."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def kill(loader: hr.Loader, count: int, seconds: float, seed: int, ended: threading.Event) -> None:
    """Kills an actor after they have made rows: a loader gives up on those that never do."""
    draws, made, until = random.Random(seed), 0, time.monotonic() + seconds
    for _ in range(count):
        time.sleep(draws.uniform(0.2, 1.2))
        while time.monotonic() < until and loader.stats().remote["rows"] == made:
            time.sleep(0.05)
        if time.monotonic() > until:
            break
        made = loader.stats().remote["rows"]
        if alive := makers():
            draws.choice(alive).kill()
            tell("killed 1")
    ended.set()


def main(photos: str, kills: str, seconds: str, seed: str) -> None:
    with hr.Loader(photos, STEPS, **GIVEN) as alone:
        wanted = [digest(batch) for batch in alone]
    ended = threading.Event()
    with two_nodes(), hr.Loader(photos, STEPS, **GIVEN, workers=hr.ray.pool(2, **FAR)) as loader:
        given = (loader, int(kills), float(seconds), int(seed), ended)
        killer = threading.Thread(target=kill, args=given, daemon=True)
        epoch, start = 0, time.monotonic()
        while not ended.is_set():
            loader.set_epoch(0)
            found, begun = [], time.monotonic()
            for batch in loader:
                if epoch:  # the first waits for Ray
                    tell(f"batch {time.monotonic() - begun:.3f}")
                found.append(digest(batch))
                time.sleep(0.05)  # a training step
                begun = time.monotonic()
            if found != wanted:
                tell(f"wrong {epoch}")
            if not killer.ident and loader.stats().remote["rows"]:
                killer.start()
            assert killer.ident or time.monotonic() - start < PATIENCE, "no actor makes rows"
            epoch += 1


main(*sys.argv[1:])
