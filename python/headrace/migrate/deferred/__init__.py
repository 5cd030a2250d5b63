# SPDX-License-Identifier: Apache-2.0
"""Images that a dataset opens, moves about and hands on without decoding them.

While a dataset's ``__getitem__`` runs, ``PIL.Image.open`` gives an image of Pillow that knows its
size and mode and notes what is done to it (``image.py``). torchvision's ``to_tensor`` and its kin
make of it a tensor that notes its conversion and normalization (``tensor.py``). The engine then
decodes, crops and resizes in one pass, into the batch. Whatever else asks for pixels gets them, of
the same values: from the engine, or from Pillow where a file is damaged.
"""
