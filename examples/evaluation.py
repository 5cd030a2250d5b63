# SPDX-License-Identifier: Apache-2.0
"""Evaluation counts every record once, although all batches have the same shape.

`python examples/evaluation.py [FOLDER]`
"""

import sys
from pathlib import Path

import headrace as hr

loader = hr.Loader(
    sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent / "images",
    hr.presets.imagenet_eval(224),
    batch_size=3,
    last_batch="pad",  # the last batch is padded; `valid` says which rows are real
    fields=("image", "key", "valid"),
)
counted, brightness = 0, 0.0
for batch in loader:
    assert batch.image.shape == (3, 3, 224, 224)
    counted += int(batch.valid.sum())
    brightness += float(batch.image[batch.valid].mean(axis=(1, 2, 3)).sum())
    names = [Path(key).name for key, real in zip(batch.key, batch.valid, strict=True) if real]
    print(", ".join(names))
assert counted == len(loader.source)
print(f"{counted} images, each once; mean value {brightness / counted:+.3f}")
