# SPDX-License-Identifier: Apache-2.0
"""hr.from_dataloader(): the same batches as torch's DataLoader, and a report on the translation."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import migrated_classes as own
import numpy as np
import pytest
from conftest import files_of, label_of
from headrace.migrate.spread import spread
from migrated_classes import assert_same_batches, first_of, translated
from picture_kinds import waves
from PIL import Image

import headrace as hr
from headrace import transforms as T

torch = pytest.importorskip("torch")
from torch.utils.data import (  # noqa: E402
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler  # noqa: E402


def numbers(count: int = 10) -> Any:
    return TensorDataset(torch.arange(count * 3.0).reshape(count, 3), torch.arange(count))


def test_a_tensor_dataset_is_a_source_of_its_tensors() -> None:
    pictures = torch.randint(0, 256, (9, 3, 4, 5), dtype=torch.uint8)
    rows = torch.arange(9, dtype=torch.int32)
    for dataset in (numbers(), TensorDataset(pictures, torch.arange(9), rows, torch.rand(9))):
        for drop_last in (False, True):
            dataloader = DataLoader(dataset, batch_size=4, drop_last=drop_last)
            loader = translated(dataloader)
            assert_same_batches(dataloader, loader)
            assert not loader.report.python
            assert set(loader.report.differences.values()) == {0.0}


def test_a_folder_of_all_kinds_of_images_is_decoded_natively(tmp_path: Path) -> None:
    """The names that torchvision looks for, in one folder, opened with Pillow by its loader."""
    datasets = pytest.importorskip("torchvision.datasets")
    v2 = pytest.importorskip("torchvision.transforms.v2")
    kinds = {"WebP": "webp", "BMP": "bmp", "TIFF": "tif", "PPM": "ppm", "PNG": "png", "JPEG": "jpg"}
    for number, (kind, suffix) in enumerate(kinds.items()):
        path = tmp_path / "ab"[number % 2] / f"{number}.{suffix}"
        path.parent.mkdir(exist_ok=True)
        waves("RGB", 60 + number, 50).save(path, kind)
    dataset = datasets.ImageFolder(tmp_path, v2.Compose([v2.Resize((32, 32)), v2.PILToTensor()]))
    dataloader = DataLoader(dataset, batch_size=2)
    loader = translated(dataloader)
    assert_same_batches(dataloader, loader)
    assert not loader.report.python


def test_a_callable_may_make_images_of_int64(pictures: Path) -> None:
    datasets = pytest.importorskip("torchvision.datasets")

    def numbers(image: Any) -> Any:
        pixels = np.asarray(image.resize((8, 8)).convert("RGB"))
        return torch.as_tensor(pixels.astype(np.int64).transpose(2, 0, 1))

    dataloader = DataLoader(datasets.ImageFolder(str(pictures), numbers), batch_size=4)
    assert_same_batches(dataloader, translated(dataloader))


def test_subsets_of_subsets_are_the_same_records() -> None:
    subset = Subset(Subset(numbers(30), range(5, 25)), [3, 3, 0, 19])
    dataloader = DataLoader(subset, batch_size=3)
    assert_same_batches(dataloader, translated(dataloader))


def test_indices_of_a_subset_may_count_from_the_end() -> None:
    inner = Subset(numbers(30), [*range(5, 25), -1, -30])
    for subset in (inner, Subset(inner, [-1, 3, -22, -2, 0])):
        dataloader = DataLoader(subset, batch_size=3)
        assert_same_batches(dataloader, translated(dataloader))


def refuse_empty(dataset: Any) -> None:
    with pytest.raises(hr.ConfigError, match=r"HR0834.*Subset has no records"):
        translated(DataLoader(Subset(dataset, []), batch_size=2))


def test_an_empty_subset_is_refused() -> None:
    refuse_empty(numbers())
    refuse_empty(list(range(3)))


def test_an_empty_subset_of_a_folder_is_refused(pictures: Path) -> None:
    refuse_empty(pytest.importorskip("torchvision.datasets").ImageFolder(pictures))


def test_datasets_get_the_indices_of_a_subset_from_the_start() -> None:
    """Some do not take negative ones, such as `datasets.Dataset.select`."""
    opened = importlib.import_module("headrace.migrate.dataset")._opened
    assert opened(Subset(Subset(range(9), [-1, 2]), [-2, 1]))[1].tolist() == [8, 2]
    assert opened(Subset(range(9), [8, -10]))[1].tolist() == [8, -10]  # not record 8 again


def test_an_unknown_dataset_becomes_a_step_that_runs_in_workers_too() -> None:
    dataloader = DataLoader(own.Words(), batch_size=4)
    theirs = list(dataloader)
    for workers in (0, 2):
        with translated(dataloader, python_workers=workers) as loader:
            ours = list(loader.torch(batch="dict"))
            again = list(loader.torch(batch="dict"))
        for name in ("x", "y"):
            for mine, other in zip(ours, theirs, strict=True):
                assert mine[name].dtype == other[name].dtype
                assert torch.equal(mine[name], other[name])
        assert [text for batch in ours for text in batch["text"]] == [f"n{i}" for i in range(11)]
        noise = [torch.cat([batch["noise"] for batch in run]) for run in (ours, again)]
        assert not torch.equal(*noise)  # another epoch
        assert len({float(x) for x in noise[0].ravel()}) == 22
    (part,) = loader.report.python
    assert part.name == "Words (11 records)" and "draws random numbers" in part.note


def test_a_subset_of_another_dataset_keeps_its_rows() -> None:
    loader = translated(DataLoader(Subset(own.Words(), [7, 2]), batch_size=2))
    assert next(iter(loader)).x[:, 0, 0].tolist() == [7, 2]


def test_draws_of_a_dataset_do_not_affect_the_programs_generators() -> None:
    import random

    before = random.getstate(), torch.random.get_rng_state()
    list(translated(DataLoader(own.Words(), batch_size=4)))
    assert random.getstate() == before[0]
    assert torch.equal(torch.random.get_rng_state(), before[1])


def test_torch_samplers_are_translated() -> None:
    dataset = numbers(20)

    def labels(**options: Any) -> list[int]:
        loader = translated(DataLoader(dataset, batch_size=5, **options))
        return [int(label) for batch in loader for label in batch[1]]

    assert sorted(labels(shuffle=True)) == list(range(20)) != labels(shuffle=True)
    assert sorted(labels(sampler=SubsetRandomSampler([3, 9, 12]))) == [3, 9, 12]
    assert labels(sampler=[4, 4, 1]) == [4, 4, 1]
    assert labels(sampler=SequentialSampler(dataset)) == list(range(20))
    weights = [0.0] * 19 + [1.0]
    assert labels(sampler=WeightedRandomSampler(weights, 7)) == [19] * 7
    assert len(labels(sampler=RandomSampler(dataset, replacement=True, num_samples=33))) == 33
    batches = BatchSampler(SequentialSampler(dataset), 6, drop_last=True)
    loader = translated(DataLoader(dataset, batch_sampler=batches))
    assert [len(batch[0]) for batch in loader] == [6, 6, 6]


def test_ranks_of_a_distributed_sampler_read_each_record_once() -> None:
    dataset, seen = numbers(24), []
    for rank in range(3):
        sampler = DistributedSampler(dataset, num_replicas=3, rank=rank, seed=5)
        loader = translated(DataLoader(dataset, batch_size=4, sampler=sampler))
        seen += [int(label) for batch in loader for label in batch[1]]
    assert sorted(seen) == list(range(24))


class Endless(IterableDataset):  # type: ignore[type-arg]
    def __iter__(self) -> Any:
        return iter(range(10))


class Restless:
    """A different order each time."""

    count = 0

    def __iter__(self) -> Any:
        self.count += 1
        return iter([self.count % 10])

    def __len__(self) -> int:
        return 1


@pytest.mark.parametrize(
    ("dataloader", "what", "way_out"),
    [
        (lambda: DataLoader(Endless()), "IterableDataset", "hr.prefetch"),
        (lambda: DataLoader(numbers(), sampler=Restless()), "Restless", "headrace.sampling"),
        (lambda: DataLoader(numbers(), batch_size=None), "no batches", "batch_size=N"),
        (lambda: DataLoader([(torch.zeros(3), None)]), "data2 of record 0 is NoneType", "-1"),
        (
            lambda: DataLoader([(torch.zeros(3), 1), (torch.zeros(3), None)]),
            "data2 (NoneType), but the first record has data",
            "-1",
        ),
        (
            lambda: DataLoader([{"x": 1.5, "y": 1 if i < 9 else None} for i in range(10)]),
            "y of record 9 is NoneType",
            "-1",
        ),
    ],
)
def test_a_loader_that_cannot_be_translated_is_refused_with_a_hint(
    dataloader: Any, what: str, way_out: str
) -> None:
    with pytest.raises(hr.ConfigError) as caught:
        translated(dataloader())
    assert caught.value.code == "HR0834"
    assert what in str(caught.value) and way_out in caught.value.hint


def test_the_suggested_fixes_work() -> None:
    loader = translated(DataLoader(numbers(), batch_size=2, collate_fn=first_of), collate="default")
    assert next(iter(loader))[1].tolist() == [0, 1]
    assert "first_of" in loader.report.changed[0].name
    restless = DataLoader(numbers(), sampler=Restless(), batch_size=2, drop_last=True)
    loader = translated(restless, sampler=[5, 6, 7])
    assert [batch[1].tolist() for batch in loader] == [[5, 6]]
    loader = translated(DataLoader(numbers(), batch_size=None), batch_size=4)
    assert [len(batch[0]) for batch in loader] == [4, 4, 2]
    own_batches = DataLoader(numbers(), batch_sampler=[[1], [2, 3]])
    with pytest.raises(hr.ConfigError, match="as batch_sampler"):
        translated(own_batches, batch_size=4)
    assert len(translated(own_batches, batch_size=4, shuffle=True)) == 3


def test_the_report_says_what_happens_to_keywords(capsys: pytest.CaptureFixture[str]) -> None:
    generator = torch.Generator().manual_seed(77)
    dataloader = DataLoader(
        own.Words(), batch_size=4, num_workers=3, timeout=9, shuffle=True, generator=generator
    )
    loader = hr.from_dataloader(dataloader)
    printed = capsys.readouterr().out
    assert printed.strip() == str(loader.report)
    dropped = {part.name.partition("=")[0]: part.note for part in loader.report.dropped}
    assert set(dropped) == {"num_workers", "timeout"}
    advice = [part.name for part in loader.report.advice]
    workers = min(3, len(os.sched_getaffinity(0)))  # more than the number of cores would only wait
    more = [f"python_workers={workers}"] if workers > 1 else []
    assert advice == more
    assert "seed=77" in printed and loader.state_dict()["seed"] == 77
    assert loader.report.records_checked == 11 and "compared     11 records" in printed


def test_the_comparison_does_not_keep_the_loaders_batches() -> None:
    pictures = [(torch.zeros(3, 200, 200, dtype=torch.uint8), i) for i in range(64)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert translated(DataLoader(pictures, batch_size=4)).report.records_checked == 32


def test_headrace_imports_neither_torch_nor_torchvision() -> None:
    code = "import headrace.migrate, sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "torchvision", "PIL"} & set(json.loads(done.stdout))


def test_a_translation_imports_no_masked_arrays_of_numpy() -> None:
    """NumPy imports it for np.unique, and when np.ma is accessed: 15 ms at each script's start."""
    code = (
        "import sys, torch\n"
        "before = set(sys.modules)\n"
        "import headrace as hr\n"
        "data = [(torch.full((3, 8, 8), i, dtype=torch.uint8), i) for i in range(9)]\n"
        "loader = torch.utils.data.DataLoader(data, batch_size=4)\n"
        "next(iter(hr.from_dataloader(loader, verbose=False).torch()))\n"
        "assert 'numpy.ma' in before or 'numpy.ma' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_compared_records_are_a_sample_of_the_whole_dataset() -> None:
    assert spread(100, 3) == [0, 49, 99] and spread(5, 9) == [0, 1, 2, 3, 4]
    assert (spread(1, 8), spread(0, 8), spread(7, 1)) == ([0], [], [0])
    for length, count in ((1_281_167, 32), (33, 32), (32, 32)):
        places = spread(length, count)
        assert len(places) == count and (places[0], places[-1]) == (0, length - 1)
        gaps = np.diff(places)
        assert gaps.min() >= 1 and gaps.max() - gaps.min() <= 1


class DatasetFolder:
    """Resembles torchvision's DatasetFolder."""

    __module__ = "torchvision.ducks"

    classes = ("a", "b", "c")

    def __init__(self, samples: list[tuple[str, int]], transform: Any) -> None:
        self.samples = samples
        self.loader = load
        self.transform, self.target_transform, self.transforms = transform, None, None

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> Any:
        image = self.loader(self.samples[index][0])
        return (self.transform(image) if self.transform else image), self.samples[index][1]


def load(path: str) -> Any:
    return Image.open(path).convert("RGB")


load.__module__ = "torchvision.datasets.folder"


class Resize:
    """Resembles torchvision's."""

    __module__ = "torchvision.ducks"

    def __init__(self, size: Any) -> None:
        self.size, self.max_size, self.interpolation, self.antialias = size, None, "bilinear", True

    def __call__(self, image: Any) -> Any:
        return image.resize(self.size[::-1], Image.Resampling.BILINEAR)


class ToTensor:
    """Resembles torchvision's."""

    __module__ = "torchvision.ducks"

    def __call__(self, image: Any) -> Any:
        pixels = np.asarray(image).transpose(2, 0, 1)
        return torch.from_numpy(np.ascontiguousarray(pixels)).float().div(255)


class Compose:
    """Resembles torchvision's."""

    __module__ = "torchvision.ducks"

    def __init__(self, transforms: list[Any]) -> None:
        self.transforms = transforms

    def __call__(self, image: Any) -> Any:
        for transform in self.transforms:
            image = transform(image)
        return image


def test_classes_are_recognized_by_name_and_module(pictures: Path) -> None:
    samples = [(str(path), label_of(path)) for path in files_of(pictures)]
    recipe = Compose([own.Invert(), Resize((9, 8)), ToTensor()])
    dataloader = DataLoader(DatasetFolder(samples, recipe), batch_size=5)
    loader = translated(dataloader)
    assert_same_batches(dataloader, loader, tolerance=1e-6)
    assert not loader.report.python  # also the script's own code, in the way it calls Pillow
    assert loader.source.classes == ["a", "b", "c"]
    assert "torchvision.ducks" not in sys.modules


def test_an_argument_that_is_not_a_dataloader_is_refused_with_a_hint() -> None:
    data = [(np.zeros((3, 4, 4), np.uint8), 1)]
    with pytest.raises(hr.ConfigError, match=r"HR0834.*list is not a DataLoader") as caught:
        hr.from_dataloader(data)
    assert "hr.Loader(dataset" in caught.value.hint


def test_the_report_says_that_torchs_seed_does_not_change_the_order() -> None:
    data = [(torch.zeros(3, 8, 8, dtype=torch.uint8), i) for i in range(9)]
    report = str(translated(DataLoader(data, batch_size=4, shuffle=True)).report)
    assert "seed=0: torch.manual_seed() does not change it: set seed=N" in report


def test_a_compose_of_torchvision_is_a_loaders_list(pictures: Path) -> None:
    v2 = pytest.importorskip("torchvision.transforms.v2")
    recipe = v2.Compose([v2.Resize((9, 7)), v2.RandomHorizontalFlip(1.0), v2.PILToTensor()])
    (ours,) = hr.Loader(pictures, recipe, batch_size=23)
    steps = [T.Resize((9, 7)), T.RandomHorizontalFlip(1.0)]
    (want,) = hr.Loader(pictures, steps, batch_size=23)
    assert np.array_equal(ours.image, want.image)
