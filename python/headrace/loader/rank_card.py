# SPDX-License-Identifier: Apache-2.0
"""What the ranks of a run must have in common, as text: data, order, batches, transforms, position.

Only values that are the same in every process of one program: no addresses, no paths, no threads.
"""

from __future__ import annotations

import functools
import json
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from headrace.loader.assembly import Assembly
from headrace.loader.description import deciding
from headrace.sampling import Sampling, per_epoch, per_step
from headrace.sources import Source
from headrace.transforms import Transform

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_FRAMES = 16  # of the stack that identifies a loader
_OF_BATCHES = ("batch_size", "global_batch_size", "last_batch", "uneven")
_OF_ORDER = ("shuffle", "shuffle_window", "sampler")
_SHOWN = 300  # characters of a value in a message
_HASHED = 1 << 20  # bytes of an array that are compared

Card = dict[str, str]  # the names of what ranks must have in common, in the order of messages


def as_given(assembly: Assembly) -> Card:
    """What is known before the first batch, without the engine's loader."""
    given = deciding(assembly.given)
    return {
        "data": _data(assembly),
        "seed": str(assembly.given["seed"]),
        "order": _named(given, _OF_ORDER),
        "batches": _named(given, _OF_BATCHES),
        "transforms": _transforms(assembly),
        "options": _named(given, set(given).difference(_ELSEWHERE)),
    }


_ELSEWHERE = ("seed", *_OF_BATCHES, *_OF_ORDER)


def at_position(assembly: Assembly, state: Mapping[str, int]) -> Card:
    """The card of a loader whose next batch is at this state."""
    card = as_given(assembly)
    card["seed"] = str(state["seed"])
    card["order"] += f" (fingerprint {state['fingerprint']:016x})"
    card["batches"] += f" ({state['global_batch']:,} records over all ranks)"
    card["world size"] = str(assembly.shard.world_size)
    card["position"] = f"batch {state['batch']:,} of epoch {state['epoch']:,}"
    return card


def digest_of(card: Card) -> str:
    return _digest(json.dumps(card).encode(), 12)


def site_of(lines: str) -> str:
    """A digest of a call_site()."""
    return _digest(lines.encode(), 8)


def _digest(data: bytes, size: int) -> str:
    import hashlib  # imported late, so that importing headrace is fast

    return hashlib.blake2b(data, digest_size=size).hexdigest()


def call_site() -> str:
    """Where the current loader is made: the lines that lead there, outside of Headrace. Two loaders
    of a program differ in it, unless a loop or a shared function makes them.
    """
    lines: list[str] = []
    frame = sys._getframe(1)
    while frame is not None and len(lines) < _FRAMES:
        if str(frame.f_globals.get("__name__")).partition(".")[0] != "headrace":
            lines.append(f"{frame.f_code.co_name}:{frame.f_lineno}")
        frame = frame.f_back  # type: ignore[assignment]
    return "\n".join(lines)


def differences(cards: Mapping[int, Card]) -> str:
    """'seed: 1 on rank 0, 2 on ranks 1 and 3' for each value that differs between ranks."""
    said: list[str] = []
    for name in next(iter(cards.values())):
        ranks: dict[str, list[int]] = {}
        for rank, card in sorted(cards.items()):
            ranks.setdefault(card[name], []).append(rank)
        follows = name == "order" and any(part.startswith("data") for part in said)
        if len(ranks) == 1 or (follows and len({_without_digest(text) for text in ranks}) == 1):
            continue  # an order of other records has another fingerprint
        values = zip(_shortened(list(ranks)), ranks.values(), strict=True)
        said.append(f"{name}: " + ", ".join(f"{value} on {_ranks(on)}" for value, on in values))
    return "; ".join(said)


def _without_digest(text: str) -> str:
    return text.rpartition(" (fingerprint")[0]


def _shortened(values: list[str]) -> list[str]:
    """Long values without the beginning that they share."""
    if max(map(len, values)) <= _SHOWN:
        return values
    shared = 0
    while len({value[shared : shared + 1] for value in values}) == 1:
        shared += 1
    begin = max(0, shared - _SHOWN // 3)
    ends = [value[begin : begin + _SHOWN] for value in values]
    return [
        ("..." if begin else "") + end + ("..." if begin + _SHOWN < len(value) else "")
        for value, end in zip(values, ends, strict=True)
    ]


def _ranks(ranks: list[int]) -> str:
    """'rank 3', 'ranks 0 to 6 and 9'."""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    texts = []
    for run in runs:
        texts += [f"{run[0]} to {run[-1]}"] if len(run) > 2 else [str(rank) for rank in run]
    if len(ranks) == 1:
        return f"rank {texts[0]}"
    joined = ", ".join(texts[:-1]) + (" and " if len(texts) > 1 else "") + texts[-1]
    return f"ranks {joined}"


def _data(assembly: Assembly) -> str:
    text = f"fingerprint {assembly.source.fingerprint:016x}"
    if assembly.stream is not None:
        return f"stream {assembly.stream.name}, {text}"
    return f"{len(assembly.source):,} records, {text}"


def _named(values: Mapping[str, Any], names: Iterable[str]) -> str:
    """'batch_size=8, uneven=True': those that are given."""
    listed = [name for name in values if name in names]
    return ", ".join(f"{name}={_text(values[name])}" for name in listed) or "default"


def _transforms(assembly: Assembly) -> str:
    pipeline = assembly.pipeline
    lists = [("", pipeline.steps), *((f"{name}: ", x) for name, x in pipeline.by_field.items())]
    texts = [name + ", ".join(map(_text, steps)) for name, steps in lists if steps]
    texts += [f"{name}: None" for name in pipeline.dropped]
    return f"[{'; '.join(texts)}]"


@functools.singledispatch
def _text(value: Any) -> str:
    """The value as text that is the same in another process."""
    if isinstance(value, (str, int, float, type(None))):
        return repr(value)
    if isinstance(value, np.generic):
        return repr(value.item())
    name = getattr(value, "__qualname__", None) or type(value).__qualname__
    has_repr = "__repr__" in {each for kind in type(value).__mro__[:-1] for each in vars(kind)}
    return _ADDRESS.sub("", repr(value)) if has_repr else str(name)


@_text.register
def _(value: Transform) -> str:
    inside = [f"{name}={_text(each)}" for name, each in value.arguments.items()]
    inside += [f"fields={value.fields!r}"] if value.fields else []
    return f"{value.name}({', '.join(inside)})"


@_text.register
def _(value: Source) -> str:
    return f"source {value.fingerprint:016x}"


@_text.register
def _(value: Sampling) -> str:
    return _ADDRESS.sub("", repr(value))


@_text.register(per_epoch)
@_text.register(per_step)
def _(value: Any) -> str:
    function = value.function  # whose attributes, or arguments if it is partial, may differ
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    number = getattr(value, "num_samples", None)
    return f"{type(value).__name__}({name}, num_samples={number})"


@_text.register
def _(value: np.ndarray) -> str:
    if value.dtype == object or value.nbytes > _HASHED:  # of an order, there is a fingerprint
        return f"array {value.shape}"
    return f"array {value.shape} {_digest(value.tobytes(), 4)}"


@_text.register(set)
@_text.register(frozenset)
def _(value: Any) -> str:
    return _text(sorted(value, key=_text))  # whose order differs between processes


@_text.register(list)
@_text.register(tuple)
def _(value: Any) -> str:
    if len(value) > _SHOWN:
        return f"{len(value):,} values"
    return f"[{', '.join(map(_text, value))}]"


@_text.register
def _(value: dict) -> str:  # type: ignore[type-arg]
    return "{" + ", ".join(f"{key}: {_text(each)}" for key, each in value.items()) + "}"
