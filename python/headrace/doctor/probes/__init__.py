# SPDX-License-Identifier: Apache-2.0
"""What one part can do alone: the host, its storage, copies, a record's way through a loader."""
