# SPDX-License-Identifier: Apache-2.0
"""Cost of a plug-in's parts, compared with the equivalent built-in ones.

    python bench/plugin_overhead.py [--rounds 15]

CPU time of the process, one thread, alternating whole epochs: medians of the rounds. The pixels are
in memory. `RandomInvert` is a table in the pass that writes the batch, which also covers a ToDtype
after it; a plug-in gets an image and makes another, before that pass. The codec copies samples that
are not compressed, so that only the cost of its calls remains; built-in codecs of uncompressed
files (BMP, PPM) and an array are measured for comparison.
"""

from __future__ import annotations

import argparse
import io
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import headrace as hr
from headrace import transforms as T

FLOATS = T.ToDtype("float32", scale=True)
SOURCE = """
#include <stdlib.h>
#include <string.h>
#include <headrace/plugin.h>
static int32_t run(const void* self, const headrace_record* record, const headrace_field* in,
                   headrace_field* out, headrace_error* error) {
  const int64_t* const shape = in->view.shape;
  const int64_t count = shape[0] * shape[1] * shape[2];
  const uint8_t* const from = in->view.data;
  uint8_t* const to = out->view.data;
  (void)self, (void)record, (void)error;
  for (int64_t i = 0; i < count; ++i) to[i] = (uint8_t)(255 - from[i]);
  return HEADRACE_OK;
}
static const headrace_transform kTransforms[] = {
    {.name = "Negative", .help = "Inverts images.", .flags = HEADRACE_VALUES,
     .kinds = HEADRACE_IMAGE, .image_dtypes = HEADRACE_U8, .run = run}};
/* "QP6 WIDTH HEIGHT 255", in numbers of five digits, and the samples of the PPM. */
enum { BEGIN = 20 };
static int32_t read_header(void* self, const headrace_bytes* file, headrace_image_header* header,
                           headrace_error* error) {
  (void)self;
  if (file->size < BEGIN) return headrace_fail(error, HEADRACE_BAD_RECORD, "no header");
  header->width = atoi((const char*)file->data + 4);
  header->height = atoi((const char*)file->data + 10);
  header->channels = 3;
  header->dtype.code = HEADRACE_UINT;
  header->dtype.bits = 8;
  header->dtype.lanes = 1;
  return HEADRACE_OK;
}
static int32_t decode(void* self, const headrace_decode* work, headrace_error* error) {
  const int64_t* const shape = work->output.shape;
  const size_t bytes = (size_t)(shape[0] * shape[1] * shape[2]);
  (void)self;
  if (work->file.size - BEGIN < bytes)
    return headrace_fail(error, HEADRACE_BAD_RECORD, "samples are missing");
  memcpy(work->output.data, work->file.data + BEGIN, bytes);
  return HEADRACE_OK;
}
static const char* const kSuffixes[] = {".qp6"};
static const headrace_signature kSignatures[] = {{.bytes = (const uint8_t*)"QP6 ", .length = 4}};
static const headrace_codec kCodecs[] = {
    {.name = "qp6", .help = "Pixmaps.", .suffixes = kSuffixes, .suffix_count = 1,
     .signatures = HEADRACE_LIST(kSignatures), .read_header = read_header, .decode = decode}};
static const headrace_plugin kPlugin = {.abi = HEADRACE_PLUGIN_ABI, .struct_size = sizeof kPlugin,
    .name = "negative", .version = "1", .transforms = HEADRACE_LIST(kTransforms),
    .codecs = HEADRACE_LIST(kCodecs)};
HEADRACE_EXPORT const headrace_plugin* headrace_plugin_table(uint32_t abi) {
  return abi == HEADRACE_PLUGIN_ABI ? &kPlugin : NULL;
}
"""


def built(folder: Path) -> Any:
    (folder / "negative.c").write_text(SOURCE)
    library = folder / "libnegative.so"
    flags = ["-O3", "-march=native", "-shared", "-fPIC", f"-I{hr.include_dir()}"]
    subprocess.run(["cc", *flags, str(folder / "negative.c"), "-o", str(library)], check=True)
    return hr.load_plugin(library)


def epoch(loader: Any) -> float:
    """CPU seconds per record of an epoch."""
    begin = time.process_time()
    records = sum(len(batch.image) for batch in loader)
    return (time.process_time() - begin) / records


def compare(loaders: dict[str, Any], rounds: int, label: str) -> None:
    times: dict[str, list[float]] = {name: [] for name in loaders}
    for _ in range(rounds):
        for name, loader in loaders.items():
            times[name].append(epoch(loader))
    for name, each in times.items():
        print(f"{label}  {name:24} {statistics.median(each) * 1e6:9.3f} us")


def compare_transforms(plugin: Any, size: int, records: int, rounds: int) -> None:
    rng = np.random.default_rng(0)
    source = {"image": rng.integers(0, 256, (records, 3, size, size), dtype=np.uint8)}
    ways = {
        "nothing": [],
        "RandomInvert": [T.RandomInvert(1.0)],
        "plug-in": [plugin.Negative()],
        "RandomInvert, ToDtype": [T.RandomInvert(1.0), FLOATS],
        "plug-in, ToDtype": [plugin.Negative(), FLOATS],
    }
    loaders = {
        name: hr.Loader(hr.open(source), steps, batch_size=250, threads=1)
        for name, steps in ways.items()
    }
    compare(loaders, rounds, f"transform {size:4} x {size}")


def compare_codecs(size: int, records: int, rounds: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (size, size, 3), dtype=np.uint8)
    head = b" %05d %05d 255\n" % (size, size)
    bmp = io.BytesIO()
    Image.fromarray(pixels).save(bmp, "BMP")
    encoded = {
        "pnm": b"P6" + head + pixels.tobytes(),
        "bmp": bmp.getvalue(),
        "plug-in": b"QP6" + head + pixels.tobytes(),
    }
    sources: dict[str, Any] = {"array": np.stack([pixels.transpose(2, 0, 1)] * records)}
    sources |= {name: [data] * records for name, data in encoded.items()}
    loaders = {
        name: hr.Loader(hr.open({"image": images}), [T.CenterCrop(size)], batch_size=250, threads=1)
        for name, images in sources.items()
    }
    compare(loaders, rounds, f"codec     {size:4} x {size}")


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        plugin = built(Path(folder))
        for size, records in ((8, 100_000), (32, 50_000), (224, 1_500)):
            compare_transforms(plugin, size, records, rounds)
        for size, records in ((8, 100_000), (32, 50_000), (224, 1_500)):
            compare_codecs(size, records, rounds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    main(parser.parse_args().rounds)
