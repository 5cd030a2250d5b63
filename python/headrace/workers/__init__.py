# SPDX-License-Identifier: Apache-2.0
"""Processes for steps written in Python that hold the GIL."""
