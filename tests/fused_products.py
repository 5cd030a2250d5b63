# SPDX-License-Identifier: Apache-2.0
"""Whether torch's warps give the same results here as on Intel's CPUs.

torch multiplies the coordinates of a grid by a matrix with MKL, which uses fused multiply-adds on
Intel CPUs that have them, but not on AMD's: so torchvision's own warps differ between the two by
rounding. Headrace's warps equal the fused ones everywhere.
"""

from __future__ import annotations

import pytest


def _are_fused() -> bool:
    try:
        import torch
    except ImportError:
        return True  # then nothing is compared
    places = torch.tensor([[-1.0, 1 + 2**-12, 0.0]]).repeat(200, 1)
    by = torch.tensor([[1.0], [1 + 2**-12], [0.0]])
    return bool(places.matmul(by)[0, 0].item() == 2**-11 + 2**-24)


needs_fused_products = pytest.mark.skipif(
    not _are_fused(), reason="torch's warps need products that MKL fuses on Intel's CPUs only"
)
