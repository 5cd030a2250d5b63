# SPDX-License-Identifier: Apache-2.0
"""The keywords of a loader that are allowed with a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headrace import _core
from headrace.errors import declare
from headrace.loader.options import KEYWORDS
from headrace.sources.stream import OpenedStream

NOT_FOR_STREAMS = declare(
    "HR0696",
    "config",
    "option needs random access",
    "A stream delivers records in the order of its iterable, once per epoch. Options that draw "
    "records from the whole epoch, or keep them for the next one, need a list or files.",
)
_REFUSED: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "shuffle": (bool, "hr.stream(records, shuffle_buffer=10_000)"),
    "sampler": (lambda value: value is not None, "let the iterable yield records in that order"),
    "on_error": (
        lambda value: value == "substitute",
        'on_error="skip", or an iterable that skips bad records',
    ),
    "resident": (lambda value: value is True, "hr.open(list(records)) keeps them in memory"),
    "cache": (lambda value: value is not None, "hr.open(list(records)) keeps them in memory"),
    "workers": (
        lambda value: value is not None,
        "python_workers= runs Python transforms in processes",
    ),
}


def check_options(source: OpenedStream, given: Mapping[str, Any], world_size: int) -> None:
    """Raises ConfigError HR0696 for keywords of Loader that streams do not support."""
    for name, (is_refused, instead) in _REFUSED.items():
        if is_refused(given[name]):
            raise NOT_FOR_STREAMS.error(f"{name}={given[name]!r} with a stream", hint=instead)
    if given["index"] != KEYWORDS["index"].default and given["index"]:
        raise NOT_FOR_STREAMS.error(
            f"index={given['index']!r} with a stream", hint="index=False, or files"
        )
    if not source.shards_itself or world_size == 1:
        return
    if source.length is None:
        raise NOT_FOR_STREAMS.error(
            f"a stream that shards itself, on {world_size} ranks, without length=: ranks could "
            "have different numbers of batches, and wait for each other forever",
            hint="hr.stream(..., length=number of records of all ranks)",
        )
    if given["last_batch"] == "pad" or given["uneven"]:
        raise NOT_FOR_STREAMS.error(
            "a stream that shards itself, with "
            + (
                'last_batch="pad"'
                if given["last_batch"] == "pad"
                else f"uneven={given['uneven']!r}"
            ),
            hint='last_batch="drop"; each rank has the same number of different records',
        )


def check_steps(steps: Iterable[Any]) -> None:
    """Raises ConfigError HR0696 for transforms that use other records of the epoch."""
    known = _core.operators()
    for step in steps:
        name = type(step).__name__
        if known.get(name, {}).get("scope") == "mixed_in":
            raise NOT_FOR_STREAMS.error(
                f"{name} mixes in records from the whole epoch", hint="a list, or files"
            )
