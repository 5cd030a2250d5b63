# SPDX-License-Identifier: Apache-2.0
"""Train a small network on spoken commands: log-mel features, computed by the loader's threads.

    python examples/speech_commands.py                  # on audio clips that it makes itself
    python examples/speech_commands.py speech_commands/ # .wav files, one folder per word

With the real set (google's speech_commands, 16 kHz, a second each) nothing changes but --epochs.
"""

from __future__ import annotations

import argparse
import itertools
import math
import tempfile
import wave
from pathlib import Path
from typing import Any

import numpy as np

import headrace as hr
from headrace import transforms as T

RATE = 16000


def make_sounds(root: Path, words: int = 4, each: int = 60) -> None:
    """Words of three tones, each in a different order, at random loudness and position."""
    random = np.random.default_rng(1)
    orders = list(itertools.permutations(range(3)))
    for word in range(words):
        folder = root / f"word{word}"
        folder.mkdir(parents=True)
        for number in range(each):
            pitch, t = random.uniform(280, 330), np.arange(RATE // 5) / RATE
            tones = [np.sin(2 * math.pi * pitch * 1.5**step * t) for step in orders[word]]
            sound = random.normal(0, 0.01, random.integers(RATE * 3 // 4, RATE * 5 // 4))
            begin = random.integers(0, len(sound) - 3 * len(t) + 1)
            sound[begin : begin + 3 * len(t)] += random.uniform(0.1, 0.5) * np.concatenate(tones)
            with wave.open(str(folder / f"{number}.wav"), "wb") as file:
                file.setparams((1, 2, RATE, len(sound), "NONE", ""))
                file.writeframes((sound.clip(-1, 1) * 32767).astype("<i2").tobytes())


def features(training: bool) -> list[Any]:
    """Clips of a second as (1, mels, frames) in decibels, with SpecAugment's masks in training."""
    clip = T.RandomClip if training else T.CenterClip
    masks = [T.FrequencyMasking(8), T.TimeMasking(20)] if training else []
    return [
        T.Mono(),
        clip(RATE, pad_if_needed=True),
        T.MelSpectrogram(RATE, n_fft=400, hop_length=160, n_mels=40),
        T.AmplitudeToDB(top_db=80),
        *masks,
    ]


def train(folder: Path, epochs: int) -> float:
    """Returns the final accuracy on held-out audio clips."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    source = hr.open(folder)
    order = np.random.default_rng(0).permutation(len(source))
    held_out, rest = order[: len(order) // 5], order[len(order) // 5 :]
    training = hr.Loader(source, features(True), batch_size=32, sampler=rest, shuffle=True)
    testing = hr.Loader(source, features(False), batch_size=32, sampler=held_out)
    model = nn.Sequential(
        nn.BatchNorm2d(1),
        nn.Conv2d(1, 16, 3, 2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, 2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d((4, 8)),
        nn.Flatten(),
        nn.Linear(32 * 4 * 8, len(source.classes)),
    )
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for _ in range(epochs):
        model.train()
        for batch in training.torch():
            loss = nn.functional.cross_entropy(model(batch["audio"]), batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    model.eval()
    right = sum(
        int((model(batch["audio"]).argmax(1) == batch["label"]).sum()) for batch in testing.torch()
    )
    return right / len(held_out)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small network on commands.")
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--epochs", type=int, default=16)
    arguments = parser.parse_args()
    if arguments.folder:
        print(f"recognized: {train(arguments.folder, arguments.epochs):.0%}")
        return
    with tempfile.TemporaryDirectory() as folder:
        make_sounds(Path(folder))
        print(f"recognized: {train(Path(folder), arguments.epochs):.0%}")


if __name__ == "__main__":
    main()
