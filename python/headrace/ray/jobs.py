# SPDX-License-Identifier: Apache-2.0
"""Jobs of many parts on a Ray cluster: ``headrace.jobs`` with Ray tasks instead of processes."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from headrace.arguments import INT32, integer
from headrace.errors import Error
from headrace.jobs import Job, merge
from headrace.ray.parcel import Parcel, packed

_A_CPU = 4  # queued tasks per CPU: of millions of tasks, the driver would otherwise hold all


def convert(
    source: Any,
    dest: str | os.PathLike[str],
    to: str = "pack",
    *,
    parts: int = 256,
    progress: Callable[[int, int], object] | None = None,
    cpus_per_part: float = 1,
    retries: int = 5,
    verify: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """``hr.convert`` or ``hr.pack`` by tasks, then ``hr.jobs.merge``. Returns the manifest.

    dest: a folder that all machines can access. Complete parts are kept, so the same call continues
    after an interruption. progress: called with (parts done, parts). retries: retries of a part
    whose process dies; an error of the part itself ends the job, and other parts are kept.
    options: of hr.convert or hr.pack.
    """
    command = "pack" if to == "pack" else "convert"
    given = {"threads": max(1, int(cpus_per_part)), **options}
    if command == "convert":
        given["to"] = to
    job = Job(command, source, dest, parts=integer("parts", parts, 1, INT32), options=given)
    run(job, progress=progress, cpus_per_part=cpus_per_part, retries=retries)
    return merge(dest, verify=verify)


def run(
    job: Job,
    *,
    progress: Callable[[int, int], object] | None = None,
    cpus_per_part: float = 1,
    retries: int = 5,
) -> None:
    """All parts of a job, one task each. Like ``convert``, without merging."""
    import ray

    shared = ray.put(packed(job))

    @ray.remote(num_cpus=cpus_per_part, max_retries=retries)  # type: ignore[untyped-decorator]
    def make(parcel: Parcel, part: int) -> int:
        parcel.opened()(part)
        return part

    cpus = ray.cluster_resources().get("CPU", 1)
    most = max(_A_CPU, int(_A_CPU * cpus / max(cpus_per_part, 0.01)))
    waiting, done = list(range(job.parts))[::-1], 0
    out: list[Any] = []
    try:
        while waiting or out:
            while waiting and len(out) < most:
                out.append(make.remote(shared, waiting.pop()))
            ready, out = ray.wait(out, num_returns=1)
            try:
                ray.get(ready)
            except ray.exceptions.RayTaskError as failure:
                cause = getattr(failure, "cause", None)
                raise (cause if isinstance(cause, Error) else failure) from None
            done += len(ready)
            if progress is not None:
                progress(done, job.parts)
    finally:
        for task in out:
            ray.cancel(task)
