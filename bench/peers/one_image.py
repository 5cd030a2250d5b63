# SPDX-License-Identifier: Apache-2.0
"""Files to normalized tensors, one image after the other on one thread: read, decode, resize to
224 x 224, float32 in channels-first order. No loader.

Variants: "opencv", "pillow", "torchvision", "headrace". OpenCV's bilinear resize does not filter
when it shrinks; the others do.
"""

import numpy as np
from protocol import serve

SIDE = 224


def with_opencv():
    import cv2

    cv2.setNumThreads(1)

    def tensor(path):
        pixels = cv2.cvtColor(cv2.imread(path), cv2.COLOR_BGR2RGB)
        pixels = cv2.resize(pixels, (SIDE, SIDE), interpolation=cv2.INTER_LINEAR)
        return np.ascontiguousarray(pixels.transpose(2, 0, 1), np.float32) / 255

    return tensor


def with_pillow():
    from PIL import Image

    def tensor(path):
        image = Image.open(path).convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
        return np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1), np.float32) / 255

    return tensor


def with_torchvision():
    import torch
    from torchvision.io import ImageReadMode, decode_image, read_file
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    transform = v2.Compose(
        [v2.Resize((SIDE, SIDE), antialias=True), v2.ToDtype(torch.float32, scale=True)]
    )
    return lambda path: transform(decode_image(read_file(path), ImageReadMode.RGB))


def with_headrace():
    import headrace as hr

    def tensor(path):
        pixels = hr.imread(path, size=(SIDE, SIDE), interpolation="bilinear")
        return np.ascontiguousarray(pixels.transpose(2, 0, 1), np.float32) / 255

    return tensor


LIBRARIES = {
    "opencv": with_opencv,
    "pillow": with_pillow,
    "torchvision": with_torchvision,
    "headrace": with_headrace,
}


def make_batches(job):
    tensor = LIBRARIES[job.variant]()

    def epoch():
        for path in job.files:
            assert tensor(path).shape == (3, SIDE, SIDE)
            yield 1

    return epoch


serve(make_batches)
