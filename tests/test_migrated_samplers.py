# SPDX-License-Identifier: Apache-2.0
"""Samplers that Headrace does not know decide the order of every epoch, as in the DataLoader."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from migrated_classes import translated

import headrace as hr
from headrace import _core

torch = pytest.importorskip("torch")
from torch.utils.data import (  # noqa: E402
    BatchSampler,
    DataLoader,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler  # noqa: E402


def numbers(count: int) -> Any:
    return TensorDataset(torch.arange(count * 2.0).reshape(count, 2), torch.arange(count))


def epoch_of(batches: Any) -> list[list[int]]:
    return [batch[1].tolist() for batch in batches]


def flat(batches: list[list[int]]) -> list[int]:
    return [number for batch in batches for number in batch]


class Subclass(DistributedSampler):  # type: ignore[type-arg]
    """A typical custom DistributedSampler: rank r takes a block, not every W-th record."""

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        order = torch.randperm(len(self.dataset), generator=generator).tolist()
        return iter(order[self.rank * self.num_samples :][: self.num_samples])


class RASampler:
    """Repeated augmentation, as in torchvision's references."""

    def __init__(self, dataset: Any, num_replicas: int, rank: int, repetitions: int = 3) -> None:
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.repetitions, self.epoch, self.seed = repetitions, 0, 0
        self.num_selected_samples = len(dataset) // num_replicas

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        order = torch.randperm(len(self.dataset), generator=generator).tolist()
        repeated = [index for index in order for _ in range(self.repetitions)]
        return iter(repeated[self.rank :: self.num_replicas][: self.num_selected_samples])

    def __len__(self) -> int:
        return self.num_selected_samples

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch


class OrderedDistributedSampler:
    """As in timm for validation: no epochs, one rank's records."""

    def __init__(self, dataset: Any, num_replicas: int, rank: int) -> None:
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.rank, len(self.dataset), self.num_replicas))

    def __len__(self) -> int:
        return len(self.dataset) // self.num_replicas


@pytest.mark.parametrize(("records", "ranks"), [(24, 2), (25, 3)])
@pytest.mark.parametrize("kind", [Subclass, RASampler])
def test_each_rank_reads_the_records_of_its_sampler_in_every_epoch(
    kind: Any, records: int, ranks: int
) -> None:
    dataset = numbers(records)
    for rank in range(ranks):
        sampler = kind(dataset, num_replicas=ranks, rank=rank)
        dataloader = DataLoader(dataset, batch_size=4, sampler=sampler)
        loader = translated(dataloader)
        ours = [epoch_of(loader) for _ in range(3)]
        assert sampler.epoch == 0, "the script's own sampler is left alone"
        theirs = []
        for epoch in range(3):
            sampler.set_epoch(epoch)
            theirs.append(epoch_of(dataloader))
        assert ours == theirs and ours[0] != ours[1]


def test_a_validation_sampler_of_ranks_is_not_divided_again() -> None:
    dataset, seen = numbers(20), []
    for rank in range(2):
        sampler = OrderedDistributedSampler(dataset, 2, rank)
        loader = translated(DataLoader(dataset, batch_size=5, sampler=sampler))
        assert epoch_of(loader) == epoch_of(loader)
        seen += flat(epoch_of(loader))
    assert sorted(seen) == list(range(20))


@pytest.mark.parametrize("kind", [DistributedSampler, Subclass, RASampler])
def test_a_script_that_starts_at_epoch_3_gets_its_order(kind: Any) -> None:
    dataset = numbers(24)

    def loader_of() -> Any:
        sampler = kind(dataset, num_replicas=2, rank=1)
        return sampler, translated(DataLoader(dataset, batch_size=4, sampler=sampler))

    _, through = loader_of()
    epochs = [epoch_of(through) for _ in range(6)]
    for view in (
        lambda loader: loader,
        lambda loader: loader.torch(),
        lambda loader: loader.numpy(),
    ):
        sampler, loader = loader_of()
        for epoch in (3, 4, 5):
            sampler.set_epoch(epoch)
            assert epoch_of(view(loader)) == epochs[epoch]
        sampler.set_epoch(1)
        assert view(loader).peek()[1].tolist() == epochs[1][0]
        assert epoch_of(view(loader)) == epochs[1]
        assert epoch_of(view(loader)) == epochs[2], "epochs go on where nobody sets one"


def test_an_epoch_that_was_set_before_counts_too() -> None:
    dataset = numbers(24)
    sampler = DistributedSampler(dataset, num_replicas=2, rank=0)
    dataloader = DataLoader(dataset, batch_size=4, sampler=sampler)
    through = translated(dataloader)
    epochs = [epoch_of(through) for _ in range(4)]
    sampler.set_epoch(3)
    loader = translated(dataloader)
    assert loader.epoch == 3 and epoch_of(loader) == epochs[3]


def test_a_mid_epoch_state_survives_set_epoch_of_the_same_epoch() -> None:
    dataset = numbers(24)
    sampler = Subclass(dataset, num_replicas=2, rank=0)
    dataloader = DataLoader(dataset, batch_size=4, sampler=sampler)
    loader = translated(dataloader)
    sampler.set_epoch(2)
    batches = iter(loader)
    first = next(batches)[1].tolist()
    state = loader.state_dict()
    rest = epoch_of(batches)

    sampler.set_epoch(0)
    resumed = translated(dataloader)
    resumed.load_state_dict(state)
    sampler.set_epoch(2)  # like a loop that continues with epoch 2
    assert epoch_of(resumed) == rest and first not in rest


class Curriculum:
    """No epochs, no ranks: draws from the program's generators."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.generator = torch.Generator().manual_seed(3)
        self.numpy = np.random.default_rng(4)

    def __iter__(self) -> Iterator[int]:
        order = torch.randperm(self.count).tolist()
        random.shuffle(order)
        self.numpy.shuffle(order)
        yield from (order[i] for i in torch.randperm(self.count, generator=self.generator))

    def __len__(self) -> int:
        return self.count


@pytest.mark.parametrize(
    "make",
    [
        lambda dataset: Curriculum(len(dataset)),
        lambda dataset: RandomSampler(dataset, num_samples=12),
        lambda dataset: WeightedRandomSampler(np.arange(1, 25), 12, replacement=False),
        lambda dataset: BatchSampler(Curriculum(len(dataset)), 1, True).sampler,
    ],
)
def test_draws_of_a_sampler_are_a_function_of_seed_and_epoch(make: Any) -> None:
    dataset = numbers(24)
    before = torch.random.get_rng_state(), random.getstate()
    loader = translated(DataLoader(dataset, batch_size=4, sampler=make(dataset)))
    epochs = [epoch_of(loader) for _ in range(3)]
    assert len({str(epoch) for epoch in epochs}) == 3
    assert all(len(set(flat(epoch))) == len(flat(epoch)) for epoch in epochs)
    again = translated(DataLoader(dataset, batch_size=4, sampler=make(dataset)))
    batches = iter(again)
    assert [next(batches)[1].tolist() for _ in range(2)] == epochs[0][:2]
    state = again.state_dict()
    resumed = translated(DataLoader(dataset, batch_size=4, sampler=make(dataset)))
    resumed.load_state_dict(state)
    assert epoch_of(resumed) == epochs[0][2:] and epoch_of(resumed) == epochs[1]
    assert torch.equal(torch.random.get_rng_state(), before[0]) and random.getstate() == before[1]


def test_ranks_divide_an_order_without_ranks() -> None:
    dataset = numbers(24)
    alone = translated(DataLoader(dataset, batch_size=8, sampler=Curriculum(24)))
    ranks = [
        translated(DataLoader(dataset, batch_size=4, sampler=Curriculum(24)), shard=(rank, 2))
        for rank in range(2)
    ]
    for _ in range(2):
        parts = zip(*map(epoch_of, ranks), strict=True)
        assert [one + other for one, other in parts] == epoch_of(alone)


def test_a_state_is_refused_for_another_number_of_ranks() -> None:
    dataset = numbers(24)
    states = []
    for replicas in (2, 3):
        sampler = RASampler(dataset, num_replicas=replicas, rank=0)
        sampler.num_selected_samples = 8
        loader = translated(DataLoader(dataset, batch_size=4, sampler=sampler))
        next(iter(loader))
        states.append(loader.state_dict())
        other = RASampler(dataset, num_replicas=replicas, rank=1)
        other.num_selected_samples = 8
        translated(DataLoader(dataset, batch_size=4, sampler=other)).load_state_dict(states[-1])
    with pytest.raises(hr.ConfigError, match="HR0711"):
        loader.load_state_dict(states[0])


class Grouped(BatchSampler):
    """As torchvision's references for detection group images by aspect ratio."""

    def __init__(self, sampler: Any, group_ids: list[int], batch_size: int) -> None:
        self.sampler, self.group_ids, self.batch_size = sampler, group_ids, batch_size

    def __iter__(self) -> Iterator[list[int]]:
        waiting: dict[int, list[int]] = {}
        given = 0
        for index in self.sampler:
            group = waiting.setdefault(self.group_ids[index], [])
            group.append(index)
            if len(group) == self.batch_size:
                given += 1
                yield waiting.pop(self.group_ids[index])
        for group in waiting.values():  # filled up with its own records
            if given < len(self):
                given += 1
                yield (group * self.batch_size)[: self.batch_size]

    def __len__(self) -> int:
        return len(self.sampler) // self.batch_size


GROUPS = [index % 3 // 2 for index in range(24)]


@pytest.mark.parametrize("ranks", [1, 2])
def test_batches_of_a_batch_sampler_stay_together(ranks: int) -> None:
    dataset = numbers(24)
    for rank in range(ranks):
        inner = DistributedSampler(dataset, num_replicas=ranks, rank=rank)
        dataloader = DataLoader(dataset, batch_sampler=Grouped(inner, GROUPS, 4))
        loader = translated(dataloader)
        assert loader.batch_size == 4 and "Grouped" in str(loader.report)
        for epoch in (0, 1, 5):
            inner.set_epoch(epoch)
            batches = epoch_of(loader)
            assert batches == epoch_of(dataloader)
            assert all(len({GROUPS[index] for index in batch}) == 1 for batch in batches)


def test_random_batches_resume_exactly() -> None:
    dataset = numbers(24)

    def make() -> Any:
        batches = Grouped(RandomSampler(dataset), GROUPS, 4)
        return translated(DataLoader(dataset, batch_sampler=batches))

    loader, stopped = make(), make()
    epochs = [epoch_of(loader) for _ in range(2)]
    assert epochs[0] != epochs[1]
    batches = iter(stopped)
    next(batches)
    resumed = make()
    resumed.load_state_dict(stopped.state_dict())
    assert epoch_of(resumed) == epochs[0][1:] and epoch_of(resumed) == epochs[1]


def test_batches_may_differ_in_size() -> None:
    given = [[1], [2, 3, 0], [7, 7]]
    dataset = numbers(10)
    loader = translated(DataLoader(dataset, batch_sampler=given))
    assert epoch_of(loader) == given and epoch_of(loader) == given
    assert len(loader) == 3
    with pytest.raises(hr.ConfigError, match=r"HR0834.*decides what batch_size= sets"):
        translated(DataLoader(dataset, batch_sampler=given), batch_size=4)


class Growing:
    """One more batch in each epoch."""

    epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[list[int]]:
        return iter([[0, 1]] * (2 + self.epoch))

    def __len__(self) -> int:
        return 2 + self.epoch


def test_an_epoch_with_other_batch_sizes_is_refused_when_it_begins() -> None:
    loader = translated(DataLoader(numbers(4), batch_sampler=Growing()))
    assert epoch_of(loader) == [[0, 1], [0, 1]]
    with pytest.raises(hr.ConfigError, match=r"HR0834.*batch 2 of epoch 1 of its Growing"):
        epoch_of(loader)


class Endless:
    def __iter__(self) -> Iterator[int]:
        while True:
            yield from range(4)


class EndlessWithLength(Endless):
    def __len__(self) -> int:
        return 4


class Failing:
    epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        if self.epoch == 1:
            raise RuntimeError("no order today")
        return iter(range(4))


@pytest.mark.parametrize("sampler", [Endless(), EndlessWithLength()])
def test_a_sampler_without_an_end_is_refused(sampler: Any) -> None:
    with pytest.raises(hr.ConfigError, match=r"HR0834.*continues after 4"):
        translated(DataLoader(numbers(4), batch_size=2, sampler=sampler))


def test_a_sampler_that_fails_is_named() -> None:
    loader = translated(DataLoader(numbers(4), batch_size=2, sampler=Failing()))
    assert epoch_of(loader) == [[0, 1], [2, 3]]
    for _ in range(2):
        with pytest.raises(hr.ConfigError, match=r"HR0727.*no order today"):
            epoch_of(loader)
    loader.set_epoch(2)
    assert epoch_of(loader) == [[0, 1], [2, 3]]


def test_a_sampler_is_called_when_batches_are_copied_ahead() -> None:
    """The copying thread calls the sampler, and passes on what it raises."""
    loader = translated(DataLoader(numbers(4), batch_size=2, sampler=Failing()))
    view = loader.dlpack(_core.simulated_device(seed=1))
    assert len(list(view)) == 2
    for _ in range(2):
        with pytest.raises(hr.ConfigError, match=r"HR0727.*no order today"):
            list(view)
    view.set_epoch(2)
    assert len(list(view)) == 2


def test_global_batches_with_a_per_rank_sampler_are_refused() -> None:
    dataset = numbers(24)
    dataloader = DataLoader(dataset, batch_size=4, sampler=RASampler(dataset, 2, 0))
    with pytest.raises(hr.ConfigError, match=r"HR0834.*RASampler returns only this rank's records"):
        translated(dataloader, global_batch_size=8)


def test_lists_and_torchs_own_samplers_are_unaffected() -> None:
    dataset = numbers(20)
    for sampler in (SequentialSampler(dataset), [4, 4, 1], SubsetRandomSampler([3, 9, 12])):
        loader = translated(DataLoader(dataset, batch_size=5, sampler=sampler))
        assert "asked" not in str(loader.report)
