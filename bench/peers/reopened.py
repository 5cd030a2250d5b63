# SPDX-License-Identifier: Apache-2.0
"""A validation loader that is opened, run over its images and closed again: an epoch is that once,
and counts as one image.

Variants: "dataloader" with the number of workers after a colon, "dali", "headrace".
"""

import gc
import os

from protocol import serve

SIDE = 224


def with_dataloader(job, workers):
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg, read_file
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    steps = v2.Compose(
        [
            v2.Resize(256, antialias=True),
            v2.CenterCrop(SIDE),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(job.mean, job.std),
        ]
    )

    class Photos(torch.utils.data.Dataset):
        def __len__(self):
            return len(job.files)

        def __getitem__(self, index):
            pixels = decode_jpeg(read_file(job.files[index]), mode=ImageReadMode.RGB)
            return steps(pixels), job.labels[index]

    def opened():
        loader = torch.utils.data.DataLoader(Photos(), job.batch_size, num_workers=workers)
        for images, _ in loader:
            assert images.shape[1:] == (3, SIDE, SIDE)

    return opened


def with_dali(job):
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=job.batch_size, num_threads=job.threads, device_id=None)
    def pipeline():
        jpeg, label = fn.readers.file(files=job.files, labels=job.labels, name="reader")
        x = fn.resize(fn.decoders.image(jpeg, device="cpu"), resize_shorter=256, antialias=True)
        x = fn.crop_mirror_normalize(
            x,
            dtype=types.FLOAT,
            output_layout="CHW",
            crop=(SIDE, SIDE),
            mean=[255 * m for m in job.mean],
            std=[255 * s for s in job.std],
        )
        return x, label

    def opened():
        pipe = pipeline()
        pipe.build()
        for _ in range(-(-len(job.files) // job.batch_size)):
            pipe.run()
        del pipe
        gc.collect()

    return opened


def with_headrace(job):
    os.environ["HEADRACE_CACHE"] = job.prepared
    import headrace as hr

    def opened():
        transforms = hr.presets.imagenet_eval(SIDE)
        with hr.Loader(
            hr.open(job.photos), transforms, batch_size=job.batch_size, threads=job.threads
        ) as loader:
            for images, _ in loader.numpy():
                assert images.shape[1:] == (3, SIDE, SIDE)

    return opened


def make_batches(job):
    name, _, workers = job.variant.partition(":")
    makers = {"dali": with_dali, "headrace": with_headrace}
    opened = makers[name](job) if name in makers else with_dataloader(job, int(workers))

    def epoch():
        opened()
        yield 1

    return epoch


serve(make_batches)
