# SPDX-License-Identifier: Apache-2.0
"""Remedies: predicted, tried on some records, or applied to the loop."""
