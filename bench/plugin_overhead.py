# SPDX-License-Identifier: Apache-2.0
"""Cost of a plug-in's transform per record, compared with the equivalent built-in.

    python bench/plugin_overhead.py [--rounds 15]

CPU time of the process, one thread, alternating whole epochs: medians of the rounds. The pixels are
in memory. `RandomInvert` is a table in the pass that writes the batch, which also covers a ToDtype
after it; a plug-in gets an image and makes another, before that pass.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import headrace as hr
from headrace import transforms as T

FLOATS = T.ToDtype("float32", scale=True)
SOURCE = """
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
static const headrace_plugin kPlugin = {.abi = HEADRACE_PLUGIN_ABI, .struct_size = sizeof kPlugin,
    .name = "negative", .version = "1", .transforms = HEADRACE_LIST(kTransforms)};
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


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        plugin = built(Path(folder))
        for size, records in ((8, 100_000), (32, 50_000), (224, 1_500)):
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
            times: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(rounds):
                for name, loader in loaders.items():
                    times[name].append(epoch(loader))
            for name, each in times.items():
                print(f"{size:4} x {size}  {name:24} {statistics.median(each) * 1e6:9.3f} us")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    main(parser.parse_args().rounds)
