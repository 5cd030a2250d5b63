# SPDX-License-Identifier: Apache-2.0
"""Conclusions from numbers, without measuring: a model, the verdict, the gain of a remedy."""
