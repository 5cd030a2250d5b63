# SPDX-License-Identifier: Apache-2.0
"""A view of torch tensors has the DataLoader attributes that training loops and trainers use."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from migrated_classes import translated

import headrace as hr

torch = pytest.importorskip("torch")
from torch.utils.data import BatchSampler, DataLoader, Dataset, Subset, TensorDataset  # noqa: E402


class Squares(Dataset):  # type: ignore[type-arg]
    """Counts the attributes requested from it."""

    classes = ("even", "odd")

    def __init__(self, count: int = 22) -> None:
        self.count, self.asked = count, 0

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[Any, int]:
        self.asked += 1
        return torch.full((2,), index * index), index


def labels_of(batches: Any) -> list[list[int]]:
    return [batch[1].tolist() for batch in batches]


class SkipBatchSampler(BatchSampler):
    """As in accelerate 1.15."""

    def __init__(self, batch_sampler: Any, skip_batches: int) -> None:
        self.batch_sampler, self.skip_batches = batch_sampler, skip_batches

    def __iter__(self) -> Iterator[Any]:
        for number, batch in enumerate(self.batch_sampler):
            if number >= self.skip_batches:
                yield batch

    def __len__(self) -> int:
        return len(self.batch_sampler) - self.skip_batches


OPTIONS = [
    "num_workers",
    "collate_fn",
    "pin_memory",
    "timeout",
    "worker_init_fn",
    "multiprocessing_context",
    "generator",
    "prefetch_factor",
    "persistent_workers",
    "pin_memory_device",
    "in_order",
]


def skip_first_batches(view: Any, count: int) -> Any:
    """As accelerate 1.15 does for loaders that it has not prepared."""
    options = {name: getattr(view, name) for name in OPTIONS}
    batches = SkipBatchSampler(view.batch_sampler, count)
    return DataLoader(view.dataset, batch_sampler=batches, **options)


def test_the_dataset_is_the_original() -> None:
    dataset = Squares()
    view = translated(DataLoader(Subset(dataset, range(20)), batch_size=4)).torch()
    assert isinstance(view.dataset, Subset) and view.dataset.dataset is dataset
    assert len(view.dataset) == 20 and view.dataset[3][1] == 3
    assert "__getitems__" not in vars(dataset)
    pairs = [(torch.zeros(2), i) for i in range(5)]
    view = translated(DataLoader(pairs, batch_size=2)).torch()
    assert len(view.dataset) == 5 and view.dataset[4][1] == 4


def test_the_dataset_is_the_source_if_there_was_no_original(pictures: Any) -> None:
    view = hr.Loader(str(pictures), [hr.transforms.Resize((16, 16))], batch_size=4).torch()
    assert len(view.dataset) == 23 and view.dataset.classes == ["cat", "dog", "eel"]
    assert view.dataset.class_to_idx["dog"] == 1
    assert view.dataset[5]["label"] == view.source[5]["label"]


def test_options_exist_and_may_be_set() -> None:
    view = hr.Loader(hr.records(x=np.arange(10)), batch_size=4, last_batch="drop").torch()
    assert (view.batch_size, view.drop_last, view.num_workers, view.pin_memory) == (
        4,
        True,
        0,
        False,
    )
    view.worker_init_fn = print
    view.num_workers = 3
    assert view.worker_init_fn is print and len(view) == 2
    assert hr.Loader(hr.records(x=np.arange(10)), batch_size=4).torch().drop_last is False


def test_the_error_for_an_unknown_attribute_suggests_what_to_use() -> None:
    view = hr.Loader(hr.records(x=np.arange(10)), batch_size=4).torch()
    assert not hasattr(view, "nonsense")
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'.*docs/guide/frameworks\.md"):
        view.nonsense  # noqa: B018


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("last", ["keep", "drop"])
def test_the_sampler_has_the_order_of_the_next_epoch(ranks: int, last: str) -> None:
    for rank in range(ranks):
        loader = hr.Loader(
            hr.records(x=np.arange(53)),
            batch_size=4,
            shuffle=True,
            shard=(rank, ranks),
            last_batch=last,
        )
        view = loader.torch()
        for epoch in (0, 1, 5):
            if epoch == 5:
                view.sampler.set_epoch(5)
                assert view.sampler.epoch == view.epoch == 5
            order, batches = list(view.sampler), [list(batch) for batch in view.batch_sampler]
            assert len(order) == len(view.sampler) == sum(map(len, batches))
            given = [batch[0].tolist() for batch in view]
            assert batches == given and order == [number for batch in given for number in batch]
        assert len(view.batch_sampler) == len(view) and view.batch_sampler.batch_size == 4


def test_batches_of_varying_size_are_counted_by_record() -> None:
    lengths = np.arange(1, 30)
    sampler = hr.sampling.budget(lengths.tolist(), total=60)
    view = hr.Loader(hr.records(x=lengths), sampler=sampler).torch()
    assert len(view.sampler) == 29 == len(list(view.sampler))


@pytest.mark.parametrize("skipped", [0, 2, 5])
def test_skipped_batches_are_not_made(skipped: int) -> None:
    dataset = Squares()
    view = translated(DataLoader(dataset, batch_size=4, shuffle=True), check=False).torch()
    through = translated(DataLoader(Squares(), batch_size=4, shuffle=True)).torch()
    epochs = [labels_of(through) for _ in range(3)]
    dataset.asked = 0
    assert labels_of(skip_first_batches(view, skipped)) == epochs[0][skipped:]
    assert dataset.asked == 22 - 4 * skipped
    assert labels_of(view) == epochs[1], "the next epoch follows"
    assert labels_of(skip_first_batches(view, 1)) == epochs[2][1:]


def test_a_trainer_may_set_the_epoch_on_the_batch_sampler() -> None:
    """As Hugging Face's Trainer does for a loader whose batches were skipped."""
    through = translated(DataLoader(Squares(), batch_size=4, shuffle=True)).torch()
    epochs = [labels_of(through) for _ in range(4)]
    view = translated(DataLoader(Squares(), batch_size=4, shuffle=True)).torch()
    rest = skip_first_batches(view, 3)
    rest.batch_sampler.batch_sampler.set_epoch(2)
    assert labels_of(rest) == epochs[2][3:]
    view.set_epoch(3)
    assert labels_of(view) == epochs[3]


def test_states_count_the_batches_of_a_skipping_loader() -> None:
    through = translated(DataLoader(Squares(), batch_size=4, shuffle=True)).torch()
    epochs = [labels_of(through) for _ in range(2)]
    view = translated(DataLoader(Squares(), batch_size=4, shuffle=True)).torch()
    batches = iter(skip_first_batches(view, 2))
    assert next(batches)[1].tolist() == epochs[0][2]
    state = view.state_dict()
    assert (state["epoch"], state["batch"]) == (0, 3)
    assert view.peek()[1].tolist() == epochs[0][3]
    assert [batch[1].tolist() for batch in batches] == epochs[0][3:], "a look in between is none"
    resumed = translated(DataLoader(Squares(), batch_size=4, shuffle=True)).torch()
    resumed.load_state_dict(state)
    assert labels_of(skip_first_batches(resumed, 3)) == epochs[0][3:]


def test_collated_batches_are_skipped_too() -> None:
    def collate(samples: Any) -> Any:
        return {"labels": torch.tensor([label for _, label in samples])}

    view = translated(DataLoader(Squares(), batch_size=4, collate_fn=collate)).torch()
    rest = skip_first_batches(view, 4)
    assert [batch["labels"].tolist() for batch in rest] == [[16, 17, 18, 19], [20, 21]]


def test_records_are_never_mistaken_for_a_batch() -> None:
    for dataset in (Squares(), [(torch.zeros(2), i) for i in range(22)]):
        view = translated(DataLoader(dataset, batch_size=4)).torch()
        assert labels_of(DataLoader(view.dataset, batch_size=4))[0] == [0, 1, 2, 3]
        for options in ({"batch_size": 4}, {"batch_sampler": [[0, 1]]}):
            mixed = DataLoader(view.dataset, collate_fn=view.collate_fn, **options)
            with pytest.raises(hr.ConfigError, match="HR0808"):
                next(iter(mixed))
    view = translated(DataLoader(Squares(), batch_size=4)).torch()
    with pytest.raises(TypeError, match="Finished"):  # without its collate_fn
        next(iter(DataLoader(view.dataset, batch_sampler=view.batch_sampler)))


def test_workers_are_sent_indices() -> None:
    view = translated(DataLoader(Squares(), batch_size=4)).torch()
    batches = list(view.batch_sampler)
    assert pickle.loads(pickle.dumps(batches[1])) == [4, 5, 6, 7] == list(batches[1])
    assert pickle.loads(pickle.dumps(view.dataset)).count == 22


def test_a_tensor_dataset_with_custom_batched_reads_keeps_them() -> None:
    class Batched(TensorDataset):
        def __getitems__(self, indices: Any) -> Any:
            return [self[index] for index in reversed(indices)]

        __getitems__.__module__ = "torch.utils.data"  # a library's dataset, with the same records

    dataset = Batched(torch.arange(8.0), torch.arange(8))
    view = translated(DataLoader(dataset, batch_size=4), check=False).torch()
    assert labels_of(skip_first_batches(view, 1)) == [[4, 5, 6, 7]]
    assert labels_of(DataLoader(dataset, batch_size=4)) == [[3, 2, 1, 0], [7, 6, 5, 4]]


def test_a_transform_that_is_set_later_is_not_ignored() -> None:
    dataset = Squares()
    dataset.transform = None  # type: ignore[attr-defined]
    view = translated(DataLoader(dataset, batch_size=4), trace=False).torch()
    view.dataset.transform = print
    assert len(labels_of(view)) == 6, "one that is asked for its records transforms them itself"

    images = TensorDataset(torch.zeros(6, 3), torch.arange(6))
    images.transform = None
    view = translated(DataLoader(Subset(images, range(5)), batch_size=4)).torch()
    assert len(labels_of(view)) == 2
    view.dataset.dataset.transform = print
    with pytest.raises(hr.ConfigError, match=r"HR0836.*Subset\.dataset\.transform is now print"):
        labels_of(view)
