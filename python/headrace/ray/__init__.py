# SPDX-License-Identifier: Apache-2.0
"""Headrace on a Ray cluster: CPUs of other machines make rows for a loader, read data for Ray Data,
and convert datasets.

    pool = hr.ray.pool(cpus="auto")
    train = hr.Loader("/data/train", transforms, batch_size=256, shuffle=True, workers=pool)

Ray starts and places the processes, and transfers the bytes; nothing here connects to other
machines directly. Imported on first access; needs ``pip install ray``.
"""

from __future__ import annotations

from headrace.ray.data import Transform, datasource, transform
from headrace.ray.jobs import convert, run
from headrace.ray.pool import Pool, pool

__all__ = ["Pool", "Transform", "convert", "datasource", "pool", "run", "transform"]
