# SPDX-License-Identifier: Apache-2.0
"""Batches onto a device: copied ahead, from any loader, or sliced there from resident data."""
