# SPDX-License-Identifier: Apache-2.0
"""Images that a dataset opens, transforms and returns without decoding them.

While a dataset's ``__getitem__`` runs, ``PIL.Image.open`` returns a Pillow image that knows its
size and mode and records the operations on it (``image.py``). torchvision's ``to_tensor`` and
related functions turn it into a tensor that records its conversion and normalization
(``tensor.py``). The engine then decodes, crops and resizes in one pass, into the batch. Any other
access to pixels sees the same values: from the engine, or from Pillow if a file is damaged.
"""
