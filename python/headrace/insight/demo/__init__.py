# SPDX-License-Identifier: Apache-2.0
"""The main job from end to end: photos on disk -> a training loop, beside a plain DataLoader."""
