# SPDX-License-Identifier: Apache-2.0
"""A loader's work per record, at other numbers of threads or workers, and sample records."""
