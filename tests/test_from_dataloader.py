# SPDX-License-Identifier: Apache-2.0
"""hr.from_dataloader(): the same batches as torch's DataLoader, and a report that says how."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import migrated_classes as own
import numpy as np
import pytest
from conftest import files_of, label_of

import headrace as hr

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

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def numbers(count: int = 10) -> Any:
    return TensorDataset(torch.arange(count * 3.0).reshape(count, 3), torch.arange(count))


def translated(dataloader: Any, **options: Any) -> Any:
    return hr.from_dataloader(dataloader, verbose=False, **options)


def assert_same_batches(dataloader: Any, loader: Any, tolerance: float = 0) -> None:
    """Every batch of an epoch, dtypes and shapes included."""
    theirs, ours = list(dataloader), list(loader.torch())
    assert len(ours) == len(theirs)
    for ours_batch, theirs_batch in zip(ours, theirs, strict=True):
        assert len(ours_batch) == len(theirs_batch)
        for mine, other in zip(ours_batch, theirs_batch, strict=True):
            assert mine.dtype == other.dtype and mine.shape == other.shape
            torch.testing.assert_close(mine, torch.as_tensor(other), rtol=0, atol=tolerance)


# With torch alone.


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


def test_subsets_of_subsets_are_the_same_records() -> None:
    subset = Subset(Subset(numbers(30), range(5, 25)), [3, 3, 0, 19])
    dataloader = DataLoader(subset, batch_size=3)
    assert_same_batches(dataloader, translated(dataloader))


def test_another_dataset_becomes_a_step_that_runs_in_workers_too() -> None:
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
    assert part.name == "Words (11 records)" and "does not know" in part.note


def test_a_subset_of_another_dataset_keeps_its_rows() -> None:
    loader = translated(DataLoader(Subset(own.Words(), [7, 2]), batch_size=2))
    assert next(iter(loader)).x[:, 0, 0].tolist() == [7, 2]


def test_draws_of_a_dataset_leave_the_programs_generators_alone() -> None:
    import random

    before = random.getstate(), torch.random.get_rng_state()
    list(translated(DataLoader(own.Words(), batch_size=4)))
    assert random.getstate() == before[0]
    assert torch.equal(torch.random.get_rng_state(), before[1])


def test_samplers_of_torch_become_ours() -> None:
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


def test_ranks_of_a_distributed_sampler_have_each_record_once() -> None:
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
    """Another order each time."""

    count = 0

    def __iter__(self) -> Any:
        self.count += 1
        return iter([self.count % 10])

    def __len__(self) -> int:
        return 1


def first_of(batch: Any) -> Any:
    return batch[0]


@pytest.mark.parametrize(
    ("dataloader", "what", "way_out"),
    [
        (lambda: DataLoader(Endless()), "IterableDataset", "hr.prefetch"),
        (lambda: DataLoader(numbers(), collate_fn=first_of), "first_of", 'collate="default"'),
        (lambda: DataLoader(numbers(), sampler=Restless()), "Restless", "headrace.sampling"),
        (lambda: DataLoader(numbers(), batch_size=None), "no batches", "batch_size=N"),
        (lambda: DataLoader(numbers(), batch_sampler=[[1], [2, 3]]), "a list", "headrace.sampling"),
        (
            lambda: DataLoader(numbers(), sampler=RandomSampler(numbers(), num_samples=3)),
            "3 of 10",
            "hr.subset",
        ),
        (lambda: DataLoader([{"x": {"y": 1}}]), "x of a record is", "tuples or dictionaries"),
    ],
)
def test_what_cannot_be_translated_is_refused_with_the_way_out(
    dataloader: Any, what: str, way_out: str
) -> None:
    with pytest.raises(hr.ConfigError) as caught:
        translated(dataloader())
    assert caught.value.code == "HR0834"
    assert what in str(caught.value) and way_out in caught.value.hint


def test_the_ways_out_lead_out() -> None:
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


def test_the_report_says_what_becomes_of_keywords(capsys: pytest.CaptureFixture[str]) -> None:
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
    assert advice == ['.torch(batch="dict")', "python_workers=3"]
    assert "seed=77" in printed and loader.state_dict()["seed"] == 77
    assert loader.report.records_checked == 11 and "compared     11 records" in printed


def test_headrace_imports_neither_torch_nor_torchvision() -> None:
    code = "import headrace.migrate, sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "torchvision", "PIL"} & set(json.loads(done.stdout))


# With torchvision.


@pytest.fixture(scope="module")
def tv() -> Any:
    return pytest.importorskip("torchvision")


def folder(tv: Any, root: Path, transform: Any, **more: Any) -> Any:
    return tv.datasets.ImageFolder(str(root), transform=transform, **more)


def test_evaluation_of_a_folder_is_native_and_equal(tv: Any, pictures: Path) -> None:
    v1 = tv.transforms
    recipe = [v1.Resize(24), v1.CenterCrop(16), v1.ToTensor(), v1.Normalize(MEAN, STD)]
    dataloader = DataLoader(folder(tv, pictures, v1.Compose(recipe)), batch_size=5)
    loader = translated(dataloader)
    assert_same_batches(dataloader, loader, tolerance=1e-6)
    assert not loader.report.python
    assert loader.source.classes == ["cat", "dog", "eel"]
    assert loader.report.differences["label"] == 0 < loader.report.differences["image"] < 1e-6


def test_training_pipelines_of_both_versions_are_native(tv: Any, pictures: Path) -> None:
    from torchvision.transforms import v2

    v1 = tv.transforms
    first = [
        v1.RandomResizedCrop(16),
        v1.RandomHorizontalFlip(),
        v1.RandomVerticalFlip(),
        v1.Pad(2, fill=7),
        v1.RandomCrop(16, padding=3),
        v1.RandomApply([v1.RandomHorizontalFlip(1.0)], p=0.3),
        v1.PILToTensor(),
        v1.ConvertImageDtype(torch.float32),
        v1.Normalize(MEAN, STD),
    ]
    second = [
        v2.RandomResizedCrop(16, antialias=True),
        v2.RandomHorizontalFlip(),
        v2.RandomCrop(16, padding=3),
        v2.ToImage(),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize(MEAN, STD),
    ]
    for recipe in (v1.Compose(first), v2.Compose([v2.Compose(second), v2.Identity()])):
        loader = translated(DataLoader(folder(tv, pictures, recipe), batch_size=4, shuffle=True))
        assert not loader.report.python, loader.report
        assert loader.report.records_checked == 23
        assert next(iter(loader)).image.shape == (4, 3, 16, 16)


def test_torchs_own_resize_of_tensors_is_pillows_within_one(tv: Any, pictures: Path) -> None:
    from torchvision.transforms import v2

    recipe = v2.Compose([v2.ToImage(), v2.Resize((17, 16), antialias=True)])
    dataset = folder(tv, pictures, recipe)
    loader = translated(DataLoader(dataset, batch_size=23))
    (part,) = [part for part in loader.report.native if part.note.startswith("Pillow's")]
    assert part.name.startswith("Resize")
    ours = next(iter(loader.torch())).image.int()
    theirs = torch.stack([image for image, _ in dataset]).int()
    assert (ours - theirs).abs().max() <= 1


def test_what_has_no_operator_runs_as_it_is(tv: Any, pictures: Path) -> None:
    v1 = tv.transforms
    recipe = [
        own.Invert(),
        v1.Grayscale(3),
        v1.Resize((12, 12)),
        v1.GaussianBlur(3, (1.0, 1.0)),
        v1.ToTensor(),
        v1.Lambda(torch.exp),
        v1.Normalize(MEAN, STD),
    ]
    dataset = folder(tv, pictures, v1.Compose(recipe), target_transform=own.plus_ten)
    dataloader = DataLoader(dataset, batch_size=6)
    for workers in (0, 1):
        with translated(dataloader, python_workers=workers) as loader:
            assert_same_batches(dataloader, loader, tolerance=2e-6)
    names = [part.name for part in loader.report.python]
    assert [name.partition("(")[0] for name in names] == [
        "Invert",
        "Grayscale",
        "GaussianBlur",
        "Lambda",
        "target_transform plus_ten",
    ]


def test_other_shapes_and_dtypes_are_declared(tv: Any, pictures: Path) -> None:
    v1 = tv.transforms
    recipe = v1.Compose([v1.Resize((5, 6)), own.Grow(), torch.from_numpy])
    dataset = folder(tv, pictures, recipe, target_transform=own.half)
    dataloader = DataLoader(dataset, batch_size=23)
    assert_same_batches(dataloader, translated(dataloader))


def test_random_steps_in_python_repeat_and_differ_by_record(tv: Any, pictures: Path) -> None:
    v1 = tv.transforms
    recipe = v1.Compose([v1.Resize((8, 8)), v1.ColorJitter(0.9), v1.ToTensor()])
    dataset = folder(tv, pictures, recipe)
    same = Subset(dataset, [0] * 6)
    runs = [
        next(iter(translated(DataLoader(same, batch_size=6), threads=threads))).image
        for threads in (1, 3)
    ]
    np.testing.assert_array_equal(*runs)
    assert len({image.tobytes() for image in runs[0]}) == 6


def test_arrays_in_memory_are_sources(tv: Any, tmp_path: Path) -> None:
    v1 = tv.transforms
    rng = np.random.default_rng(0)
    cifar = tv.datasets.CIFAR10.__new__(tv.datasets.CIFAR10)
    cifar.data = rng.integers(0, 256, (40, 32, 32, 3), dtype=np.uint8)
    cifar.targets = rng.integers(0, 10, 40).tolist()
    cifar.transform = v1.Compose([v1.ToTensor(), v1.Normalize(MEAN, STD)])
    mnist = tv.datasets.FashionMNIST.__new__(tv.datasets.FashionMNIST)
    mnist.data = torch.from_numpy(rng.integers(0, 256, (40, 28, 28), dtype=np.uint8))
    mnist.targets = torch.arange(40) % 10
    mnist.transform = v1.Compose([v1.Pad(2), v1.ToTensor(), v1.Normalize(0.13, 0.31)])
    for dataset in (cifar, mnist):
        dataset.target_transform = dataset.transforms = None
        dataloader = DataLoader(dataset, batch_size=16)
        loader = translated(dataloader)
        assert_same_batches(dataloader, loader, tolerance=1e-6)
        assert not loader.report.python


def test_coco_is_read_from_its_file(tv: Any, pictures: Path, tmp_path: Path) -> None:
    pytest.importorskip("pycocotools")
    images, annotations = [], []
    for number, path in enumerate(files_of(pictures)):
        images.append(
            {
                "id": 100 - number,
                "file_name": str(path.relative_to(pictures)),
                "width": 1000,
                "height": 1000,
            }
        )
        for box in range(number % 3):
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": 100 - number,
                    "area": 6,
                    "category_id": 7 + box,
                    "bbox": [1, box, 2, 3],
                    "iscrowd": 0,
                }
            )
    file = tmp_path / "boxes.json"
    categories = [{"id": i, "name": f"c{i}"} for i in range(7, 9)]
    file.write_text(
        json.dumps({"images": images, "annotations": annotations, "categories": categories})
    )
    recipe = tv.transforms.Compose([tv.transforms.Resize((8, 8)), tv.transforms.ToTensor()])
    dataset = tv.datasets.CocoDetection(str(pictures), str(file), transform=recipe)
    dataloader = DataLoader(dataset, batch_size=4, collate_fn=first_of)
    with pytest.raises(hr.ConfigError, match="annotations="):
        translated(dataloader, collate="default")
    loader = translated(dataloader, collate="default", annotations=file)
    assert loader.report.records_checked == 23
    boxes = [boxes for batch in loader for boxes in batch.boxes]
    assert [len(box) for box in boxes] == [len(target) for _, target in dataset]


def test_overridden_datasets_are_asked_themselves(tv: Any, pictures: Path) -> None:
    class Marked(tv.datasets.ImageFolder):  # type: ignore[misc, name-defined]
        def __getitem__(self, index: int) -> Any:
            image, label = super().__getitem__(index)
            return image, label, index

    recipe = tv.transforms.Compose([tv.transforms.Resize((4, 4)), tv.transforms.ToTensor()])
    dataloader = DataLoader(Marked(str(pictures), recipe), batch_size=9)
    loader = translated(dataloader)
    assert_same_batches(dataloader, loader)
    assert "a __getitem__ of its own" in loader.report.python[0].note


def test_labels_that_were_changed_are_the_ones_delivered(tv: Any, pictures: Path) -> None:
    dataset = folder(tv, pictures, tv.transforms.Resize((4, 4)))
    dataset.transform = tv.transforms.Compose([dataset.transform, tv.transforms.ToTensor()])
    dataset.samples = [(path, 2 - label) for path, label in reversed(dataset.samples)]
    labels = next(iter(translated(DataLoader(dataset, batch_size=23)))).label
    assert labels.tolist() == [2 - label_of(path) for path in reversed(files_of(pictures))]


def test_other_pixels_are_an_error_that_names_record_and_step(tv: Any, pictures: Path) -> None:
    v1 = tv.transforms
    recipe = v1.Compose([v1.Resize((8, 8)), own.Counting(), v1.ToTensor()])
    dataloader = DataLoader(folder(tv, pictures, recipe), batch_size=4)
    with pytest.raises(hr.ConfigError, match="behind Counting") as caught:
        translated(dataloader)
    assert caught.value.code == "HR0835" and "image of record 0 differs" in str(caught.value)
    assert translated(dataloader, check=False).report.records_checked == 0
