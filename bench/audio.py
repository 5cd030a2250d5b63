# SPDX-License-Identifier: Apache-2.0
"""Sounds into batches against soundfile and torchcodec, one thread: `python bench/audio.py`.

Files are made here: short WAVs of 0.35 s at 16 kHz, and stereo files of 10 s at 44.1 kHz. Each way
fills float32 batches of (rows, channels, frames) that were there before. Rounds alternate; what is
printed is the least CPU time of each, a file, and its ratio to Headrace's. torchcodec takes part
where it can be imported.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

import headrace as hr
from headrace import transforms as T

ROUNDS, BATCH = 7, 50
CASES = {  # files, frames, channels, rate, format
    "500 WAVs of 0.35 s": (500, 5600, 1, 16000, "WAV"),
    "FLAC, 10 s, 44.1 kHz stereo": (12, 441000, 2, 44100, "FLAC"),
    "FLAC, 10 s, 16 kHz mono": (24, 160000, 1, 16000, "FLAC"),
    "MP3, 10 s, 44.1 kHz stereo": (12, 441000, 2, 44100, "MP3"),
    "Vorbis, 10 s, 44.1 kHz stereo": (12, 441000, 2, 44100, "OGG"),
    "WAV, 10 s, 44.1 kHz stereo": (24, 441000, 2, 44100, "WAV"),
}


def make_files(
    folder: Path, files: int, frames: int, channels: int, rate: int, format: str
) -> list[str]:
    """Voices of a few harmonics over noise."""
    random = np.random.default_rng(1)
    paths = []
    for number in range(files):
        t = np.arange(frames)[:, None] / rate
        pitch = random.uniform(90, 250) * np.arange(1, channels + 1)
        voice = sum(np.sin(2 * np.pi * pitch * k * t) / k for k in range(1, 9))
        samples = 0.2 * voice * (1 + np.sin(5 * t)) / 2 + random.normal(
            0, 0.003, (frames, channels)
        )
        path = folder / f"{number:04}.{format.lower()}"
        soundfile.write(path, samples, rate, format=format)
        paths.append(str(path))
    return paths


def by_headrace(paths: list[str], shape: tuple[int, int], threads: int = 1) -> Callable[[], int]:
    loader = hr.Loader(
        hr.records(audio=paths),
        [T.PadOrTrim(shape[1])],
        batch_size=min(BATCH, len(paths)),
        shuffle=False,
        threads=threads,
    )
    return lambda: sum(len(batch["audio"]) for batch in loader)


def by_soundfile(paths: list[str], shape: tuple[int, int]) -> Callable[[], int]:
    batch = np.zeros((BATCH, *shape), np.float32)

    def run() -> int:
        for number, path in enumerate(paths):
            samples, _ = soundfile.read(path, dtype="float32", always_2d=True)
            row, there = batch[number % BATCH], min(len(samples), shape[1])
            row[:, :there] = samples[:there].T
            row[:, there:] = 0
        return len(paths)

    return run


def by_torchcodec(paths: list[str], shape: tuple[int, int]) -> Callable[[], int] | None:
    try:
        import torch
        from torchcodec.decoders import AudioDecoder
    except (ImportError, OSError, RuntimeError):
        return None
    torch.set_num_threads(1)
    batch = torch.zeros((BATCH, *shape))

    def run() -> int:
        for number, path in enumerate(paths):
            samples = AudioDecoder(path).get_all_samples().data
            row, there = batch[number % BATCH], min(samples.shape[1], shape[1])
            row[:, :there] = samples[:, :there]
            row[:, there:] = 0
        return len(paths)

    return run


def least_seconds(ways: dict[str, Callable[[], int]], clock: Any) -> dict[str, float]:
    found: dict[str, float] = {}
    for round_number in range(ROUNDS + 1):
        for name, way in ways.items():
            begin = clock()
            files = way()
            seconds = (clock() - begin) / files
            if round_number:  # the first one warms up
                found[name] = min(found.get(name, seconds), seconds)
    return found


def rows() -> Iterator[str]:
    for case, (files, frames, channels, rate, format) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            paths = make_files(Path(folder), files, frames, channels, rate, format)
            shape = (channels, frames)
            ways = {
                "headrace": by_headrace(paths, shape),
                "soundfile": by_soundfile(paths, shape),
                "torchcodec": by_torchcodec(paths, shape),
            }
            there = {name: way for name, way in ways.items() if way}
            found = least_seconds(there, time.process_time)
            ours = found["headrace"]
            others = ", ".join(f"{n} {found[n] / ours:.2f}x" for n in there if n != "headrace")
            yield f"{case:30} {ours * 1e6:8.1f} us a file; {others}"
            if frames < 10000:
                two = {"1": by_headrace(paths, shape), "2": by_headrace(paths, shape, 2)}
                walls = least_seconds(two, time.perf_counter)
                yield f"{'  two threads, wall time':30} {walls['1'] / walls['2']:.2f}x of one"


if __name__ == "__main__":
    for row in rows():
        print(row, flush=True)
