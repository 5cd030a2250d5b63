# SPDX-License-Identifier: Apache-2.0
"""A collate_fn that Headrace does not know runs on the records of finished batches."""

from __future__ import annotations

import collections
import copy
import ctypes
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from migrated_classes import translated
from PIL import Image

import headrace as hr

torch = pytest.importorskip("torch")
from headrace.migrate import seeding  # noqa: E402
from headrace.migrate.rows import Lent, rows_of  # noqa: E402
from torch.utils.data import DataLoader, Subset, TensorDataset, default_collate  # noqa: E402

from headrace import twisters  # noqa: E402

IMAGES = torch.randn(10, 3, 4, 5, generator=torch.Generator().manual_seed(0))
PAIRS = TensorDataset(IMAGES, torch.arange(10))
Pair = collections.namedtuple("Pair", ["x", "y"])


class Records:
    """A dataset of the return values of ``make``."""

    def __init__(self, make: Callable[[int], Any], count: int = 10) -> None:
        self.make, self.count = make, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        return self.make(index)


def stacked(samples: Any) -> Any:
    images, labels = zip(*samples, strict=True)
    return {"pixel_values": torch.stack(images), "labels": torch.tensor(labels)}


def padded(samples: Any) -> Any:
    tokens = [sample["tokens"] for sample in samples]
    return torch.nn.utils.rnn.pad_sequence(tokens, batch_first=True), [s["text"] for s in samples]


def as_is(samples: Any) -> Any:
    return samples


def transposed(samples: Any) -> Any:
    return tuple(zip(*samples))  # noqa: B905  (as scripts have it)


def same(one: Any, other: Any) -> bool:
    if isinstance(other, torch.Tensor):
        return type(one).__mro__[-3:] == type(other).__mro__[-3:] and torch.equal(one, other)
    if isinstance(other, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(other, Image.Image):
        return one.mode == other.mode and one.tobytes() == other.tobytes()
    if type(one) is not type(other):
        return False
    if isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in other)
    if isinstance(other, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def tokens(index: int) -> dict[str, Any]:
    return {"tokens": torch.arange(1 + index % 4), "text": f"n{index}"}


def targets(index: int) -> Any:
    boxes = torch.arange(index % 3 * 4.0).reshape(-1, 4)
    return IMAGES[index], {"boxes": boxes, "image_id": index, "area": [1.5 * index, 2.0]}


def odd(index: int) -> Any:
    picture = Image.fromarray(np.full((3, 4, 3), index, np.uint8))
    return [picture, np.float32(index), np.arange(3) + index, (f"{index}", b"x"), index % 2 == 0]


@pytest.mark.parametrize(
    ("make", "function"),
    [
        (lambda i: (IMAGES[i], i), stacked),
        (lambda i: Pair(IMAGES[i], i), as_is),
        (lambda i: Pair(IMAGES[i], i), transposed),
        (tokens, padded),
        (tokens, as_is),
        (targets, transposed),
        (targets, as_is),
        (odd, as_is),
        (odd, transposed),
    ],
)
def test_batches_equal_the_functions_result_for_the_datasets_records(
    make: Any, function: Any
) -> None:
    dataloader = DataLoader(Records(make), batch_size=4, collate_fn=function)
    loader = translated(dataloader)
    ours, theirs = list(loader.torch()), list(dataloader)
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert same(one, other)
    part = next(part for part in loader.report.parts if part.name.startswith("collate_fn="))
    native = "the records' parts, each as a tuple or list of all records"
    of_python = "run on each finished batch of .torch(): "
    assert (native if part.became == "native" else of_python) in part.note


def test_a_stack_of_all_rows_is_the_batch() -> None:
    rows = rows_of(IMAGES)
    assert torch.stack(rows) is IMAGES
    rows = rows_of(IMAGES)
    assert default_collate([(row, 1) for row in rows])[0] is IMAGES
    rows = rows_of(IMAGES)
    assert torch.stack(tuple(rows), dim=0) is IMAGES
    rows = rows_of(IMAGES)
    for others in (rows[::-1], rows[:4], [*rows[:-1], rows[0]]):
        stack = torch.stack(others)
        assert type(stack) is torch.Tensor and torch.equal(
            stack, torch.stack([row.as_subclass(torch.Tensor) for row in others])
        )
    assert torch.stack(rows, 1).shape == (3, 10, 4, 5)
    assert type(rows[0] + 1) is torch.Tensor and type(rows[0][0]) is torch.Tensor
    assert isinstance(rows[0], torch.Tensor) and rows[0].shape == (3, 4, 5)


def test_stacking_does_not_copy() -> None:
    view = translated(DataLoader(PAIRS, batch_size=5, collate_fn=stacked)).torch()
    batch = next(iter(view))["pixel_values"]
    assert batch.storage_offset() == 0 and batch.is_contiguous()
    assert type(batch) is torch.Tensor


def noisy(samples: Any) -> Any:
    images, labels = default_collate(samples)
    share = random.random() + np.random.random()
    return images + torch.randn(images.shape) * share, labels


class Noisy:
    """Draws from its own generator, and from that of its transform."""

    def __init__(self) -> None:
        self.generator, self.transform = np.random.default_rng(), random.Random()

    def __call__(self, samples: Any) -> Any:
        images, labels = default_collate(samples)
        share = torch.tensor([self.generator.random(), self.transform.random()])
        return torch.cat([images.ravel(), share]), labels


@pytest.mark.parametrize("function", [lambda: noisy, Noisy])
def test_draws_of_the_function_repeat_after_a_resume(function: Any) -> None:
    dataloader = DataLoader(PAIRS, batch_size=4, collate_fn=function())
    before = torch.random.get_rng_state()
    view = translated(dataloader).torch()
    epochs = [[batch[0] for batch in view] for _ in range(2)]
    assert torch.equal(torch.random.get_rng_state(), before)
    assert not torch.equal(epochs[0][0], epochs[1][0])
    dataloader = DataLoader(PAIRS, batch_size=4, collate_fn=function())
    again = translated(dataloader).torch()
    assert torch.equal(again.batch(1, 2)[0], epochs[1][2])
    assert torch.equal(again.peek()[0], epochs[0][0])
    assert torch.equal(next(iter(again))[0], epochs[0][0])
    resumed = translated(dataloader).torch()
    resumed.load_state_dict(again.state_dict())
    for batch, expected in zip(resumed, epochs[0][1:], strict=True):
        assert torch.equal(batch[0], expected)


@pytest.mark.parametrize("copies_memory", [True, False])
def test_global_generators_continue_undisturbed(
    copies_memory: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not copies_memory:  # another implementation of Python
        monkeypatch.setattr(twisters, "_python_offset", lambda: None)
        monkeypatch.setattr(twisters, "_numpy_offset", lambda: None)
    python, numpy = random.Random(7), np.random.RandomState(7)

    def draw() -> list[Any]:  # an odd number of normal ones: the second of a pair is still pending
        numbers = [python.gauss(0, 1), python.random(), numpy.randn(), numpy.rand(700)[-1]]
        return [*numbers, numpy.get_state()[2:], python.getstate()[1:]]

    first = draw()
    states = [numpy.get_state(), python.getstate()]
    expected = draw()
    numpy.set_state(states[0])
    python.setstate(states[1])
    before = states_of(python, numpy)
    with seeding.seeded(3, [python, numpy]):
        inside = draw()
    assert states_of(python, numpy) == before
    assert draw() == expected != first != inside
    with seeding.seeded(3, [python, numpy]):
        assert draw() == inside


def states_of(python: random.Random, numpy: np.random.RandomState) -> list[Any]:
    return [twisters.of_python(python)[0](), twisters.of_numpy(numpy)[0]()]


def test_ranks_draw_independently() -> None:
    same = TensorDataset(torch.zeros(8, 3, 4, 5), torch.arange(8))
    dataloader = DataLoader(same, batch_size=4, collate_fn=noisy)
    parts = [next(iter(translated(dataloader, shard=(rank, 2)).torch()))[0] for rank in range(2)]
    assert not torch.equal(*parts)


def in_place(samples: Any) -> Any:
    before = samples[0][0].clone()
    images = torch.stack([image for image, _ in samples])
    images.mul_(2)
    return images, samples[0][0] - before


def test_a_function_that_changes_its_stack_in_place_gets_copies() -> None:
    dataloader = DataLoader(PAIRS, batch_size=4, collate_fn=in_place)
    for options in ({}, {"collate": "copy"}):
        loader = translated(dataloader, **options)
        for one, other in zip(loader.torch(), dataloader, strict=True):
            assert same(one, other)
        assert "on copies of its records" in str(loader.report)


def test_a_batch_is_passed_only_once() -> None:
    """Writes that happen later, or earlier through a view, go to other memory."""
    batch = IMAGES.clone()
    rows = rows_of(batch)
    first, second = torch.stack(rows), torch.stack(rows)
    assert first is batch and torch.equal(second, IMAGES)
    rows[3].zero_()
    rows[4].mul_(2)
    assert torch.equal(first, IMAGES) and not rows[3].any()
    assert torch.equal(torch.stack(rows)[4], IMAGES[4] * 2)
    second.zero_()
    assert torch.equal(first, IMAGES)
    rows = rows_of(batch)
    torch.stack(rows).mul_(2)
    with pytest.raises(RuntimeError, match='collate="copy"'):
        rows[0] + 1
    for view in (lambda row: row.view(-1), lambda row: row.numpy(), lambda row: row.data):
        rows = rows_of(IMAGES.clone())
        seen = view(rows[0])
        torch.stack(rows).zero_()
        assert torch.equal(torch.as_tensor(seen).flatten(), IMAGES[0].flatten())
    copies = copy.deepcopy(rows_of(batch.copy_(IMAGES)))
    copies[0].zero_()
    assert torch.equal(torch.stack(copies)[1:], IMAGES[1:]) and not torch.stack(copies)[0].any()


@pytest.mark.parametrize(
    "write",
    [
        lambda stack: stack.numpy().fill(0),
        lambda stack: np.asarray(stack[2:]).fill(0),
        lambda stack: stack.data.zero_(),
        lambda stack: torch.from_dlpack(stack).zero_(),
        lambda stack: ctypes.memset(stack.data_ptr(), 0, 8),
        lambda stack: stack.detach().zero_(),
    ],
)
def test_rows_of_a_modified_stack_keep_their_original_values(write: Any) -> None:
    """However the function modifies it; before that, rows and stack are as in torch."""
    with Lent() as lent:
        rows = lent.rows_of(IMAGES.clone())
        stack = torch.stack(rows)
        write(stack)
        with pytest.raises(RuntimeError, match='collate="copy"'):
            rows[1] + 1
    with Lent() as lent:
        rows = lent.rows_of(IMAGES.clone())
        write(rows[0])
        changed = rows[0].clone()
        stack = torch.stack(rows)
        write(rows[0])
        assert torch.equal(stack[1:], IMAGES[1:]) and torch.equal(stack[0], changed)
        rows[0].transpose_(1, 2), rows[1].zero_()
        assert torch.equal(stack[1], IMAGES[1])


def test_a_stack_of_rows_that_are_transposed_in_place_is_transposed() -> None:
    square = IMAGES[..., :4, :4].clone()
    rows = rows_of(square)
    for row in rows:
        row.transpose_(1, 2)
    assert torch.equal(torch.stack(rows), square.transpose(2, 3))


def test_records_held_by_a_function_are_unaffected_by_the_loop() -> None:
    """Like a bank of earlier records: the loop writes to each batch in place."""
    kept: list[Any] = []

    def remembers(samples: Any) -> Any:
        images = default_collate(samples)[0]
        kept.extend(image for image, _ in samples[:2])
        return images, torch.stack(kept)

    view = translated(DataLoader(PAIRS, batch_size=5, collate_fn=remembers)).torch()
    kept.clear()
    for images, bank in view:
        assert torch.equal(bank[-2:], images[:2])
        np.asarray(images)[:] = 0
    assert torch.equal(bank, IMAGES[[0, 1, 5, 6]]) and torch.equal(kept[1], IMAGES[1])


class Stateful:
    """Counts its calls, and keeps records of the batch before."""

    def __init__(self) -> None:
        self.calls, self.kept = 0, []

    def __call__(self, samples: Any) -> Any:
        self.calls += 1
        before, self.kept = self.kept, [image for image, _ in samples[:2]]
        images = torch.stack([image for image, _ in samples])
        if self.calls == 2:
            images.mul_(-1)
        again = torch.stack([image for image, _ in samples]) if self.calls != 2 else None
        return self.calls, images, again, before


def test_a_stateful_object_gives_the_same_results_as_in_a_dataloader() -> None:
    loader = translated(DataLoader(PAIRS, batch_size=4, collate_fn=(function := Stateful())))
    assert function.calls == 0 and not function.kept
    (part,) = [part for part in loader.report.changed if "Stateful" in part.name]
    assert (
        "Stateful.calls is now 5, was 0: its calls change its state, "
        "which is not in state_dict()" in part.note
    )
    theirs = DataLoader(PAIRS, batch_size=4, collate_fn=Stateful())
    for one, other in zip(loader.torch(), theirs, strict=True):
        assert same(one, other)


class Vectorized(Records):
    def __getitems__(self, indices: list[int]) -> Any:
        noise = random.random()
        return [(image + noise, label) for image, label in map(self.make, indices)]


class Delegates:
    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        return self.dataset[index][0] * 2

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["dataset"], name)


@pytest.mark.parametrize("around", [lambda d: d, Delegates, lambda d: Subset(d, [1, 2])])
def test_a_dataset_with_batched_reads_is_refused(around: Any) -> None:
    dataset = around(Vectorized(lambda i: (IMAGES[i], i)))
    with pytest.raises(hr.ConfigError, match=r"HR0834.*__getitems__") as caught:
        translated(DataLoader(dataset, batch_size=4))
    assert "collate_fn" in caught.value.hint


class Noise(Records):
    def __getitem__(self, index: int) -> Any:
        return torch.rand(3), torch.tensor([random.random(), np.random.random()]), index


def test_draws_of_a_dataset_and_of_its_function_repeat_in_two_threads() -> None:
    def run() -> Any:
        dataset = Noise(lambda i: i, 400)
        loader = translated(DataLoader(dataset, batch_size=4, collate_fn=drawing), check=False)
        return list(loader.torch())

    first, again = run(), run()
    assert all(same(one, other) for one, other in zip(first, again, strict=True))


def drawing(samples: Any) -> Any:
    return default_collate(samples), torch.rand(50), [random.random() for _ in range(50)]


def test_the_loader_itself_and_other_views_have_the_fields() -> None:
    loader = translated(DataLoader(PAIRS, batch_size=4, collate_fn=stacked))
    assert next(iter(loader))[0].shape == (4, 3, 4, 5)
    assert isinstance(next(iter(loader.numpy()))[0], np.ndarray)


def failing(samples: Any) -> Any:
    raise LookupError("no vocabulary")


def test_a_function_that_fails_is_refused_with_a_hint() -> None:
    dataloader = DataLoader(PAIRS, batch_size=4, collate_fn=failing)
    with pytest.raises(hr.ConfigError, match=r"HR0834.*failing.*LookupError: no vocab") as caught:
        translated(dataloader)
    assert 'collate="default"' in caught.value.hint
    assert next(iter(translated(dataloader, collate="default").torch()))[0].shape[0] == 4
    view = translated(dataloader, check=False).torch()
    for _ in range(2):
        with pytest.raises(LookupError):
            next(iter(view))
    assert view.state_dict()["batch"] == 0, "a batch that was not received comes again"


def test_an_unknown_choice_is_refused() -> None:
    with pytest.raises(hr.ConfigError, match="collate"):
        translated(DataLoader(PAIRS, batch_size=4), collate="sane")


def test_torchs_own_function_can_be_run_too() -> None:
    dataloader = DataLoader(Records(targets, 3), batch_size=1)
    for one, other in zip(translated(dataloader, collate="run").torch(), dataloader, strict=True):
        assert same(one, other)


def test_the_result_is_moved_to_the_device() -> None:
    view = translated(DataLoader(PAIRS, batch_size=4, collate_fn=stacked)).torch("meta")
    batch = next(iter(view))
    assert {value.device.type for value in batch.values()} == {"meta"}
    with pytest.raises(hr.ConfigError, match="divided"):
        translated(DataLoader(PAIRS, batch_size=4, collate_fn=stacked)).torch(["cpu", "cpu"])
