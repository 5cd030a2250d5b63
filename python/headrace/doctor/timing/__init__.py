# SPDX-License-Identifier: Apache-2.0
"""Loops under the clock: what they wait, step, take of the machine, and when they are given up."""
