# SPDX-License-Identifier: Apache-2.0
"""Draws records: grids of images, overlays, video and audio clips that play.

Made with the standard library and NumPy only; knows nothing of loaders.
"""
