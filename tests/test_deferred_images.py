# SPDX-License-Identifier: Apache-2.0
"""hr.from_dataloader() of a dataset in Python: images that it opens with Pillow are decoded,
resized and cropped by the engine, with the same values."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from picture_kinds import waves
from PIL import Image, ImageDraw, ImageEnhance, ImageFile, ImageFilter, ImageOps

import headrace as hr
from headrace import _core

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")
from headrace.migrate.deferred import library  # noqa: E402
from headrace.migrate.deferred.image import image_class  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402
from torchvision.transforms import functional as F  # noqa: E402

FILES = {"rgb.jpg": "RGB", "gray.jpg": "L", "rgb.png": "RGB", "gray.png": "L", "palette.png": "P"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("deferred")
    for number, (name, mode) in enumerate(FILES.items()):
        image = waves("L" if mode == "L" else "RGB", 67 - number, 41 + number)
        image = image.quantize(11) if mode == "P" else image
        exif = Image.Exif()
        exif[0x0112] = 6
        image.save(root / name, exif=exif, quality=90)
    return root


def opened(path: Path) -> Any:
    with library.deferring():
        return Image.open(path)


def drawn(image: Any) -> Any:
    ImageDraw.Draw(image).line((0, 0, 20, 30), fill=1)
    return image


def pasted(image: Any) -> Any:
    image = image.copy()
    image.paste(image.resize((9, 9)), (3, 4))
    return image


def thumbnail(image: Any) -> Any:
    image.thumbnail((16, 16))
    return image


STEPS: list[Callable[[Any], Any]] = [
    *(lambda image, f=f: image.resize((33, 21), f) for f in Image.Resampling),
    lambda image: image.resize((90, 100)).crop((5, 6, 50, 60)).resize((30, 31)),
    lambda image: image.resize((20, 20), 2, (1.5, 2, 30, 31)),
    lambda image: image.resize((20, 20), 2, None, 2.0),
    lambda image: image.crop((3, 4, 30, 38)).transpose(0),
    lambda image: image.crop((-3, -4, 80, 38.4)),
    lambda image: image.crop((-30, -40, -3, -4)),
    *(lambda image, m=m: image.resize((30, 20)).transpose(m) for m in Image.Transpose),
    *(lambda image, m=m: image.transpose(m).crop((2, 3, 30, 31)) for m in Image.Transpose),
    *(lambda image, m=m: image.convert(m).resize((20, 30)) for m in ("RGB", "L", "HSV", "RGBA")),
    lambda image: F.pad(image, [1, 2, 3, 4], fill=255),
    lambda image: F.pad(image.resize((20, 30)), [1, 2, 3, 4], fill=0).resize((20, 30)),
    lambda image: F.pad(image.convert("RGB"), 3, fill=(1, 2, 3)),
    lambda image: F.pad(image, 3, padding_mode="reflect"),
    lambda image: ImageOps.expand(image, 2, 3),
    lambda image: ImageOps.exif_transpose(image),
    lambda image: ImageEnhance.Contrast(image.convert("RGB")).enhance(1.5),
    lambda image: image.convert("RGB").filter(ImageFilter.GaussianBlur(2)),
    lambda image: image.rotate(90, expand=True).rotate(13),
    lambda image: image.point(lambda value: value // 2),
    lambda image: Image.merge("RGB", image.convert("RGB").split()[::-1]),
    lambda image: Image.blend(image, image.transpose(0), 0.5) if image.mode != "P" else image,
    lambda image: pickle.loads(pickle.dumps(image.crop((0, 0, 9, 9)))),
    lambda image: copy.deepcopy(copy.copy(image)),
    drawn,
    pasted,
    thumbnail,
]


@pytest.mark.parametrize("name", FILES)
def test_an_image_equals_pillows_after_any_operation(root: Path, name: str) -> None:
    for step in STEPS:
        ours, theirs = opened(root / name), Image.open(root / name)
        assert isinstance(ours, image_class()) and isinstance(ours, Image.Image)
        assert (ours.size, ours.mode, ours.format) == (theirs.size, theirs.mode, theirs.format)
        with library.deferring():
            ours = step(ours)
        theirs = step(theirs)
        assert (ours.size, ours.mode, ours.info) == (theirs.size, theirs.mode, theirs.info)
        assert np.array_equal(np.asarray(ours), np.asarray(theirs))
        assert ours.tobytes() == theirs.tobytes()
        assert ours.getpalette() == theirs.getpalette()
        assert dict(ours.getexif()) == dict(theirs.getexif())
        assert ours.getbbox() == theirs.getbbox() and ours.getpixel((2, 3)) == theirs.getpixel(
            (2, 3)
        )


def test_pillows_attributes_of_a_file_are_available(root: Path) -> None:
    ours, theirs = opened(root / "rgb.jpg"), Image.open(root / "rgb.jpg")
    assert ours.info == theirs.info and ours.quantization == theirs.quantization
    assert ours.getexif()[0x0112] == 6
    assert ours.filename == theirs.filename
    with pytest.raises(AttributeError):
        _ = ours.nothing_like_this
    with opened(root / "rgb.jpg") as inside:
        assert inside.convert("RGB").tobytes() == theirs.convert("RGB").tobytes()


def test_tensors_equal_torchvisions(root: Path) -> None:
    def normalized(tensor: Any) -> Any:
        return F.normalize(tensor, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225])

    chains: list[Callable[[Any], Any]] = [
        F.to_tensor,
        F.pil_to_tensor,
        lambda image: F.convert_image_dtype(F.pil_to_tensor(image), torch.float32),
        lambda image: F.convert_image_dtype(F.pil_to_tensor(image), torch.int16),
        lambda image: normalized(F.to_tensor(image)),
        lambda image: normalized(F.pil_to_tensor(image).float() / 255),
        lambda image: F.pil_to_tensor(image).float() / 254,
        lambda image: F.pil_to_tensor(image).to(torch.float64),
        lambda image: F.to_tensor(image).clone().sub_(0.5),
        lambda image: F.to_tensor(image)[:, 2:5].mean(),
        lambda image: torch.stack([F.to_tensor(image), normalized(F.to_tensor(image))]),
        lambda image: 1 - F.to_tensor(image),
        lambda image: torch.as_tensor(np.array(image), dtype=torch.int64),
        lambda image: pickle.loads(pickle.dumps(F.to_tensor(image))),
    ]
    for chain in chains:
        theirs = chain(Image.open(root / "rgb.jpg").convert("RGB").resize((30, 20)))
        with library.deferring():
            ours = chain(opened(root / "rgb.jpg").convert("RGB").resize((30, 20)))
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        assert torch.equal(ours.in_memory() if hasattr(ours, "in_memory") else ours, theirs)


class Joint:
    """A dataset whose transform takes image and mask together and queries sizes."""

    def __init__(self, root: Path) -> None:
        self.paths = [root / name for name in ("rgb.jpg", "gray.jpg", "rgb.png", "gray.png")]
        self.masks = [root / "palette.png"] * 4

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        mask = Image.open(self.masks[index]).resize(image.size, Image.Resampling.NEAREST)
        width, height = image.size
        size = random.randint(20, 30)
        image = F.resize(image, size)
        mask = F.resize(mask, size, F.InterpolationMode.NEAREST)
        if random.random() < 0.5:
            image, mask = F.hflip(image), F.hflip(mask)
        image, mask = F.pad(image, [0, 0, 9, 9]), F.pad(mask, [0, 0, 9, 9], fill=255)
        image, mask = F.crop(image, 3, 4, 25, 24), F.crop(mask, 3, 4, 25, 24)
        image = F.normalize(F.to_tensor(image), [0.5, 0.4, 0.3], [0.2, 0.3, 0.4])
        return image, torch.as_tensor(np.array(mask), dtype=torch.int64), width / height


def test_a_joint_transform_in_python_decodes_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = Joint(root)
    loader = hr.from_dataloader(DataLoader(dataset, batch_size=4), verbose=False, seed=3)
    plain = hr.from_dataloader(
        DataLoader(Plain(dataset), batch_size=4), verbose=False, seed=3, trace=False
    )
    monkeypatch.setattr(ImageFile.ImageFile, "load", None)
    ours = next(iter(loader.torch()))
    monkeypatch.undo()
    theirs = next(iter(plain.torch()))
    assert all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))
    assert "decoded, resized and cropped by the engine (data into the batch)" in str(loader.report)


def test_pickling_sends_the_visible_pixels(root: Path) -> None:
    picture = _core.DeferredPicture((root / "rgb.jpg").read_bytes(), "RGB").resize(9, 8, "box")
    sent = pickle.loads(pickle.dumps(picture, protocol=5))
    assert np.array_equal(sent, np.asarray(picture.pixels())) and sent.shape == (3, 8, 9)


class Plain:
    """The same, opened by Pillow: torch images are not deferred."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        depth, library._inside.depth = library._inside.depth, 0
        try:
            return self.dataset[index]
        finally:
            library._inside.depth = depth


Plain.__name__ = "Joint"  # its draws depend on the name


class OwnKind(Joint):
    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index])
        kind = type(image).__name__
        return torch.from_numpy(np.array(image.convert("RGB").resize((8, 8)))), kind


def test_a_dataset_that_checks_for_pillows_class_gets_it(root: Path) -> None:
    loader = hr.from_dataloader(DataLoader(OwnKind(root), batch_size=4), verbose=False)
    assert next(iter(loader.torch()))[1][0] == "JpegImageFile"


def test_a_damaged_file_raises_the_same_error_as_pillow(root: Path, tmp_path: Path) -> None:
    whole = (root / "rgb.jpg").read_bytes()
    (tmp_path / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    image = opened(tmp_path / "cut.jpg").convert("RGB").resize((8, 8))
    with pytest.raises(OSError, match="truncated"):
        image.getpixel((0, 0))
    with pytest.raises(OSError, match="truncated"), library.deferring():
        F.to_tensor(image).sum()
    dataset = Joint(root)
    dataset.paths = [root / "rgb.jpg"] * 39 + [tmp_path / "cut.jpg"] + [root / "rgb.jpg"] * 60
    dataset.masks = [root / "palette.png"] * 100
    loader = hr.from_dataloader(DataLoader(dataset, batch_size=100), verbose=False, check=False)
    with pytest.raises(hr.DataError, match="39"):
        next(iter(loader.torch()))


def test_images_opened_outside_of_the_dataset_stay_pillows(root: Path) -> None:
    data = io.BytesIO((root / "rgb.jpg").read_bytes())
    assert type(Image.open(data)).__name__ == "JpegImageFile"


class Large(Joint):
    """Files of 8 MB."""

    def __init__(self, folder: Path) -> None:
        image = io.BytesIO()
        waves("RGB", 40, 30).save(image, "JPEG")
        self.path, self.seen = folder / "large.jpg", [0]
        self.path.write_bytes(image.getvalue() + bytes(8_000_000))

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> Any:
        self.seen.append(_core.deferred_bytes())
        image = Image.open(self.path).convert("RGB")
        left = min(index, image.width - 16)
        return F.to_tensor(image.crop((left, 3, left + 16, 19)))


def test_memory_of_files_waiting_to_be_decoded_is_bounded(tmp_path: Path) -> None:
    """A batch of 40 files, 320 MB."""
    dataset = Large(tmp_path)
    loader = hr.from_dataloader(DataLoader(dataset, batch_size=40), verbose=False)
    assert "decoded, resized and cropped by the engine" in str(loader.report)
    (ours,), (theirs,) = list(loader.torch()), list(DataLoader(dataset, batch_size=40))
    assert torch.equal(ours, theirs)
    assert 30_000_000 < max(dataset.seen) <= (64 << 20) + 8_001_000
    del loader, ours
    gc.collect()
    assert _core.deferred_bytes() == 0
