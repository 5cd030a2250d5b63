# SPDX-License-Identifier: Apache-2.0
"""Decompression bombs: small files that declare, or expand to, far more than they hold.

Each is read in a process of its own, after an intact file of the same format. The memory that it
takes on top of that is the process's peak. The CPU time is reported and not judged, because other
programs run on the same machine.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import child
import numpy as np
import sets
from PIL import Image
from trial import Attempt, Trial

AIM, MOST = 64 << 20, 512 << 20  # bytes of memory on top of an intact file's
AIM_MS = 50.0
PATIENCE = 120.0  # seconds after which a file counts as a hang
RECORDS = 2

Make = Callable[[Path, random.Random], None]
MAKERS: dict[str, tuple[str, Make, Make]] = {}  # by name: file name, an intact file, a bomb


def bomb(name: str, file: str, intact: Make) -> Callable[[Make], Make]:
    def added(make: Make) -> Make:
        MAKERS[name] = (file, intact, make)
        return make

    return added


def image_of(form: str, **options: object) -> Make:
    def make(path: Path, numbers: random.Random) -> None:
        rng = np.random.default_rng(numbers.getrandbits(32))
        sets.picture(rng, 64, 48).save(path, format=form, **options)

    return make


def side(numbers: random.Random, most: int) -> int:
    return most - numbers.randrange(100)


def patched(path: Path, at: int, new: bytes) -> None:
    data = bytearray(path.read_bytes())
    data[at : at + len(new)] = new
    path.write_bytes(data)


jpeg, png = image_of("JPEG"), image_of("PNG")


@bomb("JPEG of 4 gigapixels", "a.jpg", jpeg)
def large_jpeg(path: Path, numbers: random.Random) -> None:
    jpeg(path, numbers)
    at = path.read_bytes().index(b"\xff\xc0") + 5
    patched(path, at, struct.pack(">HH", side(numbers, 65535), side(numbers, 65535)))


@bomb("progressive JPEG of 1,000 scans", "a.jpg", image_of("JPEG", progressive=True))
def many_scans(path: Path, numbers: random.Random) -> None:
    """The first scan, repeated."""
    Image.new("L", (1500 + numbers.randrange(100), 1500)).save(path, "JPEG", progressive=True)
    data = path.read_bytes()
    first = data.index(b"\xff\xda")
    second = data.index(b"\xff\xda", first + 2)
    path.write_bytes(data[:first] + data[first:second] * 1000 + data[second:])


def png_of(path: Path, width: int, height: int, depth: int, kind: int, data: bytes) -> None:
    """`data`: the compressed rows."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content))
            + name
            + content
            + struct.pack(">I", zlib.crc32(name + content))
        )

    head = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    chunks = [chunk(b"IHDR", head), chunk(b"IDAT", data), chunk(b"IEND", b"")]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))


@bomb("PNG of 4 gigapixels", "a.png", png)
def large_png(path: Path, numbers: random.Random) -> None:
    rows = zlib.compress(bytes(1 << 20))
    png_of(path, side(numbers, 65535), side(numbers, 65535), 8, 2, rows)


@bomb("PNG whose rows expand to 1,000 times what its header declares", "a.png", png)
def long_png(path: Path, numbers: random.Random) -> None:
    png_of(path, 200 + numbers.randrange(9), 100, 8, 2, zlib.compress(bytes(60_000_000)))


@bomb("PNG with a text chunk of 200 MB when unpacked", "a.png", png)
def long_text(path: Path, numbers: random.Random) -> None:
    png(path, numbers)
    content = b"Comment\0\0" + zlib.compress(bytes(200_000_000))
    text = b"zTXt" + content
    chunk = struct.pack(">I", len(content)) + text + struct.pack(">I", zlib.crc32(text))
    data = path.read_bytes()
    path.write_bytes(data[:33] + chunk + data[33:])


@bomb("lossless WebP of 16,383 x 16,383 pixels", "a.webp", image_of("WEBP", lossless=True))
def large_webp(path: Path, numbers: random.Random) -> None:
    image_of("WEBP", lossless=True)(path, numbers)
    at = path.read_bytes().index(b"VP8L") + 9
    width, height = side(numbers, 16384) - 1, side(numbers, 16384) - 1
    patched(path, at, struct.pack("<I", width | height << 14))


@bomb("GIF of 4 gigapixels", "a.gif", image_of("GIF"))
def large_gif(path: Path, numbers: random.Random) -> None:
    image_of("GIF")(path, numbers)
    patched(path, 6, struct.pack("<HH", side(numbers, 65535), side(numbers, 65535)))


@bomb("BMP of 4 gigapixels", "a.bmp", image_of("BMP"))
def large_bmp(path: Path, numbers: random.Random) -> None:
    image_of("BMP")(path, numbers)
    patched(path, 18, struct.pack("<ii", side(numbers, 65535), side(numbers, 65535)))


@bomb("PPM of 4 gigapixels", "a.ppm", image_of("PPM"))
def large_ppm(path: Path, numbers: random.Random) -> None:
    path.write_bytes(b"P6 %d %d 255\n" % (side(numbers, 65535), side(numbers, 65535)) + bytes(99))


@bomb("TIFF of 4 gigapixels", "a.tif", image_of("TIFF"))
def large_tiff(path: Path, numbers: random.Random) -> None:
    image_of("TIFF")(path, numbers)
    data = bytearray(path.read_bytes())
    entries = struct.unpack_from("<I", data, 4)[0]
    for i in range(struct.unpack_from("<H", data, entries)[0]):
        at = entries + 2 + 12 * i
        if struct.unpack_from("<H", data, at)[0] in (256, 257):
            struct.pack_into("<HII", data, at + 2, 4, 1, side(numbers, 65535))
    path.write_bytes(data)


def tar(path: Path, numbers: random.Random) -> None:
    content = io.BytesIO()
    sets.picture(np.random.default_rng(numbers.getrandbits(32)), 64, 48).save(content, "JPEG")
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as archive:
        member = tarfile.TarInfo("0.jpg")
        member.size = len(content.getvalue())
        archive.addfile(member, io.BytesIO(content.getvalue()))


@bomb("gzipped tar of 1 : 1,000", "a.tar.gz", tar)
def gzipped_tar(path: Path, numbers: random.Random) -> None:
    size = 200_000_000 + numbers.randrange(1000)
    head = tarfile.TarInfo("0.jpg")
    head.size = size
    with gzip.open(path, "wb") as file:
        file.write(head.tobuf())
        file.write(bytes(size + -size % 512 + 1024))


@bomb("tar of 100,000 empty members", "a.tar", tar)
def many_members(path: Path, numbers: random.Random) -> None:
    with path.open("wb") as file:
        for i in range(100_000):
            file.write(tarfile.TarInfo(f"{numbers.getrandbits(16)}/{i}.jpg").tobuf())
        file.write(bytes(1024))


@bomb("tar with a long name of 1 GB", "a.tar", tar)
def long_name(path: Path, numbers: random.Random) -> None:
    head = tarfile.TarInfo("././@LongLink")
    head.type, head.size = tarfile.GNUTYPE_LONGNAME, (1 << 30) + numbers.randrange(1000)
    path.write_bytes(head.tobuf() + bytes(4096))


def npy(path: Path, _: random.Random) -> None:
    np.save(path, np.zeros((4, 3), np.float32))


@bomb("NumPy array of 10^12 rows", "a.npy", npy)
def large_npy(path: Path, numbers: random.Random) -> None:
    shape = f"({10**12 + numbers.randrange(1000)}, 3)"
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    path.write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + bytes(99))


def npz(path: Path, _: random.Random) -> None:
    np.savez_compressed(path, x=np.zeros((4, 3), np.float32))


@bomb("npz of arrays that expand to 500 MB", "a.npz", npz)
def large_npz(path: Path, numbers: random.Random) -> None:
    content = io.BytesIO()
    np.save(content, np.zeros(60_000_000 + numbers.randrange(1000), np.uint8))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for i in range(9):
            archive.writestr(f"v{i}.npy", content.getvalue())


def safetensors(path: Path, _: random.Random) -> None:
    head = json.dumps({"x": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}}).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + bytes(4))


@bomb("safetensors with a header of 2^60 bytes", "a.safetensors", safetensors)
def long_header(path: Path, numbers: random.Random) -> None:
    path.write_bytes(struct.pack("<Q", (1 << 60) + numbers.randrange(1000)) + b"{" * 99)


@bomb("safetensors header of nested objects", "a.safetensors", safetensors)
def deep_header(path: Path, numbers: random.Random) -> None:
    depth = 1_000_000 + numbers.randrange(1000)
    path.write_bytes(struct.pack("<Q", depth * 5) + b'{"a":' * depth)


def coco(path: Path, _: random.Random) -> None:
    path.write_text('{"images": [], "annotations": [], "categories": []}')


@bomb("COCO file of nested lists", "a.json", coco)
def deep_json(path: Path, numbers: random.Random) -> None:
    depth = 1_000_000 + numbers.randrange(1000)
    path.write_text('{"images": ' + "[" * depth + "]" * depth + ', "annotations": []}')


@bomb("TFRecord that declares 2^60 bytes", "a.tfrecord", coco)
def long_tfrecord(path: Path, numbers: random.Random) -> None:
    path.write_bytes(struct.pack("<Q", (1 << 60) + numbers.randrange(1000)) + bytes(100))


@bomb("WAV that declares 4 GB", "a.wav", coco)
def long_wav(path: Path, numbers: random.Random) -> None:
    form = struct.pack("<HHIIHH", 1, 1, 8000, 16000, 2, 16)
    size = 0xFFFFFF00 + numbers.randrange(100)
    chunks = b"fmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", size)
    path.write_bytes(b"RIFF" + struct.pack("<I", size) + b"WAVE" + chunks + bytes(200))


def hdf5(path: Path, _: random.Random) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        file["x"] = np.zeros((4, 3), np.float32)


@bomb("HDF5 array of 10^15 values", "a.h5", hdf5)
def large_hdf5(path: Path, numbers: random.Random) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        shape = (1_000_000_000 + numbers.randrange(1000), 1_000_000)
        file.create_dataset("x", shape, "f4", chunks=(1, 1000))


@bomb("HDF5 chunk of 200 MB in 200 kB", "a.h5", hdf5)
def large_chunk(path: Path, numbers: random.Random) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        shape = (4, 200_000_000 + numbers.randrange(1000))
        data = file.create_dataset("x", shape, "u1", chunks=(1, shape[1]), compression="gzip")
        data[0] = 0


def parquet(path: Path, _: random.Random) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"n": np.zeros(4, np.int64)}), path)


@bomb("Parquet of a shared string of 1 MB in 3,000 rows", "a.parquet", parquet)
def shared_string(path: Path, numbers: random.Random) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    text = "x" * ((1 << 20) + numbers.randrange(1000))
    words = pa.DictionaryArray.from_arrays(np.zeros(3000, np.int32), [text])
    pq.write_table(pa.table({"s": words}), path)


def run(attempt: Attempt) -> None:
    outcomes: dict[str, str] = {}
    above: dict[str, int] = {}
    most, slowest, missing = 0, 0.0, set()
    while attempt.goes_on():
        for name, (file, intact, make) in MAKERS.items():
            if not attempt.goes_on():
                break
            folder = attempt.folder / f"{attempt.inputs}"
            for part in ("good", "bad"):
                (folder / part).mkdir(parents=True, exist_ok=True)
            try:
                intact(folder / "good" / file, attempt.random)
                make(folder / "bad" / file, attempt.random)
            except (ImportError, KeyError, OSError) as problem:  # cannot be written here
                missing.add(f"{name}: {problem}")
                if len(missing) == len(MAKERS):
                    return
                continue
            attempt.inputs += 1
            report = examine(attempt, name, folder / "good" / file, folder / "bad" / file)
            if report:
                outcomes[name] = str(report["outcome"])
                most = max(most, int(report["bytes"]))
                slowest = max(slowest, float(report["ms"]))
                if int(report["bytes"]) > AIM:
                    above[name] = max(above.get(name, 0), int(report["bytes"]))
    counts: dict[str, int] = {}
    for outcome in outcomes.values():
        counts[outcome] = counts.get(outcome, 0) + 1
    attempt.figures["kinds"] = len(outcomes)
    attempt.figures["above_64_MiB_(bytes)"] = above or "none"
    attempt.figures["most_memory_bytes"] = most
    attempt.figures["slowest_cpu_ms"] = round(slowest)
    if above or slowest > AIM_MS:
        attempt.figures["short_of_the_target"] = (
            f"{len(above)} of {len(outcomes)} kinds take more than 64 MiB, the slowest "
            f"{slowest:,.0f} ms of CPU time"
        )
    attempt.figures["outcomes"] = dict(sorted(counts.items(), key=lambda one: -one[1]))
    if missing:
        attempt.figures["not_run"] = "; ".join(sorted(missing))


def examine(attempt: Attempt, name: str, good: Path, bad: Path) -> dict[str, object]:
    process = child.start("read_hostile", good, bad, RECORDS, cache=bad.parent / "cache")
    code, out, errors = child.ended(process, PATIENCE)
    if code != 0:
        attempt.fails(f"{name}: ends by {code}: {child.last_lines(errors)}")
        return {}
    report: dict[str, object] = json.loads(out)
    outcome, grown = str(report["outcome"]), int(str(report["bytes"]))
    attempt.expect(not outcome.startswith("UNNAMED"), f"{name}: {outcome}")
    attempt.expect(grown <= MOST, f"{name}: {outcome}, and {grown / 1e6:.0f} MB of memory")
    return report


TRIAL = Trial(
    "bombs",
    "A small file that declares or expands to far more is an error with a code, or is read, with "
    "less than 512 MiB of memory on top of an intact file's; those with more than 64 MiB are named",
    50,
    "files",
    run,
    weight=0.5,
    targets=("R5",),
)
