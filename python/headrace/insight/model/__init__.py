# SPDX-License-Identifier: Apache-2.0
"""Judging without measuring: a model over numbers, the verdict, the gain of a remedy."""
