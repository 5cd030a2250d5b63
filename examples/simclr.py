# SPDX-License-Identifier: Apache-2.0
"""Two augmented views of every image, for contrastive learning (SimCLR).

`python examples/simclr.py [FOLDER]`
"""

import sys
from pathlib import Path

import headrace as hr

loader = hr.Loader(
    sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent / "images",
    hr.presets.simclr(96),
    fields=("view1", "view2"),
    batch_size=4,
    shuffle=True,
)
for batch in loader:
    # The two views of a record are drawn independently; row i of both shows the same image.
    different = (batch.view1 != batch.view2).any(axis=(1, 2, 3))
    print(f"{batch.view1.shape} and {batch.view2.shape}, {different.sum()} pairs differ")
