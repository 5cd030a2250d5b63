# SPDX-License-Identifier: Apache-2.0
"""create_naflex_loader in place of timm's: the same batches, epochs, and a kill in mid-epoch."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forked import notes_of, output_of
from PIL import Image

import headrace as hr

torch = pytest.importorskip("torch")
torchvision = pytest.importorskip("torchvision")
timm_data = pytest.importorskip("timm.data")
from headrace.trainers.timm import create_naflex_loader  # noqa: E402

RECORDS = 42


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("naflex")
    for number in range(RECORDS):
        folder = root / "train" / f"class{number % 3}"
        folder.mkdir(parents=True, exist_ok=True)
        random = np.random.default_rng(number)
        height, width = random.integers(30, 120, 2)
        pixels = random.integers(0, 256, (height, width, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.jpg")
    return root


def dataset_of(root: Path) -> Any:
    return timm_data.create_dataset("", str(root), split="train", is_training=True)


def options_of(**options: Any) -> dict[str, Any]:
    size = {} if "patch_size_choices" in options else {"patch_size": 16}
    return {
        "train_seq_lens": (16, 32, 49),
        "batch_size": 4,
        "is_training": True,
        "num_workers": 0,
        "pin_memory": False,
        "device": torch.device("cpu"),
        **size,
        **options,
    }


def loader_of(root: Path, **options: Any) -> Any:
    return create_naflex_loader(dataset_of(root), verbose=False, **options_of(**options))


def assert_same(ours: Any, theirs: Any) -> None:
    (ours, our_targets), (theirs, their_targets) = ours, theirs
    assert ours.keys() == theirs.keys() and ours["seq_len"] == theirs["seq_len"]
    assert torch.equal(our_targets, their_targets)
    for name in ("patch_coord", "patch_valid"):
        assert ours[name].dtype == theirs[name].dtype and torch.equal(ours[name], theirs[name])
    torch.testing.assert_close(ours["patches"], theirs["patches"], rtol=0, atol=1e-5)


@pytest.mark.parametrize("prefetched", [True, False])
@pytest.mark.parametrize("channels_last", [True, False])
@pytest.mark.parametrize("sizes", [{"patch_size": 16}, {"patch_size_choices": [8, 16]}])
def test_batches_without_augmentation_equal_those_of_timm(
    root: Path, sizes: Any, channels_last: bool, prefetched: bool
) -> None:
    """Their order, sequence lengths, patch sizes and padding, in each epoch."""
    options = options_of(
        no_aug=True, use_prefetcher=prefetched, patchify_channels_last=channels_last, **sizes
    )
    theirs = timm_data.create_naflex_loader(dataset_of(root), **options)
    ours = create_naflex_loader(dataset_of(root), verbose=False, **options)
    assert len(ours) == len(theirs) > 10
    for epoch in (0, 3):
        theirs.dataset.set_epoch(epoch)
        ours.dataset.set_epoch(epoch)
        of_epoch = list(ours)
        assert {batch["seq_len"] for batch, _ in of_epoch} == {16, 32, 49}
        for one, other in zip(of_epoch, theirs, strict=True):
            assert_same(one, other)


def test_evaluation_batches_equal_those_of_timm(root: Path) -> None:
    options = options_of(is_training=False, max_seq_len=32)
    theirs = timm_data.create_naflex_loader(dataset_of(root), **options)
    ours = create_naflex_loader(dataset_of(root), verbose=False, **options)
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert_same(one, other)


class Plain:
    """A dataset of one's own, without an attribute ``transform``."""

    def __init__(self, root: Path) -> None:
        self.files = sorted(root.rglob("*.jpg"))

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Any:
        return Image.open(self.files[index]).convert("RGB"), index


class InMemory(Plain):
    def __getitem__(self, index: int) -> Any:
        return Image.new("RGB", (20, 20 + index)), index


def test_datasets_of_ones_own_are_taken_if_they_open_files(root: Path) -> None:
    options = options_of(no_aug=True)
    theirs = timm_data.create_naflex_loader(Plain(root), **options)
    ours = create_naflex_loader(Plain(root), verbose=False, **options)
    assert not ours.report.python, str(ours.report)
    for one, other in zip(ours, theirs, strict=True):
        assert_same(one, other)
    with pytest.raises(hr.ConfigError, match=r"HR0850.*stay in Python.*from memory"):
        create_naflex_loader(InMemory(root), verbose=False, **options)


def test_a_transform_that_the_dataset_has_comes_first(root: Path) -> None:
    """As in timm's own loader, which applies its transforms to what the dataset returns. All images
    have one size here, and so many patches."""

    def dataset() -> Any:
        made = dataset_of(root)
        made.transform = torchvision.transforms.CenterCrop(30)
        return made

    options = options_of(no_aug=True)
    theirs = timm_data.create_naflex_loader(dataset(), **options)
    ours = create_naflex_loader(dataset(), verbose=False, **options)
    for one, other in zip(ours, theirs, strict=True):
        assert_same(one, other)


def test_batches_keep_to_their_budget_and_each_epoch_has_each_record_once(root: Path) -> None:
    loader = loader_of(root, auto_augment="rand-m9-mstd0.5-inc1", interpolation="random")
    orders = []
    for _ in range(2):
        targets = []
        for batch, labels in loader:
            count, tokens, values = batch["patches"].shape
            assert tokens == batch["seq_len"] and count * tokens <= 4 * 49 and values == 16 * 16 * 3
            assert batch["patches"].dtype == torch.float32 and labels.dtype == torch.int64
            assert batch["patch_valid"].any(1).all()
            targets.append(labels.tolist())
        flat = [label for each in targets for label in each]
        assert sorted(flat) == sorted(number % 3 for number in range(RECORDS))
        orders.append(targets)
    assert orders[0] != orders[1], "each epoch has its order"
    assert not loader.report.python, str(loader.report)


def test_epochs_follow_the_script_or_each_other(root: Path) -> None:
    loader = loader_of(root)
    first = [labels.tolist() for _, labels in loader]
    assert loader.epoch == 1
    loader.dataset.set_epoch(0)  # as train.py does
    assert [labels.tolist() for _, labels in loader] == first
    next(iter(loader))  # left in the middle of epoch 1
    for _ in loader:
        assert loader.epoch == 2
        break
    loader.close()


@pytest.mark.parametrize("erased", [0.0, 0.5])
def test_a_state_resumes_with_the_next_batch(root: Path, erased: float) -> None:
    make = functools.partial(loader_of, root, patch_size_choices=[8, 16], re_prob=erased)
    loader = make()
    through = [[batch["patches"] for batch, _ in loader] for _ in range(2)]
    for taken in (1, 7, len(through[0])):
        begun = make()
        for _, _batch in zip(range(taken), begun, strict=False):
            state = begun.state_dict()
        resumed = make()
        resumed.load_state_dict(state)
        rest = [batch["patches"] for batch, _ in resumed]
        assert len(rest) == len(through[0]) - taken
        assert all(map(torch.equal, rest, through[0][taken:]))
        following = [batch["patches"] for batch, _ in resumed]
        assert all(map(torch.equal, following, through[1]))


def test_misfits_are_refused(root: Path) -> None:
    with pytest.raises(hr.ConfigError, match=r"HR0850.*mixup_fn"):
        loader_of(root, mixup_fn=timm_data.NaFlexMixup(num_classes=3))
    with pytest.raises(hr.ConfigError, match=r"HR0850.*not square"):
        loader_of(root, patch_size=(8, 16))
    state = loader_of(root).state_dict()
    with pytest.raises(hr.ConfigError, match=r"HR0850.*other records, other arguments"):
        loader_of(root, batch_size=8).load_state_dict(state)
    with pytest.raises(hr.ConfigError, match=r"HR0850.*has no batch, schedule"):
        loader_of(root).load_state_dict({"epoch": 1})


def test_two_ranks_resume_exactly_after_a_kill(root: Path, tmp_path: Path) -> None:
    output_of("trainers/ranks_timm_naflex.py", tmp_path, root, cwd=tmp_path)
    lengths = []
    for rank in range(2):
        whole, killed, resumed = (
            notes_of(tmp_path, name, rank) for name in ("whole", "killed", "resumed")
        )
        assert killed == whole[:7] and resumed == whole[4:]
        lengths.append([length for length, *_ in whole])
    assert lengths[0] == lengths[1], "both ranks have one sequence length in each step"
