#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cost of automatic augmentation and mixing: CPU time per picture of 224 x 224, compared with
torchvision.

    python bench/policies.py [--runs N] [--step NAME]

Pictures are uint8 in memory. Headrace's time is a loader's with the step minus the same loader's
without it, on one thread; torchvision's is for its transform, called on the same pictures in this
process, on one thread, with its own draws. Rounds alternate; prints medians, and ratios within a
round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from step_cost import COUNT, arguments_of, epoch, line_of, microseconds, pictures

import headrace as hr
from headrace import transforms as T

POLICIES: dict[str, dict[str, Any]] = {
    name: {
        arithmetic: getattr(T, name)(arithmetic=arithmetic) for arithmetic in ("torch", "pillow")
    }
    for name in ("TrivialAugmentWide", "RandAugment", "AutoAugment", "AugMix")
}
MIXING = {
    "MixUp": T.MixUp(num_classes=1000),
    "CutMix": T.CutMix(num_classes=1000),
    "MixUp of each": T.MixUp(num_classes=1000, per_record=True),
}


def torchvisions() -> dict[str, Callable[[], Any]]:
    """A round over all pictures, by "step, form"."""
    import torch
    from PIL import Image
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    images = pictures()
    tensors = [torch.from_numpy(image) for image in images]
    pillow = [Image.fromarray(np.ascontiguousarray(image.transpose(1, 2, 0))) for image in images]
    rounds: dict[str, Callable[[], Any]] = {}
    for name in POLICIES:
        step = getattr(v2, name)()
        for form, values in (("torch", tensors), ("pillow", pillow)):
            rounds[f"{name}, {form}"] = lambda v=values, s=step: [s(value) for value in v]
    floats = torch.stack(tensors[:64]).float() / 255
    labels = torch.arange(64)
    for name in ("MixUp", "CutMix"):
        step = getattr(v2, name)(num_classes=1000)
        rounds[name] = lambda s=step: [s(floats, labels) for _ in range(COUNT // 64)]
    return rounds


def report(
    name: str, ours: Callable[[], None], plain: Callable[[], None], theirs: Any, runs: int
) -> None:
    spent, others, records = [], [], 4 * COUNT
    for _ in range(runs):
        with_it = microseconds(ours, records)
        spent.append(with_it - microseconds(plain, records))
        if theirs:
            others.append(microseconds(theirs, COUNT))
    print(line_of(name, spent, {"torchvision": others} if theirs else {}), flush=True)


def main() -> None:
    arguments = arguments_of(__doc__, {**POLICIES, **MIXING})
    try:
        theirs = torchvisions()
    except (ImportError, RuntimeError) as error:
        print(f"without torchvision: {error}")
        theirs = {}
    data = hr.records(
        image=np.concatenate([pictures()] * 4), label=np.arange(4 * COUNT, dtype=np.int64)
    )
    options: dict[str, Any] = {"batch_size": 64, "threads": 1}
    plain = epoch(hr.Loader(data, [], **options))
    to_float = T.ToDtype("float32", scale=True)
    plain_float = epoch(hr.Loader(data, [to_float], **options))
    for name in arguments.step:
        if name in MIXING:
            ours = epoch(hr.Loader(data, [to_float, MIXING[name]], **options))
            report(name, ours, plain_float, theirs.get(name), arguments.runs)
            continue
        for arithmetic, step in POLICIES[name].items():
            key = f"{name}, {arithmetic}"
            report(
                key,
                epoch(hr.Loader(data, [step], **options)),
                plain,
                theirs.get(key),
                arguments.runs,
            )


if __name__ == "__main__":
    main()
