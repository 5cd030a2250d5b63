# SPDX-License-Identifier: Apache-2.0
"""MixUp and CutMix as torchvision's reference scripts define them for v1, in transforms.py.

They are the script's own classes, so their name is not sufficient: a class is recognized by its
behavior. With the same seeds it must give the same result as the definition.
"""

from __future__ import annotations

import math
import sys
from typing import Any

from headrace.migrate.seeding import seeded

_NAMES = {
    "RandomMixUp": "MixUp",
    "RandomMixup": "MixUp",
    "RandomCutMix": "CutMix",
    "RandomCutmix": "CutMix",
}
_SEEDS = 8


def kind_of(transform: Any) -> str:
    """ "MixUp" or "CutMix"; empty for other transforms, and for those that skip batches."""
    kind = _NAMES.get(type(transform).__name__, "")
    alpha, classes = (getattr(transform, name, None) for name in ("alpha", "num_classes"))
    if not kind or getattr(transform, "p", None) != 1 or "torch" not in sys.modules:
        return ""
    if not isinstance(alpha, (int, float)) or not isinstance(classes, int) or classes < 2:
        return ""
    return kind if _does(transform, kind, float(alpha), classes) else ""


def _does(transform: Any, kind: str, alpha: float, classes: int) -> bool:
    import torch

    for seed in range(_SEEDS):
        with seeded(seed):
            images, labels = torch.rand(4, 3, 24, 17), torch.randint(classes, (4,))
            expected = _defined(kind, alpha, classes, images, labels, seed)
            torch.manual_seed(seed)
            try:
                given = transform(images.clone(), labels.clone())
                alike = [
                    torch.allclose(*pair, atol=1e-6) for pair in zip(given, expected, strict=True)
                ]
            except Exception:
                return False
            if len(given) != 2 or not all(alike):
                return False
    return True


def _defined(kind: str, alpha: float, classes: int, images: Any, labels: Any, seed: int) -> Any:
    import torch

    torch.manual_seed(seed)
    torch.rand(1)  # the draw that is compared with p
    share = float(torch._sample_dirichlet(torch.tensor([alpha, alpha]))[0])
    targets = torch.nn.functional.one_hot(labels, classes).to(images.dtype)
    if kind == "MixUp":
        images = images * share + images.roll(1, 0) * (1 - share)
    else:
        height, width = images.shape[-2:]
        x, y = int(torch.randint(width, (1,))), int(torch.randint(height, (1,)))
        half = 0.5 * math.sqrt(1 - share)
        across, down = int(half * width), int(half * height)
        left, right = max(x - across, 0), min(x + across, width)
        top, bottom = max(y - down, 0), min(y + down, height)
        others, images = images.roll(1, 0), images.clone()
        images[:, :, top:bottom, left:right] = others[:, :, top:bottom, left:right]
        share = 1 - (right - left) * (bottom - top) / (width * height)
    return images, targets * share + targets.roll(1, 0) * (1 - share)
