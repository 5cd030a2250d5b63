# SPDX-License-Identifier: Apache-2.0
"""Headrace itself, through its Python front."""

import numpy as np
from protocol import serve

import headrace
from headrace import transforms as T


def make_batches(job):
    source = headrace.open(job.photos)
    if job.repeat > 1:
        source = headrace.subset(source, np.tile(np.arange(len(source)), job.repeat))
    if job.crop == 224:
        transforms = headrace.presets.imagenet_train(224)
    else:
        transforms = [
            T.RandomCrop(32, padding=4),
            T.RandomHorizontalFlip(),
            T.ToDtype("float32", scale=True),
            T.Normalize(job.mean, job.std),
        ]
    loader = headrace.Loader(
        source, transforms, batch_size=job.batch_size, shuffle=True, threads=job.threads
    ).numpy()
    return lambda: (len(images) for images, _ in loader)


serve(make_batches)
