# SPDX-License-Identifier: Apache-2.0
"""Stop in the middle of an epoch and continue later with exactly the remaining batches.

`python examples/resume.py [FOLDER]`
"""

import json
import sys
from pathlib import Path

import numpy as np

import headrace as hr


def make_loader(threads: int) -> hr.Loader:
    path = sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent / "images"
    transforms = hr.presets.imagenet_train(64)
    return hr.Loader(path, transforms, batch_size=2, shuffle=True, seed=7, threads=threads)


whole = [np.array(batch["image"]) for batch in make_loader(threads=1)]

first = make_loader(threads=2)
batches = iter(first)
taken = [np.array(next(batches)["image"]) for _ in range(min(2, len(first)))]
checkpoint = json.dumps(first.state_dict())  # a few numbers; store them with the model's weights
first.close()

second = make_loader(threads=1)  # another process, a different number of threads
second.load_state_dict(json.loads(checkpoint))
rest = [np.array(batch["image"]) for batch in second]

resumed = taken + rest
assert len(resumed) == len(whole)
assert all(np.array_equal(a, b) for a, b in zip(resumed, whole, strict=True))
print(f"{len(taken)} batches, a stop, {len(rest)} more: equal to the {len(whole)} of one run")
print(f"the state: {checkpoint}")
