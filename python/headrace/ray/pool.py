# SPDX-License-Identifier: Apache-2.0
"""The pool of actors that make rows for a loader. It is plain data until a loader uses it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from headrace.arguments import BAD_VALUE, INT32, integer, one_of
from headrace.ray.actors import Actors


def pool(
    cpus: int | str = "auto",
    *,
    resources: Mapping[str, float] | None = None,
    cpus_per_actor: float = 1,
    store: str = "25 %",
    runtime_env: Mapping[str, Any] | None = None,
    offload: str = "auto",
) -> Pool:
    """Ray actors that make rows of a loader's batches: ``Loader(..., workers=pool)``.

    Batches have the same bytes with or without it. The loader's own threads begin with the rows
    needed next, actors with those needed last; rows of an actor that dies are requested again or
    made locally.

    cpus: actors, one CPU each; "auto": the free CPUs of the cluster's other machines (of this one,
    if there is no other), divided by the ranks, checked again every 30 seconds.
    resources: that each actor requests from Ray, such as a label of CPU machines: {"decode": 1}.
    cpus_per_actor: CPUs that Ray reserves for each. store: the fraction of an object store that
    rows in transit may fill; more would be spilled to disk. runtime_env: Ray's runtime_env of the
    actors. offload: "auto" requests rows while the training loop waits for data and remote workers
    are faster; "always" requests them at any time.
    """
    number = cpus if cpus == "auto" else integer("cpus", cpus, 1, INT32)
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?%", store)
    if not found or not 0 < float(found[1]) <= 80:
        raise BAD_VALUE.error(
            f"store is a percentage up to 80 (got {store!r})", hint='store="25 %"'
        )
    return Pool(
        number,
        dict(resources or {}),
        float(cpus_per_actor),
        float(found[1]) / 100,
        dict(runtime_env or {}),
        one_of("offload", offload, ("auto", "always")) == "always",
    )


@dataclasses.dataclass(frozen=True)
class Pool:
    """The arguments of ``pool``. It can be pickled; no actor is started before a loader is
    iterated.
    """

    cpus: int | str
    resources: dict[str, float]
    cpus_per_actor: float
    store: float
    runtime_env: dict[str, Any]
    always: bool

    def makers(self) -> Actors:
        """The actors of one loader."""
        return Actors(self)
