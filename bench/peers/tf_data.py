# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's tf.data with decode_and_crop_jpeg, as in its image tutorials.

It does less than the others: its resize does not antialias.
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf
from protocol import serve


def make_batches(job):
    tf.config.threading.set_intra_op_parallelism_threads(job.threads)
    tf.config.threading.set_inter_op_parallelism_threads(job.threads)
    mean = tf.constant([255 * m for m in job.mean])
    std = tf.constant([255 * s for s in job.std])

    def sample(path, label):
        jpeg = tf.io.read_file(path)
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            tf.image.extract_jpeg_shape(jpeg),
            tf.zeros([1, 0, 4]),
            min_object_covered=0,
            aspect_ratio_range=(3 / 4, 4 / 3),
            area_range=(0.08, 1.0),
            max_attempts=10,
            use_image_if_no_bounding_boxes=True,
        )
        window = tf.stack([begin[0], begin[1], size[0], size[1]])
        x = tf.image.decode_and_crop_jpeg(jpeg, window, channels=3)
        x = tf.image.random_flip_left_right(tf.image.resize(x, [224, 224]))
        return tf.transpose((x - mean) / std, [2, 0, 1]), label

    data = (
        tf.data.Dataset.from_tensor_slices((job.files, job.labels))
        .shuffle(len(job.files))
        .map(sample, num_parallel_calls=tf.data.AUTOTUNE)
        .batch(job.batch_size)
        .prefetch(2)
    )
    return lambda: (int(images.shape[0]) for images, _ in data)


serve(make_batches)
