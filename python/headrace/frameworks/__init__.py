# SPDX-License-Identifier: Apache-2.0
"""Batches as a framework's arrays: one module per framework, whose ``make_hand_over()`` converts an
array of the engine to one of the framework.

A framework is imported when its output is requested, never before. NumPy needs no adapter: it is
part of the loader (``headrace.loader.numpy_arrays``).
"""
