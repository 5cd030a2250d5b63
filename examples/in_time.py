# SPDX-License-Identifier: Apache-2.0
"""Train a small network to tell whether audio and video are in sync: video clips with their audio,
from the same time window.

    python examples/in_time.py        # on videos that it makes itself (needs PyAV: av)
    python examples/in_time.py clips/ # a folder of videos with audio, one folder per class

A disc flashes and something beeps, at the same time (`together`) or not (`apart`). Neither images
nor audio alone say which: the network is right more often than by chance only if both come from the
same seconds of the file.
"""

from __future__ import annotations

import argparse
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import headrace as hr
from headrace import transforms as T

RATE, FPS, SIDE = 16000, 16, 32
FRAMES, SECONDS = 16, 2  # of a clip


def make_videos(root: Path, each: int, seed: int) -> None:
    """Three-second videos, H.264 and AAC in MP4, with random position, brightness and loudness."""
    import av

    random = np.random.default_rng(seed)
    y, x = np.mgrid[:SIDE, :SIDE]
    t = np.arange(3 * RATE) / RATE
    for number in range(2 * each):
        name = "apart" if number % 2 else "together"
        seen = heard = random.uniform(1.1, 1.9)
        while name == "apart" and abs(seen - heard) < 0.35:
            seen, heard = random.uniform(1.1, 1.9, 2)
        row, column = random.uniform(8, SIDE - 8, 2)
        disc = np.hypot(y - row, x - column) < random.uniform(5, 8)
        bright = random.uniform(120, 250)
        ground = random.integers(0, 100, (SIDE, SIDE)).astype(np.uint8)
        beep = (t >= heard) & (t < heard + 0.12)
        sound = random.normal(0, 0.01, len(t)) + beep * random.uniform(0.1, 0.5) * np.sin(
            2 * np.pi * random.uniform(500, 2000) * t
        )
        (root / name).mkdir(parents=True, exist_ok=True)
        with av.open(str(root / name / f"{number}.mp4"), "w") as file:
            video: Any = file.add_stream("libx264", rate=FPS)
            video.height, video.width, video.pix_fmt = SIDE, SIDE, "yuv420p"
            video.options = {"g": "12"}
            audio: Any = file.add_stream("aac", rate=RATE, layout="mono")
            for i in range(3 * FPS):
                pixels = ground.copy()
                if seen - 0.5 / FPS <= i / FPS < seen + 0.12:
                    pixels[disc] = bright
                rgb = np.repeat(pixels[..., None], 3, axis=2)
                file.mux(video.encode(av.VideoFrame.from_ndarray(rgb, format="rgb24")))
            file.mux(video.encode())
            for at in range(0, len(sound), 1024):
                piece = np.ascontiguousarray(sound[None, at : at + 1024], np.float32)
                frame = av.AudioFrame.from_ndarray(piece, format="fltp", layout="mono")
                frame.sample_rate, frame.pts, frame.time_base = RATE, at, Fraction(1, RATE)
                file.mux(audio.encode(frame))
            file.mux(audio.encode())


def steps(training: bool) -> list[Any]:
    """16 frames of two seconds as (16, 3, 32, 32), log-mel of the same two as (1, 40, 33)."""
    clip = T.RandomVideoClips if training else T.CenterVideoClip
    return [
        clip(FRAMES, fps=FRAMES / SECONDS, audio=RATE),
        T.Resize((SIDE, SIDE)),
        T.ToDtype("float32", scale=True, fields="video"),
        T.Normalize([0.3, 0.3, 0.3], [0.25, 0.25, 0.25]),
        T.Mono(),
        T.MelSpectrogram(RATE, n_fft=1024, hop_length=1000, n_mels=40),
        T.AmplitudeToDB(top_db=60),
    ]


def network(classes: int) -> Any:
    """Features of each frame and of its audio, and one decision over the whole clip."""
    import torch
    from torch import nn

    class InTime(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.see = nn.Sequential(
                nn.Conv2d(3, 16, 5, 2), nn.ReLU(), nn.Conv2d(16, 16, 3, 2), nn.ReLU()
            )
            self.hear = nn.Sequential(
                nn.BatchNorm1d(40), nn.Conv1d(40, 16, 3, padding=1), nn.ReLU()
            )
            self.match = nn.Sequential(
                nn.BatchNorm1d(32), nn.Conv1d(32, 32, 3, padding=1), nn.ReLU()
            )
            self.decide = nn.Linear(32, classes)

        def forward(self, batch: Any) -> Any:
            video, audio = batch.video, batch.video_audio
            seen = self.see(video.flatten(0, 1)).amax((2, 3)).unflatten(0, video.shape[:2])
            heard = nn.functional.adaptive_max_pool1d(self.hear(audio[:, 0]), FRAMES)
            both = self.match(torch.cat([seen.transpose(1, 2), heard], 1))
            return self.decide(both.amax(2))

    return InTime()


def train(training: Path, testing: Path, epochs: int, seed: int = 0) -> float:
    """Returns the final accuracy on the videos of ``testing``."""
    import torch

    torch.manual_seed(seed)
    source = hr.open(training)
    loader = hr.Loader(source, steps(True), batch_size=16, shuffle=True, seed=seed)
    model = network(len(source.classes))
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    for _ in range(epochs):
        for batch in loader.torch():
            loss = torch.nn.functional.cross_entropy(model(batch), batch.label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    model.eval()
    right = seen = 0
    for batch in hr.Loader(hr.open(testing), steps(False), batch_size=16).torch():
        right += int((model(batch).argmax(1) == batch.label).sum())
        seen += len(batch.label)
    return right / seen


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small network on images and audio.")
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--epochs", type=int, default=14)
    arguments = parser.parse_args()
    if arguments.folder:
        share = train(arguments.folder, arguments.folder, arguments.epochs)
        print(f"recognized of what it was trained on: {share:.0%}")
        return
    with tempfile.TemporaryDirectory() as root:
        training, testing = Path(root) / "train", Path(root) / "test"
        make_videos(training, each=48, seed=1)
        make_videos(testing, each=24, seed=2)
        print(f"recognized: {train(training, testing, arguments.epochs):.0%}")


if __name__ == "__main__":
    main()
