# SPDX-License-Identifier: Apache-2.0
"""FILE START COUNT: reads mutated copies of a file and prints a line for each: number, outcome."""

from __future__ import annotations

import hashlib
import random
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

import headrace as hr

IMAGES = (".jpg", ".png", ".webp", ".gif", ".bmp", ".ppm", ".tif", ".jp2", ".avif")
SOUNDS = (".wav", ".flac", ".ogg", ".mp3")


def changed(data: bytes, number: int) -> bytes:
    """A copy with bits flipped, bytes overwritten, zeroed or copied, or its end truncated."""
    rng = random.Random(number * 1_000_003 + len(data))
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        if not out:
            break
        way, at = rng.randrange(5), rng.randrange(len(out))
        if rng.random() < 0.5:  # most parsing happens in headers
            at %= 512
            at = min(at, len(out) - 1)
        length = rng.choice((1, 2, 4, 8, 64, 512))
        if way == 0:
            out[at] ^= 1 << rng.randrange(8)
        elif way == 1:
            out[at : at + length] = rng.choice((b"\0", b"\xff")) * len(out[at : at + length])
        elif way == 2:
            out[at : at + length] = rng.randbytes(len(out[at : at + length]))
        elif way == 3:
            there = rng.randrange(len(out))
            out[at : at + length] = out[there : there + length]
        else:
            del out[len(out) * rng.randrange(64) // 64 :]
    return bytes(out)


def digest(values: object) -> str:
    return hashlib.sha256(repr(values).encode()).hexdigest()[:12]


def decoded(data: bytes) -> str:
    image = hr.decode(data, mode="RGB")
    return f"read {digest((image.shape, image.tobytes()))}"


def opened(path: Path) -> str:
    """Each record is read or is an error of its own; a file that cannot be opened is a single
    error."""
    out = []
    source = hr.open(path.parent if path.suffix in SOUNDS else path)
    for number in range(min(len(source), 64)):
        try:
            record = source[number]
        except hr.Error as problem:
            out.append(code_of(problem, path))
            continue
        del record["key"]  # the message contains the folder
        out.append(digest([(k, np.asarray(v).tobytes()) for k, v in sorted(record.items())]))
    bad = sum(one.startswith("HR") for one in out)
    unnamed = [one for one in out if one.startswith("UNNAMED")]
    return unnamed[0] if unnamed else f"read-{'with' if bad else 'without'}-errors {digest(out)}"


def code_of(problem: hr.Error, path: Path | None = None) -> str:
    text = str(problem)
    if not problem.code or (path is not None and path.stem not in text):
        return f"UNNAMED {type(problem).__name__}: {text.splitlines()[0]}"
    return f"{problem.code} {digest(text.replace(str(path.parent), '') if path else text)}"


def main(file: str, start: str, count: str) -> None:
    seed = Path(file)
    data = seed.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        for beside in seed.parent.glob(f"{seed.stem}.*"):  # its index
            if beside.is_file():
                shutil.copy(beside, folder)
        path = Path(folder) / seed.name
        for number in range(int(start), int(start) + int(count)):
            given = changed(data, number)
            try:
                if seed.suffix in IMAGES:
                    outcome = decoded(given)
                else:
                    path.write_bytes(given)
                    outcome = opened(path)
            except hr.Error as problem:
                outcome = code_of(problem, None if seed.suffix in IMAGES else path)
            except Exception as problem:
                outcome = f"UNNAMED {type(problem).__name__}: {problem}"
            print(number, outcome.replace("\n", " "), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
