# SPDX-License-Identifier: Apache-2.0
"""What articles usually find in each comparison, by section."""

FINDINGS = {
    "one-image": "the choice of the library decides how long reading and resizing take.",
    "small-images": "DALI is faster than a DataLoader.",
    "mnist": "worker processes make a small dataset slower, each further one more so.",
    "audio-and-images": "pairs of an image and a clip are slow to load.",
    "memory": "DALI's memory grows with the batch size.",
    "reopened": "opening a validation loader again for each epoch is slow.",
    "stored": "HDF5 and LMDB are faster than many small files.",
    "ram-folder": "a folder in memory does not help if the files are in the page cache.",
}
