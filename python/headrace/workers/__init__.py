# SPDX-License-Identifier: Apache-2.0
"""Processes for transforms written in Python that hold the GIL."""
