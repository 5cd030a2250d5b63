# SPDX-License-Identifier: Apache-2.0
"""A transform that is changed by the dataset, or by its own calls, is not constant:
from_dataloader() leaves it in Python, even if it is unchanged in the end."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from migrated_classes import translated
from PIL import Image

pytest.importorskip("torchvision")
import torch
import traced_datasets as sets
from headrace.migrate import through
from headrace.migrate.look import child, looking
from torch.utils.data import DataLoader, get_worker_info
from torchvision import transforms as v1
from torchvision.transforms import v2

pytestmark = pytest.mark.skipif(not child.can_fork(), reason="it forks")

RARE = 17


@pytest.fixture(scope="module", autouse=True)
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("changing") / "train"
    rng = np.random.default_rng(3)
    for number in range(30):
        folder = root / ("cat", "dog", "eel")[number % 3]
        folder.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 256, (20, 24, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:02}.png")
    sets.use(root)
    return root


class Changes(sets.Base):
    """Calls ``change(self)`` for one record, and undoes it with the function that it returns."""

    def __init__(self, change: Callable[[Any], Any], transform: Any = None, **more: Any) -> None:
        super().__init__(transform, **more)
        self._change = [change]

    def __getitem__(self, i: int) -> Any:
        restore = self._change[0](self) if i == RARE else None
        image = self.transform(self.open(i))
        if restore is not None:
            restore()
        return image, self.labels[i]


def setting(*path: str, name: str = "p", value: Any = 1.0) -> Callable[[Any], Any]:
    """Sets an attribute of the object at the path."""

    def change(dataset: Any) -> Any:
        holder = functools.reduce(
            lambda one, key: one[int(key)] if key.isdigit() else getattr(one, key), path, dataset
        )
        before = getattr(holder, name)
        setattr(holder, name, value)
        return lambda: setattr(holder, name, before)

    return change


def flips() -> Any:
    return v1.Compose([v1.RandomHorizontalFlip(0.0), v1.PILToTensor()])


class Brighter:
    """A user's function, whose strength other code may set."""

    strength = 1.0
    table: ClassVar[dict[str, float]] = {"more": 0.0}

    def __call__(self, image: Any) -> Any:
        return (torch.from_numpy(np.array(image)) * self.strength + self.table["more"]).byte()


STRENGTH = 1.0


def by_global(image: Any) -> Any:
    return (torch.from_numpy(np.array(image)) * STRENGTH).byte()


def set_global(dataset: Any) -> Any:
    global STRENGTH
    STRENGTH = 0.5

    def restore() -> None:
        global STRENGTH
        STRENGTH = 1.0

    return restore


def replace_entry(dataset: Any) -> Any:
    inner = dataset.transform.transforms
    before, inner[0] = inner[0], v1.RandomHorizontalFlip(1.0)
    return functools.partial(inner.__setitem__, 0, before)


def write_table(dataset: Any) -> Any:
    Brighter.table["more"] = 9.0
    return functools.partial(Brighter.table.__setitem__, "more", 0.0)


def scale_mean(dataset: Any) -> Any:
    dataset.transform.mean.mul_(2)
    return functools.partial(dataset.transform.mean.mul_, 0.5)


class Centered(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mean = torch.ones(3, 1, 1)

    def forward(self, image: Any) -> Any:
        return torch.from_numpy(np.array(image)).permute(2, 0, 1) - self.mean


class Lends(sets.Base):
    """Its transform is a function that reads the dataset's own attribute."""

    def __init__(self) -> None:
        super().__init__(v1.Compose([v1.PILToTensor(), v1.Lambda(lambda x: x * self.scale)]))
        self.scale = 1

    def __getitem__(self, i: int) -> Any:
        self.scale = 2 if i == RARE else 1
        out = self.transform(self.open(i)), self.labels[i]
        self.scale = 1
        return out


class Flags(sets.Base):
    """Controls the transform through a shared dictionary."""

    def __init__(self) -> None:
        self.flags = {"double": False}
        flags = self.flags
        super().__init__(
            v1.Compose([v1.PILToTensor(), v1.Lambda(lambda x: x * (1 + flags["double"]))])
        )

    def __getitem__(self, i: int) -> Any:
        self.flags["double"] = i == RARE
        out = self.transform(self.open(i)), self.labels[i]
        self.flags["double"] = False
        return out


class Worker(sets.Base):
    def __getitem__(self, i: int) -> Any:
        if (info := get_worker_info()) is not None:
            self.transform.transforms[1].p = info.id / info.num_workers
        return self.transform(self.open(i)), self.labels[i]


def held() -> Any:
    flip = v1.RandomHorizontalFlip(0.0)
    cfg = SimpleNamespace(flip=flip)
    return Changes(setting("cfg", "flip"), v1.Compose([flip, v1.PILToTensor()]), cfg=cfg)


def inner(*path: str, **options: Any) -> Callable[[], Any]:
    return lambda: Changes(setting(*path, **options), flips())


MADE: dict[str, tuple[Callable[[], Any], str]] = {
    "of the transform itself": (
        lambda: Changes(setting("flip"), flip=v1.RandomHorizontalFlip(0.0)),
        r"sets \.p of its flip",
    ),
    "of one in its list": (inner("transform", "transforms", "0"), r"transforms\[0\]\.p"),
    "of its class": (
        lambda: Changes(setting("transform", "__class__", name="strength", value=0.5), Brighter()),
        "changes Brighter.strength",
    ),
    "of what holds it": (held, r"transforms\[0\]\.p"),
    "an entry of its list": (lambda: Changes(replace_entry, flips()), r"transform\.transforms"),
    "a global of its module": (lambda: Changes(set_global, by_global), "the global STRENGTH"),
    "a dictionary of its class": (
        lambda: Changes(write_table, Brighter()),
        r"Brighter\.table\['more'\]|Brighter\.table\.more",
    ),
    "a tensor in place": (lambda: Changes(scale_mean, Centered()), r"transform\.mean"),
    "an attribute of the dataset that its transform reads": (Lends, r"changes self\.scale|refers"),
    "a dictionary that both have": (Flags, "refers to the dataset"),
    "by what the worker is": (Worker, r"get_worker_info\(\)"),
}


@pytest.mark.parametrize(("made", "reason"), MADE.values(), ids=MADE)
def test_a_transform_changed_for_one_record_and_restored_is_detected(
    made: Callable[[], Any], reason: str
) -> None:
    found = looking.look(made())
    assert re.search(reason, found.reason), found.reason


class Counts:
    """A preset that switches to another list after some calls."""

    def __init__(self) -> None:
        self.transforms, self.strong, self.calls = flips(), flips(), 0
        self.strong.transforms[0].p = 1.0

    def __call__(self, image: Any) -> Any:
        self.calls += 1
        return (self.transforms if self.calls < 20 else self.strong)(image)


class CountsInside(Counts):
    """Its counter is in a dictionary, in an object, in its class."""

    numbers = SimpleNamespace(calls=0)

    def __call__(self, image: Any) -> Any:
        self.numbers.calls += 1
        return (self.transforms if self.numbers.calls < 20 else self.strong)(image)


@pytest.mark.parametrize("kind", [Counts, CountsInside])
def test_a_preset_that_counts_its_calls_is_not_traced_and_stays_unchanged(
    kind: Any,
) -> None:
    preset = kind()
    before = preset.__dict__.copy(), CountsInside.numbers.calls
    with pytest.raises(through.PassesNot, match=r"its call changes .*calls"):
        through.passed_through(preset, [Image.new("RGB", (8, 8))])
    assert before == (preset.__dict__, CountsInside.numbers.calls)


def test_its_batches_equal_those_of_the_dataloader() -> None:
    dataset = Changes(setting("transform", "transforms", "0"), flips())
    dataloader = DataLoader(dataset, batch_size=10)
    expected = list(dataloader)  # not together with the view: both would set the same attribute
    for ours, theirs in zip(translated(dataloader).torch(), expected, strict=True):
        assert torch.equal(ours[0], theirs[0])


def test_private_state_of_a_call_does_not_matter() -> None:
    assert not looking.look(sets.Usual(flips())).reason
    assert not looking.look(sets.Usual(v2.Compose([v2.Resize((8, 8)), v2.ToImage()]))).reason
    assert not looking.look(sets.Usual(Brighter())).reason
