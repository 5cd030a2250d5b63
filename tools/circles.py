# SPDX-License-Identifier: Apache-2.0
"""Cycles in a dependency graph."""

from __future__ import annotations

from collections.abc import Collection, Mapping


def circles(needs: Mapping[str, Collection[str]]) -> list[list[str]]:
    """One shortest cycle for each strongly connected component, starting with its first name.

    >>> circles({"a": ["b"], "b": ["c"], "c": ["a", "b"], "d": ["a"]})
    [['a', 'b', 'c', 'a']]
    """
    found = []
    left = set(needs)
    for start in sorted(needs):
        if start in left and (way := _way_around(start, needs, left)):
            found.append(way)
            left -= set(way)
    return sorted(found, key=len)


def _way_around(start: str, needs: Mapping[str, Collection[str]], left: set[str]) -> list[str]:
    """The shortest path from a name back to itself, by breadth-first search."""
    ways = [[start]]
    seen: set[str] = set()
    for way in ways:
        for name in sorted(needs.get(way[-1], ())):
            if name == start:
                return [*way, start]
            if name in left and name not in seen:
                seen.add(name)
                ways.append([*way, name])
    return []
