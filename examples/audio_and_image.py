# SPDX-License-Identifier: Apache-2.0
"""Train one network on faces and voices: a record is an image and an audio clip of the same name.

    python examples/audio_and_image.py                # on clips that it makes itself
    python examples/audio_and_image.py faces/ speech/ # two folders of the same classes and names

Laid out as RAVDESS is after sorting: faces/happy/03-01-03.jpg belongs to speech/happy/03-01-03.wav.
The generated clips have four classes. The image distinguishes two, and the audio clip two, so a
network with only one of them is right half of the time at best.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import wave
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import headrace as hr
from headrace import transforms as T

RATE, SIDE = 16000, 32


def make_clips(faces: Path, speech: Path, each: int, seed: int) -> None:
    """Open or closed mouths, rising or falling voices, at random positions and loudness."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[:48, :48]
    for number in range(4 * each):
        is_open, rises = number % 2, number // 2 % 2
        name = f"{'open' if is_open else 'closed'}-{'rising' if rises else 'falling'}/{number:03}"
        row, column = random.uniform(20, 28, 2)
        distance = np.hypot((x - column) / 12, (y - row) / (9 if is_open else 4))
        shade = random.uniform(60, 200)
        face = np.where(np.abs(distance - 1) < 0.35, 255 - shade, shade)[..., None]
        pixels = (face + random.normal(0, 25, (48, 48, 3))).clip(0, 255).astype(np.uint8)
        t = np.arange(RATE // 2) / RATE
        bend = (1 if rises else -1) * random.uniform(150, 300)
        pitch = random.uniform(400, 900)
        tone = np.sin(2 * math.pi * (pitch * t + bend * t * t))
        audio = random.normal(0, 0.02, RATE)
        begin = random.integers(0, RATE - len(t))
        audio[begin : begin + len(t)] += random.uniform(0.05, 0.5) * tone
        for root in (faces, speech):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(faces / f"{name}.jpg", quality=90)
        with wave.open(str(speech / f"{name}.wav"), "wb") as file:
            file.setparams((1, 2, RATE, RATE, "NONE", ""))
            file.writeframes((audio.clip(-1, 1) * 32767).astype("<i2").tobytes())


def steps(augment: bool) -> dict[str, list[Any]]:
    """A list for each field of the record: images of SIDE x SIDE, log-mel of the audio."""
    image: list[Any] = [T.Resize((SIDE, SIDE))]
    clip: Any = T.CenterClip
    masks: list[Any] = []
    if augment:
        clip = T.RandomClip
        image = [
            T.RandomResizedCrop(SIDE, scale=(0.7, 1.0), ratio=(0.9, 1.1)),
            T.RandomHorizontalFlip(),
            T.ColorJitter(brightness=0.4, contrast=0.4),
        ]
        masks = [T.FrequencyMasking(4), T.TimeMasking(10)]
    return {
        "image": [*image, *hr.presets.normalized()],
        "audio": [
            T.Mono(),
            clip(RATE * 9 // 10, pad_if_needed=True),
            T.MelSpectrogram(RATE, n_fft=1024, hop_length=320, n_mels=40),
            T.AmplitudeToDB(top_db=60),
            *masks,
        ],
    }


def loader(faces: Path, speech: Path, augment: bool, shuffle: bool, seed: int) -> Any:
    clips = hr.join(faces, speech, rename={"label": "audio_label"})
    given = {**steps(augment), "audio_label": None}  # equal to the image's
    return hr.Loader(clips, given, batch_size=16, shuffle=shuffle, seed=seed)


def network(parts: tuple[str, ...], classes: int) -> Any:
    """A small convolution for each part of the record, and one decision over all of them."""
    import torch
    from torch import nn

    def features(channels: int) -> Any:
        return nn.Sequential(
            nn.BatchNorm2d(channels),
            nn.Conv2d(channels, 16, 3, 2),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, 2),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d((4, 4)),
            nn.Flatten(),
        )

    class Together(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            channels = {"image": 3, "audio": 1}
            self.parts = nn.ModuleDict({name: features(channels[name]) for name in parts})
            self.decision = nn.Sequential(
                nn.Dropout(0.2),
                nn.Linear(32 * 16 * len(parts), 64),
                nn.ReLU(),
                nn.Linear(64, classes),
            )

        def forward(self, batch: Any) -> Any:
            found = [part(getattr(batch, name)) for name, part in self.parts.items()]
            return self.decision(torch.cat(found, 1))

    return Together()


def train(
    training: tuple[Path, Path],
    testing: tuple[Path, Path],
    epochs: int,
    parts: tuple[str, ...] = ("image", "audio"),
    augment: bool = True,
    seed: int = 0,
) -> float:
    """Returns the final accuracy on the clips of ``testing``."""
    import torch

    torch.manual_seed(seed)
    batches = loader(*training, augment=augment, shuffle=True, seed=seed)
    model = network(parts, len(hr.open(training[0]).classes))
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for _ in range(epochs):
        for batch in batches.torch():
            loss = torch.nn.functional.cross_entropy(model(batch), batch.label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    model.eval()
    right = seen = 0
    for batch in loader(*testing, augment=False, shuffle=False, seed=0).torch():
        right += int((model(batch).argmax(1) == batch.label).sum())
        seen += len(batch.label)
    return right / seen


def made(root: Path, each: int = 20) -> tuple[tuple[Path, Path], tuple[Path, Path]]:
    """Folders to train on and to test with."""
    training, testing = (
        (root / part / "faces", root / part / "speech") for part in ("train", "test")
    )
    make_clips(*training, each=each, seed=1)
    make_clips(*testing, each=40, seed=2)
    return training, testing


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small network on faces and voices.")
    parser.add_argument("folders", nargs="*", type=Path, metavar="FACES SPEECH")
    parser.add_argument("--epochs", type=int, default=30)
    arguments = parser.parse_args()
    if arguments.folders:
        faces, speech = arguments.folders
        share = train((faces, speech), (faces, speech), arguments.epochs)
        print(f"recognized of what it was trained on: {share:.0%}")
        return
    with tempfile.TemporaryDirectory() as root:
        training, testing = made(Path(root))
        print(f"recognized: {train(training, testing, arguments.epochs):.0%}")


if __name__ == "__main__":
    main()
