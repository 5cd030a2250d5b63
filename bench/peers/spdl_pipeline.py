# SPDX-License-Identifier: Apache-2.0
"""Meta's SPDL: FFmpeg decodes, crops, scales and flips.

It does less than the others: batches are uint8 and channels last, without normalization.
"""

import math
import random

import spdl.io
from protocol import serve
from spdl.pipeline import PipelineBuilder


def random_window(width, height):
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return w, h, random.randint(0, width - w), random.randint(0, height - h)
    return width, height, 0, 0


def decode(path):
    packets = spdl.io.demux_image(path)
    w, h, x, y = random_window(packets.codec.width, packets.codec.height)
    flip = "hflip," if random.random() < 0.5 else ""
    steps = f"crop={w}:{h}:{x}:{y},scale=224:224:flags=bilinear,{flip}format=rgb24"
    return spdl.io.decode_packets(packets, filter_desc=steps)


def make_batches(job):
    def epoch():
        pipeline = (
            PipelineBuilder()
            .add_source(random.sample(job.files, len(job.files)))
            .pipe(decode, concurrency=job.threads, output_order="completion")
            .aggregate(job.batch_size)
            .pipe(lambda frames: spdl.io.to_numpy(spdl.io.convert_frames(frames)))
            .add_sink(3)
            .build(num_threads=job.threads)
        )
        with pipeline.auto_stop():
            for batch in pipeline:
                yield len(batch)

    return epoch


serve(make_batches)
