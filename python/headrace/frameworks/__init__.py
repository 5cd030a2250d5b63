# SPDX-License-Identifier: Apache-2.0
"""Batches as a framework's arrays: one module per framework, whose ``make_hand_over()`` says how an
array of the engine becomes one of the framework's.

A framework is imported when its output is asked for, never before. NumPy, which needs no adapter,
is the loader's own (``headrace.loader.numpy_arrays``).
"""
