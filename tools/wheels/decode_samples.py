# SPDX-License-Identifier: Apache-2.0
"""Decodes the files of make_samples.py with the installed wheels, and compares the samples.

    python decode_samples.py SAMPLES [--without-video]

Runs where only headrace and NumPy are installed. Every file is decoded, even after a failure.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import headrace as hr
from headrace import _core
from headrace import transforms as T

# Mean differences, in levels of 255 and in samples of full scale 1: conversions from YCbCr round,
# and decoders of lossy audio start differently.
MOST_PIXELS, MOST_SAMPLES = 4.0, 0.02


def pixels_differ(file: Path, raw: bytes) -> float:
    got = hr.imread(file)
    return float(np.abs(got.astype(int) - np.frombuffer(raw, np.uint8).reshape(got.shape)).mean())


def samples_differ(file: Path, raw: bytes) -> float:
    samples, rate = _core.decode_audio(file.read_bytes())
    got = np.asarray(samples)
    want = np.frombuffer(raw, np.float32).reshape(-1, 2).T
    if rate != 48000 or abs(got.shape[1] - want.shape[1]) > 4096:
        raise AssertionError(f"{got.shape} at {rate} Hz, not {want.shape}")
    frames = min(got.shape[1], want.shape[1]) - 2048
    return min(
        float(np.abs(got[:, a : a + frames] - want[:, b : b + frames]).mean())
        for a, b in ((0, 0), (1105, 0), (0, 1105), (1024, 0), (0, 1024))
    )


def frames_differ(file: Path, raw: bytes) -> float:
    want = np.frombuffer(raw, np.uint8).reshape(-1, 64, 96, 3).transpose(0, 3, 1, 2)
    got = np.asarray(_core.decode_video(file.read_bytes(), range(len(want))))
    return float(np.abs(got.astype(int) - want).mean())


COMPARED: dict[str, tuple[Callable[[Path, bytes], float], float]] = {
    "image": (pixels_differ, MOST_PIXELS),
    "audio": (samples_differ, MOST_SAMPLES),
    "video": (frames_differ, MOST_PIXELS),
}


def compare(file: Path) -> tuple[bool, str]:
    """Whether the file passes, and why."""
    differ, most = COMPARED[file.parent.name]
    try:
        mean = differ(file, file.with_name(f"{file.name}.raw").read_bytes())
    except Exception as problem:
        return False, f"{type(problem).__name__}: {problem}"
    return mean <= most, f"mean difference from ffmpeg's {mean:.4f}, at most {most}"


def main() -> None:
    samples, without_video = Path(sys.argv[1]), "--without-video" in sys.argv
    steps = [T.Resize((32, 48)), T.ToDtype("float32", scale=True)]
    batch = next(iter(hr.Loader(samples / "image", steps, batch_size=2)))
    assert batch["image"].shape == (2, 3, 32, 48), batch["image"].shape
    failures = 0
    for file in sorted(samples.glob("*/*")):
        needs_media = file.parent.name == "video" or file.suffix == ".m4a"
        if file.suffix == ".raw" or (without_video and needs_media):
            continue
        passed, why = compare(file)
        failures += not passed
        print(f"{file.parent.name}/{file.name}: {'ok' if passed else 'FAILED'} ({why})")
    for kind in ("image", "audio"):
        for codec in _core.media()[kind]["formats"]:
            package, problem, origin = _core.codec_library(codec)
            if package:
                print(f"library of {codec}: {problem or origin}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
