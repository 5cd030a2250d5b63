# SPDX-License-Identifier: Apache-2.0
"""mxnet.recordio: header and content of each record as bytes."""

import os

import numpy as np

np.bool = bool  # mxnet 1.9.1 still uses it

from mxnet import recordio  # noqa: E402
from protocol import serve  # noqa: E402


def make_batches(job):
    index = os.path.splitext(job.photos)[0] + ".idx"
    if job.order == "file":
        reader = recordio.MXRecordIO(job.photos, "r")

        def epoch():
            reader.reset()
            while record := reader.read():
                recordio.unpack(record)
                yield 1

        return epoch
    indexed = recordio.MXIndexedRecordIO(index, job.photos, "r")
    order = np.random.default_rng(0).permutation(len(indexed.keys)).tolist()

    def shuffled():
        for number in order:
            recordio.unpack(indexed.read_idx(number))
            yield 1

    return shuffled


serve(make_batches)
