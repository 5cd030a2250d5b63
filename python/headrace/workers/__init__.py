# SPDX-License-Identifier: Apache-2.0
"""Processes for Python transforms that hold the GIL."""
