# SPDX-License-Identifier: Apache-2.0
"""TFRecordDataset: each record's Example, unparsed. "random" is a buffer of 10,000."""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf
from protocol import serve


def make_batches(job):
    tf.config.threading.set_intra_op_parallelism_threads(job.threads)
    tf.config.threading.set_inter_op_parallelism_threads(job.threads)
    data = tf.data.TFRecordDataset(job.photos, buffer_size=8 << 20)
    if job.order == "random":
        data = data.shuffle(10_000)
    data = data.batch(job.batch_size).prefetch(2)
    return lambda: (int(batch.shape[0]) for batch in data)


serve(make_batches)
