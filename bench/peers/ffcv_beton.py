# SPDX-License-Identifier: Apache-2.0
"""FFCV, reading its own file format, written once from the same pictures at their original size.

Variants: "jpg" (re-encoded with FFCV's default quality, so not the same pixels) and "raw" (uint8
pixels). It crops with OpenCV's area filter, which antialiases differently, after decoding whole
pictures; batches are channels last in memory. As its tuning guide recommends, the order is RANDOM
with the system's cache for data that fits into memory, otherwise QUASI_RANDOM with its own cache.
"""

import os

import numpy as np
from ffcv.fields import IntField, RGBImageField
from ffcv.fields.basics import IntDecoder
from ffcv.fields.rgb_image import RandomResizedCropRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, ToTensor, ToTorchImage
from ffcv.writer import DatasetWriter
from PIL import Image
from protocol import serve


class Photos:
    def __init__(self, originals):
        self.originals = originals

    def __len__(self):
        return len(self.originals)

    def __getitem__(self, index):
        path, label = self.originals[index]
        with Image.open(path) as picture:
            return picture.convert("RGB"), label


def beton(job):
    return os.path.join(job.prepared, "photos.beton")


def prepare(job):
    fields = {"image": RGBImageField(write_mode=job.variant), "label": IntField()}
    writer = DatasetWriter(beton(job), fields, num_workers=job.threads)
    writer.from_indexed_dataset(Photos(job.originals))


def make_batches(job):
    image = [
        RandomResizedCropRGBImageDecoder((224, 224)),
        RandomHorizontalFlip(),
        NormalizeImage(255 * np.array(job.mean), 255 * np.array(job.std), np.float32),
        ToTensor(),
        ToTorchImage(),
    ]
    order = (
        # Mapped pages could not be dropped from the page cache.
        {"os_cache": False, "order": OrderOption.QUASI_RANDOM}
        if job.cold
        else {"os_cache": True, "order": OrderOption.RANDOM}
    )
    loader = Loader(
        beton(job),
        batch_size=job.batch_size,
        num_workers=job.threads,
        indices=np.tile(np.arange(len(job.originals)), job.repeat),
        drop_last=False,
        pipelines={"image": image, "label": [IntDecoder(), ToTensor()]},
        **order,
    )
    return lambda: (images.shape[0] for images, _ in loader)


if __name__ == "__main__":
    serve(make_batches, prepare)
