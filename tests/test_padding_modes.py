# SPDX-License-Identifier: Apache-2.0
"""Borders that repeat the image, and the rarely used filters of Resize, equal the libraries'."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import PIL
import pytest
from PIL import Image

import headrace as hr
from headrace import transforms as T

Array = np.ndarray[Any, Any]
MODES = ("edge", "reflect", "symmetric")
needs_pillow = pytest.mark.skipif(PIL.__version__.split(".")[0] != "13", reason="needs Pillow 13")


def through(images: Array, tmp_path: Path, *steps: Any) -> Array:
    np.save(tmp_path / "images.npy", images)
    loader = hr.Loader(
        hr.open(tmp_path / "images.npy"), list(steps), batch_size=len(images), fields="image"
    )
    return np.asarray(next(iter(loader)).image)


def cases(count: int, seed: int, least: int = 1) -> Any:
    random = np.random.default_rng(seed)
    for _ in range(count):
        channels, height, width = random.choice([1, 3]), *random.integers(least, 40, 2)
        yield random, random.integers(0, 256, (1, channels, height, width), dtype=np.uint8)


@pytest.mark.parametrize("mode", MODES)
def test_borders_equal_numpys_and_torchvisions_on_pillow_images(mode: Any, tmp_path: Path) -> None:
    for random, images in cases(60, seed=1):
        left, top, right, bottom = (int(n) for n in random.integers(0, 70, 4))
        wanted = np.pad(images, ((0, 0), (0, 0), (top, bottom), (left, right)), mode)
        step = T.Pad([left, top, right, bottom], padding_mode=mode)
        np.testing.assert_array_equal(through(images, tmp_path, step), wanted)
        turned = through(images, tmp_path, T.RandomHorizontalFlip(1.0), step, T.CenterCrop(8))
        wanted = np.pad(images[..., ::-1], ((0, 0), (0, 0), (top, bottom), (left, right)), mode)
        if min(wanted.shape[2:]) >= 8:
            y, x = (round((extent - 8) / 2) for extent in wanted.shape[2:])
            np.testing.assert_array_equal(turned, wanted[..., y : y + 8, x : x + 8])


@pytest.mark.parametrize("mode", MODES)
def test_a_border_equals_torchvisions_on_tensors(mode: Any, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torchvision")
    from torchvision.transforms.v2 import functional as F

    for random, images in cases(40, seed=2, least=12):
        padding = [int(n) for n in random.integers(0, 11, 4)]
        step = T.Pad(padding, padding_mode=mode)
        wanted = F.pad(torch.from_numpy(images), padding, padding_mode=mode).numpy()
        np.testing.assert_array_equal(through(images, tmp_path, step), wanted)
        floats = F.to_dtype(torch.from_numpy(images), torch.float32, scale=True)
        wanted = F.pad(floats, padding, padding_mode=mode).numpy()
        ours = through(images, tmp_path, T.ToDtype("float32", scale=True), step)
        np.testing.assert_array_equal(ours, wanted)


@pytest.mark.parametrize("mode", MODES)
def test_a_random_crop_shows_a_part_of_the_padded_image(mode: Any, tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    image = random.integers(0, 256, (1, 3, 8, 9), dtype=np.uint8)
    images = np.repeat(image, 200, axis=0)
    step = T.RandomCrop((6, 7), padding=[4, 3], padding_mode=mode)
    padded = np.pad(image[0], ((0, 0), (3, 3), (4, 4)), mode)
    windows = {
        padded[:, y : y + 6, x : x + 7].tobytes(): (y, x) for y in range(9) for x in range(11)
    }
    seen = [windows[crop.tobytes()] for crop in through(images, tmp_path, step)]
    assert len(set(seen)) > 60  # of 99 positions
    grown = through(
        image[..., :3, :2],
        tmp_path,
        T.RandomCrop((3, 4), pad_if_needed=True, padding_mode=mode),
        T.CenterCrop((3, 4)),
    )
    assert grown.shape == (1, 3, 3, 4)


def boxed(tmp_path: Path, kind: str) -> Any:
    images = np.random.default_rng(4).integers(0, 256, (2, 3, 9, 8), dtype=np.uint8)
    fields: dict[str, Any] = {"image": images}
    if kind == "boxes":
        fields["boxes"] = np.float32([[[1, 2, 5, 6]], [[0, 0, 8, 9]]])
        return hr.records(**fields, kinds={"boxes": "boxes:xyxy"})
    if kind == "keypoints":
        fields["points"] = np.float32([[[1, 2]], [[3, 4]]])
        return hr.records(**fields, kinds={"points": "keypoints"})
    fields["planes"] = np.random.default_rng(5).integers(0, 9, (2, 4, 9, 8), dtype=np.int16)
    return hr.records(**fields, kinds={"planes": "masks"})


@pytest.mark.parametrize("kind", ["boxes", "keypoints"])
@pytest.mark.parametrize(
    "step",
    [T.Pad(2, padding_mode="reflect"), T.RandomCrop(5, padding=1, padding_mode="edge")],
    ids=["Pad", "RandomCrop"],
)
def test_boxes_and_points_are_refused_as_torchvision_does(
    kind: str, step: Any, tmp_path: Path
) -> None:
    with pytest.raises(hr.ConfigError, match=r"HR0186.*cannot follow"):
        hr.Loader(boxed(tmp_path, kind), [step], batch_size=2)


def test_boxes_follow_a_crop_that_adds_no_border(tmp_path: Path) -> None:
    step = T.RandomCrop((9, 8), padding_mode="reflect")
    batch = next(iter(hr.Loader(boxed(tmp_path, "boxes"), [step], batch_size=2)))
    np.testing.assert_array_equal(batch.boxes, np.float32([[[1, 2, 5, 6]], [[0, 0, 8, 9]]]))


@pytest.mark.parametrize("mode", MODES)
def test_mask_planes_get_the_border_of_their_image(mode: Any, tmp_path: Path) -> None:
    source = boxed(tmp_path, "planes")
    batch = next(iter(hr.Loader(source, [T.Pad([3, 9], padding_mode=mode)], batch_size=2)))
    planes = np.random.default_rng(5).integers(0, 9, (2, 4, 9, 8), dtype=np.int16)
    wanted = np.pad(planes, ((0, 0), (0, 0), (9, 9), (3, 3)), mode)
    np.testing.assert_array_equal(np.stack(list(batch.planes)), wanted)


FILTERS = {
    "nearest-exact": Image.Resampling.NEAREST,
    "box": Image.Resampling.BOX,
    "hamming": Image.Resampling.HAMMING,
    "lanczos": Image.Resampling.LANCZOS,
}


@needs_pillow
@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_equals_pillows(name: Any, tmp_path: Path) -> None:
    for random, images in cases(120, seed=6):
        large = np.tile(images, (1, 1, *random.integers(1, 9, 2)))
        height, width = (int(n) for n in random.integers(1, 90, 2))
        rows = large[0].transpose(1, 2, 0)
        picture = Image.fromarray(rows if rows.shape[2] == 3 else rows[..., 0])
        wanted = np.atleast_3d(np.asarray(picture.resize((width, height), FILTERS[name])))
        ours = through(large, tmp_path, T.Resize((height, width), interpolation=name))
        np.testing.assert_array_equal(ours[0], wanted.transpose(2, 0, 1))


@needs_pillow
@pytest.mark.parametrize("name", ["lanczos", "hamming", "box"])
def test_filters_are_the_same_in_a_window_and_mirrored(name: Any, tmp_path: Path) -> None:
    for _, images in cases(30, seed=7, least=20):
        if images.shape[1] == 1:
            continue
        picture = Image.fromarray(images[0].transpose(1, 2, 0))
        whole = np.asarray(picture.resize((31, 23), FILTERS[name])).transpose(2, 0, 1)
        steps = [T.Resize((23, 31), interpolation=name), T.RandomHorizontalFlip(1.0)]
        ours = through(images, tmp_path, *steps, T.CenterCrop((9, 11)))
        np.testing.assert_array_equal(ours[0], whole[:, 7:16, ::-1][..., 10:21])
        steps = [T.RandomHorizontalFlip(1.0), T.Resize((23, 31), interpolation=name)]
        mirrored = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        whole = np.asarray(mirrored.resize((31, 23), FILTERS[name])).transpose(2, 0, 1)
        np.testing.assert_array_equal(through(images, tmp_path, *steps)[0], whole)


def test_an_unknown_padding_mode_lists_the_known_ones() -> None:
    with pytest.raises(hr.ConfigError, match=re.escape("reflect")):
        hr.Loader(
            hr.records(image=np.zeros((1, 3, 4, 4), np.uint8)),
            [T.Pad(1, padding_mode="mirror")],
            batch_size=1,
        )
