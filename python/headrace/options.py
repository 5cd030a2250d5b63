# SPDX-License-Identifier: Apache-2.0
"""A loader's keywords: what they mean, and what is said about the ones that it has not."""

from __future__ import annotations

import enum
import operator
import os
import re
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from headrace import _core
from headrace.errors import declare, did_you_mean, nearest

_DATALOADER_KEYWORD = declare(
    "HR0158",
    "config",
    "a keyword of torch's DataLoader",
    "hr.Loader is one object for source, transforms and loading, so some keywords of DataLoader "
    "are not needed and others have another name. The message says which holds for this one.",
)
_UNKNOWN_KEYWORD = declare(
    "HR0159",
    "config",
    "unknown keyword",
    "hr.Loader has no keyword of this name. help(hr.Loader) lists all of them.",
)
_BAD_VALUE = declare(
    "HR0160",
    "config",
    "a keyword's value does not fit",
    "The value has the wrong type or is none of the choices. The message names both.",
)

_DATALOADER = {
    "dataset": "the first argument is the source: hr.Loader(dataset, ...)",
    "num_workers": "not needed, records are processed by native threads; threads=N sets how many",
    "collate_fn": 'not needed, batches are assembled in place; ragged="list" delivers fields that '
    "differ in shape, and a function in the list of transforms changes records",
    "pin_memory": 'not needed; .torch("cuda") delivers on the device',
    "pin_memory_device": 'not needed; .torch("cuda:1") names the device',
    "drop_last": 'last_batch="drop" leaves the incomplete batch out, "keep" (the default) keeps it',
    "prefetch_factor": "not needed; memory_limit= bounds how far the engine runs ahead",
    "worker_init_fn": "not needed, there are no worker processes; a step in Python gets its own "
    "random generator as the argument rng",
    "generator": "seed=N; every order and every draw is a function of it",
    "persistent_workers": "not needed, threads live as long as the process",
    "batch_sampler": "sampler= orders the records, batch_size= groups them",
    "multiprocessing_context": "not needed, there are no worker processes",
    "timeout": "not needed, a record that hangs is reported by name",
    "in_order": "batches always come in order",
    "transform": "transforms=[...], a list",
}


def check_keywords(unknown: Mapping[str, Any], known: Any) -> None:
    """Raises for the first keyword that Loader has not, with the way to write it."""
    for name in unknown:
        if name in _DATALOADER:
            raise _DATALOADER_KEYWORD.error(f"{name}=", hint=_DATALOADER[name])
        near = nearest(name, {*known, *_DATALOADER})
        hint = f"DataLoader's {near}: {_DATALOADER[near]}" if near in _DATALOADER else ""
        raise _UNKNOWN_KEYWORD.error(f"{name}=", hint=hint or did_you_mean(name, known))


def refuse_positional(more: tuple[Any, ...]) -> None:
    """Raises where Loader has got more than a source and transforms without keywords."""
    if more:
        known = "batch_size=" if isinstance(more[0], int) else "batch_size=, shuffle=, ..."
        raise _UNKNOWN_KEYWORD.error(
            f"the argument {more[0]!r} behind source and transforms has no name",
            hint=f"write it as a keyword: {known}",
        )


def choice(kind: Any, name: str, value: Any) -> Any:
    """A member of one of the engine's enumerations by the name that users write."""
    members = {member.rstrip("_"): found for member, found in kind.__members__.items()}
    if isinstance(value, str) and value in members:
        return members[value]
    allowed = " or ".join(repr(member) for member in members)
    near = nearest(value, members) if isinstance(value, str) else None
    hint = f"did you mean {near!r}?" if near else ""
    raise _BAD_VALUE.error(f"{name} must be {allowed} (got {value!r})", hint=hint)


INT32, INT64, UINT64 = (1 << 31) - 1, (1 << 63) - 1, (1 << 64) - 1  # that the engine holds


def integer(name: str, value: Any, minimum: int = 0, maximum: int = INT64) -> int:
    """A whole number of that range; NumPy's are fine, bool and float are not."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or number < minimum:
        raise _BAD_VALUE.error(f"{name} must be an integer >= {minimum} (got {value!r})")
    if number > maximum:
        raise _BAD_VALUE.error(f"{name} must be an integer <= {maximum} (got {value!r})")
    return number


def seed(value: Any) -> int:
    """A seed: any 64 bits, as a number that is not negative."""
    return integer("seed", value, maximum=UINT64)


def numbers(name: str, values: Any) -> list[float]:
    """A sequence of real numbers: a list, an array, a tensor."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):
        array = np.empty((), object)
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        raise _BAD_VALUE.error(f"{name} must be a list of numbers (got {_shortened(values)})")
    return [float(value) for value in array.tolist()]


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


_UNITS = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
_BINARY = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def size_in_bytes(name: str, value: Any) -> int:
    """1073741824, "1 GiB", "512 MiB", "2 GB"."""
    if not isinstance(value, str):
        return integer(name, value, 1)
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", value.lower())
    if not match or (match[3] and not match[2]):
        raise _BAD_VALUE.error(
            f"{name} {value!r} is no size",
            hint='bytes as an integer, or "512 MiB", "2 GiB", "2 GB"',
        )
    unit = _BINARY[match[2]] if match[3] else _UNITS[match[2]]
    return integer(name, int(float(match[1]) * unit), 1)


ALONE = "one process"  # the origin of a shard that nothing speaks of: ranks may still come up


class Shard(NamedTuple):
    """This process's part of every global batch, and how that is known."""

    rank: int
    world_size: int
    origin: str


def resolve_shard(shard: Any) -> Shard:
    """ "auto": torch.distributed where it is initialized, else torchrun's variables, else alone."""
    if shard is False or shard is None:
        return Shard(0, 1, "given")
    if shard == "auto":
        return _detected_shard()
    try:
        rank, world_size = shard
    except (TypeError, ValueError):
        raise _BAD_VALUE.error(
            f"shard must be 'auto', False or (rank, world_size) (got {shard!r})"
        ) from None
    world_size = integer("world_size of shard", world_size, 1, INT32)
    rank = integer("rank of shard", rank)
    if rank >= world_size:
        raise _BAD_VALUE.error(f"rank {rank} of shard is outside a world of {world_size}")
    return Shard(rank, world_size, "given")


def _detected_shard() -> Shard:
    torch = sys.modules.get("torch")  # a process that never imported torch has no process group
    distributed = getattr(torch, "distributed", None)
    if distributed and distributed.is_available() and distributed.is_initialized():
        return Shard(distributed.get_rank(), distributed.get_world_size(), "torch.distributed")
    names = ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
    values = [os.environ.get(name, "") for name in names]
    if all(value.isdecimal() for value in values) and int(values[0]) < int(values[1]):
        return Shard(int(values[0]), int(values[1]), "torchrun's variables")
    return Shard(0, 1, ALONE)


class Budget(NamedTuple):
    """How many bad records an epoch may have, and which share of it."""

    records: int
    share: float


def error_budget(value: Any) -> Budget:
    """None: 1,000 and 1 %. An integer: a count. A float: a share. (count, share): both."""
    if value is None:
        return Budget(1000, 0.01)
    if isinstance(value, tuple) and len(value) == 2:
        [share_of_records] = numbers("error_budget as a share", value[1:])
        return Budget(integer("error_budget", value[0]), error_budget(share_of_records).share)
    if isinstance(value, float) and 0 <= value <= 1:
        return Budget(INT64, value)
    if isinstance(value, float):
        raise _BAD_VALUE.error(f"error_budget as a share is between 0 and 1 (got {value!r})")
    return Budget(integer("error_budget", value), 1.0)


def output_fields(fields: Any) -> list[str]:
    """``fields=`` as a list of names; None is empty, for all of the source's."""
    if fields is None:
        return []
    names = [fields] if isinstance(fields, str) else list(fields)
    for name in names:
        if not isinstance(name, str):
            raise _BAD_VALUE.error(f"fields are names (got {name!r})")
    return names


def seconds(name: str, value: Any) -> float:
    """A number of seconds, 0 or more."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0:
        return float(value)
    raise _BAD_VALUE.error(f"{name} must be seconds, 0 or more (got {value!r})")


def switch(name: str, value: Any) -> bool:
    """True or False, and nothing that merely looks like it."""
    if isinstance(value, bool):
        return value
    raise _BAD_VALUE.error(f"{name} must be True or False (got {value!r})")


def engine_options(given: Mapping[str, Any], shard: Shard) -> dict[str, Any]:
    """The keywords of Loader as the engine's options; what needs the source is checked there."""
    budget = error_budget(given["error_budget"])
    optional_size = given["memory_limit"]
    quarantine = given["quarantine"]
    index, index_file = row_index(given["index"])
    return {
        "index": index,
        "index_file": index_file,
        "batch_size": 0
        if given["batch_size"] is None
        else integer("batch_size", given["batch_size"], 1),
        "global_batch_size": 0
        if given["global_batch_size"] is None
        else integer("global_batch_size", given["global_batch_size"], 1),
        **order(given["shuffle"], given["shuffle_window"]),
        "cache": 0 if given["cache"] is None else size_in_bytes("cache", given["cache"]),
        "resident": resident_use(given["resident"]),
        "looks": bool(given.get("looks", False)),
        "view": switch("view", given.get("view", False)),
        "fraction": share("fraction", given.get("fraction", 1.0)),
        "seed": seed(given["seed"]),
        "threads": 0
        if given["threads"] is None
        else integer("threads", given["threads"], 1, INT32),
        "python_workers": 0,
        "device": None,
        "patience": seconds("patience", given["patience"]),
        "memory_limit": 0
        if optional_size is None
        else size_in_bytes("memory_limit", optional_size),
        "on_error": choice(_core.OnError, "on_error", given["on_error"]),
        "error_budget": budget.records,
        "error_rate": budget.share,
        "quarantine": "" if quarantine is None else os.fspath(quarantine),
        "last_batch": choice(_core.LastBatch, "last_batch", given["last_batch"]),
        "rank": shard.rank,
        "world_size": shard.world_size,
        "fields": output_fields(given["fields"]),
        "memory_format": memory_format(given["memory_format"]),
        "ragged": _core.Ragged.__members__["refuse"]
        if given["ragged"] is None
        else choice(_core.Ragged, "ragged", given["ragged"]),
        "exif_orientation": switch("exif_orientation", given["exif_orientation"]),
        **damage(given["strict"], given["damaged"]),
        "sixteen_bit": choice(_core.SixteenBit, "sixteen_bit", given["sixteen_bit"]),
        "max_pixels": None
        if given["max_pixels"] is None
        else integer("max_pixels", given["max_pixels"], 1),
    }


def damage(strict: Any, damaged: Any) -> dict[str, bool]:
    """``strict=`` and ``damaged=``: what becomes of a picture that is not whole."""
    strict = switch("strict", strict)
    repair = one_of("damaged", damaged, ("refuse", "repair")) == "repair"
    if strict and repair:
        raise _BAD_VALUE.error("strict=True refuses what damaged='repair' would deliver")
    return {"strict": strict, "repair": repair}


def order(shuffle: Any, window: Any) -> dict[str, Any]:
    """``shuffle=`` and ``shuffle_window=``."""
    if shuffle == "blocks":
        return {"shuffle": True, "shuffle_window": integer("shuffle_window", window, 1, INT32)}
    if not isinstance(shuffle, bool):
        raise _BAD_VALUE.error(f"shuffle must be True, False or 'blocks' (got {shuffle!r})")
    return {"shuffle": shuffle, "shuffle_window": 0}


def share(name: str, value: Any) -> float:
    """A number above 0 and at most 1."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= 1:
        return float(value)
    raise _BAD_VALUE.error(f"{name} must be a number above 0 and at most 1 (got {value!r})")


def resident_use(value: Any) -> Any:
    """``resident=``: "auto", True or False."""
    if value not in ("auto", True, False) or isinstance(value, int) != isinstance(value, bool):
        raise _BAD_VALUE.error(f"resident must be 'auto' or True or False (got {value!r})")
    name = value if isinstance(value, str) else "on" if value else "off"
    return _core.ResidentUse.__members__[name]


def row_index(value: Any) -> tuple[Any, str]:
    """``index=``: how row indexes are used, and the file where one is named."""
    if value is False:
        value = "off"
    elif isinstance(value, os.PathLike) or (isinstance(value, str) and {".", os.sep} & set(value)):
        return _core.RowIndexUse.__members__["use"], os.fspath(value)
    elif value not in ("use", "auto"):
        raise _BAD_VALUE.error(
            f"index must be 'use' or 'auto' or False or a path (got {value!r})",
            hint='a file is index="./NAME"' if isinstance(value, str) else "",
        )
    return _core.RowIndexUse.__members__[value], ""


def memory_format(value: Any) -> Any:
    """ "channels_last", or torch.channels_last."""
    if not isinstance(value, (str, enum.Enum)):
        value = str(value).removeprefix("torch.").replace("contiguous_format", "channels_first")
    return choice(_core.MemoryFormat, "memory_format", value)


def one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """One of a few words that only Python knows."""
    if value in allowed:
        return str(value)
    words = " or ".join(map(repr, allowed))
    raise _BAD_VALUE.error(f"{name} must be {words} (got {value!r})")
