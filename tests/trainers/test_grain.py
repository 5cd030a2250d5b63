# SPDX-License-Identifier: Apache-2.0
"""Grain's protocols, with Grain: a loader as iterators with states, Grain's sources in a loader."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forked import notes_of, output_of

import headrace as hr

grain = pytest.importorskip("grain")


def loader_of(rank: int = 0, ranks: int = 1) -> hr.Loader:
    options: dict[str, Any] = {"shuffle": True, "seed": 4, "shard": (rank, ranks)}
    return hr.Loader(hr.records(x=np.arange(20)), global_batch_size=4, **options)


def values(batches: Any, count: int | None = None) -> list[list[int]]:
    iterator = iter(batches)
    if count is not None:
        return [next(iterator)["x"].tolist() for _ in range(count)]
    return [batch["x"].tolist() for batch in iterator]


def test_an_iterator_covers_the_requested_epochs() -> None:
    loader = loader_of()
    epochs = [[batch.x.tolist() for batch in loader] for _ in range(3)]
    all_three = list(chain(*epochs))
    assert values(hr.grain(loader_of())) == epochs[0]
    assert values(hr.grain(loader_of(), epochs=3)) == all_three
    assert values(hr.grain(loader_of(), epochs=None), 15) == all_three
    again = hr.grain(loader_of())
    assert values(again) == values(again) == epochs[0], "each iterator begins with epoch 0"


@pytest.mark.parametrize("taken", [0, 1, 4, 5, 6, 9, 10])
def test_a_json_state_resumes_at_the_next_batch_on_two_ranks_too(taken: int) -> None:
    through = values(hr.grain(loader_of(), epochs=2))
    iterator = iter(hr.grain(loader_of(), epochs=2))
    for _ in range(taken):
        next(iterator)
    state = json.loads(json.dumps(iterator.get_state()))
    again = iter(hr.grain(loader_of(), epochs=2))
    again.set_state(state)
    assert [batch["x"].tolist() for batch in again] == through[taken:]
    halves = []
    for rank in range(2):
        half = iter(hr.grain(loader_of(rank, 2), epochs=2))
        half.set_state(state)
        halves.append([batch["x"].tolist() for batch in half])
    assert [a + b for a, b in zip(*halves, strict=True)] == through[taken:]


def test_it_works_in_grains_pipelines() -> None:
    pipeline = hr.grain(loader_of(), epochs=None).map(lambda batch: {"x": batch["x"] * 10})
    iterator = iter(pipeline)
    assert isinstance(pipeline, grain.IterDataset) and isinstance(iterator, grain.DatasetIterator)
    for _ in range(7):
        next(iterator)
    state = iterator.get_state()
    following = next(iterator)["x"].tolist()
    again = iter(pipeline)
    again.set_state(state)
    assert next(again)["x"].tolist() == following
    iterator.start_prefetch()
    again.close()
    with pytest.raises(ValueError, match="closed"):
        next(again)


def test_a_view_gives_its_frameworks_arrays() -> None:
    torch = pytest.importorskip("torch")
    batch = next(iter(hr.grain(loader_of().torch(batch="dict"))))
    assert isinstance(batch["x"], torch.Tensor)
    with pytest.raises(TypeError, match=r"headrace\.Loader"):
        hr.grain([1, 2])


def test_our_source_is_a_random_access_data_source() -> None:
    source = hr.records(x=np.arange(12))
    assert isinstance(source, grain.sources.RandomAccessDataSource)
    assert isinstance(pickle.loads(pickle.dumps(source)), hr.Source)
    picked = grain.MapDataset.source(source).shuffle(seed=1).map(lambda record: int(record["x"]))
    assert sorted(picked) == list(range(12))
    code = "import headrace as hr, numpy as np; print(repr(hr.records(x=np.arange(12))))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == repr(source), "Grain compares it with the checkpoint's"


def test_grains_dataloader_accepts_it_with_a_checkpoint() -> None:
    def made() -> Any:
        source = hr.records(x=np.arange(12))
        sampler = grain.samplers.IndexSampler(12, shuffle=True, seed=3, num_epochs=1)
        return iter(grain.DataLoader(data_source=source, sampler=sampler, worker_count=0))

    first = made()
    seen = [int(next(first)["x"]) for _ in range(5)]
    state = first.get_state()
    rest = [int(record["x"]) for record in first]
    again = made()
    again.set_state(state)
    assert [int(record["x"]) for record in again] == rest and sorted(seen + rest) == list(range(12))


def test_grains_sources_work_in_a_loader() -> None:
    source = grain.MapDataset.range(10).map(lambda n: {"n": n, "pair": np.array([n, n * n])})
    loader = hr.Loader(hr.from_grain(source), batch_size=5, shuffle=True)
    batches = [(batch.n.tolist(), batch.pair.tolist()) for batch in loader]
    assert sorted(chain(*(n for n, _ in batches))) == list(range(10))
    assert all(
        pair == [n, n * n] for ns, pairs in batches for n, pair in zip(ns, pairs, strict=True)
    )


def test_sources_without_a_record_at_each_number_are_refused() -> None:
    numbers = grain.MapDataset.range(6).map(lambda n: {"n": n})
    with pytest.raises(hr.ConfigError, match=r"(?s)HR0851.*\.repeat\(\)"):
        hr.from_grain(numbers.repeat())
    with pytest.raises(hr.ConfigError, match="HR0851"):
        hr.from_grain(numbers.to_iter_dataset())
    with pytest.raises(hr.Error, match="filtered out"):
        list(hr.Loader(hr.from_grain(numbers.filter(lambda r: r["n"] != 3)), batch_size=2))


def test_two_ranks_resume_after_a_kill_and_so_does_one_rank(tmp_path: Path) -> None:
    output_of("trainers/ranks_grain.py", tmp_path, cwd=tmp_path)
    for kind in ("grain", "dataloader"):
        for rank in range(2):
            whole, killed, resumed = (
                notes_of(tmp_path, f"{kind}_{name}", rank)
                for name in ("whole", "killed", "resumed")
            )
            assert len(whole) == 12 and killed == whole[:9] and resumed == whole[7:], kind
    both = (notes_of(tmp_path, "grain_whole", rank) for rank in range(2))
    assert notes_of(tmp_path, "alone", 0) == [a + b for a, b in zip(*both, strict=True)][7:]
