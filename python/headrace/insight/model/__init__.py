# SPDX-License-Identifier: Apache-2.0
"""Judging without measuring: a law over numbers, the verdict, what a remedy will give."""
