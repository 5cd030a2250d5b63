# SPDX-License-Identifier: Apache-2.0
"""Pickles as torch.save puts them into its archives. Needs torch."""

from __future__ import annotations

import collections
import io
import zipfile
from collections.abc import Iterator
from typing import Any


def torch_file() -> Iterator[bytes]:
    import torch

    values: list[Any] = [
        {"image": torch.zeros(4, 2, dtype=torch.uint8), "label": torch.arange(4)},
        (torch.arange(4.0), torch.arange(4)),
        [torch.zeros(3, dtype=torch.uint16), torch.zeros(2, 2, dtype=torch.bfloat16)[:, :1]],
        collections.OrderedDict(w=torch.nn.Parameter(torch.zeros(4, 1))),
        {"x": torch.zeros(2), "note": "text", "count": 3, "rate": 0.5, "big": 2**70, "no": None},
        torch.nn.Linear(2, 1).state_dict(),
        torch.zeros(0, 3),
        {"a": {"b": torch.zeros(1)}},
    ]
    for value in values:
        for protocol in (2, 4):
            memory = io.BytesIO()
            torch.save(value, memory, pickle_protocol=protocol)
            with zipfile.ZipFile(memory) as archive:
                [name] = [name for name in archive.namelist() if name.endswith("data.pkl")]
                yield archive.read(name)


SEEDS = {"torch_file": torch_file}
