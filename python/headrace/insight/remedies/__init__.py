# SPDX-License-Identifier: Apache-2.0
"""What would help: predicted, tried on some records, applied for real."""
