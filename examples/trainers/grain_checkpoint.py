# SPDX-License-Identifier: Apache-2.0
"""Grain's protocol: a loader's batches in a Grain pipeline, whose iterator's state is saved with
the checkpoint, and Grain's sources in a loader: `python examples/trainers/grain_checkpoint.py`.
"""

import json

import grain
import numpy as np

import headrace as hr

# A loader in a Grain pipeline.
loader = hr.Loader(hr.records(x=np.arange(20)), batch_size=4, shuffle=True, seed=1)
batches = hr.grain(loader, epochs=None).map(lambda batch: batch["x"] * 10)
iterator = iter(batches)
seen = [next(iterator).tolist() for _ in range(7)]  # into the second epoch
state = json.dumps(iterator.get_state())
following = next(iterator).tolist()

again = iter(batches)
again.set_state(json.loads(state))
assert next(again).tolist() == following
print(f"{len(seen)} batches, then {following}, and again after set_state")

# A Grain source in a loader, which shuffles, divides over ranks and repeats.
source = grain.MapDataset.range(12).map(lambda number: {"number": number, "square": number**2})
for batch in hr.Loader(hr.from_grain(source), batch_size=6, shuffle=True):
    print(batch.square.tolist())
