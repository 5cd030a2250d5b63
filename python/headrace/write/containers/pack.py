# SPDX-License-Identifier: Apache-2.0
"""A pack, as ``headrace pack`` writes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headrace.pack import pack
from headrace.sources import Source
from headrace.write import WriterRecord


def _packed(
    src: Source,
    target: str,
    shards: int,
    threads: int | None,
    overwrite: bool,
    have_done: Callable[[int], None],
    options: Mapping[str, Any],
) -> dict[str, Any]:
    summary = pack(
        src,
        target,
        shards=shards,
        threads=threads,
        overwrite=overwrite,
        progress=lambda done, _: have_done(done),
    )
    kept = ("records", "bytes", "resumed_records", "unusable", "unusable_count")
    files = [{"file": target, "records": summary["records"]}]
    return {"files": files, **{name: summary[name] for name in kept}}


WRITER = WriterRecord(
    holds="the output of [`headrace pack`](../spec/pack-format.md)",
    format="pack",
    whole=_packed,
    keeps_bytes=False,
)
