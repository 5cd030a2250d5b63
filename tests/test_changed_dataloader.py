# SPDX-License-Identifier: Apache-2.0
"""Changes that a script makes to a DataLoader after from_dataloader are followed, or are an error
that names them: batches never differ from the DataLoader's."""

from __future__ import annotations

import argparse
import array
import collections
import gc
import logging
import multiprocessing
import os
import pickle
import sqlite3
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from headrace.migrate import program
from migrated_classes import translated
from picture_kinds import waves
from PIL import Image, ImageOps

import headrace as hr

torch = pytest.importorskip("torch")
datasets = pytest.importorskip("torchvision.datasets")
v2 = pytest.importorskip("torchvision.transforms.v2")
from torch.utils.data import (  # noqa: E402
    ConcatDataset,
    DataLoader,
    Dataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler  # noqa: E402

FOLDER = ""
MODE = {"shift": 0}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for number in range(6):
        path = tmp_path / "pictures" / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        waves("RGB", 14 + number, 12).save(path)
    monkeypatch.setattr(sys.modules[__name__], "FOLDER", str(tmp_path / "pictures"))
    monkeypatch.setitem(MODE, "shift", 0)
    return tmp_path / "pictures"


def resized() -> Any:
    return v2.Compose([v2.Resize((8, 8)), v2.PILToTensor()])


class Usual(Dataset):  # type: ignore[type-arg]
    """Opens an image, transforms it and adds a label."""

    scale = 1

    def __init__(self, labels: Any = None) -> None:
        self.paths = sorted(map(str, Path(FOLDER).glob("*/*.png")))
        self.labels = list(range(6)) if labels is None else labels
        self.transform = resized()
        self.args = argparse.Namespace(step=1, epoch=0)
        self.logger = logging.getLogger("test_changed_dataloader")
        self.counter = multiprocessing.RawValue("i", 0)

    def __len__(self) -> int:
        return 6

    @property
    def shift(self) -> int:
        return MODE["shift"]

    def __getitem__(self, i: int) -> Any:
        image = self.transform(Image.open(self.paths[i]).convert("RGB"))
        more = self.shift + self.args.step + self.counter.value + int(os.environ.get("A_SHIFT", 0))
        return image, self.labels[i] * self.scale + more


def folder_of(transform: Any = None) -> Any:
    return datasets.ImageFolder(FOLDER, transform or resized())


def equal(ours: Any, theirs: Any) -> bool:
    ours, theirs = list(ours), list(theirs)
    return len(ours) == len(theirs) and all(
        torch.equal(torch.as_tensor(a), torch.as_tensor(b))
        for one, other in zip(ours, theirs, strict=True)
        for a, b in zip(one, other, strict=True)
    )


def assert_named(dataloader: Any, change: Any, name: str, drawn: bool = False) -> None:
    """The batches before the change, and afterwards an error that names it."""
    with translated(dataloader) as loader:
        ours = list(loader.torch())
        assert drawn or equal(ours, dataloader)
        change()
        with pytest.raises(hr.ConfigError, match=f"HR0836.*{name}"):
            list(loader.torch())


CHANGES = {
    "attribute": (lambda d: setattr(d, "scale", 3), r"Usual\.scale is"),
    "label": (lambda d: d.labels.__setitem__(3, 9), r"Usual\.labels\[3\] is now 9, was 3"),
    "paths": (lambda d: d.paths.reverse(), r"Usual\.paths\[0\] is"),
    "global": (lambda d: MODE.__setitem__("shift", 2), r"the global MODE\['shift'\] is now 2"),
    "option": (lambda d: setattr(d.args, "step", 5), r"Usual\.args\.step is now 5"),
    "shared": (lambda d: setattr(d.counter, "value", 5), r"Usual\.counter has different values"),
    "size": (
        lambda d: setattr(d.transform.transforms[0], "size", [4, 4]),
        r"Usual\.transform\.transforms\[0\]\.size",
    ),
    "entry": (
        lambda d: d.transform.transforms.insert(1, v2.RandomHorizontalFlip(1.0)),
        r"Usual\.transform\.transforms\[1\]",
    ),
    "transform": (lambda d: setattr(d, "transform", v2.PILToTensor()), r"Usual\.transform is"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_to_a_traced_dataset_is_named(change: Any) -> None:
    dataset = Usual()
    work, name = change
    assert_named(DataLoader(dataset, batch_size=4), lambda: work(dataset), name)


def test_a_change_to_a_class_or_the_environment_is_named(monkeypatch: Any) -> None:
    dataloader = DataLoader(Usual(), batch_size=4)
    with translated(dataloader) as loader:
        list(loader.torch())
        monkeypatch.setenv("ANOTHER", "1")
        list(loader.torch())
        monkeypatch.setattr(Usual, "scale", 3)
        with pytest.raises(hr.ConfigError, match=r"HR0836.*Usual\.scale is now 3, was 1"):
            list(loader.torch())


class Beside(Usual):
    """Reads files next to each image, and the environment."""

    def __getitem__(self, i: int) -> Any:
        image = self.transform(Image.open(self.paths[i]).convert("RGB"))
        notes = Path(self.paths[i]).with_suffix(".txt")
        label = int(notes.read_text()) if notes.exists() else 0
        others = len(list(notes.parent.glob("*.box")))
        return image, label + others + int(os.getenv("A_SHIFT", "0"))


def test_a_change_to_files_next_to_the_images_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = folder / "a" / "0.txt"
    notes.write_text("1")
    dataloader = DataLoader(Beside(), batch_size=4)
    for change, name in (
        (lambda: monkeypatch.setenv("A_SHIFT", "5"), r"os\.environ\['A_SHIFT'\] is now '5'"),
        (lambda: notes.write_text("22"), r"a/0\.txt, which __getitem__ reads, has changed"),
        (lambda: notes.with_name("2.txt").write_text("3"), r"a/2\.txt, .* is new"),
        (notes.unlink, r"a/0\.txt, .* is gone"),
        (notes.with_name("1.box").touch, r"pictures/a, .* has changed"),
    ):
        assert_named(dataloader, change, name)
    Image.open(folder / "a" / "0.png").rotate(90).save(folder / "a" / "0.png")
    with translated(dataloader) as loader:
        monkeypatch.setenv("ANOTHER", "1")
        assert not loader.report.python and equal(loader.torch(), dataloader)


class Asks(Usual):
    """Uses a database, the command line, torch, and a global that does not appear by name in its
    code."""

    def __init__(self) -> None:
        super().__init__()
        self.notes = sqlite3.connect(":memory:")
        self.notes.execute("create table labels (label)")
        self.notes.execute("insert into labels values (1)")

    def __getitem__(self, i: int) -> Any:
        image = self.transform(Image.open(self.paths[i]).convert("RGB"))
        (label,) = self.notes.execute("select label from labels").fetchone()
        return image, torch.tensor(label + len(sys.argv) + eval("MODE['shift']") + 0.5)


def test_a_change_to_program_state_that_was_read_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = Asks()
    update = "update labels set label = 2"
    for change, name in (
        (lambda: dataset.notes.execute(update), r"Asks\.notes\.total_changes is now 2"),
        (
            lambda: monkeypatch.setattr(sys, "argv", [*sys.argv, "-x"]),
            r"sys\.argv now has \d+ entr",
        ),
        (lambda: monkeypatch.setitem(MODE, "shift", 7), r"the global MODE\['shift'\] is now 7"),
        (lambda: torch.set_default_dtype(torch.float64), r"torch\.get_default_dtype\(\) is"),
    ):
        try:
            assert_named(DataLoader(dataset, batch_size=4), change, name)
        finally:
            torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_batches_have_torchs_default_dtype(folder: Path, dtype: Any) -> None:
    v1 = pytest.importorskip("torchvision.transforms")
    recipe = v1.Compose([v1.Resize((8, 8)), v1.ToTensor(), v1.Normalize([0.5] * 3, [0.5] * 3)])
    dataset = datasets.ImageFolder(folder, recipe)
    other = {torch.float32: torch.float64, torch.float64: torch.float32}[dtype]
    try:
        torch.set_default_dtype(dtype)
        loader = translated(DataLoader(dataset, batch_size=4))
        for (ours, _), (theirs, _) in zip(
            loader.torch(), DataLoader(dataset, batch_size=4), strict=True
        ):
            assert ours.dtype == theirs.dtype == dtype
            assert torch.allclose(ours, theirs, atol=1e-7)
        torch.set_default_dtype(other)
        with pytest.raises(hr.ConfigError, match=r"HR0836.*torch\.get_default_dtype\(\) is"):
            list(loader.torch())
    finally:
        torch.set_default_dtype(torch.float32)


class Solarized:
    """As specified by the environment."""

    def __call__(self, image: Any) -> Any:
        return ImageOps.solarize(image, int(os.environ.get("A_SHIFT", "9")))


def test_a_transform_that_reads_the_environment_stays_in_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dataloader = DataLoader(folder_of(v2.Compose([Solarized(), resized()])), batch_size=4)
    with translated(dataloader) as loader:
        assert "reads os.environ['A_SHIFT']" in loader.report.python[0].note
        for shift in ("9", "200"):
            monkeypatch.setenv("A_SHIFT", shift)
            assert equal(loader.torch(), dataloader)


HOLDERS = {
    "tensor": (lambda: torch.arange(6), lambda v: v.__setitem__(2, 50)),
    "its array": (lambda: torch.arange(6), lambda v: v.numpy().__setitem__(2, 50)),
    "array": (lambda: np.arange(12)[::2], lambda v: v.__setitem__([0, 1], v[[1, 0]])),
    "array.array": (lambda: array.array("q", range(6)), lambda v: v.__setitem__(2, 50)),
    "deque": (lambda: collections.deque(range(6)), lambda v: v.rotate(1)),
    "dictionary": (lambda: {i: i for i in range(6)}, lambda v: v.__setitem__(2, 50)),
    "records": (
        lambda: Rows([{"label": i, "box": [i, 2]} for i in range(90)]),
        lambda v: v.rows[2].__setitem__("label", 50),
    ),
    "objects": (
        lambda: Rows([argparse.Namespace(label=i) for i in range(90)]),
        lambda v: setattr(v.rows[2], "label", 50),
    ),
}


class Rows:
    __slots__ = ("rows",)

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def __getitem__(self, i: int) -> Any:
        row = self.rows[i]
        return row["label"] if isinstance(row, dict) else row.label


@pytest.mark.parametrize("holder", HOLDERS.values(), ids=HOLDERS)
def test_a_change_to_labels_in_any_container_is_named(holder: Any) -> None:
    make, change = holder
    dataset = Usual(make())
    assert_named(
        DataLoader(dataset, batch_size=4), lambda: change(dataset.labels), r"Usual\.labels"
    )


def test_irrelevant_changes_are_ignored() -> None:
    dataset = Usual()
    dataloader = DataLoader(dataset, batch_size=4)
    with translated(dataloader) as loader:
        dataset[0]
        dataset.args.epoch = 7  # not read by the dataset's code
        dataset.args.best = 1.0
        dataset.logger.isEnabledFor(10)
        assert equal(loader.torch(), dataloader)
        list(loader.torch().batch_sampler)
        assert equal(loader.torch(), dataloader)


def test_a_change_to_a_known_dataset_is_named() -> None:
    for change, name in (
        (lambda d: d.samples.__setitem__(0, d.samples[5]), r"ImageFolder\.samples\[0\]"),
        (lambda d: d.samples.pop(), r"ImageFolder\.samples now has 5 entries, had 6"),
        (lambda d: setattr(d, "target_transform", float), r"ImageFolder\.target_transform"),
        (lambda d: setattr(d, "loader", print), r"ImageFolder\.loader is now print"),
    ):
        dataset = folder_of()
        assert_named(DataLoader(dataset, batch_size=4), lambda: change(dataset), name)  # noqa: B023
    dataset = Subset(folder_of(), [0, 1, 2, 3])
    assert_named(
        DataLoader(dataset, batch_size=4),
        lambda: dataset.indices.__setitem__(0, 5),
        r"Subset\.indices\[0\] is now 5",
    )
    joined = ConcatDataset([Usual(), Usual()])
    assert_named(
        DataLoader(joined, batch_size=4),
        lambda: joined.datasets[1].labels.__setitem__(0, 8),
        r"ConcatDataset\.datasets\[1\]\.labels\[0\]",
    )


class Numbers(Dataset):  # type: ignore[type-arg]
    """Runs in Python."""

    def __init__(self, count: int = 12) -> None:
        self.count, self.plus = count, 0

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, i: int) -> Any:
        return torch.tensor([float(i + self.plus)]), i


class Brighter:
    by = 0

    def __call__(self, image: Any) -> Any:
        return image.point(lambda value: min(255, value + self.by))


def test_steps_in_python_follow_every_change() -> None:
    numbers, brighter = Numbers(), Brighter()
    tensors = TensorDataset(torch.arange(6.0)[:, None], torch.arange(6))
    transform = v2.Compose([brighter, v2.Resize((8, 8)), v2.PILToTensor()])
    for dataset, change in (
        (numbers, lambda: setattr(numbers, "plus", 3)),
        (folder_of(transform), lambda: setattr(brighter, "by", 30)),
        (tensors, lambda: tensors.tensors[0].add_(5)),
    ):
        dataloader = DataLoader(dataset, batch_size=5)
        with translated(dataloader) as loader:
            batches = iter(loader.torch())
            next(batches)
            change()
            assert equal(loader.torch(), dataloader)


def test_a_change_that_worker_processes_would_not_see_is_named() -> None:
    """Before any process is started."""
    numbers = Numbers()
    with translated(DataLoader(numbers, batch_size=5), python_workers=2) as loader:
        numbers.plus = 3
        with pytest.raises(hr.ConfigError, match=r"HR0836.*Numbers\.plus is now 3, was 0"):
            list(loader.torch())


class OfProgram(Numbers):
    scale = 1

    def bump(self, i: int) -> int:
        return i

    def __getitem__(self, i: int) -> Any:
        return torch.tensor([float(self.bump(i) * self.scale + MODE["shift"])]), i


def test_worker_processes_have_classes_and_globals_as_the_script_set_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The modules they import are unchanged."""

    def in_a_worker() -> Any:
        sent = pickle.dumps(program.entries({"dataset": OfProgram()}))
        monkeypatch.undo()
        program.apply(pickle.loads(sent))
        return OfProgram()[3][0].item()

    scale, bump = OfProgram.scale, OfProgram.bump
    try:
        monkeypatch.setattr(OfProgram, "scale", 2)
        monkeypatch.setitem(MODE, "shift", 30)
        assert in_a_worker() == 36
        monkeypatch.setattr(OfProgram, "bump", plus_ten)
        assert in_a_worker() == (3 + 10) * 2 + 30
        monkeypatch.setattr(OfProgram, "bump", lambda self, i: i + 7)
        with pytest.raises(RuntimeError, match=r"OfProgram\.bump was replaced by the script"):
            in_a_worker()
    finally:
        OfProgram.scale, OfProgram.bump = scale, bump  # type: ignore[method-assign]


def plus_ten(self: Any, i: int) -> int:
    return i + 10


def test_added_or_removed_records_in_a_python_dataset_are_named() -> None:
    numbers = Numbers()
    assert_named(
        DataLoader(numbers, batch_size=5),
        lambda: setattr(numbers, "count", 9),
        r"len\(Numbers\) is now 9, was 12",
    )
    subset = Subset(Numbers(), [0, 1, 2])
    assert_named(
        DataLoader(subset, batch_size=5),
        lambda: subset.indices.append(4),
        r"Subset\.indices now has 4 entries",
    )


class ByLoss:
    """Hard records first; no epochs."""

    def __init__(self, count: int) -> None:
        self.loss = np.arange(count)

    def __iter__(self) -> Iterator[int]:
        return iter(np.argsort(-self.loss).tolist())

    def __len__(self) -> int:
        return len(self.loss)


class BatchesByLoss(ByLoss):
    def __iter__(self) -> Iterator[Any]:
        order = np.argsort(-self.loss).tolist()
        return iter([order[k : k + 4] for k in range(0, len(order), 4)])

    def __len__(self) -> int:
        return -(-len(self.loss) // 4)


@pytest.mark.parametrize("options", ["sampler", "batch_sampler", "list"])
def test_a_stateful_sampler_is_called_in_its_current_state(options: str) -> None:
    sampler: Any = {"sampler": ByLoss, "batch_sampler": BatchesByLoss}.get(options, range)(12)
    sampler = list(sampler) if options == "list" else sampler
    given = {"batch_sampler": sampler} if options == "batch_sampler" else {"sampler": sampler}
    dataloader = DataLoader(Numbers(), **given)
    with translated(dataloader) as loader:
        for _ in range(2):
            assert equal(loader.torch(), dataloader)
            if options == "list":
                sampler.reverse()
            else:
                sampler.loss = -sampler.loss
        first = loader.torch().peek()[1].tolist()
        loader.set_epoch(loader.epoch)
        sampler.reverse() if options == "list" else setattr(sampler, "loss", -sampler.loss)
        assert equal(loader.torch(), dataloader) and first != next(iter(dataloader))[1].tolist()


def test_a_change_to_a_translated_sampler_is_named() -> None:
    weighted = WeightedRandomSampler([1.0, 0.0, 0.0], 4)
    dataloader = DataLoader(Numbers(3), batch_size=2, sampler=weighted)
    change = lambda: weighted.weights.__setitem__(1, 5.0)  # noqa: E731
    assert_named(dataloader, change, r"WeightedRandomSampler\.weights has different values", True)
    dataloader = DataLoader(Numbers(), batch_size=5)
    change = lambda: setattr(dataloader.batch_sampler, "batch_size", 3)  # noqa: E731
    assert_named(dataloader, change, r"BatchSampler\.batch_size is now 3, was 5")
    dataloader = DataLoader(Numbers(), batch_size=5)
    change = lambda: setattr(dataloader, "collate_fn", list)  # noqa: E731
    assert_named(dataloader, change, r"collate_fn is now list")


class Shortened(datasets.ImageFolder):  # type: ignore[misc]
    def __len__(self) -> int:
        return 4


def test_a_custom_length_is_respected() -> None:
    dataloader = DataLoader(Shortened(FOLDER, resized()), batch_size=3)
    with translated(dataloader) as loader:
        assert equal(loader.torch(), dataloader) and len(loader) == 2


@pytest.mark.parametrize(
    "sampler",
    [
        lambda data: SequentialSampler(range(7)),
        lambda data: DistributedSampler(range(8), 2, 1, shuffle=False),
        lambda data: SequentialSampler(Subset(data, [9, 8, 7])),
        lambda data: DistributedSampler(data, 5, 4, shuffle=True),
        lambda data: DistributedSampler(data, 5, 4, shuffle=True, drop_last=True),
        lambda data: DistributedSampler(data, 7, 6, shuffle=False),
        lambda data: DistributedSampler(range(2), 5, 3, shuffle=False),
    ],
)
def test_samplers_of_other_records_and_uneven_ranks_keep_their_order(sampler: Any) -> None:
    data = Numbers()
    dataloader = DataLoader(data, batch_size=2, sampler=sampler(data))
    with translated(dataloader) as loader:
        for epoch in range(2):
            if hasattr(dataloader.sampler, "set_epoch"):
                dataloader.sampler.set_epoch(epoch)
            assert equal(loader.torch(), dataloader)


def test_draws_from_a_subset_stay_in_the_subset() -> None:
    for sampler in (RandomSampler(range(5), replacement=True), RandomSampler(range(5))):
        with translated(DataLoader(Numbers(), batch_size=2, sampler=sampler)) as loader:
            drawn = [int(i) for batch in loader.torch() for i in batch[1]]
        assert len(drawn) == 5 and max(drawn) < 5


def test_loaders_and_views_form_no_reference_cycles() -> None:
    gc.collect()
    gc.disable()
    try:
        dataset = Numbers()
        loader = translated(DataLoader(dataset, batch_size=5, sampler=ByLoss(12)))
        view = loader.torch()
        list(view.batch_sampler), list(view.sampler), list(view)
        assert view.batch_sampler.batch_size == 5
        gone = [weakref.ref(each) for each in (dataset, loader, view)]
        loader.close()
        del dataset, loader, view
        assert [each() for each in gone] == [None, None, None]
    finally:
        gc.enable()
