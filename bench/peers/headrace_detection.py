# SPDX-License-Identifier: Apache-2.0
"""Headrace on the detection workloads: boxes and labels follow, and are returned per record.

Variants: "plain" files, and packs of the level "fast" or "dense"; for mosaics also with "-near":
other images are drawn from the last 128 positions, like Ultralytics' own loader at a batch size of
16.
"""

import os

import numpy as np
from coco_rows import annotations_for
from protocol import serve

PACK = "pictures.pack"


def open_files(job):
    import headrace

    path, folder = annotations_for(job)
    return headrace.coco(path, images=folder)


def prepare(job):
    import headrace

    level = job.variant.removesuffix("-near")
    headrace.pack(open_files(job), os.path.join(job.prepared, PACK), level=level)


def make_batches(job):
    os.environ["HEADRACE_CACHE"] = job.prepared  # the user's own cache must not affect the result
    import headrace

    packed = not job.variant.startswith("plain")
    within = 128 if job.variant.endswith("-near") else None
    source = headrace.open(os.path.join(job.prepared, PACK)) if packed else open_files(job)
    source = headrace.subset(source, np.tile(np.arange(len(source)), job.repeat))
    if job.workload == "ssd300":
        steps = headrace.presets.detection_ssd(300)
    else:  # Ultralytics' defaults, which deliver uint8 to the device
        steps = headrace.presets.detection_mosaic(640, mix_within=within, dtype="uint8")
    loader = headrace.Loader(
        source,
        steps,
        fields=("image", "boxes", "labels"),
        batch_size=job.batch_size,
        shuffle=True,
        threads=job.threads,
        ragged="packed",
    )
    return lambda: (len(batch.per_record("boxes", "labels")) for batch in loader)


serve(make_batches, prepare)
