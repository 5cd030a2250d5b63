# SPDX-License-Identifier: Apache-2.0
"""Train a small network to recognize the direction of a movement: video clips, decoded by the
loader's threads.

    python examples/moving_shapes.py          # on videos that it makes itself (needs PyAV: av)
    python examples/moving_shapes.py actions/ # a folder of videos, one folder per class

A single frame contains no information about the class: only the order of frames does. With real
sets of actions nothing changes but the sizes, the network and --epochs.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import headrace as hr
from headrace import transforms as T

SIZE = 48
WAYS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}


def make_videos(root: Path, each: int = 24) -> None:
    """Squares and discs of any color that move over a noisy background, in H.264 with B-frames."""
    import av

    random = np.random.default_rng(1)
    y, x = np.mgrid[: SIZE + 16, : SIZE + 16]
    for name, way in WAYS.items():
        (root / name).mkdir(parents=True)
        for number in range(each):
            count, radius = int(random.integers(20, 40)), int(random.integers(5, 9))
            speed, color = random.uniform(1.0, 2.0), random.integers(120, 255, 3)
            ground = random.integers(0, 100, (*y.shape, 3)).astype(np.uint8)
            begin, disc = random.uniform(0, len(y), 2), random.random() < 0.5
            with av.open(str(root / name / f"{number}.mp4"), "w") as file:
                stream: Any = file.add_stream("libx264", rate=25)
                stream.height, stream.width, stream.pix_fmt = *y.shape, "yuv420p"
                stream.options = {"g": "12"}
                for t in range(count):
                    top, left = (begin + np.array(way) * speed * t) % len(y)
                    far = (y - top) ** 2 + (x - left) ** 2 if disc else abs(y - top) + abs(x - left)
                    frame = ground.copy()
                    frame[far < (radius**2 if disc else radius * 1.4)] = color
                    file.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
                file.mux(stream.encode())


def steps(training: bool) -> list[Any]:
    """Clips of 8 frames as (3, 8, 48, 48): a crop, the same for all of a clip's frames."""
    clip = T.RandomVideoClips if training else T.CenterVideoClip
    crop = T.RandomCrop if training else T.CenterCrop
    return [
        clip(8, stride=2, layout="CTHW"),
        crop(SIZE),
        T.ToDtype("float32", scale=True),
        T.Normalize([0.3, 0.3, 0.3], [0.25, 0.25, 0.25]),
    ]


def train(folder: Path, epochs: int) -> float:
    """Returns the final accuracy on held-out videos."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    source = hr.open(folder)
    order = np.random.default_rng(0).permutation(len(source))
    held_out, rest = order[: len(order) // 5], order[len(order) // 5 :]
    training = hr.Loader(source, steps(True), batch_size=16, sampler=rest, shuffle=True)
    testing = hr.Loader(source, steps(False), batch_size=16, sampler=held_out)
    model = nn.Sequential(
        nn.Conv3d(3, 16, (3, 5, 5), (1, 2, 2), padding=(1, 2, 2)),
        nn.BatchNorm3d(16),
        nn.ReLU(),
        nn.Conv3d(16, 32, (3, 3, 3), (2, 2, 2), padding=1),
        nn.BatchNorm3d(32),
        nn.ReLU(),
        nn.Conv3d(32, 32, (3, 3, 3), (2, 2, 2), padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool3d(1),
        nn.Flatten(),
        nn.Linear(32, len(source.classes)),
    )
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(epochs):
        model.train()
        for batch in training.torch():
            loss = nn.functional.cross_entropy(model(batch["video"]), batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    model.eval()
    right = sum(
        int((model(batch["video"]).argmax(1) == batch["label"]).sum()) for batch in testing.torch()
    )
    return right / len(held_out)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small network on motion.")
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--epochs", type=int, default=16)
    arguments = parser.parse_args()
    if arguments.folder:
        print(f"recognized: {train(arguments.folder, arguments.epochs):.0%}")
        return
    with tempfile.TemporaryDirectory() as folder:
        make_videos(Path(folder))
        print(f"recognized: {train(Path(folder), arguments.epochs):.0%}")


if __name__ == "__main__":
    main()
