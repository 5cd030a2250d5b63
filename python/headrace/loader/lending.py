# SPDX-License-Identifier: Apache-2.0
"""``workers=`` of a loader: the input and the state of its remote workers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from headrace import _core
from headrace.arguments import BAD_VALUE
from headrace.errors import Error
from headrace.loader.assembly import Assembly
from headrace.loader.description import decides, plan_fingerprint
from headrace.loader.options import sampler_given
from headrace.loader.shard import ranks_here
from headrace.workers.lent_rows import LentRows, Terms, Work, probe

# Options that do not affect batches, but that a worker needs.
_SHARED = ("disk_cache", "index")


def lent_rows(assembly: Assembly) -> LentRows | None:
    """The object that transfers rows for this loader; None without ``workers=``. Raises ConfigError
    if it is not a pool of workers.
    """
    pool = assembly.given["workers"]
    if pool is None:
        return None
    if not hasattr(pool, "makers"):
        raise BAD_VALUE.error(
            f"workers is a pool of remote workers (got {pool!r})",
            hint="workers=hr.ray.pool(); threads= is for this process, python_workers= is for "
            "Python transforms",
        )
    out = LentRows(
        pool.makers(),
        lambda: assembly.present_engine,
        lambda: _terms(assembly),
        lambda: _work(assembly),
        always=bool(pool.always),
    )
    out.refused = assembly.engine().resolved("workers")
    return out


def _terms(assembly: Assembly) -> Terms:
    shard, engine = assembly.shard, assembly.present_engine
    streams = engine.state().get("streams", 0) if engine is not None else 0
    return Terms(int(assembly.given["seed"]), shard.rank, shard.world_size, streams)


def keywords_under(terms: Terms, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords of a worker's loader. The number of streams is this loader's, since the worker would
    derive another one from its own machine.
    """
    given = {**keywords, "seed": terms.seed, "shard": (terms.rank, terms.world_size)}
    if terms.streams:
        sampler = dataclasses.replace(sampler_given(given), count=terms.streams)
        given |= {"sampler": sampler, "shuffle": False}
    return given


def _work(assembly: Assembly) -> Work:
    engine, pipeline = assembly.engine(), assembly.pipeline
    steps: Any = pipeline.steps
    if pipeline.by_field or pipeline.dropped:
        steps = {**pipeline.by_field, **dict.fromkeys(pipeline.dropped)}
    keywords = {
        name: value for name, value in assembly.given.items() if name in _SHARED or decides(name)
    }
    keywords |= {"threads": 1, "memory_limit": engine.stats()["memory_limit"]}
    return Work(
        assembly.source,
        steps,
        keywords,
        lambda: facts(engine),
        lambda: _terms(assembly),
        min(ranks_here(), assembly.shard.world_size),
    )


def facts(engine: _core.Loader) -> dict[str, str]:
    """Values that must be equal on all machines that make rows; records are checked when they
    arrive.
    """
    try:
        rows = probe(engine, 2)
    except Error:  # transforms mix more than two rows, or there are fewer rows
        rows = probe(engine, len(engine.indices(0, 0)))
    return {
        "version of Headrace": _core.__version__,
        "steps": plan_fingerprint(engine),
        "bytes of the first rows": rows,
    }
