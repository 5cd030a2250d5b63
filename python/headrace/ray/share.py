# SPDX-License-Identifier: Apache-2.0
"""How many actors a pool may have on a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Resources = Mapping[str, float]

_UNITS = 10_000  # in which Ray counts resources


def needs(cpus_per_actor: float, resources: Resources) -> dict[str, float]:
    """What one actor takes of a machine. An actor for which Ray reserves no CPU takes one, too."""
    return {"CPU": cpus_per_actor or 1, **{name: n for name, n in resources.items() if n > 0}}


def fitting(machine: Resources, needed: Resources) -> int:
    """The number of actors that fit into these resources of one machine."""
    return min(
        round(machine.get(name, 0) * _UNITS) // max(1, round(each * _UNITS))
        for name, each in needed.items()
    )


def share(
    machines: Iterable[Resources],
    free: Iterable[Resources],
    needed: Resources,
    own: int,
    ranks: int,
) -> int:
    """The number of actors of one rank, which has ``own`` of them: its part of those that the
    machines could have, as far as these are free."""
    total = sum(fitting(machine, needed) for machine in machines)
    unused = sum(fitting(machine, needed) for machine in free)
    return min(total // ranks, own + unused // ranks)
