# SPDX-License-Identifier: Apache-2.0
"""Records drawn for people: grids of images, what lies over them, clips and audio clips that play.

Made with the standard library and NumPy only; knows nothing of loaders.
"""
