# SPDX-License-Identifier: Apache-2.0
"""A DataLoader with ``batch_size=None`` and torch's BatchSampler as its sampler: its dataset
receives the indices of a batch, and returns the whole batch.
"""

from __future__ import annotations

import sys
from typing import Any

from headrace.migrate.collated import equal
from headrace.migrate.generators import generators_in
from headrace.migrate.known_dataset import REFUSED
from headrace.migrate.modules import name_of
from headrace.migrate.order import batches_of, is_torchs
from headrace.migrate.seeding import seeded

_HINT = 'DataLoader(dataset, batch_sampler=...) stacks records, and so does collate="default"'


def check_whole_batches(dataloader: Any, collate: str) -> None:
    """Raises ConfigError HR0834 unless the dataset's batches are its stacked records."""
    batches = batches_of(dataloader)
    if batches is None or dataloader.batch_sampler is not None or collate == "default":
        return
    dataset = dataloader.dataset
    if not len(dataset):
        return  # refused later
    function = dataloader.collate_fn
    if collate != "same" or name_of(function) != "default_convert":
        raise REFUSED.error(
            f"its collate_fn={name_of(function)} gets whole batches of the dataset, because of "
            "batch_size=None",
            hint=_HINT,
        )
    indices = sorted({0, len(dataset) - 1})
    if not is_torchs(batches.sampler, "SequentialSampler"):
        indices.reverse()
    generators = generators_in(dataset)
    try:
        with seeded(0, generators):
            whole = function(dataset[indices])
    except Exception as reason:
        raise REFUSED.error(
            f"its dataset does not return the batch of a list of indices ({reason!r}), as "
            "batch_size=None requires",
            hint=_HINT,
        ) from reason
    try:
        with seeded(0, generators):
            records = [dataset[index] for index in indices]
        alike = equal(whole, sys.modules["torch"].utils.data.default_collate(records))
    except Exception:  # they cannot be stacked
        alike = False
    if not alike:
        raise REFUSED.error(
            f"what its dataset returns for the indices {indices} is not the stacked records",
            hint=_HINT,
        )
