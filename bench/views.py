#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cost of several views of one picture: CPU time per record, decoded together and separately.

    python bench/views.py FOLDER [--preset simclr|dino] [--epochs N] [--peer PYTHON]

Pictures are JPEGs in FOLDER, in the page cache. "apart" uses one loader per view, so each view is
decoded separately; "together" is one loader. Rounds alternate; prints medians of CPU time (all
threads and processes), and of the ratios within a round. --peer adds an interpreter with torch and
torchvision's DataLoader: two workers, Pillow's pictures, the same recipe by torchvision's
transforms.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

PEER = """
import json, os, sys, torch
from PIL import Image
from torchvision.transforms import v2
folder, preset, workers = sys.argv[1], sys.argv[2], 2
torch.set_num_threads(1)
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
END = [v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
def simclr():
    return v2.Compose([v2.RandomResizedCrop(224), v2.RandomHorizontalFlip(),
        v2.RandomApply([v2.ColorJitter(0.8, 0.8, 0.8, 0.2)], p=0.8), v2.RandomGrayscale(0.2),
        v2.RandomApply([v2.GaussianBlur(23, (0.1, 2.0))], p=0.5), *END])
def dino(size, scale, blur, solarize=0.0):
    return v2.Compose([v2.RandomResizedCrop(size, scale=scale, interpolation=3),
        v2.RandomHorizontalFlip(), v2.RandomApply([v2.ColorJitter(0.4, 0.4, 0.2, 0.1)], p=0.8),
        v2.RandomGrayscale(0.2), v2.RandomApply([v2.GaussianBlur(13, (0.1, 2.0))], p=blur),
        *([v2.RandomSolarize(128, p=solarize)] if solarize else []), *END])
if preset == "simclr":
    views = [simclr(), simclr()]
else:
    views = [dino(224, (0.4, 1.0), 1.0), dino(224, (0.4, 1.0), 0.1, 0.2)]
    views += [dino(96, (0.05, 0.4), 0.5) for _ in range(8)]
files = sorted(os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)
class Photos(torch.utils.data.Dataset):
    def __len__(self):
        return len(files)
    def __getitem__(self, i):
        picture = Image.open(files[i]).convert("RGB")
        return [view(picture) for view in views]
if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Photos(), batch_size=32, shuffle=True, num_workers=workers)
    def spent():
        t = os.times()
        return t.user + t.system + t.children_user + t.children_system
    before = spent()
    for _ in loader:
        pass
    print(json.dumps((spent() - before) / len(files)))
"""


def cpu() -> float:
    spent = os.times()
    return spent.user + spent.system


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--preset", choices=("simclr", "dino"), default="simclr")
    parser.add_argument("--epochs", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peer", help="an interpreter with torch and torchvision")
    arguments = parser.parse_args()
    import headrace as hr

    source = hr.open(arguments.folder)
    recipe = getattr(hr.presets, arguments.preset)(224)
    options: dict[str, Any] = {"batch_size": 32, "threads": arguments.threads, "shuffle": True}
    together = hr.Loader(source, recipe, **options)
    views = list(recipe[0].arguments["branches"])
    apart = [hr.Loader(source, recipe, fields=(view,), **options) for view in views]

    def epoch(loaders: list[Any]) -> float:
        before = cpu()
        for loader in loaders:
            for _ in loader:
                pass
        return (cpu() - before) / len(source) * 1000

    epoch([together])
    ours, theirs, peers = [], [], []
    for _ in range(arguments.epochs):
        ours.append(epoch([together]))
        theirs.append(epoch(apart))
    if arguments.peer:
        command = [arguments.peer, "-c", PEER, str(arguments.folder), arguments.preset]
        for _ in range(3):
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            peers.append(float(done.stdout) * 1000)
    ratio = statistics.median(a / b for a, b in zip(theirs, ours, strict=True))
    print(f"{arguments.preset}, {len(views)} views of {len(source)} images, CPU ms per record:")
    print(f"  together {statistics.median(ours):7.2f}")
    print(f"  apart    {statistics.median(theirs):7.2f}  {ratio:.2f}x")
    if peers:
        least = statistics.median(peers)
        print(f"  DataLoader, torchvision {least:7.2f}  {least / statistics.median(ours):.1f}x")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
