#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes small sound inputs for the fuzz targets into FOLDER/NAME/: what NAME_fuzz starts from.

    python tools/make_fuzz_seeds.py build/fuzz/seeds

fuzz/NAME/ in the repository grew out of these: each target ran for some minutes on both, then
`NAME_fuzz -merge=1 fuzz/NAME build/fuzz/corpus/NAME` kept what reaches more code. Most targets read
the first bytes of an input as a choice of how the rest is used; their files tell.

Needs NumPy, Pillow, h5py and lmdb (./dev test installs them).
"""

from __future__ import annotations

import gzip
import io
import itertools
import json
import struct
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import lmdb
import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import recordio_writer
import tfrecord_writer
from test_lmdb import datum, tensors

random = np.random.default_rng(1)


def picture(mode: str, width: int, height: int) -> Image.Image:
    """Waves with noise."""
    y, x = np.mgrid[0:height, 0:width]
    planes = [
        60 * np.sin(x / 5 + i) + 60 * np.cos(y / 7 * (i + 1)) + random.normal(128, 12, x.shape)
        for i in range(len(Image.new(mode, (1, 1)).getbands()))
    ]
    pixels = np.stack(planes, -1).clip(0, 255).astype(np.uint8)
    return Image.fromarray(pixels[..., 0] if len(planes) == 1 else pixels, mode)


def encoded(image: Image.Image, format: str, **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, format, **options)
    return out.getvalue()


def npy(array: np.ndarray, version: tuple[int, int] | None = None) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, array, version, allow_pickle=True)
    return out.getvalue()


# --- Pictures -------------------------------------------------------------------------------------


def jpeg() -> Iterator[bytes]:
    sizes = ((1, 1), (8, 8), (17, 9), (33, 40), (64, 48))
    for (width, height), mode in itertools.product(sizes, ("L", "RGB", "CMYK")):
        image = picture(mode, width, height)
        samplings = (0, 1, 2) if mode == "RGB" else (0,)
        for sampling, progressive, restarts in itertools.product(samplings, (0, 1), (0, 2)):
            yield encoded(
                image,
                "JPEG",
                quality=40 + 50 * (width % 2),
                subsampling=sampling,
                progressive=bool(progressive),
                restart_marker_blocks=restarts,
            )


def png() -> Iterator[bytes]:
    for mode, width in itertools.product(("1", "L", "LA", "P", "RGB", "RGBA", "I;16"), (1, 9, 33)):
        if mode == "I;16":
            image = Image.fromarray(random.integers(0, 65536, (7, width), dtype=np.uint16))
        else:
            image = (
                picture("RGBA", width, 7).convert("RGB" if mode == "P" else mode[:4]).convert(mode)
            )
        yield encoded(image, "PNG")
        if mode in ("L", "P", "RGB"):
            yield encoded(image, "PNG", transparency=1 if mode != "RGB" else (1, 2, 3))


# --- Arrays ---------------------------------------------------------------------------------------


def arrays() -> Iterator[np.ndarray]:
    for dtype in ("?", "i1", "<u2", ">u2", "<i4", ">i8", "<f2", "<f4", ">f8"):
        yield np.arange(12).reshape(3, 2, 2).astype(dtype)
    yield np.asfortranarray(np.arange(6, dtype="<i4").reshape(2, 3))
    yield np.arange(3.0)
    yield np.zeros((0, 4), "<f4")
    yield np.zeros((2, 0), "<f4")
    yield np.array(["ab", "c"], "S3")
    yield np.array(["äb", "c"])
    yield np.array([(1, 2.0)], [("a", "<i4"), ("b", "<f8")])
    yield np.array(5, "<i8")
    yield np.array([1 + 2j], "<c8")


def npy_files() -> Iterator[bytes]:
    for array in arrays():
        yield b"\0" + npy(array)
        header = npy(array)[10:]
        yield b"\x77" + header[:0x76].ljust(0x76) + b"\n" + header[0x76:][: array.nbytes]
    for version in ((2, 0), (3, 0)):
        yield b"\0" + npy(np.arange(4), version)
    yield b"\0" + npy(np.array([None, 1], object))


def npz() -> Iterator[bytes]:
    images, labels = np.zeros((3, 2, 2), "u1"), np.arange(3)
    for save in (np.savez, np.savez_compressed):
        for columns in ({"a": np.arange(4.0)}, {"image": images, "label": labels}, {}):
            out = io.BytesIO()
            save(out, **columns)
            yield out.getvalue()
    for level, comment in ((0, b""), (9, b"comment")):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
            with archive.open("x.npy", "w", force_zip64=True) as member:
                member.write(npy(images))
            archive.writestr("empty.npy", b"")
            archive.writestr("note.txt", "no array")
            archive.comment = comment
        yield out.getvalue()


def idx() -> Iterator[bytes]:
    for code, dtype in ((8, "u1"), (9, "i1"), (11, ">i2"), (12, ">i4"), (13, ">f4"), (14, ">f8")):
        for shape in ((3,), (2, 3, 2)):
            array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
            sizes = struct.pack(f">{len(shape)}I", *shape)
            content = bytes([0, 0, code, len(shape)]) + sizes + array.tobytes()
            yield b"\0" + content
            yield b"\0" + gzip.compress(content, mtime=0)
    for record in (b"\x03" + bytes(3072), b"\x13\x07" + bytes(3072)):
        yield b"\x01" + gzip.compress(record * 2, mtime=0)


def safetensors() -> Iterator[bytes]:
    for columns in (
        {"a": ("F32", [2, 3], 24)},
        {"image": ("U8", [3, 2, 2], 12), "label": ("I64", [3], 24)},
        {"b": ("BF16", [2], 4), "c": ("BOOL", [2], 2), "d": ("F16", [2, 0], 0)},
        {"e": ("F64", [], 8), "f": ("U16", [2], 4), "g": ("F8_E4M3", [4], 4)},
        {},
    ):
        header: dict[str, Any] = {"__metadata__": {"by": "hand"}}
        at = 0
        for name, (dtype, shape, size) in columns.items():
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
            at += size
        text = json.dumps(header).encode()
        yield b"\0" + struct.pack("<Q", len(text)) + text + bytes(range(at))
        text += b" " * (-len(text) % 4)
        yield bytes([len(text) // 4 | 1]) + text.ljust((len(text) // 4 | 1) * 4) + bytes(at)


def hdf5() -> Iterator[bytes]:
    for way, place in itertools.product(range(4), (0, 8, 96, 800, 2048, 4000)):
        yield bytes([way]) + struct.pack("<HB", place, 1) + b"\0\1"
    for make, version in itertools.product(HDF5_DATASETS, ("earliest", "latest")):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "a.h5")
            with h5py.File(path, "w", libver=version) as file:
                make(file)
            yield b"\x04" + path.read_bytes()


def dataset(data: Any, **options: Any) -> Callable[[h5py.File], None]:
    return lambda file: file.create_dataset("x", data=data, **options)


def hdf5_compact(file: h5py.File) -> None:
    create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    create.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple((3, 2))
    compact = h5py.h5d.create(file.id, b"x", h5py.h5t.STD_I32LE, space, create)
    compact.write(h5py.h5s.ALL, h5py.h5s.ALL, np.arange(6, dtype="<i4").reshape(3, 2))


def hdf5_links(file: h5py.File) -> None:
    file["x"] = np.arange(3)
    file["outside"] = h5py.ExternalLink("b.h5", "/v")
    file["a"], file["b"] = h5py.SoftLink("/b"), h5py.SoftLink("/a")
    for i in range(40):  # more than a group's header, and than a leaf of its tree
        file[f"many/a name that takes some room {i:03}"] = h5py.SoftLink("/x")


def hdf5_shared_type(file: h5py.File) -> None:
    file["type"] = np.dtype("<i4")
    file.create_dataset("x", (3,), file["type"])
    for i in range(12):  # continues its header
        file["x"].attrs[f"attribute {i}"] = "text " * 9


def hdf5_virtual(file: h5py.File) -> None:
    layout = h5py.VirtualLayout((4,), "<i8")
    layout[:] = h5py.VirtualSource("b.h5", "v", (4,))
    if file.libver[0] != "earliest":
        file.create_virtual_dataset("x", layout)


HDF5_DATASETS: list[Callable[[h5py.File], None]] = [
    dataset(np.arange(6, dtype="u1").reshape(3, 2)),
    dataset(np.arange(30, dtype=">i2"), chunks=(4,), compression="gzip", shuffle=True),
    dataset(np.arange(8, dtype="<f4"), chunks=(4,), fletcher32=True, maxshape=(None,)),
    dataset(np.arange(8, dtype="<f8"), chunks=(4,), compression="lzf"),
    dataset(np.arange(200, dtype="u1").reshape(100, 2), chunks=(1, 2), maxshape=(None, 2)),
    dataset(np.arange(200, dtype="u1").reshape(50, 4), chunks=(1, 3), maxshape=(None, None)),
    dataset(np.arange(60, dtype="u1").reshape(5, 4, 3), chunks=(2, 3, 2), maxshape=(9, 4, 3)),
    dataset(np.array([b"ab", b"c"])),
    dataset(["text", ""], dtype=h5py.string_dtype()),
    dataset([b"cat", b"dog", b"cat"], dtype=h5py.string_dtype(length=4)),
    dataset(np.array([(1, 2.0)] * 2, [("a", "<i4"), ("b", "<f8")])),
    dataset(np.array([0, 1], "i1"), dtype=h5py.enum_dtype({"no": 0, "yes": 1}, "i1")),
    dataset(np.array([True, False])),
    dataset(np.array([b"ab\0", b"\0cd"], "V3")),
    dataset(np.zeros(2, np.complex64)),
    dataset(np.arange(4), chunks=(4,), scaleoffset=0),
    dataset(5.0),
    lambda file: file.create_dataset("x", (2,), np.dtype(("<i4", (2, 2)))),
    lambda file: file.create_dataset("x", (2,), h5py.ref_dtype),
    lambda file: file.create_dataset("x", (4, 3), "<i2", chunks=(2, 3), fillvalue=7),
    lambda file: file.create_dataset("x", (4,), "<i8", external=[("b.bin", 0, 32)]),
    hdf5_compact,
    hdf5_links,
    hdf5_shared_type,
    hdf5_virtual,
]


# --- Records --------------------------------------------------------------------------------------

SMALL_JPEG = encoded(picture("RGB", 8, 8), "JPEG", quality=30)


def tar() -> Iterator[bytes]:
    members = [
        ("a/1.jpg", SMALL_JPEG), ("a/1.cls", b"3"), ("a/1.json", b'{"a": 1, "c": {"d": "x"}}'),
        ("a/1.npy", npy(np.arange(4.0))), ("a/2.jpg", b""), ("a/2.cls", b"cat"),
        ("b.png", b"\x89PNG"), ("b.txt", "déf".encode()), ("l" * 120 + ".txt", b"long"),
    ]  # fmt: skip
    formats = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
    for format, some in itertools.product(formats, (members[:3], members[3:6], members[5:])):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=format) as archive:
            for name, data in some if format != tarfile.USTAR_FORMAT else some[:3]:
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                if format == tarfile.PAX_FORMAT:
                    entry.pax_headers = {"mtime": "1.5", "comment": "c"}
                archive.addfile(entry, io.BytesIO(data))
            link = tarfile.TarInfo("link")
            link.type, link.linkname = tarfile.SYMTYPE, "b.txt"
            archive.addfile(link)
        content = out.getvalue().rstrip(b"\0") + bytes(1024)
        content += bytes(-len(content) % 512)
        for way in (0, 16 + 4 + 1, 16 + 8 + 3):
            yield bytes([way]) + content
    yield b"\0" + gzip.compress(content, mtime=0)


def recordio() -> Iterator[bytes]:
    contents = [
        recordio_writer.ir(3.0, 1, SMALL_JPEG),
        recordio_writer.ir([1.0, 2.0], 2, b"abc"),
        b"plain",
        b"ab" * 6 + recordio_writer.MAGIC + b"cdef",
    ]
    for some in (contents, contents[:1], contents[1:2] * 2, contents[2:], []):
        yield b"\0" + recordio_writer.recordio(some)
        yield b"\0" + recordio_writer.index(some, range(len(some))).encode()
    yield b"\1" + bytes([0, 28]) + contents[0][:24] + b"abcd" + bytes([1, 3]) + b"abc\x03\x02de"
    yield b"\1" + bytes([0, 36]) + contents[1][:35] + b"x"


def tfrecord() -> Iterator[bytes]:
    values = {
        "image": SMALL_JPEG,
        "label": 3,
        "text": b"t",
        "f": [0.5, 1.5],
        "u": b"abcd",
        "i": [1, -2],
    }
    examples = [tfrecord_writer.example(values, packed) for packed in (True, False)]
    examples.append(tfrecord_writer.example({"label": [], "e": b"", "l": [7, 8]}))
    examples.append(tfrecord_writer.sequence_example({"label": 1}, {"steps": [1, [2, 3]]}))
    for message in (*examples, b"", b"no message"):
        yield b"\0" + tfrecord_writer.tfrecord([message])
        yield b"\1" + message
        yield b"\2" + message + message
    yield b"\0" + tfrecord_writer.tfrecord(examples)


def lmdb_files() -> Iterator[bytes]:
    for way, place in itertools.product((0, 1, 2, 3, 8, 16), (10, 90, 700, 1536, 4000)):
        yield bytes([way]) + struct.pack("<HB", place, 1) + b"\0\1"
    pixels = bytes(range(48))
    values: list[Callable[[int], bytes]] = [
        lambda i: datum(pixels, i, (3, 4, 4), encoded=False),
        lambda i: datum(SMALL_JPEG, i),
        lambda i: tensors(SMALL_JPEG, i),
        lambda i: b"value" * (i * 300),
    ]
    for value, flags in zip(values, (4, 8 + 4, 16 + 4, 4), strict=True):
        with tempfile.TemporaryDirectory() as folder:
            with lmdb.open(folder, map_size=1 << 20) as file, file.begin(write=True) as transaction:
                for i in range(6):
                    transaction.put(b"%04d" % i, value(i))
            yield bytes([flags]) + Path(folder, "data.mdb").read_bytes()


def mds() -> Iterator[bytes]:
    for kind, place in itertools.product(range(8), (0, 4, 60, 100, 200)):
        yield bytes([kind]) + struct.pack("<HB", place, 1) + b"\0\1"
    shard = {
        "column_encodings": ["int", "str"], "column_names": ["label", "text"],
        "column_sizes": [8, None], "compression": None, "format": "mds", "hashes": [],
        "raw_data": {"basename": "shard.00000.mds", "bytes": 100, "hashes": {}}, "samples": 5,
        "size_limit": 1 << 26, "version": 2, "zip_data": None,
    }  # fmt: skip
    zipped = {
        **shard,
        "compression": "zstd",
        "zip_data": {"basename": "a.zstd", "bytes": 9, "hashes": {}},
    }
    for shards in ([shard], [shard, zipped], []):
        yield b"\3" + json.dumps({"shards": shards, "version": 2}).encode()


def container_index() -> Iterator[bytes]:
    def text(value: bytes) -> bytes:
        return struct.pack("<Q", len(value)) + value

    damage = struct.pack("<qQ", 1, 600) + text(b"HR0401") + text(b"what") + text(b"hint")
    tally = text(b"jpg") + struct.pack("<q", 3)
    records = [(0, 600), (600, 400), (0, 70)]
    begin = b"\2\0\1\1" + struct.pack("<Q", 3)
    some = begin + b"".join(struct.pack("<QQ", *record) for record in records)
    yield some + struct.pack("<Q", 1) + damage + struct.pack("<Q", 1) + tally
    yield some + bytes(16)
    yield b"\0\0\0\1" + bytes(24)
    yield b"\0\0\0\0HRCONTNR" + struct.pack("<Q", 1)


def listing_cache() -> Iterator[bytes]:
    def listing(folders: list[str], files: list[str]) -> bytes:
        out = struct.pack("<QQQ", 0, len(folders), len(files))
        for i in range(len(folders)):
            out += struct.pack("<QqQ", i + 1, 10**18, len(files) if i + 1 == len(folders) else 0)
        for names in (folders, files):
            out += b"".join(struct.pack("<I", len(name)) for name in names)
            out += "".join(names).encode()
        return out

    for folders, files in (([""], []), ([""], ["a.jpg", "b.png"]), (["", "c"], ["c/a.jpg"])):
        yield listing(folders, files)


# --- Texts ----------------------------------------------------------------------------------------


def coco() -> Iterator[bytes]:
    images = [
        {"id": 1, "file_name": "a.jpg", "width": 8, "height": 6},
        {"id": 2, "file_name": "b.jpg", "width": 4, "height": 4},
    ]
    categories = [{"id": 1, "name": "cat", "keypoints": ["nose"]}, {"id": 7, "name": "dog"}]
    box = {
        "id": 1,
        "image_id": 1,
        "category_id": 7,
        "bbox": [1, 2, 3, 2.5],
        "area": 7.5,
        "iscrowd": 0,
    }
    polygon = {**box, "id": 2, "segmentation": [[1, 1, 5, 1, 5.5, 4, 1, 4]]}
    counts = {**box, "id": 3, "iscrowd": 1, "segmentation": {"size": [6, 8], "counts": [6, 3, 39]}}
    packed = {**box, "id": 4, "segmentation": {"size": [6, 8], "counts": "63W1"}}
    points = {**box, "id": 5, "category_id": 1, "keypoints": [2, 3, 2], "num_keypoints": 1}
    orphan = {**box, "id": 6, "image_id": 9}
    for some in ([box], [polygon, counts], [packed], [points], [orphan, box], []):
        whole = {"info": {}, "images": images, "annotations": some, "categories": categories}
        yield json.dumps(whole).encode()
        yield json.dumps(dict(reversed(whole.items())), indent=1).encode()


def manifest() -> Iterator[bytes]:
    yield b"path,label\na.jpg,1\nb.jpg,2\n"
    yield b'file_name,label,x,box,text\r\na.jpg,cat,1.5,"[1, 2]","a ""b"", c"\r\nb.jpg,dog,,,\r\n'
    yield b"image\ttarget\na.jpg\t-1\nb.jpg\t9223372036854775807\n"
    yield "\ufeffpath;label\nä.jpg;1\n".encode()
    yield b'{"file_name": "a.jpg", "label": 1, "x": [1, 2.5], "o": {"n": "t"}}\n{"file_name": ""}\n'
    yield b'{"image": "a.jpg", "caption": "\\u00e9\\ud83d\\ude00", "ok": true, "no": null}\n\n'


def list_file() -> Iterator[bytes]:
    yield b"a.jpg 1\nb.jpg 2\n"
    yield b"# pictures\n\nc d.jpg\tcat\ne.jpg\tdog\n"
    yield b'path,label\n"a, b.jpg","cat"\nc.jpg,dog\n'
    yield b"\xef\xbb\xbfa.jpg\r\nb c.png\r\n"
    yield b"a.jpg,7\n"


def json_reader() -> Iterator[bytes]:
    yield b'{"a": [1, -2.5e3, "t\\u00e9\\ud83d\\ude00\\n"], "b": {"c": null}, "d": [true, []]}'
    yield (
        b'[18446744073709551615, 0.1, 1e-400, 123456789012345678901234567890, -0, "'
        + b"x" * 40
        + b'"]'
    )
    yield b' "\xc3\xa9" '


# --- Packed bytes ---------------------------------------------------------------------------------


def streams(text: bytes) -> Iterator[bytes]:
    """As raw deflate, zlib and gzip."""
    for bits, level in itertools.product((-15, 15, 31), (0, 1, 9)):
        packer = zlib.compressobj(level, wbits=bits)
        yield packer.compress(text) + packer.flush()


TEXTS = (b"", b"a", b"headrace " * 20, bytes(range(256)), bytes(5000))


def inflate() -> Iterator[bytes]:
    for text in TEXTS:
        for number, stream in enumerate(streams(text)):
            yield bytes([number // 3, 6, 1]) + stream


def unpacker() -> Iterator[bytes]:
    for text in TEXTS:
        for number, stream in enumerate(streams(text)):
            if number >= 3:
                yield bytes([1 if number < 6 else 0, 6, 1]) + stream
    two = gzip.compress(b"one", mtime=0) + gzip.compress(b"two", mtime=0)
    yield b"\0\x06\x01" + two
    # RFC 8878: a frame with a raw block, then one with a run, then one that is skipped.
    raw = b"\x28\xb5\x2f\xfd\x20\x03\x19\0\0abc"
    run = b"\x28\xb5\x2f\xfd\x20\x09\x4b\0\0x"
    yield b"\2\x06\x01" + raw
    yield b"\2\x06\x01" + raw + run + b"\x50\x2a\x4d\x18\x02\0\0\0ab"


SEEDS: dict[str, Callable[[], Iterator[bytes]]] = {
    "coco": coco,
    "container_index": container_index,
    "hdf5": hdf5,
    "idx": idx,
    "inflate": inflate,
    "jpeg": jpeg,
    "jpeg_parts": jpeg,
    "json_reader": json_reader,
    "list_file": list_file,
    "listing_cache": listing_cache,
    "lmdb": lmdb_files,
    "manifest": manifest,
    "mds": mds,
    "npy": npy_files,
    "npz": npz,
    "packed_jpeg": jpeg,
    "png": png,
    "recordio": recordio,
    "safetensors": safetensors,
    "tar": tar,
    "tfrecord": tfrecord,
    "unpacker": unpacker,
}


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for name, make in SEEDS.items():
        folder = Path(sys.argv[1], name)
        folder.mkdir(parents=True, exist_ok=True)
        for number, content in enumerate(make()):
            (folder / f"{number:03}").write_bytes(content)


if __name__ == "__main__":
    main()
