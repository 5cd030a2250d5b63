# SPDX-License-Identifier: Apache-2.0
"""DINO's multi-crop: two large views of an image and several small ones.

`python examples/recipes/dino.py [FOLDER]` makes small views. At full size it is
`hr.presets.dino(224, small=96, locals=8)`.
"""

import sys
from pathlib import Path

import headrace as hr

loader = hr.Loader(
    sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "images",
    hr.presets.dino(64, small=32, locals=4),
    batch_size=4,
    shuffle=True,
)
for batch in loader:
    views = [batch.global1, batch.global2, *(batch[f"local{i}"] for i in range(1, 5))]
    print("  ".join(str(view.shape) for view in views))
