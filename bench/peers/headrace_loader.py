# SPDX-License-Identifier: Apache-2.0
"""Headrace itself, through its Python API.

Variants: "plain" files, "indexed" files, and packs of the level "fast" or "dense".
"""

import json
import os
import subprocess
import sys

import numpy as np
from protocol import serve

PACK = "photos.pack"


def command_line(*arguments):
    """The JSON output of a command."""
    program = "import sys; from headrace.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, *arguments, "--json"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def prepare(job):
    os.environ["HEADRACE_CACHE"] = job.prepared
    if job.variant == "indexed":
        return command_line("index", job.photos)
    pack = os.path.join(job.prepared, PACK)
    return command_line("pack", job.photos, "-o", pack, "--level", job.variant)


def open_source(job):
    # The user's own cache must not affect the result.
    os.environ["HEADRACE_CACHE"] = job.prepared
    import headrace

    packed = job.variant in ("fast", "dense")
    source = headrace.open(os.path.join(job.prepared, PACK) if packed else job.photos)
    if job.repeat > 1:
        source = headrace.subset(source, np.tile(np.arange(len(source)), job.repeat))
    return source


def augmented(job, recipe):
    from headrace import transforms as T

    workload = job.workload
    moved, stored = recipe[:2], recipe[2:]
    if workload == "color-jitter":
        return [*moved, T.ColorJitter(0.4, 0.4, 0.4, 0.1), *stored]
    if workload == "trivial-augment":
        steps = [T.TrivialAugmentWide(interpolation="bilinear")]
        return [*moved, *steps, *stored, T.RandomErasing(0.1)]
    if workload == "mix":
        groups = {"num_classes": 1000, "group": job.batch_size}  # the batch in torchvision's order
        mixes = [T.MixUp(alpha=0.2, **groups), T.CutMix(alpha=1.0, **groups)]
        return [*recipe, T.RandomChoice(mixes)]
    return recipe


def make_batches(job):
    source = open_source(job)
    import headrace
    from headrace import transforms as T

    if job.crop == 224:
        transforms = augmented(job, headrace.presets.imagenet_train(224))
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


serve(make_batches, prepare)
