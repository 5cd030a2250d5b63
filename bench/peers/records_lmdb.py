# SPDX-License-Identifier: Apache-2.0
"""lmdb for Python: each value as bytes. A cursor in file order, or get() at random."""

import lmdb
import numpy as np
from protocol import serve


def make_batches(job):
    environment = lmdb.open(job.photos, subdir=False, readonly=True, lock=False, readahead=False)
    with environment.begin() as transaction:
        keys = list(transaction.cursor().iternext(values=False))
    order = np.random.default_rng(0).permutation(len(keys)).tolist()

    def in_order():
        with environment.begin() as transaction:
            for value in transaction.cursor().iternext(keys=False):
                assert value
                yield 1

    def shuffled():
        with environment.begin() as transaction:
            for number in order:
                assert transaction.get(keys[number])
                yield 1

    return in_order if job.order == "file" else shuffled


serve(make_batches)
