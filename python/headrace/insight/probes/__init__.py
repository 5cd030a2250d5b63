# SPDX-License-Identifier: Apache-2.0
"""Measures a loader's work per record, other thread or worker counts, and sample records."""
