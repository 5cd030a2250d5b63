#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cost of audio features: hours of audio per second of CPU time, compared with other libraries.

    python bench/audio_features.py [--runs N] [--seconds S] [--count N] [--step NAME]

Audio clips are float32 in memory. Headrace's time is a whole loader's on one thread, from the array
to the batch; the others' is their transform's alone, called on the same clips in this process, on
one thread. Rounds alternate; prints medians, and ratios within a round. A library that is not
installed is skipped. HEADRACE_SIMD=avx2 measures a lower level.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import headrace as hr
from headrace import _core
from headrace import transforms as T

Array = np.ndarray[Any, Any]
Call = Callable[[Array], Any]

MEL = {"n_fft": 400, "hop_length": 160, "n_mels": 80}
RATES: dict[str, int] = {"Resample 44.1 to 16": 44100, "Resample 48 to 16": 48000}
OURS: dict[str, list[Any]] = {
    "mel 400/160/80": [T.MelSpectrogram(**MEL)],
    "mel 400/160/80, dB": [T.MelSpectrogram(**MEL), T.AmplitudeToDB(top_db=80.0)],
    "mel 400/200/128": [T.MelSpectrogram()],
    "mel 1024/256/128": [T.MelSpectrogram(n_fft=1024, hop_length=256)],
    "Spectrogram": [T.Spectrogram()],
    "MFCC": [T.MFCC()],
    "Kaldi fbank 80": [T.KaldiFbank(num_mel_bins=80)],
    "Whisper": [T.WhisperLogMel(chunk_length=None)],
    "Resample 44.1 to 16": [T.Resample(44100, 16000)],
    "Resample 48 to 16": [T.Resample(48000, 16000)],
    "Resample 16 to 48": [T.Resample(16000, 48000)],
    "Speed 1.1": [T.Speed(16000, 1.1)],
}


def torchaudios() -> dict[str, Call]:
    import torch
    import torchaudio.transforms as A
    from torchaudio.compliance import kaldi

    torch.set_num_threads(1)
    db = A.AmplitudeToDB(top_db=80.0)
    mel = A.MelSpectrogram(**MEL)
    steps: dict[str, Callable[[Any], Any]] = {
        "mel 400/160/80": mel,
        "mel 400/160/80, dB": lambda x: db(mel(x)),
        "mel 400/200/128": A.MelSpectrogram(),
        "mel 1024/256/128": A.MelSpectrogram(n_fft=1024, hop_length=256),
        "Spectrogram": A.Spectrogram(),
        "MFCC": A.MFCC(),
        "Kaldi fbank 80": lambda x: kaldi.fbank(x, num_mel_bins=80),
        "Resample 44.1 to 16": A.Resample(44100, 16000),
        "Resample 48 to 16": A.Resample(48000, 16000),
        "Resample 16 to 48": A.Resample(16000, 48000),
        "Speed 1.1": A.Speed(16000, 1.1),
    }
    return {
        name: lambda x, step=step: step(torch.from_numpy(x)[None]) for name, step in steps.items()
    }


def librosas() -> dict[str, Call]:
    import librosa

    def mel(x: Array, n_fft: int, hop: int, n_mels: int) -> Array:
        return librosa.feature.melspectrogram(
            y=x, sr=16000, n_fft=n_fft, hop_length=hop, n_mels=n_mels, htk=True, norm=None
        )

    return {
        "mel 400/160/80": lambda x: mel(x, 400, 160, 80),
        "mel 400/160/80, dB": lambda x: librosa.power_to_db(mel(x, 400, 160, 80)),
        "mel 400/200/128": lambda x: mel(x, 400, 200, 128),
        "mel 1024/256/128": lambda x: mel(x, 1024, 256, 128),
        "MFCC": lambda x: librosa.feature.mfcc(
            y=x, sr=16000, n_mfcc=40, n_fft=400, hop_length=200, htk=True
        ),
        "Resample 44.1 to 16": lambda x: librosa.resample(x, orig_sr=44100, target_sr=16000),
        "Resample 48 to 16": lambda x: librosa.resample(x, orig_sr=48000, target_sr=16000),
    }


def transformers() -> dict[str, Call]:
    from transformers import WhisperFeatureExtractor

    extract = WhisperFeatureExtractor()
    return {
        "Whisper": lambda x: extract(
            x, sampling_rate=16000, return_tensors="np", padding="do_not_pad", truncation=False
        )
    }


def soxrs() -> dict[str, Call]:
    import soxr

    return {
        name: lambda x, rate=rate: soxr.resample(x, rate, 16000, "HQ")
        for name, rate in RATES.items()
    }


def dalis() -> dict[str, Callable[[list[Array]], Callable[[], None]]]:
    """A pipeline on the CPU with one thread, consuming whole batches."""
    from nvidia.dali import fn, pipeline_def

    def mel(n_fft: int, hop: int, n_mels: int, decibels: bool) -> Any:
        def make(sounds: list[Array]) -> Callable[[], None]:
            @pipeline_def(
                batch_size=len(sounds),
                num_threads=1,
                device_id=None,
                exec_async=False,
                exec_pipelined=False,
            )
            def pipeline() -> Any:
                sound = fn.external_source(source=lambda: sounds, no_copy=True)
                window = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n_fft) / n_fft)).tolist()
                spectra = fn.spectrogram(
                    sound, nfft=n_fft, window_length=n_fft, window_step=hop, window_fn=window
                )
                made = fn.mel_filter_bank(
                    spectra, sample_rate=16000, nfilter=n_mels, mel_formula="htk", normalize=False
                )
                return fn.to_decibels(made, cutoff_db=-80) if decibels else made

            built = pipeline()
            built.build()
            return lambda: (built.run(), None)[1]

        return make

    return {
        "mel 400/160/80": mel(400, 160, 80, False),
        "mel 400/160/80, dB": mel(400, 160, 80, True),
        "mel 400/200/128": mel(400, 200, 128, False),
        "mel 1024/256/128": mel(1024, 256, 128, False),
    }


def each(call: Call) -> Callable[[list[Array]], Callable[[], None]]:
    def make(sounds: list[Array]) -> Callable[[], None]:
        def run() -> None:
            for sound in sounds:
                call(sound)

        return run

    return make


@contextlib.contextmanager
def installed(name: str) -> Iterator[None]:
    try:
        yield
    except (ImportError, OSError, RuntimeError) as error:
        print(f"without {name}: {str(error).splitlines()[0]}")


def libraries() -> dict[str, dict[str, Callable[[list[Array]], Callable[[], None]]]]:
    found = {}
    for name, functions in (
        ("torchaudio", torchaudios),
        ("librosa", librosas),
        ("transformers", transformers),
        ("soxr HQ", soxrs),
    ):
        with installed(name):
            found[name] = {step: each(call) for step, call in functions().items()}
    with installed("DALI"):
        found["DALI"] = dalis()
    return found


def headraces(sounds: list[Array], steps: list[Any]) -> Callable[[], None]:
    source = hr.records(sound=np.stack(sounds)[:, None], kinds={"sound": "audio"})
    loader = hr.Loader(source, steps, batch_size=len(sounds), threads=1, shuffle=False)

    def run() -> None:
        for _ in loader:
            pass

    return run


def cpu_seconds(call: Callable[[], None]) -> float:
    begin = time.process_time()
    call()
    return time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=30.0, help="length of each clip")
    parser.add_argument("--count", type=int, default=8, help="number of clips")
    parser.add_argument("--step", choices=OURS, action="append")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    others = libraries()
    print(f"{arguments.count} sounds of {arguments.seconds} s, level {_core.simd_level()}")
    for name in arguments.step or OURS:
        rate = RATES.get(name, 16000)
        rng = np.random.default_rng(1)
        length = int(rate * arguments.seconds)
        sounds = [rng.normal(0, 0.1, length).astype(np.float32) for _ in range(arguments.count)]
        calls = {"Headrace": headraces(sounds, OURS[name])}
        for library, functions in others.items():
            if name in functions:
                calls[library] = functions[name](sounds)
        spent: dict[str, list[float]] = {library: [] for library in calls}
        for run in range(arguments.runs + 1):
            for library, call in calls.items():
                seconds = cpu_seconds(call)
                if run:  # the first one starts threads and makes tables
                    spent[library].append(seconds)
        hours = arguments.count * arguments.seconds / 3600
        line = f"{name:20}"
        for library, each_run in spent.items():
            line += f"  {library} {hours / statistics.median(each_run):6.2f} h/s"
            if library != "Headrace":
                pairs = zip(each_run, spent["Headrace"], strict=True)
                line += f" ({statistics.median(a / b for a, b in pairs):.1f}x)"
        print(line, flush=True)


if __name__ == "__main__":
    main()
