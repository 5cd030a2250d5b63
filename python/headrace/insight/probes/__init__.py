# SPDX-License-Identifier: Apache-2.0
"""What a loader does for a record, with other numbers of threads or workers, and records to see."""
