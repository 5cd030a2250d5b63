# SPDX-License-Identifier: Apache-2.0
"""NVIDIA DALI on the CPU.

Variants: "fused" (decoders.image_random_crop decodes only the window) and "plain" (decode, then
crop); the two differ for imagenet-train only.
"""

from nvidia.dali import fn, pipeline_def, types
from protocol import serve


def random_window(jpeg, fused):
    if fused:
        x = fn.decoders.image_random_crop(
            jpeg, device="cpu", random_area=[0.08, 1.0], random_aspect_ratio=[3 / 4, 4 / 3]
        )
        return fn.resize(x, size=[224, 224], antialias=True)
    x = fn.decoders.image(jpeg, device="cpu")
    return fn.random_resized_crop(x, size=[224, 224], antialias=True)


def shifted(jpeg):
    """A window shifted by up to 4 pixels, black outside: RandomCrop(32, padding=4)."""
    start = fn.random.uniform(values=list(range(-4, 5)), shape=[2])
    return fn.slice(
        fn.decoders.image(jpeg, device="cpu"),
        start=fn.cast(start, dtype=types.INT32),
        shape=[32, 32],
        axes=[0, 1],
        out_of_bounds_policy="pad",
    )


def augmented(x, workload):
    """Before the flip, with which it commutes except for TrivialAugment's rotations."""
    if workload == "color-jitter":
        uniform = fn.random.uniform
        x = fn.color_twist(
            x,
            brightness=uniform(range=[0.6, 1.4]),
            contrast=uniform(range=[0.6, 1.4]),
            saturation=uniform(range=[0.6, 1.4]),
            hue=uniform(range=[-36.0, 36.0]),
        )
    if workload == "trivial-augment":
        from nvidia.dali.auto_aug import trivial_augment

        x = trivial_augment.trivial_augment_wide(x, shape=[224, 224])
    return x


def erased(x):
    """RandomErasing(.1), as far as DALI's erase supports it: draws the side instead of area and
    ratio."""
    side = fn.random.uniform(range=[0.14, 0.57], shape=[2]) * fn.random.coin_flip(probability=0.1)
    anchor = fn.random.uniform(range=[0.0, 1.0], shape=[2]) * (1.0 - side)
    return fn.erase(x, anchor=anchor, shape=side, axis_names="HW", normalized=True, fill_value=0.0)


def make_batches(job):
    @pipeline_def(
        batch_size=job.batch_size,
        num_threads=job.threads,
        device_id=None,
        prefetch_queue_depth=2,
        enable_conditionals=job.workload == "trivial-augment",  # draws an operation per picture
    )
    def pipeline():
        jpeg, label = fn.readers.file(
            files=job.files,
            labels=job.labels,
            random_shuffle=True,
            dont_use_mmap=job.cold,  # mapped pages could not be dropped from the page cache
            name="reader",
        )
        x = random_window(jpeg, job.variant == "fused") if job.crop == 224 else shifted(jpeg)
        x = augmented(x, job.workload)
        x = fn.crop_mirror_normalize(
            x,
            dtype=types.FLOAT,
            output_layout="CHW",
            mirror=fn.random.coin_flip(),
            mean=[255 * m for m in job.mean],
            std=[255 * s for s in job.std],
        )
        if job.workload == "trivial-augment":
            x = erased(x)
        return x, label

    pipe = pipeline()
    pipe.build()

    def epoch():
        images = 0
        while images < len(job.files):  # its last batch is padded with the next epoch's pictures
            size = len(pipe.run()[0])
            images += size
            yield size

    return epoch


serve(make_batches)
