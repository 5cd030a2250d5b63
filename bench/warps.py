#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a warp costs: CPU time a picture of 224 x 224, beside those of other libraries.

    python bench/warps.py [--runs N] [--step NAME]

As bench/colors.py measures it: a loader with the step less the same loader without it, on one
thread, and the others' functions on the same pictures in this process. A library that is not
installed is left out.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
from colors import COUNT, epoch, microseconds, pictures

import headrace as hr
from headrace import transforms as T

AFFINE: dict[str, Any] = {"translate": (0.1, 0.1), "scale": (0.8, 1.2)}
PILLOW = {"arithmetic": "pillow"}
OURS: dict[str, Any] = {
    "affine, nearest": T.RandomAffine(30, **AFFINE, shear=10),
    "affine, bilinear": T.RandomAffine(30, **AFFINE, shear=10, interpolation="bilinear"),
    "rotation, bilinear": T.RandomRotation(30, interpolation="bilinear"),
    "perspective, bilinear": T.RandomPerspective(0.5, 1.0),
    "elastic": T.ElasticTransform(),
    "affine, nearest, Pillow's": T.RandomAffine(30, **AFFINE, shear=10, **PILLOW),
    "affine, bilinear, Pillow's": T.RandomAffine(
        30, **AFFINE, shear=10, interpolation="bilinear", **PILLOW
    ),
}


def torchvisions() -> dict[str, Callable[[Any], Any]]:
    from torchvision.transforms import v2

    nearest = v2.InterpolationMode.NEAREST
    bilinear = v2.InterpolationMode.BILINEAR
    steps = {
        "affine, nearest": v2.RandomAffine(30, **AFFINE, shear=10, interpolation=nearest),
        "affine, bilinear": v2.RandomAffine(30, **AFFINE, shear=10, interpolation=bilinear),
        "rotation, bilinear": v2.RandomRotation(30, interpolation=bilinear),
        "perspective, bilinear": v2.RandomPerspective(0.5, 1.0),
        "elastic": v2.ElasticTransform(),
    }
    pillows = {f"{name}, Pillow's": step for name, step in steps.items() if "affine" in name}
    return {**steps, **pillows}


def albumentations() -> dict[str, Callable[[Any], Any]]:
    import albumentations as A
    import cv2

    affine = {
        "rotate": (-30, 30),
        "translate_percent": (-0.1, 0.1),
        "scale": (0.8, 1.2),
        "shear": {"x": (-10, 10), "y": (0, 0)},
    }
    nearest, linear = cv2.INTER_NEAREST, cv2.INTER_LINEAR
    steps = {
        "affine, nearest": A.Affine(**affine, interpolation=nearest, p=1.0),
        "affine, bilinear": A.Affine(**affine, interpolation=linear, p=1.0),
        "rotation, bilinear": A.Rotate((-30, 30), interpolation=linear, p=1.0),
        "perspective, bilinear": A.Perspective((0.05, 0.25), interpolation=linear, p=1.0),
        "elastic": A.ElasticTransform(50.0, 5.0, interpolation=linear, p=1.0),
    }
    steps |= {f"{name}, Pillow's": step for name, step in steps.items() if "affine" in name}
    return {name: lambda x, step=step: step(image=x)["image"] for name, step in steps.items()}


def others(images: Any) -> dict[str, tuple[list[Any], dict[str, Callable[[Any], Any]]]]:
    """By library: the pictures as it takes them, and its functions."""
    found: dict[str, tuple[list[Any], dict[str, Callable[[Any], Any]]]] = {}
    rows = [np.ascontiguousarray(image.transpose(1, 2, 0)) for image in images]
    try:
        import torch
        from PIL import Image

        torch.set_num_threads(1)
        functions = torchvisions()
        found["torchvision, tensors"] = ([torch.from_numpy(image) for image in images], functions)
        found["torchvision, Pillow"] = ([Image.fromarray(image) for image in rows], functions)
    except (ImportError, RuntimeError) as error:
        print(f"without torchvision: {error}")
    try:
        import cv2

        cv2.setNumThreads(1)
        found["Albumentations"] = (rows, albumentations())
    except ImportError as error:
        print(f"without Albumentations: {error}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--step", choices=OURS, action="append")
    arguments = parser.parse_args()
    images = pictures()
    theirs = others(images)
    source = hr.records(image=np.concatenate([images] * 4))
    options: dict[str, Any] = {"batch_size": 64, "threads": 1}
    plain = epoch(hr.Loader(source, [], **options))
    for name in arguments.step or OURS:
        ours = epoch(hr.Loader(source, [OURS[name]], **options))
        times: dict[str, list[float]] = {"Headrace": []}
        for _ in range(arguments.runs):
            with_it = microseconds(ours, len(source))
            times["Headrace"].append(with_it - microseconds(plain, len(source)))
            for library, (values, functions) in theirs.items():
                call = functions.get(name)
                if call is None:
                    continue
                spent = microseconds(lambda v=values, c=call: [c(value) for value in v], COUNT)
                times.setdefault(library, []).append(spent)
        own = times.pop("Headrace")
        line = f"{name:26} Headrace {statistics.median(own):7.1f} us"
        for library, spent in times.items():
            ratio = statistics.median(a / b for a, b in zip(spent, own, strict=True))
            line += f"; {library} {statistics.median(spent):8.1f} us, {ratio:.1f}x"
        print(line, flush=True)


if __name__ == "__main__":
    main()
