# SPDX-License-Identifier: Apache-2.0
"""A mask is never treated as an image: kinds can be declared, and ambiguous fields are an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import headrace as hr
from headrace import transforms as T


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Images, and masks of the same names."""
    for name, mode in (("images", "RGB"), ("masks", "L")):
        (tmp_path / name).mkdir()
        for i in range(3):
            Image.new(mode, (8, 6), 7 if mode == "L" else (7, 8, 9)).save(
                tmp_path / name / f"{i}.png"
            )
    return tmp_path / "images", tmp_path / "masks"


NORMALIZED = [T.Resize((4, 4)), T.ToDtype("float32", scale=True), T.Normalize(0.5, 0.5)]


def test_the_kind_of_a_folder_joined_as_a_mask_must_be_declared(folders: tuple[Path, Path]) -> None:
    with pytest.raises(hr.ConfigError, match=r'kinds=\{"mask": "mask"\} for class ids') as caught:
        hr.join(*folders, rename={"image": "mask"})
    assert caught.value.code == "HR0182"
    source = hr.join(*folders, rename={"image": "mask"}, kinds={"mask": "mask"})
    batch = next(iter(hr.Loader(source, NORMALIZED, batch_size=3)))
    assert batch.mask.dtype == np.uint8 and batch.mask.shape == (3, 1, 4, 4)
    assert (batch.mask == 7).all() and batch.image.dtype == np.float32
    image = hr.join(*folders, rename={"image": "mask"}, kinds={"mask": "image"})
    assert next(iter(hr.Loader(image, NORMALIZED, batch_size=3))).mask.dtype == np.float32


def test_the_kind_of_two_images_in_a_tuple_must_be_declared() -> None:
    picture, ids = Image.new("RGB", (8, 6)), Image.new("L", (8, 6), 3)
    plane = np.full((6, 8), 3, np.int64)
    for pair in ((picture, ids), (np.zeros((3, 6, 8), np.uint8), plane), (picture, plane)):
        with pytest.raises(hr.ConfigError, match=r'names=\("image", "mask"\)') as caught:
            hr.open([pair] * 3)
        assert caught.value.code == "HR0681"
        source = hr.open([pair] * 3, names=("image", "mask"))
        assert [f.kind for f in source.schema] == ["image", "mask"]
        batch = next(iter(hr.Loader(source, NORMALIZED, batch_size=3)))
        assert batch.mask.shape == (3, 1, 4, 4) and (batch.mask == 3).all()
    with pytest.raises(hr.ConfigError, match=r"3 names, but record 0 has 2"):
        hr.open([(picture, ids)], names=("a", "b", "c"))


def test_the_kind_of_a_field_named_mask_must_be_declared() -> None:
    data = [{"image": Image.new("RGB", (8, 6)), "gt_mask": Image.new("L", (8, 6), 5)}] * 3
    with pytest.raises(hr.ConfigError, match=r"HR0182"):
        hr.open(data)
    source = hr.open(data, kinds={"gt_mask": "mask"})
    batch = next(iter(hr.Loader(source, NORMALIZED, batch_size=3)))
    assert batch.gt_mask.dtype == np.uint8 and (batch.gt_mask == 5).all()


def test_planes_of_class_ids_may_be_any_integer_that_fits() -> None:
    image = np.zeros((3, 6, 8), np.uint8)
    ids = np.full((6, 8), 255, np.int64)
    for mask in (ids, ids[None], ids.astype(np.float32), np.ones((6, 8), bool) * 255):
        source = hr.open([{"image": image, "mask": mask}] * 2)
        assert source.schema[1].kind == "mask" and (source[0]["mask"] == 255).all()
    with pytest.raises(hr.ConfigError, match=r"for plain tuples"):
        hr.open([{"image": image, "mask": ids}], names=("image", "mask"))
    bad = [{"image": image, "mask": ids}, {"image": image, "mask": ids + 1}]
    with pytest.raises(hr.DataError, match=r"values from 256 to 256"):
        list(hr.Loader(bad, batch_size=1, ragged="list"))


def test_an_image_sized_map_moves_with_its_image_or_is_refused() -> None:
    ramp = np.arange(48, dtype=np.float32).reshape(6, 8)
    data = [{"image": np.zeros((3, 6, 8), np.uint8), "depth": ramp}] * 2
    assert hr.open(data).schema[1].kind == "masks"
    flip = [T.RandomHorizontalFlip(1)]
    followed = next(iter(hr.Loader(data, flip, batch_size=2))).depth
    np.testing.assert_array_equal(followed[0], ramp[:, ::-1])
    bytes_may_be_a_picture = [record | {"depth": ramp.astype(np.uint8)} for record in data]
    with pytest.raises(hr.ConfigError, match=r"would leave .depth"):
        hr.Loader(bytes_may_be_a_picture, flip, batch_size=2)
    said = hr.open(data, kinds={"depth": "tensor"})
    np.testing.assert_array_equal(next(iter(hr.Loader(said, flip, batch_size=2))).depth[0], ramp)


def test_normalize_never_touches_a_mask() -> None:
    data = [{"image": np.zeros((3, 6, 8), np.uint8), "mask": np.full((6, 8), 9, np.uint8)}] * 2
    both = ("image", "mask")
    with pytest.raises(hr.ConfigError, match=r".mask. is a mask: its values are class ids"):
        hr.Loader(
            data, [T.ToDtype("float32", fields=both), T.Normalize(0, 1, fields=both)], batch_size=2
        )
    steps = [T.ToDtype("float32", scale=True, fields=both)]
    assert (next(iter(hr.Loader(data, steps, batch_size=2))).mask == 9.0).all()


def test_kinds_are_checked(folders: tuple[Path, Path]) -> None:
    for kinds, message in (
        ({"image": "maks"}, "not a kind"),
        ({"imag": "mask"}, "did you mean .image"),
        ({"image": "boxes"}, "a different form"),
        ("mask", "kinds= is str"),
    ):
        with pytest.raises(hr.ConfigError, match=message):
            hr.open(folders[1], kinds=kinds)  # type: ignore[arg-type]
    assert hr.open(folders[1], kinds={"image": "mask"})[0]["image"].shape == (1, 6, 8)
    assert hr.folder(str(folders[1]), kinds={"image": "mask"}).schema[0].kind == "mask"


def test_packs_keep_kinds(folders: tuple[Path, Path], tmp_path: Path) -> None:
    source = hr.open(folders[1], kinds={"image": "mask"})
    hr.pack(source, tmp_path / "masks.hrpack")
    assert hr.open(tmp_path / "masks.hrpack").schema[0].kind == "mask"


def test_one_bad_value_affects_one_record() -> None:
    def record(i: int, **other: Any) -> dict[str, Any]:
        return {"label": i, "words": f"w{i}"} | other

    data = [record(i) for i in range(200)]
    data[70] = record(70, words="caf\udce9")
    data[90] = record(1 << 64)
    loader = hr.Loader(data, batch_size=50, on_error="skip", error_budget=10)
    labels = [int(label) for batch in loader for label in batch.label]
    assert labels == [i for i in range(200) if i not in (70, 90)]
    reasons = {bad["record"]: bad["what"] for bad in loader.quarantine}
    assert "surrogates" in reasons[70] and "beyond 64 bits" in reasons[90]


def test_one_bad_result_of_a_step_affects_one_record() -> None:
    def step(label: Any, words: str) -> dict[str, Any]:
        return {"words": words + "\ud800" if label == 33 else words}

    data = [{"label": i, "words": "a"} for i in range(200)]
    loader = hr.Loader(data, [step], batch_size=50, on_error="skip", error_budget=10)
    assert sum(len(batch.label) for batch in loader) == 199
    assert [bad["record"] for bad in loader.quarantine] == [33]
