# SPDX-License-Identifier: Apache-2.0
"""A loader's keywords: messages for DataLoader's keywords that Loader lacks, and how Loader's
keywords, declared in loader/table.py, reach the engine.
"""

from __future__ import annotations

import enum
import math
import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from headrace import _core, sampling
from headrace.arguments import (
    BAD_VALUE,
    INT32,
    INT64,
    integer,
    numbers,
    one_of,
    seconds,
    seed,
    share,
    size_in_bytes,
    switch,
)
from headrace.errors import declare, did_you_mean, nearest
from headrace.loader.dataloader_keywords import HINTS
from headrace.loader.shard import Shard
from headrace.loader.table import keywords_from

_DATALOADER_KEYWORD = declare(
    "HR0158",
    "config",
    "keyword of DataLoader, not of Loader",
    "hr.Loader is one object for source, transforms and loading, so some keywords of DataLoader "
    "are not needed and others have another name. The message says what to use instead.",
)
_UNKNOWN_KEYWORD = declare(
    "HR0159",
    "config",
    "unknown keyword",
    "hr.Loader has no keyword of this name. help(hr.Loader) lists all of them.",
)

_RECORDS = {record["name"]: record for record in _core.loader_options()}
KEYWORDS = {keyword.name: keyword for keyword in keywords_from(_RECORDS.values())}


def completed(given: Mapping[str, Any]) -> dict[str, Any]:
    """All keywords, with defaults for those not given. Raises ConfigError for the first unknown
    one, with a suggestion.
    """
    for name in given:
        if name not in KEYWORDS:
            raise _no_keyword(name)
    return {name: given.get(name, keyword.default) for name, keyword in KEYWORDS.items()}


def _no_keyword(name: str) -> Exception:
    if name in HINTS:
        return _DATALOADER_KEYWORD.error(f"{name}=", hint=HINTS[name])
    if any(
        name == each["name"] for record in _core.formats().values() for each in record["params"]
    ):
        hint = f"a keyword of hr.open: hr.Loader(hr.open(..., {name}=...), ...)"
        return _UNKNOWN_KEYWORD.error(f"{name}=", hint=hint)
    near = nearest(name, {*KEYWORDS, *HINTS} - {"workers"})  # bool is not a number of workers
    hint = f"DataLoader's {near}: {HINTS[near]}" if near in HINTS else ""
    return _UNKNOWN_KEYWORD.error(f"{name}=", hint=hint or did_you_mean(name, KEYWORDS))


def refuse_positional(more: tuple[Any, ...]) -> None:
    """Raises if Loader got positional arguments after source and transforms."""
    if more:
        known = "batch_size=" if isinstance(more[0], int) else "batch_size=, shuffle=, ..."
        raise _UNKNOWN_KEYWORD.error(
            f"the argument {more[0]!r} after source and transforms has no name",
            hint=f"write it as a keyword: {known}",
        )


def engine_options(given: Mapping[str, Any], shard: Shard) -> dict[str, Any]:
    """Keywords of Loader, and internal options of the engine, in the engine's form."""
    out: dict[str, Any] = {"rank": shard.rank, "world_size": shard.world_size}
    for name, value in given.items():
        if name in _RECORDS and name not in _TOGETHER:
            out[name] = _FORMS[name](value) if name in _FORMS else _as_declared(name, value)
    out.update(_order(given["shuffle"], given["shuffle_window"]))
    out.update(_row_index(given["index"]))
    out.update(_budget(given["error_budget"]))
    if out["strict"] and out["damaged"] == "repair":
        raise BAD_VALUE.error("strict=True rejects what damaged='repair' would deliver")
    return out


def _as_declared(name: str, value: Any) -> Any:
    """The value, checked against the engine's table."""
    record = _RECORDS[name]
    if value is None and record["default"] is None:
        return None
    if record["choices"]:
        return one_of(name, value, record["choices"])
    if record["type"] == "bool":
        return switch(name, value)
    assert record["type"] == "int", name
    return integer(name, value, int(max(0, record["minimum"])), int(min(INT64, record["maximum"])))


# Options that Python accepts in more forms than the engine, or keywords that set several options.


def output_fields(fields: Any) -> list[str] | None:
    """``fields=`` as a list of names; None stands for all fields of the source."""
    if fields is None:
        return None
    names = [fields] if isinstance(fields, str) else list(fields)
    for name in names:
        if not isinstance(name, str):
            raise BAD_VALUE.error(f"fields are names (got {name!r})")
    return names


def _pad_value(given: Any) -> list[str] | None:
    """{"labels": -100} in the engine's form: ["labels=-100"]."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise BAD_VALUE.error(f'pad_value is a dictionary, {{"labels": -100}} (got {given!r})')
    values = numbers("pad_value", list(given.values()))
    return [f"{name}={value!r}" for name, value in zip(given, values, strict=True)]


def memory_format(value: Any) -> str:
    """ "channels_last", or torch.channels_last."""
    if not isinstance(value, (str, enum.Enum)):
        value = str(value).removeprefix("torch.").replace("contiguous_format", "channels_first")
    return one_of("memory_format", value, _RECORDS["memory_format"]["choices"])


def _resident(value: Any) -> str:
    if value not in ("auto", True, False) or isinstance(value, int) != isinstance(value, bool):
        raise BAD_VALUE.error(f"resident must be 'auto' or True or False (got {value!r})")
    return value if isinstance(value, str) else "on" if value else "off"


def _uneven(value: Any) -> str:
    if value != "pad" and not isinstance(value, bool):
        raise BAD_VALUE.error(f"uneven must be True or False or 'pad' (got {value!r})")
    return value if isinstance(value, str) else "on" if value else "off"


def _size(name: str) -> Callable[[Any], int | None]:
    return lambda value: None if value is None else size_in_bytes(name, value)


def _seed(value: Any) -> int:
    """The engine's integers have 63 bits and a sign."""
    number = seed(value)
    return number if number <= INT64 else number - (1 << 64)


_FORMS: dict[str, Callable[[Any], Any]] = {
    "fields": output_fields,
    "memory_format": memory_format,
    "pad_value": _pad_value,
    "memory_limit": _size("memory_limit"),
    "cache": _size("cache"),
    "disk_cache": _size("disk_cache"),
    "resident": _resident,
    "uneven": _uneven,
    "seed": _seed,
    "video_timeout": lambda value: seconds("video_timeout", value),
    "record_timeout": lambda value: (
        None if value is None or seconds("record_timeout", value) == math.inf else float(value)
    ),
    "patience": lambda value: 0.0 if seconds("patience", value) == math.inf else float(value),
    "fraction": lambda value: share("fraction", value),
    "quarantine": lambda value: None if value is None else os.fspath(value),
}


# Each of these is one keyword in Python and two options of the engine.
_TOGETHER = ("shuffle", "shuffle_window", "index", "error_budget")


_WINDOWS = {"blocks": 32, "streams": 8}  # default of shuffle_window


def _window(shuffle: str, window: Any) -> int:
    return integer("shuffle_window", _WINDOWS[shuffle] if window is None else window, 1, INT32)


def _order(shuffle: Any, window: Any) -> dict[str, Any]:
    if isinstance(shuffle, str) and shuffle == "blocks":
        return {"shuffle": True, "shuffle_window": _window(shuffle, window)}
    if isinstance(shuffle, str) and shuffle == "streams":
        return {"shuffle": False, "shuffle_window": 0}  # sampler_given() handles it
    if not isinstance(shuffle, bool):
        raise BAD_VALUE.error(
            f"shuffle must be True, False, 'blocks' or 'streams' (got {shuffle!r})"
        )
    return {"shuffle": shuffle, "shuffle_window": 0}


def sampler_given(given: Mapping[str, Any]) -> Any:
    """``sampler=``, or the sampler of ``shuffle="streams"``."""
    if given["shuffle"] != "streams":
        return given["sampler"]
    if given["sampler"] is not None:
        raise BAD_VALUE.error("shuffle='streams' and sampler= both decide the order")
    return sampling.streams(window=_window("streams", given["shuffle_window"]))


def _row_index(value: Any) -> dict[str, Any]:
    """How row indexes are used, and the file if one is given."""
    if value is False:
        return {"index": "off", "index_file": ""}
    if isinstance(value, os.PathLike) or (isinstance(value, str) and {".", os.sep} & set(value)):
        return {"index": "use", "index_file": os.fspath(value)}
    if value not in ("use", "auto"):
        raise BAD_VALUE.error(
            f"index must be 'use' or 'auto' or False or a path (got {value!r})",
            hint='for a file, write index="./NAME"' if isinstance(value, str) else "",
        )
    return {"index": value, "index_file": ""}


class Budget(NamedTuple):
    """The maximum number and fraction of bad records in an epoch."""

    records: int
    share: float


def error_budget(value: Any) -> Budget:
    """None: the engine's default. An integer: a count. A float: a fraction. (count, fraction):
    both.
    """
    if value is None:
        return Budget(_RECORDS["error_budget"]["default"], _RECORDS["error_rate"]["default"])
    if isinstance(value, tuple) and len(value) == 2:
        [share_of_records] = numbers("error_budget as a fraction", value[1:])
        return Budget(integer("error_budget", value[0]), error_budget(share_of_records).share)
    if isinstance(value, float) and 0 <= value <= 1:
        return Budget(INT64, value)
    if isinstance(value, float):
        raise BAD_VALUE.error(f"error_budget as a fraction must be between 0 and 1 (got {value!r})")
    return Budget(integer("error_budget", value), 1.0)


def _budget(value: Any) -> dict[str, Any]:
    budget = error_budget(value)
    return {"error_budget": budget.records, "error_rate": budget.share}
