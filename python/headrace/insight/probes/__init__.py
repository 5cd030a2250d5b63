# SPDX-License-Identifier: Apache-2.0
"""Measures a loader's work per record, other numbers of threads or workers, and sample records."""
