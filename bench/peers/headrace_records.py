# SPDX-License-Identifier: Apache-2.0
"""Headrace on a container. Variants:

"raw" delivers records in the engine's memory, "values" as Python objects: both read without
decoding, in the order given by job.order. "train" is the ImageNet recipe, shuffled.
"""

import os

import numpy as np
from protocol import serve


def make_batches(job):
    os.environ["HEADRACE_CACHE"] = job.prepared
    import headrace

    source = headrace.open(job.photos)
    if job.variant == "train":
        if job.repeat > 1:
            source = headrace.subset(source, np.tile(np.arange(len(source)), job.repeat))
        loader = headrace.Loader(
            source,
            headrace.presets.imagenet_train(224),
            batch_size=job.batch_size,
            shuffle=True,
            threads=job.threads,
        ).numpy()
        return lambda: (len(images) for images, _ in loader)

    from headrace.insight.measure.stored import RawReader

    order = None if job.order == "file" else np.random.default_rng(0).permutation(len(source))
    reader = RawReader(source, job.batch_size, job.threads, order)
    if job.variant == "raw":
        return lambda: (len(columns[0]) for columns in reader)
    return lambda: (len(list(zip(*columns, strict=True))) for columns in reader)


serve(make_batches)
