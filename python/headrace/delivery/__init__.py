# SPDX-License-Identifier: Apache-2.0
"""Delivers batches on a device: copied ahead from any loader, or sliced from data in its memory."""
