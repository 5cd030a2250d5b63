# SPDX-License-Identifier: Apache-2.0
"""A DataLoader's batches and their order as keywords of Loader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace import sampling
from headrace.migrate.dataset import REFUSED
from headrace.migrate.report import CHANGED, NATIVE, Report


def _is_torchs(value: Any, name: str) -> bool:
    return type(value).__name__ == name and type(value).__module__.startswith("torch.")


def keywords_from(
    loader: Any, records: int, report: Report, given: Mapping[str, Any]
) -> dict[str, Any]:
    """batch_size, shuffle, sampler, seed, shard and last_batch, as far as they are not defaults.

    given: keywords of the caller's, in whose place nothing is looked for.
    """
    out = {} if {"batch_size", "global_batch_size"} & set(given) else _batches(loader, report)
    if {"shuffle", "sampler"} & set(given):
        return out
    batches = loader.batch_sampler
    if batches is not None and not _is_torchs(batches, "BatchSampler"):
        raise REFUSED.error(
            f"it has a {type(batches).__name__} as batch_sampler", hint=_OTHER_BATCHES
        )
    sampler = loader.sampler if batches is None else batches.sampler
    out.update(_order(sampler, records, report))
    generator = loader.generator or getattr(sampler, "generator", None)
    if generator is not None and "seed" not in out:
        out["seed"] = generator.initial_seed() & ((1 << 63) - 1)
        report.add("generator=", CHANGED, f"seed={out['seed']}: other draws, but the same each run")
    return out


_OTHER_BATCHES = (
    "from_dataloader(..., batch_size=N, shuffle=True), or sampler= with what headrace.sampling has"
)


def _batches(loader: Any, report: Report) -> dict[str, Any]:
    batches = loader.batch_sampler
    if not _is_torchs(batches, "BatchSampler"):
        what = "no batches" if batches is None else f"a {type(batches).__name__} as batch_sampler"
        raise REFUSED.error(f"it has {what}", hint=_OTHER_BATCHES)
    out: dict[str, Any] = {"batch_size": int(batches.batch_size)}
    if batches.drop_last:
        out["last_batch"] = "drop"
    report.add(
        f"batch_size={batches.batch_size}, drop_last={batches.drop_last}",
        NATIVE,
        f"batch_size={batches.batch_size}, last_batch={out.get('last_batch', 'keep')!r}",
    )
    return out


def _order(sampler: Any, records: int, report: Report) -> dict[str, Any]:
    name = type(sampler).__name__
    if _is_torchs(sampler, "SequentialSampler"):
        return {}
    if _is_torchs(sampler, "RandomSampler"):
        return _random(sampler, records, report)
    if _is_torchs(sampler, "DistributedSampler"):
        report.add(name, NATIVE, "shard=; every epoch has its own order without set_epoch()")
        return {
            "shuffle": bool(sampler.shuffle),
            "seed": int(sampler.seed),
            "shard": (int(sampler.rank), int(sampler.num_replicas)),
        }
    if _is_torchs(sampler, "SubsetRandomSampler"):
        report.add(name, NATIVE, "sampler=indices, shuffle=True")
        return {"sampler": [int(i) for i in sampler.indices], "shuffle": True}
    if _is_torchs(sampler, "WeightedRandomSampler") and sampler.replacement:
        report.add(name, NATIVE, "hr.sampling.weighted()")
        weights = [float(weight) for weight in sampler.weights]
        return {"sampler": sampling.weighted(weights, int(sampler.num_samples))}
    first = [int(index) for index in sampler]
    if first != [int(index) for index in sampler]:
        raise REFUSED.error(
            f"its {name} gives another order each time, which cannot be resumed or split",
            hint="from_dataloader(..., sampler=...) with what headrace.sampling has, or with a "
            "list of indices for every epoch",
        )
    report.add(name, CHANGED, f"its {len(first):,} indices as a list, the same in every epoch")
    return {"sampler": first}


def _random(sampler: Any, records: int, report: Report) -> dict[str, Any]:
    if sampler.replacement:
        report.add("RandomSampler", NATIVE, "hr.sampling.weighted() with equal weights")
        return {"sampler": sampling.weighted([1.0] * records, int(sampler.num_samples))}
    if sampler.num_samples != records:
        raise REFUSED.error(
            f"its RandomSampler takes {sampler.num_samples} of {records} records an epoch",
            hint="a loop that ends earlier, or hr.subset(source, indices)",
        )
    report.add("shuffle=True", NATIVE, "shuffle=True: another order, a function of seed and epoch")
    return {"shuffle": True}
