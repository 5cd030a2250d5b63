# SPDX-License-Identifier: Apache-2.0
"""PHOTOS FOLDER EPOCHS: a loop that stores its state, and what it saw, in a folder; may be killed
at any time.

A record counts as seen once the state is stored with it: an uncommitted step is repeated.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import headrace as hr
from headrace import transforms as T


def main(photos: str, folder: str, epochs: str) -> None:
    place = Path(folder)
    place.mkdir(exist_ok=True)
    log, kept = place / "seen", place / "state.json"
    steps = [T.RandomResizedCrop(16), T.RandomHorizontalFlip()]
    loader = hr.Loader(
        photos, steps, batch_size=8, shuffle=True, seed=5, threads=2, fields=["image", "id"]
    )
    size = 0
    if kept.exists():
        saved = json.loads(kept.read_text())
        size = saved["size"]
        loader.load_state_dict(saved["loader"])
    print("ready", flush=True)
    with log.open("ab") as seen:
        seen.truncate(size)
        while (epoch := loader.state_dict()["epoch"]) < int(epochs):
            for batch in loader:
                seen.write(f"{epoch} {batch.id.tolist()} {int(batch.image.sum())}\n".encode())
                seen.flush()
                saved = {"size": seen.tell(), "loader": loader.state_dict()}
                new = kept.with_suffix(".new")
                new.write_text(json.dumps(saved))
                os.replace(new, kept)
    print("done", flush=True)


main(*sys.argv[1:])
