# SPDX-License-Identifier: Apache-2.0
"""The main job end to end: photos on disk -> a training loop, next to a plain DataLoader."""
