# SPDX-License-Identifier: Apache-2.0
"""Typical user datasets over the files of a folder: for the tests of tracing. ``FILES`` and
``LABELS`` are filled by the fixture of the tests."""

from __future__ import annotations

import functools
import io
import json
import os
import random
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageFilter, ImageOps
from PIL.Image import open as pil_open
from torch.utils.data import Dataset
from torchvision import datasets
from torchvision import transforms as v1
from torchvision.transforms import v2

FILES: list[str] = []
LABELS: list[int] = []
FOLDER = ""


def use(folder: Path) -> None:
    """The files of a folder of classes, each with an annotation file next to it."""
    global FOLDER
    FOLDER = str(folder)
    FILES[:] = sorted(str(path) for path in folder.glob("*/*.png"))
    LABELS[:] = [
        sorted(os.listdir(folder)).index(os.path.basename(os.path.dirname(f))) for f in FILES
    ]
    notes = folder.parent / "notes"
    notes.mkdir(exist_ok=True)
    for number, label in enumerate(LABELS):
        (notes / f"{number}.json").write_text(json.dumps({"label": label, "text": f"n{number}"}))
        np.save(notes / f"{number}.npy", np.full(4, number, np.float32))


def fixed() -> Any:
    return v1.Compose([v1.Resize((12, 10)), v1.PILToTensor()])


def mirrored() -> Any:
    return v1.Compose([v1.Resize((12, 10)), v1.RandomHorizontalFlip(1.0), v1.PILToTensor()])


def drawn() -> Any:
    return v1.Compose([v1.RandomResizedCrop((12, 10)), v1.RandomHorizontalFlip(), v1.ToTensor()])


def load(path: str) -> Any:
    return Image.open(path).convert("RGB")


class Base(Dataset):  # type: ignore[type-arg]
    def __init__(self, transform: Any = None, **more: Any) -> None:
        self.paths, self.labels = list(FILES), list(LABELS)
        self.transform = transform or fixed()
        self.__dict__.update(more)

    def __len__(self) -> int:
        return len(self.paths)

    def open(self, i: int) -> Any:
        return Image.open(self.paths[i]).convert("RGB")


class Usual(Base):
    def __getitem__(self, i: int) -> Any:
        image = Image.open(self.paths[i]).convert("RGB")
        if self.transform is not None:
            image = self.transform(image)
        return image, self.labels[i]


class Rows(Base):
    """A row of a table, an index that may be a tensor, a dictionary, a file object."""

    def __getitem__(self, i: Any) -> Any:
        if torch.is_tensor(i):
            i = i.tolist()
        path = os.path.join(os.path.dirname(self.paths[i]), os.path.basename(self.paths[i]))
        with open(path, "rb") as file:
            image = Image.open(file)
            image = image.convert("RGB")
        return {
            "image": self.transform(image),
            "label": torch.tensor(self.labels[i], dtype=torch.long),
            "name": os.path.basename(path).replace(".png", ".jpg"),
            "weight": 0.5 * i,
        }


class Notes(Base):
    """An annotation file next to each image, read for each record."""

    def __getitem__(self, i: int) -> Any:
        with open(os.path.join(os.path.dirname(FOLDER), "notes", f"{i}.json")) as file:
            note = json.load(file)
        return {
            "pixel_values": self.transform(self.open(i)),
            "target": {"label": note["label"], "text": note["text"]},
        }


class FromBytes(Base):
    def __getitem__(self, i: int) -> Any:
        with open(self.paths[i], "rb") as file:
            image = Image.open(io.BytesIO(file.read())).convert("RGB")
        return self.transform(image), self.labels[i]


class FromPath(Base):
    def __getitem__(self, i: int) -> Any:
        with Path(self.paths[i]).open("rb") as file:
            image = Image.open(file).convert("RGB")
        return self.transform(image), self.labels[i]


class FromPathsBytes(Base):
    def __getitem__(self, i: int) -> Any:
        image = Image.open(io.BytesIO(Path(self.paths[i]).read_bytes())).convert("RGB")
        return self.transform(image), self.labels[i]


class FromReader(Base):
    """A file opened by a library whose module is not traced."""

    def __getitem__(self, i: int) -> Any:
        return self.transform(Image.open(io.open_code(self.paths[i])).convert("RGB")), self.labels[
            i
        ]


class Stored(Base):
    """Encoded images from a container."""

    def __init__(self) -> None:
        super().__init__()
        self.stored = [Path(path).read_bytes() for path in self.paths]

    def __getitem__(self, i: int) -> Any:
        return self.transform(Image.open(io.BytesIO(self.stored[i])).convert("RGB")), self.labels[i]


class Cached(Base):
    def __init__(self) -> None:
        super().__init__()
        self.cache: dict[int, Any] = {}

    def __getitem__(self, i: int) -> Any:
        if i not in self.cache:
            self.cache[i] = self.open(i)
        return self.transform(self.cache[i]), self.labels[i]


class LruCached(Base):
    @functools.cache  # noqa: B019  (as people write it)
    def load(self, i: int) -> Any:
        return self.open(i)

    def __getitem__(self, i: int) -> Any:
        return self.transform(self.load(i)), self.labels[i]


class InMemory(Base):
    def __init__(self) -> None:
        super().__init__()
        self.pixels = np.random.default_rng(0).integers(0, 256, (len(self), 20, 20, 3), np.uint8)

    def __getitem__(self, i: int) -> Any:
        return self.transform(Image.fromarray(self.pixels[i])), self.labels[i]


class TwoViews(Base):
    def __getitem__(self, i: int) -> Any:
        image = pil_open(self.paths[i]).convert("RGB")
        return [self.transform(image), self.transform(image)], self.labels[i]


class Keywords:
    """Called like a Compose of Albumentations, with its own random generator."""

    def __init__(self) -> None:
        self.set_random_seed(0)

    def set_random_seed(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def __call__(self, *, image: Any) -> Any:
        cut = image[2:12, 3:13].astype(np.float32)
        if self.generator.random() < 0.5:
            cut = cut[:, ::-1]
        return {"image": torch.from_numpy(np.ascontiguousarray(cut.transpose(2, 0, 1)))}


class Cut:
    """The same without random draws."""

    def __call__(self, *, image: Any) -> Any:
        return {"image": torch.from_numpy(np.ascontiguousarray(image[4:14, 3:13]))}


class OfArrays(Base):
    def __getitem__(self, i: int) -> Any:
        image = np.array(Image.open(self.paths[i]).convert("RGB"))
        return self.aug(image=image)["image"], self.labels[i]


class OfOpenCv(Base):
    """With the colors of the image: red and blue swapped by a function, by a slice, or not at
    all."""

    def __init__(self, how: str, aug: Any) -> None:
        super().__init__()
        self.how, self.aug = how, aug

    def __getitem__(self, i: int) -> Any:
        import cv2

        image = cv2.imread(self.paths[i])
        if self.how == "function":
            image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
        elif self.how == "slice":
            image = image[:, :, ::-1]
        return self.aug(image=image)["image"], self.labels[i]


class ToFloat(Base):
    def __getitem__(self, i: int) -> Any:
        image = np.array(self.open(i)).astype(np.float32)
        return torch.from_numpy(image[:16, :16] / 255), self.labels[i]


class Flips(Base):
    def __getitem__(self, i: int) -> Any:
        image = self.open(i)
        if random.random() < 0.5:
            image = ImageOps.mirror(image)
        return self.transform(image), self.labels[i]


class DrawsRarely(Base):
    """Draws from its own generator, with hardly any effect."""

    def __init__(self, generator: Any) -> None:
        super().__init__()
        self.generator = generator

    def __getitem__(self, i: int) -> Any:
        j = i if self.generator.random() < 0.999999 else 0
        return self.transform(self.open(j)), self.labels[i]


GENERATOR = np.random.default_rng(5)


class DrawsOfModule(Base):
    def __getitem__(self, i: int) -> Any:
        GENERATOR.random()
        return self.transform(self.open(i)), self.labels[i]


def of_torch() -> Any:
    return np.random.default_rng(torch.initial_seed() % (1 << 32))


class DrawsAnew(Base):
    """Draws from a generator that is created for each record, with hardly any effect."""

    def __getitem__(self, i: int) -> Any:
        j = i if self.make[0]().random() < 0.999999 else 0
        return self.transform(self.open(j)), self.labels[i]


class Starts(Base):
    def __getitem__(self, i: int) -> Any:
        return self.transform(self.open(i)), len(subprocess.check_output(["true"]))


class Sets(Base):
    def __getitem__(self, i: int) -> Any:
        os.environ["LOOKED_AT_RECORD"] = str(i)
        return self.transform(self.open(i)), self.labels[i]


class Lines(Base):
    """Labels from one file that stays open, and a log file that stays open, too."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        path.write_bytes(b"0" * len(self))
        self.file = path.open("rb", buffering=0)
        self.log = path.with_suffix(".log").open("wb", buffering=0)

    def __getitem__(self, i: int) -> Any:
        self.log.write(b"%d\n" % i)
        return self.transform(self.open(i)), int(self.file.read(1) or 1)


class Partner(Base):
    def __getitem__(self, i: int) -> Any:
        j = random.randrange(len(self))
        return self.transform(self.open(i)), self.transform(self.open(j))


class SameDraw(Base):
    """Uses the same generator state for two images, then restores it."""

    def __getitem__(self, i: int) -> Any:
        state = torch.get_rng_state()
        first = self.transform(self.open(i))
        torch.set_rng_state(state)
        return first, self.transform(self.open((i + 1) % len(self))), self.labels[i]


class TargetTransform(Base):
    def __getitem__(self, i: int) -> Any:
        return self.transform(self.open(i)), self.target_transform(self.labels[i])


class Several(Base):
    """An image, a grayscale one from another file, and a pair of numbers."""

    def __getitem__(self, i: int) -> Any:
        other = Image.open(self.paths[(i + 1) % len(self.paths)]).convert("L")
        pair = (self.labels[i], i)
        return {"a": self.transform(self.open(i)), "b": self.gray(other), "pair": pair}


class Joint(Base):
    def __getitem__(self, i: int) -> Any:
        image, target = self.transforms(self.open(i), {"label": self.labels[i]})
        return image, target


class Decoded(Base):
    def __getitem__(self, i: int) -> Any:
        from torchvision.io import decode_image

        return self.transform(decode_image(self.paths[i], *self.mode)), self.labels[i]


class Arrays(Base):
    def __getitem__(self, i: int) -> Any:
        path = os.path.join(os.path.dirname(FOLDER), "notes", f"{i}.npy")
        return self.transform(self.open(i)), np.load(path)


class AsksMode(Base):
    def __getitem__(self, i: int) -> Any:
        image = Image.open(self.paths[i])
        if image.mode != "RGB":
            image = image.convert("RGB")
        return self.transform(image), self.labels[i]


class KeepsGray(Base):
    def __getitem__(self, i: int) -> Any:
        image = Image.open(self.paths[i])
        image = image if image.mode == "L" else image.convert("RGB")
        return self.transform(image), self.labels[i]


class AsStored(Base):
    def __getitem__(self, i: int) -> Any:
        return self.transform(Image.open(self.paths[i])), self.labels[i]


class Size(Base):
    def __getitem__(self, i: int) -> Any:
        image = self.open(i)
        width, height = image.size
        return self.transform(image), self.labels[i], width / height


class Retries(Base):
    def __getitem__(self, i: int) -> Any:
        try:
            image = self.open(i)
        except Exception:
            return self[(i + 1) % len(self)]
        return self.transform(image), self.labels[i]


class Swallows(Base):
    def __getitem__(self, i: int) -> Any:
        try:
            image = v1.functional.to_tensor(self.open(i).resize((8, 8)))
        except:  # noqa: E722  (as people write it)
            image = torch.zeros(3, 8, 8)
        return image, self.labels[i]


class SwallowsSome(Base):
    def __getitem__(self, i: int) -> Any:
        image = self.open(i)
        try:
            image = torch.frombuffer(image, dtype=torch.uint8)
        except Exception:
            image = torch.zeros(3, 8, 8)
        return image, self.labels[i]


class OneRecord(Base):
    """A different transform for a single record."""

    def __getitem__(self, i: int) -> Any:
        transform = self.other if i == 17 else self.transform
        return transform(self.open(i)), self.labels[i]


class Fetches(Usual):
    def __getitems__(self, numbers: list[int]) -> Any:
        return [self[i] for i in reversed(numbers)]


class SetsEpoch(Usual):
    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch


class Writes(Base):
    def __getitem__(self, i: int) -> Any:
        with open(os.path.join(os.path.dirname(FOLDER), "log.txt"), "a") as file:
            file.write(f"{i}\n")
        return self.transform(self.open(i)), self.labels[i]


class Counts(Base):
    calls = 0

    def __getitem__(self, i: int) -> Any:
        self.calls += 1
        return self.transform(self.open(i)), self.labels[i]


class CountsInDefault(Base):
    def __getitem__(self, i: int, seen: list[int] = []) -> Any:  # noqa: B006  (as people write it)
        seen.append(i)
        return self.transform(self.open(i)), self.labels[i] + (len(seen) > 70)


class Calls:
    __slots__ = ("count",)


class CountsInObject(Base):
    def __getitem__(self, i: int) -> Any:
        self.calls.count += 1
        return self.transform(self.open(i)), self.labels[i] + (self.calls.count > 70)


class CountsDeeply(Base):
    def __getitem__(self, i: int) -> Any:
        self.calls["a"]["b"]["c"]["d"]["e"] += 1
        return self.transform(self.open(i)), self.labels[i] + (
            self.calls["a"]["b"]["c"]["d"]["e"] > 70
        )


class Iterates(Base):
    def __getitem__(self, i: int) -> Any:
        return self.transform(self.open(i)), self.labels[i] + (next(self.calls) > 70)


class CountsInValues(Base):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[int] = []

    def __getitem__(self, i: int) -> Any:
        self.seen.append(i)
        return self.transform(self.open(i)), len(self.seen)


class Bytes(Base):
    """Text that is read as bytes resembles a file of pixels."""

    def __getitem__(self, i: int) -> Any:
        with open(os.path.join(os.path.dirname(FOLDER), "notes", f"{i}.json"), "rb") as file:
            note = json.load(file)
        return self.transform(self.open(i)), note["label"]


class AsksClass(Base):
    def __getitem__(self, i: int) -> Any:
        image = self.open(i)
        if not isinstance(image, Image.Image):
            image = Image.fromarray(image)
        return self.transform(image), self.labels[i]


class AsksType(Base):
    """Not known to any stand-in."""

    def __getitem__(self, i: int) -> Any:
        image = self.open(i)
        if type(image) is Image.Image:
            image = image.resize((50, 50))
        return self.transform(image), self.labels[i]


class AsksTypeOfResult(Base):
    def __getitem__(self, i: int) -> Any:
        image = self.transform(self.open(i))
        if type(image) is torch.Tensor:
            image = image * 2
        return image, self.labels[i]


class ReadsInThread(Base):
    def __getitem__(self, i: int) -> Any:
        with ThreadPoolExecutor(1) as pool:
            image = pool.submit(lambda: Image.open(self.paths[i]).convert("RGB")).result()
        return self.transform(image), self.labels[i]


class Clock(Base):
    def __getitem__(self, i: int) -> Any:
        return self.transform(self.open(i)), self.labels[i] + (time.time() > 9e9)


class Upright(Base):
    def __getitem__(self, i: int) -> Any:
        image = ImageOps.exif_transpose(Image.open(self.paths[i])).convert("RGB")
        return self.transform(image), self.labels[i]


class Plain(Base):
    """To be wrapped by others."""

    def __getitem__(self, i: int) -> Any:
        return Image.open(self.paths[i]).convert("RGB"), self.labels[i]


class SameSize(Base):
    """Without a transform: arrays of one shape."""

    def __getitem__(self, i: int) -> Any:
        return np.array(self.open(0)), i


class Wraps(Dataset):  # type: ignore[type-arg]
    def __init__(self, dataset: Any, transform: Any) -> None:
        self.dataset, self.transform = dataset, transform

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, i: int) -> Any:
        image, label = self.dataset[i]
        return self.transform(image), label


class WithPath(datasets.ImageFolder):
    def __getitem__(self, i: int) -> Any:
        return (*super().__getitem__(i), self.samples[i][0], i)


class Mixed(Base):
    """Both views are made by one call."""

    def __getitem__(self, i: int) -> Any:
        view = self.transform(self.open(i))
        return view, view, self.labels[i]


class Preset:
    """As in torchvision's references."""

    def __init__(self, *transforms: Any) -> None:
        self.transforms = v2.Compose(list(transforms))

    def __call__(self, image: Any) -> Any:
        return self.transforms(image)


class JointPreset:
    def __init__(self, *transforms: Any) -> None:
        self.transforms = v2.Compose(list(transforms))

    def __call__(self, image: Any, target: Any) -> Any:
        return self.transforms(image, target)


class TwoCrops:
    """As in MoCo and SimSiam."""

    def __init__(self, base_transform: Any) -> None:
        self.base_transform = base_transform

    def __call__(self, x: Any) -> Any:
        q = self.base_transform(x)
        k = self.base_transform(x)
        return [q, k]


class Blur:
    """As in MoCo, for Pillow images; draws from Python's generator."""

    def __init__(self, sigma: Any = (0.1, 2.0)) -> None:
        self.sigma = sigma

    def __call__(self, x: Any) -> Any:
        return x.filter(ImageFilter.GaussianBlur(radius=random.uniform(*self.sigma)))


def double(label: int) -> int:
    return label * 2
