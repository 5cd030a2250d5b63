# SPDX-License-Identifier: Apache-2.0
"""The loader: source + transforms + order -> batches.

import headrace as hr
from headrace import transforms as T

train = hr.Loader("train/", hr.presets.imagenet_train(224), batch_size=256, shuffle=True)
for images, labels in train.torch("cuda"):
    ...

One file per idea: ``loader.py`` is the public class; ``assembly.py`` has its parts;
``deliveries.py`` defines how batches reach the consumer, ``copied_batches.py`` how they reach
devices; ``loaded_state.py`` holds a loaded position until the first batch; ``views.py`` and
``outputs.py`` define the form of batches; ``turn.py`` and ``iteration.py`` coordinate consumers.
"""

from headrace.loader.loader import Loader as Loader

__all__ = ["Loader"]
