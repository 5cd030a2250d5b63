# SPDX-License-Identifier: Apache-2.0
"""Deliberately damaged files: each is read correctly, or gives an error with its name.

The inputs are read in separate processes, because the test looks for crashes. Two more processes
read some of them again, and must report the same.
"""

from __future__ import annotations

import io
import json
import signal
import wave
from collections.abc import Iterator
from pathlib import Path

import child
import numpy as np
import sets
from trial import Attempt, Trial

import headrace as hr

PATIENCE = 20.0  # seconds for one input on a busy machine; only a hang exceeds it
WRITTEN = {
    "tar": "set.tar",
    "tfrecord": "set.tfrecord",
    "recordio": "set.rec",
    "hdf5": "set.h5",
    "lmdb": "set.mdb",
}
BATCH = 200  # inputs from one seed file per process
AGAIN = 20  # how many of these two more processes read
PER_FORMAT = 10_000


def run(attempt: Attempt) -> None:
    seeds = list(seed_files(attempt))
    attempt.figures["formats"] = len(seeds)
    attempt.target = PER_FORMAT * len(seeds)
    outcomes: dict[str, int] = {}
    start = 0
    while attempt.goes_on():
        for seed in seeds:
            if not attempt.goes_on():
                break
            wanted = min(BATCH, attempt.target - attempt.inputs)
            told = read(attempt, seed, start, wanted)
            for _ in range(2):
                again = read(attempt, seed, start, min(AGAIN, wanted), repeated=True)
                for number, outcome in again.items():
                    first = told.get(number)
                    same = first in (None, outcome)
                    attempt.expect(same, f"{seed.name} {number}: {first}/{outcome}")
            for outcome in told.values():
                kind = outcome.partition(" ")[0]
                outcomes[kind] = outcomes.get(kind, 0) + 1
        start += BATCH
    attempt.figures["short_of_the_target"] = f"{AGAIN} of {BATCH} are read three times"
    attempt.figures["outcomes"] = dict(sorted(outcomes.items(), key=lambda one: -one[1])[:12])


def read(
    attempt: Attempt, seed: Path, start: int, count: int, repeated: bool = False
) -> dict[int, str]:
    """A process's results for inputs start, start + 1, ...; after a crash a new one continues."""
    told: dict[int, str] = {}
    number = start
    while number < start + count:
        process = child.start(
            "read_mutated", seed, number, start + count - number, cache=attempt.folder / "cache"
        )
        for line in child.lines_of(process, PATIENCE * attempt.patience):
            found, _, outcome = line.partition(" ")
            told[int(found)] = outcome
            number = int(found) + 1
            if outcome.startswith("UNNAMED"):
                attempt.fails(f"{seed.name} {found}: {outcome}")
        code, _, errors = child.ended(process, 5 * attempt.patience)
        if number < start + count:
            how = "hangs" if code in (None, -signal.SIGKILL) else f"ends by {code}"
            attempt.fails(f"{seed.name} {number}: {how}: {child.last_lines(errors)}")
            told[number] = how
            number += 1
    if not repeated:
        attempt.inputs += count
    return told


def seed_files(attempt: Attempt) -> Iterator[Path]:
    """A small intact file of each format that can be written here."""
    folder = attempt.folder / "seeds"
    folder.mkdir()
    rng = np.random.default_rng(attempt.random.getrandbits(32))
    image = sets.picture(rng, 61, 47)
    forms = {
        "baseline.jpg": {"format": "JPEG", "quality": 90},
        "progressive.jpg": {"format": "JPEG", "progressive": True},
        "image.png": {"format": "PNG"},
        "image.webp": {"format": "WEBP"},
        "lossless.webp": {"format": "WEBP", "lossless": True},
        "image.gif": {"format": "GIF"},
        "image.bmp": {"format": "BMP"},
        "image.ppm": {"format": "PPM"},
        "image.tif": {"format": "TIFF", "compression": "tiff_lzw"},
        "image.jp2": {"format": "JPEG2000"},
        "image.avif": {"format": "AVIF"},
    }
    for name, options in forms.items():
        encoded = io.BytesIO()
        try:
            image.save(encoded, **options)
        except (KeyError, OSError):  # not supported by this Pillow
            continue
        (folder / name).write_bytes(encoded.getvalue())
        yield folder / name
    yield from containers(attempt, folder)


def containers(attempt: Attempt, folder: Path) -> Iterator[Path]:
    rng = np.random.default_rng(attempt.random.getrandbits(32))
    photos = sets.photos(attempt.folder / "few", 8, attempt.random, (20, 40))
    source = hr.open(photos)
    for kind, name in WRITTEN.items():
        written = attempt.folder / f"written-{kind}"
        try:
            hr.convert(source, written / name, to=kind)
        except ImportError:  # needs h5py or lmdb, for writing only
            continue
        # An index next to it is not changed, and must be rejected if it no longer matches.
        for path in sorted(written.iterdir()):
            path.rename(folder / path.name)
        yield folder / name
    yield from recordings(folder, rng)
    hr.pack(source, folder / "fast.hrpack")
    yield folder / "fast.hrpack"
    hr.pack(source, folder / "dense.hrpack", level="dense")
    yield folder / "dense.hrpack"
    values = np.arange(60, dtype=np.float32).reshape(12, 5)
    np.save(folder / "values.npy", values)
    yield folder / "values.npy"
    np.savez_compressed(folder / "values.npz", x=values, y=np.arange(12))
    yield folder / "values.npz"
    header = json.dumps(
        {"x": {"dtype": "F32", "shape": [12, 5], "data_offsets": [0, 240]}}
    ).encode()
    safetensors = len(header).to_bytes(8, "little") + header + values.tobytes()
    (folder / "values.safetensors").write_bytes(safetensors)
    yield folder / "values.safetensors"


def recordings(folder: Path, rng: np.random.Generator) -> Iterator[Path]:
    """A second of noise as PCM, and in soundfile's formats if it is installed."""
    samples = rng.integers(-(2**15), 2**15, 8000, dtype=np.int16)
    with wave.open(str(folder / "noise.wav"), "wb") as file:
        file.setparams((1, 2, 8000, len(samples), "NONE", ""))
        file.writeframes(samples.tobytes())
    yield folder / "noise.wav"
    try:
        import soundfile
    except ImportError:
        return
    for name in ("noise.flac", "noise.ogg", "noise.mp3"):
        soundfile.write(folder / name, samples, 8000)
        yield folder / name


TRIAL = Trial(
    "mutated",
    "A damaged file is read, or is an error with code and name: no crash, no hang, always the same",
    25 * PER_FORMAT,
    "files",
    run,
    weight=3,
    targets=("R3",),
)
