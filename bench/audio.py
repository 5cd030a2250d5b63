# SPDX-License-Identifier: Apache-2.0
"""Loading audio into batches, compared with soundfile and torchcodec, on one thread: `python
bench/audio.py`.

Files are made here: short WAVs of 0.35 s at 16 kHz, files of 10 s, and clips of a second from the
middle of files of 3 hours. Each library fills preallocated float32 batches of (rows, channels,
frames). Rounds alternate; prints the minimum CPU time per file of each, and its ratio to
Headrace's; torchcodec is included if it can be imported. Then each library reads the files in a
separate process, three times, to measure its peak memory (PSS): the total, and what was added after
the imports.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import soundfile
from process_tree import PeakMemory, pss_mib

import headrace as hr
from headrace import transforms as T

ROUNDS, BATCH = 7, 50


class Case(NamedTuple):
    files: int
    frames: int
    channels: int
    rate: int
    format: str
    subtype: str | None = None
    clip: int | None = None  # frames from the middle; None: all

    @property
    def wanted(self) -> int:
        return self.clip or self.frames

    @property
    def begin(self) -> int:
        return (self.frames - self.wanted) // 2


HOURS = 3 * 3600 * 16000
CASES = {
    "500 WAVs of 0.35 s": Case(500, 5600, 1, 16000, "WAV"),
    "FLAC, 10 s, 44.1 kHz stereo": Case(12, 441000, 2, 44100, "FLAC"),
    "FLAC, 10 s, 16 kHz mono": Case(24, 160000, 1, 16000, "FLAC"),
    "MP3, 10 s, 44.1 kHz stereo": Case(12, 441000, 2, 44100, "MP3"),
    "Vorbis, 10 s, 44.1 kHz stereo": Case(12, 441000, 2, 44100, "OGG"),
    "WAV, 10 s, 44.1 kHz stereo": Case(24, 441000, 2, 44100, "WAV"),
    "float WAV, 44.1 kHz stereo": Case(24, 441000, 2, 44100, "WAV", "FLOAT"),
    "float WAV, 16 kHz mono": Case(24, 160000, 1, 16000, "WAV", "FLOAT"),
    "1 s of a WAV of 3 hours": Case(4, HOURS, 1, 16000, "WAV", clip=16000),
    "1 s of a FLAC of 3 hours": Case(1, HOURS, 1, 16000, "FLAC", clip=16000),
    "1 s of an MP3 of 3 hours": Case(1, HOURS, 1, 16000, "MP3", clip=16000),
}


def make_files(folder: Path, case: Case) -> list[str]:
    """Voices of a few harmonics plus noise; audio longer than a minute repeats it."""
    random = np.random.default_rng(1)
    paths = []
    minute = 60 * case.rate
    for number in range(case.files):
        t = np.arange(min(case.frames, minute))[:, None] / case.rate
        pitch = random.uniform(90, 250) * np.arange(1, case.channels + 1)
        voice = sum(np.sin(2 * np.pi * pitch * k * t) / k for k in range(1, 9))
        samples = 0.2 * voice * (1 + np.sin(5 * t)) / 2
        samples += random.normal(0, 0.003, (len(t), case.channels))
        path = folder / f"{number:04}.{case.format.lower()}"
        how = {"format": case.format, "subtype": case.subtype}
        with soundfile.SoundFile(path, "w", case.rate, case.channels, **how) as file:
            for begin in range(0, case.frames, minute):
                file.write(samples[: case.frames - begin])
        paths.append(str(path))
    return paths


def by_headrace(paths: list[str], case: Case, threads: int = 1) -> Callable[[], int]:
    loader = hr.Loader(
        hr.records(audio=paths),
        [T.CenterClip(case.clip) if case.clip else T.PadOrTrim(case.frames)],
        batch_size=min(BATCH, len(paths)),
        shuffle=False,
        threads=threads,
    )
    return lambda: sum(len(batch["audio"]) for batch in loader)


def by_soundfile(paths: list[str], case: Case) -> Callable[[], int]:
    batch = np.zeros((min(BATCH, len(paths)), case.channels, case.wanted), np.float32)

    def run() -> int:
        for number, path in enumerate(paths):
            samples, _ = soundfile.read(
                path, case.clip or -1, case.begin, dtype="float32", always_2d=True
            )
            row, there = batch[number % BATCH], min(len(samples), case.wanted)
            row[:, :there] = samples[:there].T
            row[:, there:] = 0
        return len(paths)

    return run


def by_torchcodec(paths: list[str], case: Case) -> Callable[[], int] | None:
    try:
        import torch
        from torchcodec.decoders import AudioDecoder
    except (ImportError, OSError, RuntimeError):
        return None
    torch.set_num_threads(1)
    batch = torch.zeros((min(BATCH, len(paths)), case.channels, case.wanted))
    begin, end = case.begin / case.rate, (case.begin + case.wanted) / case.rate

    def run() -> int:
        for number, path in enumerate(paths):
            decoder = AudioDecoder(path)
            if case.clip:
                samples = decoder.get_samples_played_in_range(begin, end).data
            else:
                samples = decoder.get_all_samples().data
            row, there = batch[number % BATCH], min(samples.shape[1], case.wanted)
            row[:, :there] = samples[:, :there]
            row[:, there:] = 0
        return len(paths)

    return run


WAYS: dict[str, Callable[[list[str], Case], Callable[[], int] | None]] = {
    "headrace": by_headrace,
    "soundfile": by_soundfile,
    "torchcodec": by_torchcodec,
}


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


def print_memory(name: str, case: Case, folder: str) -> None:
    """In a separate process: total MiB at the peak, and MiB added after the imports."""
    paths = sorted(str(path) for path in Path(folder).iterdir())
    one = by_torchcodec(paths[:1], case) if name == "torchcodec" else None
    del one  # it has imported what it needs
    before = pss_mib(os.getpid())
    with PeakMemory(os.getpid(), 0.002) as peak:
        run = WAYS[name](paths, case)
        for _ in range(3):
            assert run is not None and run() == len(paths)
    print(f"{peak.mib:.1f} {peak.mib - before:.1f}")


def memory(name: str, label: str, folder: str) -> str:
    command = [sys.executable, __file__, "--memory", name, label, folder]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    whole, beyond = done.stdout.split()
    return f"{name} {whole} ({beyond})"


def rows(cases: dict[str, Case]) -> Iterator[str]:
    for label, case in cases.items():
        with tempfile.TemporaryDirectory() as folder:
            paths = make_files(Path(folder), case)
            ways = {name: way(paths, case) for name, way in WAYS.items()}
            there = {name: way for name, way in ways.items() if way}
            found = least_seconds(there, time.process_time)
            ours = found["headrace"]
            others = ", ".join(f"{n} {found[n] / ours:.2f}x" for n in there if n != "headrace")
            yield f"{label:30} {ours * 1e6:8.1f} us per file; {others}"
            used = ", ".join(memory(name, label, folder) for name in there)
            yield f"{'  peak PSS (after imports), MiB':30} {used}"
            if case.frames < 10000:
                two = {"1": by_headrace(paths, case), "2": by_headrace(paths, case, 2)}
                walls = least_seconds(two, time.perf_counter)
                yield f"{'  two threads, wall time':30} {walls['1'] / walls['2']:.2f}x of one"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--case", action="append", choices=CASES)
    parser.add_argument("--memory", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory:
        way, label, folder = arguments.memory
        print_memory(way, CASES[label], folder)
    else:
        for row in rows({label: CASES[label] for label in arguments.case or CASES}):
            print(row, flush=True)
