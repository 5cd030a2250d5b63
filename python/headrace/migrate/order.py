# SPDX-License-Identifier: Apache-2.0
"""A DataLoader's batches and their order as keywords of Loader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace import sampling
from headrace.migrate.known_dataset import REFUSED
from headrace.migrate.report import CHANGED, NATIVE, Report
from headrace.migrate.samplers import Asked, knows_epochs, knows_ranks


def is_torchs(value: Any, name: str) -> bool:
    """Whether its class is exactly torch's class of that name, not a subclass."""
    return type(value).__name__ == name and type(value).__module__.startswith("torch.")


def batches_of(loader: Any) -> Any:
    """A DataLoader's batch sampler; timm and Ultralytics wrap it in an endless one. With
    ``batch_size=None``, torch's BatchSampler may be its sampler.
    """
    batches = loader.batch_sampler
    if batches is None and is_torchs(loader.sampler, "BatchSampler"):
        return loader.sampler
    return batches.sampler if type(batches).__name__ == "_RepeatSampler" else batches


def sampler_of(loader: Any) -> Any:
    """The object that decides the order of records."""
    batches = batches_of(loader)
    return loader.sampler if not is_torchs(batches, "BatchSampler") else batches.sampler


def keywords_from(
    loader: Any, records: int, report: Report, given: Mapping[str, Any]
) -> dict[str, Any]:
    """batch_size, shuffle, sampler, seed, shard and last_batch, unless they are defaults. given:
    the caller's keywords, which are not derived.
    """
    decided = {"shuffle", "sampler"} & set(given)
    sized = {"batch_size", "global_batch_size"} & set(given)
    batches = batches_of(loader)
    if batches is not None and not is_torchs(batches, "BatchSampler") and not decided:
        return _own_batches(batches, records, report, given)
    out = {} if sized else _batches(loader, report)
    if decided:
        return out
    sampler = sampler_of(loader)
    out.update(_order(sampler, records, report))
    _refuse_global(out, sampler, given)
    generator = loader.generator or getattr(sampler, "generator", None)
    if generator is not None and "seed" not in out:
        out["seed"] = generator.initial_seed() & ((1 << 63) - 1)
        report.add(
            "generator=",
            CHANGED,
            f"seed={out['seed']}: different random draws, but the same in each run",
        )
    return out


_OTHER_BATCHES = (
    "from_dataloader(..., batch_size=N, shuffle=True), or sampler= with a sampler of "
    "headrace.sampling"
)


def _own_batches(
    batches: Any, records: int, report: Report, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Keywords for a batch sampler that is called for the batches of each epoch."""
    name = type(batches).__name__
    if sized := {"batch_size", "global_batch_size", "last_batch"} & set(given):
        raise REFUSED.error(
            f"it has a {name} as batch_sampler, which already decides what {min(sized)}= sets",
            hint=f"omit {min(sized)}=, or also set the order: {_OTHER_BATCHES}",
        )
    asked = Asked(batches, records, batches=True)
    out: dict[str, Any] = {"sampler": asked}
    size = asked.batch_size
    if size:
        out["batch_size"] = size
    sizes = f"batches of {size}" if size else f"{len(asked.sizes):,} batches of varying sizes"
    if knows_ranks(batches):
        out["shard"] = False
    report.add(name, NATIVE, f"{sizes}, {_asked_for(batches)}")
    return out


def _asked_for(sampler: Any) -> str:
    """The report's line about a sampler that is called."""
    draws = "" if knows_epochs(sampler) else "; its draws are a function of seed and epoch"
    if knows_ranks(sampler):
        return (
            "called before each epoch for this rank's records, which are not divided again" + draws
        )
    return "called before each epoch for the records of all ranks" + draws


def _refuse_global(out: Mapping[str, Any], sampler: Any, given: Mapping[str, Any]) -> None:
    if out.get("shard") is False and given.get("global_batch_size"):
        raise REFUSED.error(
            f"its {type(sampler).__name__} returns only this rank's records, so global_batch_size= "
            "has nothing to divide among ranks",
            hint="use batch_size=, or pass sampler= or shuffle= so that Headrace divides the order "
            "among the ranks",
        )


def _batches(loader: Any, report: Report) -> dict[str, Any]:
    batches = batches_of(loader)
    if not is_torchs(batches, "BatchSampler"):
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
    source: Any = getattr(sampler, "data_source", getattr(sampler, "dataset", None))
    if hasattr(source, "__len__") and len(source) != records:  # it belongs to other records
        return _asked(sampler, records, report)
    if is_torchs(sampler, "SequentialSampler"):
        return {}
    if is_torchs(sampler, "RandomSampler"):
        return _random(sampler, records, report)
    # If the ranks' parts are not equal, torch repeats records, or drops some.
    even = records % getattr(sampler, "num_replicas", 1) == 0
    if is_torchs(sampler, "DistributedSampler") and even:
        report.add(
            name,
            NATIVE,
            "shard=; every epoch has a different order, even without set_epoch(), which is "
            "followed",
        )
        return {
            "shuffle": bool(sampler.shuffle),
            "seed": int(sampler.seed),
            "shard": (int(sampler.rank), int(sampler.num_replicas)),
        }
    if is_torchs(sampler, "SubsetRandomSampler"):
        report.add(name, NATIVE, "sampler=indices, shuffle=True")
        return {"sampler": [int(i) for i in sampler.indices], "shuffle": True}
    if is_torchs(sampler, "WeightedRandomSampler"):
        report.add(name, NATIVE, "hr.sampling.weighted()")
        weights = [float(weight) for weight in sampler.weights]
        again, draws = bool(sampler.replacement), int(sampler.num_samples)
        return {"sampler": sampling.weighted(weights, draws, replacement=again)}
    return _asked(sampler, records, report)


def _asked(sampler: Any, records: int, report: Report) -> dict[str, Any]:
    asked, name = Asked(sampler, records), type(sampler).__name__
    if not knows_ranks(sampler) and asked.is_fixed:
        report.add(name, NATIVE, f"its {len(asked.first):,} indices, the same in every epoch")
        return {"sampler": asked}
    report.add(name, NATIVE, _asked_for(sampler))
    return {"sampler": asked, **({"shard": False} if knows_ranks(sampler) else {})}


def _random(sampler: Any, records: int, report: Report) -> dict[str, Any]:
    if sampler.replacement:
        report.add("RandomSampler", NATIVE, "hr.sampling.weighted() with equal weights")
        return {"sampler": sampling.weighted([1.0] * records, int(sampler.num_samples))}
    if sampler.num_samples != records:
        return _asked(sampler, records, report)
    report.add(
        "shuffle=True", NATIVE, "shuffle=True: a different order, a function of seed and epoch"
    )
    return {"shuffle": True}
