# SPDX-License-Identifier: Apache-2.0
"""hr.from_dataloader() makes sizes, crops and borders native, with torchvision's pixels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from migrated_classes import translated

torch = pytest.importorskip("torch")
tv = pytest.importorskip("torchvision")
pytest.importorskip("torchvision.transforms.v2")  # so that tv has it
from torch.utils.data import DataLoader  # noqa: E402


def folder(root: Path, transform: Any, **more: Any) -> Any:
    return tv.datasets.ImageFolder(str(root), transform=transform, **more)


def test_torchs_own_resize_of_tensors_equals_pillows_within_one(pictures: Path) -> None:
    from torchvision.transforms import v2

    recipe = v2.Compose([v2.ToImage(), v2.Resize((17, 16), antialias=True)])
    dataset = folder(pictures, recipe)
    loader = translated(DataLoader(dataset, batch_size=23))
    (part,) = [part for part in loader.report.native if part.note.startswith("Pillow's")]
    assert part.name.startswith("Resize")
    ours = next(iter(loader.torch())).image.int()
    theirs = torch.stack([image for image, _ in dataset]).int()
    assert (ours - theirs).abs().max() <= 1


def test_random_erasing_is_native(pictures: Path) -> None:
    v1, v2 = tv.transforms, tv.transforms.v2
    for version, value in (
        (v1, 0),
        (v1, (0.1, 0.2, 0.3)),
        (v1, "random"),
        (v2, 0.5),
        (v2, "random"),
    ):
        erasing = version.RandomErasing(p=1.0, scale=(0.2, 0.3), value=value)
        steps = [v1.Resize((40, 40)), v1.ToTensor(), erasing]
        dataset = folder(pictures, v1.Compose(steps))
        loader = translated(DataLoader(dataset, batch_size=4))
        part = next(p for p in loader.report.parts if p.name.startswith("RandomErasing"))
        assert part.became == "native", part
        for image in next(iter(loader)).image:
            if value == "random":
                erased = ((image < 0) | (image > 1)).any(axis=0)
            else:
                wanted = np.float32(np.broadcast_to(value, 3)).reshape(3, 1, 1)
                erased = np.all(image == wanted, axis=0)
            assert 0.1 < erased.mean() < 0.4


def test_random_sizes_and_canvases_are_native(pictures: Path) -> None:
    v2 = tv.transforms.v2
    for transform in (
        v2.RandomResize(20, 40),
        v2.RandomShortestSize([20, 31], 50),
        v2.ScaleJitter((30, 40), (0.5, 2)),
        v2.RandomZoomOut(fill=[1, 2, 3]),
    ):
        dataset = folder(pictures, v2.Compose([transform, v2.CenterCrop(24), v2.ToImage()]))
        with translated(DataLoader(dataset, batch_size=6)) as loader:
            assert not loader.report.python, loader.report
            next(iter(loader))


def test_padding_modes_and_filters_are_native_and_compared(pictures: Path) -> None:
    from torchvision.transforms import v2

    lanczos, box = v2.InterpolationMode.LANCZOS, v2.InterpolationMode.BOX
    steps = [
        v2.Resize((30, 34), interpolation=lanczos),
        v2.Pad([1, 2, 3, 4], padding_mode="reflect"),
        v2.RandomResizedCrop(24, interpolation=box),
        v2.RandomCrop(24, padding=3, padding_mode="symmetric"),
        v2.RGB(),
        v2.PILToTensor(),
    ]
    loader = translated(DataLoader(folder(pictures, v2.Compose(steps)), batch_size=4))
    assert not loader.report.python, loader.report
    assert loader.report.records_checked == 23


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("padding", [0, 3, (5, 1), (1, 2, 3, 4), [2]])
def test_a_random_crop_pads_the_same_sides(pictures: Path, version: str, padding: Any) -> None:
    """v2 stores left, right, top, bottom, and takes left, top, right, bottom."""
    from torchvision.transforms import v2

    kind = v2 if version == "v2" else tv.transforms
    left, top, right, bottom = (
        [padding] * 4 if isinstance(padding, int) else (list(padding) * 4)[:4]
    )
    recipe = [tv.transforms.CenterCrop(16), kind.RandomCrop((16, 16), padding=padding, fill=255)]
    composed = tv.transforms.Compose([*recipe, tv.transforms.PILToTensor()])
    loader = translated(DataLoader(folder(pictures, composed), batch_size=23), sampler=[0] * 2000)
    assert not loader.report.python
    white = np.zeros((16, 16))
    for batch in loader:
        white += (batch.image == 255).all(1).sum(0)
    # A side is padding for as many of the left + right + 1 positions as the window can extend past
    # it.
    shares = [white[8, 0], white[0, 8], white[8, -1], white[-1, 8]]
    across, down = left + right + 1, top + bottom + 1
    expected = [left / across, top / down, right / across, bottom / down]
    np.testing.assert_allclose(np.array(shares) / 2000, expected, atol=0.07)


@pytest.mark.parametrize("how", ["nearest", "nearest-exact", "bilinear", "bicubic"])
def test_tensors_without_antialiasing_get_torchs_pixels(pictures: Path, how: str) -> None:
    v2 = tv.transforms.v2
    given = {"interpolation": v2.InterpolationMode(how), "antialias": False}
    for step in (
        v2.Resize((17, 33), **given),
        v2.RandomResizedCrop(16, **given),
        v2.RandomResize(20, 40, **given),
        v2.RandomShortestSize([20, 31], 50, **given),
        v2.ScaleJitter((30, 40), (0.5, 2), **given),
    ):
        recipe = [v2.ToImage(), step, v2.CenterCrop(16)]
        loader = translated(DataLoader(folder(pictures, v2.Compose(recipe)), batch_size=6))
        assert not loader.report.python, loader.report
        notes = [part.note for part in loader.report.native]
        assert not any("Pillow" in note for note in notes), loader.report
        assert loader.report.differences["image"] == 0


def test_bilinear_resizing_of_floats_without_antialias_stays_in_python(pictures: Path) -> None:
    v1, v2 = tv.transforms, tv.transforms.v2
    to_float = v2.ToDtype(torch.float32, scale=True)
    for recipe in (
        [v2.ToImage(), to_float, v2.Resize((17, 33), antialias=False)],
        [v2.ToImage(), v1.Resize((17, 33), antialias=False)],
    ):
        dataloader = DataLoader(folder(pictures, v2.Compose(recipe)), batch_size=6)
        loader = translated(dataloader)
        assert len(loader.report.python) == 1, loader.report
    whole = [v2.ToImage(), to_float, v2.Resize((17, 33), v2.InterpolationMode.NEAREST)]
    loader = translated(DataLoader(folder(pictures, v2.Compose(whole)), batch_size=6))
    assert not loader.report.python, loader.report
