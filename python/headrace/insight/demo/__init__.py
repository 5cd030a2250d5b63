# SPDX-License-Identifier: Apache-2.0
"""The main use end to end: photos on disk -> a training loop, compared with a DataLoader."""
