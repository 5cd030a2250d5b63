# SPDX-License-Identifier: Apache-2.0
"""Callables in the list of transforms, and Python objects as sources."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from awaited_warning import ended_by_warning
from conftest import Numbers, files_of, pixels_of, resized
from PIL import Image

import headrace as hr
from headrace import transforms as T

SMALL = T.Resize((8, 8))


def test_a_function_sees_its_fields_and_returns_them(pictures: Path) -> None:
    def invert(image: Any, label: Any) -> dict[str, Any]:
        return {"image": 255 - image, "label": label + 10}

    batch = next(iter(hr.Loader(pictures, [SMALL, invert], batch_size=23)))
    for image, label, path in zip(batch.image, batch.label, files_of(pictures), strict=True):
        np.testing.assert_array_equal(image, 255 - resized(path, 8, 8))
        assert label >= 10


def test_a_bare_return_value_is_the_only_field(pictures: Path) -> None:
    plain = next(iter(hr.Loader(pictures, [SMALL], batch_size=4))).image
    steps = [SMALL, lambda image: image[:, ::-1]]
    np.testing.assert_array_equal(
        next(iter(hr.Loader(pictures, steps, batch_size=4))).image, plain[:, :, ::-1]
    )


def test_native_steps_may_follow_a_function(pictures: Path) -> None:
    steps = [lambda image: image, SMALL, T.ToDtype("float32", scale=True)]
    image = next(iter(hr.Loader(pictures, steps, batch_size=1))).image[0]
    # torchvision's to_dtype multiplies by 1 / 255.
    expected = np.float32(resized(files_of(pictures)[0], 8, 8)) * np.float32(1 / 255)
    np.testing.assert_array_equal(image, expected)


def test_the_generator_belongs_to_the_record(pictures: Path) -> None:
    def noise(image: Any, rng: np.random.Generator) -> Any:
        assert isinstance(rng, np.random.Generator)
        return rng.integers(0, 256, image.shape, dtype=np.uint8)

    def run(**changes: Any) -> np.ndarray[Any, Any]:
        options: dict[str, Any] = {"batch_size": 5, "shuffle": True, **changes}
        return np.concatenate([b.image for b in hr.Loader(pictures, [SMALL, noise], **options)])

    images = run()
    np.testing.assert_array_equal(images, run(threads=4))
    assert len({image.tobytes() for image in images}) == 23
    assert (images != run(seed=1)).any()


def test_functions_may_keep_and_modify_their_arguments(pictures: Path) -> None:
    kept: list[Any] = []

    def greedy(image: Any) -> Any:
        kept.append(image)
        image[:] = 5
        return image

    batches = [b.image for b in hr.Loader(pictures, [SMALL, greedy], batch_size=4)]
    assert all((image == 5).all() for image in [*kept, *batches])


def test_an_exception_is_an_error_of_its_record(pictures: Path) -> None:
    def picky(image: Any, label: Any) -> dict[str, Any]:
        if label == 1:
            raise RuntimeError("no dogs")
        return {"image": image}

    loader = hr.Loader(pictures, [SMALL, picky], batch_size=4)
    with pytest.raises(hr.DataError, match="RuntimeError: no dogs") as caught:
        list(loader)
    assert "picky" in str(caught.value) and "test_python_steps.py" in str(caught.value)
    skipping = hr.Loader(pictures, [SMALL, picky], batch_size=4, on_error="skip", error_budget=100)
    assert {int(label) for batch in skipping for label in batch.label} == {0, 2}


def test_a_result_that_differs_from_its_declaration_is_named(pictures: Path) -> None:
    with pytest.raises(hr.Error, match="was returned as float32") as caught:
        list(hr.Loader(pictures, [SMALL, lambda image: image / np.float32(2)], batch_size=4))
    assert "declare" in str(caught.value)
    with pytest.raises(hr.Error, match="returned None"):
        list(hr.Loader(pictures, [SMALL, lambda image: None], batch_size=4))
    with pytest.raises(hr.Error, match="nonsense"):
        list(hr.Loader(pictures, [SMALL, lambda image: {"nonsense": image}], batch_size=4))


def test_changed_dtypes_and_shapes_are_declared(pictures: Path) -> None:
    step = T.Python(
        lambda image: {"image": image / np.float32(255), "mean": np.float64(image.mean())},
        returns={"image": ("float32", (3, 8, 8)), "mean": ("float64", ())},
    )
    batch = next(iter(hr.Loader(pictures, [SMALL, step], batch_size=3)))
    expected = [resized(path, 8, 8) for path in files_of(pictures)[:3]]
    np.testing.assert_array_equal(batch.image, np.float32(expected) / np.float32(255))
    np.testing.assert_allclose(batch.mean, [image.mean() for image in expected])


def test_field_names_may_differ_from_the_argument_names(pictures: Path) -> None:
    fork = T.Fork("image", a=[SMALL], b=[SMALL])
    step = T.Python(lambda picture: 255 - picture, fields="b")
    batch = next(iter(hr.Loader(pictures, [fork, step], batch_size=3)))
    np.testing.assert_array_equal(batch.b, 255 - batch.a)


@pytest.mark.parametrize("function", [lambda *fields: 0, lambda: 0, lambda rng: 0, dict.get])
def test_callables_without_fields_are_refused(pictures: Path, function: Any) -> None:
    with pytest.raises(hr.ConfigError, match="HR0613 invalid callable"):
        hr.Loader(pictures, [function], batch_size=2)


def test_an_unknown_field_is_refused(pictures: Path) -> None:
    with pytest.raises(hr.ConfigError, match="imag"):
        hr.Loader(pictures, [lambda imag: imag], batch_size=2)


def test_steps_run_on_one_thread(pictures: Path) -> None:
    threads = set()

    def note(image: Any) -> Any:
        threads.add(threading.get_ident())
        return image

    list(hr.Loader(pictures, [SMALL, note], batch_size=2, threads=4))
    assert len(threads) == 1 and threads != {threading.get_ident()}


def test_a_torchvision_transform_may_be_in_the_list(pictures: Path) -> None:
    v2 = pytest.importorskip("torchvision.transforms.v2")
    torch = pytest.importorskip("torch")
    before = torch.random.get_rng_state()
    runs = [
        np.concatenate([b.image for b in hr.Loader(pictures, steps, batch_size=4)])
        for steps in ([SMALL, v2.RandomHorizontalFlip(), v2.ColorJitter(0.5)] for _ in range(2))
    ]
    np.testing.assert_array_equal(*runs)
    assert torch.equal(before, torch.random.get_rng_state())


# Objects as sources.


class Pair(NamedTuple):
    image: Any
    label: int


def test_dictionaries_name_the_fields() -> None:
    source = hr.open(Numbers(7))
    assert [field.name for field in source.schema] == ["x", "label"]
    assert source.column("label").tolist() == [0, 1, 2, 3, 4, 0, 1]
    assert source[2]["x"].tolist() == [2, -2] and source[2]["label"] == 2


@pytest.mark.parametrize("form", [tuple, lambda pair: Pair(*pair), lambda p: Pair(*p)._asdict()])
def test_pillow_images_are_images(pictures: Path, form: Any) -> None:
    files = files_of(pictures)
    records = [form((Image.open(path), number)) for number, path in enumerate(files)]
    source = hr.open(records)
    assert [(f.name, f.kind) for f in source.schema] == [("image", "image"), ("label", "label")]
    np.testing.assert_array_equal(source[4]["image"], pixels_of(files[4]))
    batch = next(iter(hr.Loader(source, [SMALL], batch_size=23)))
    np.testing.assert_array_equal(batch.image[5], resized(files[5], 8, 8))


def test_arrays_and_tensors_are_images_or_tensors() -> None:
    torch = pytest.importorskip("torch")
    picture = np.arange(5 * 6 * 3, dtype=np.uint8).reshape(5, 6, 3)
    records = [(picture, torch.tensor(3), torch.ones(2), 1.5, "words", b"bytes")] * 2
    source = hr.open(records)
    kinds = {field.name: field.kind for field in source.schema}
    assert list(kinds.values()) == ["image", "label", "tensor", "tensor", "text", "bytes"]
    loader = hr.Loader(source, [SMALL], batch_size=2)
    batch = next(iter(loader))
    assert batch.image.shape == (2, 3, 8, 8)
    assert [list(value) for value in batch[3:]] == [[1.5, 1.5], ["words"] * 2, [b"bytes"] * 2]


def test_encoded_bytes_named_image_are_decoded(pictures: Path) -> None:
    files = files_of(pictures)
    source = hr.open([{"image": path.read_bytes()} for path in files])
    batch = next(iter(hr.Loader(source, [SMALL], batch_size=23)))
    np.testing.assert_array_equal(batch.image[9], resized(files[9], 8, 8))


def test_a_failing_object_is_bad_data() -> None:
    class Failing(Numbers):
        def __getitem__(self, index: int) -> dict[str, Any]:
            if index == 3:
                raise KeyError("gone")
            return super().__getitem__(index)

    with pytest.raises(hr.DataError, match="KeyError: 'gone'"):
        list(hr.Loader(Failing(8), batch_size=2))
    kept = hr.Loader(Failing(8), batch_size=8, on_error="skip", fields="id", error_budget=9)
    assert next(iter(kept)).id.tolist() == [0, 1, 2, 4, 5, 6, 7]


def test_records_that_do_not_fit_record_0_are_bad_data() -> None:
    records = [{"x": np.zeros(3)}, {"x": np.zeros(4)}]
    with pytest.raises(hr.DataError, match=r"shape \(4,\), but record 0 has \(3,\)"):
        list(hr.Loader(records, batch_size=1))
    source = hr.open(records, shapes={"x": (-1,)})
    batch = next(iter(hr.Loader(source, batch_size=2, ragged="list")))
    assert [value.shape for value in batch.x] == [(3,), (4,)]


def test_images_of_one_size_need_no_resize() -> None:
    same = [{"image": np.full((3, 4, 5), i, np.uint8), "label": i} for i in range(9)]
    batch = next(iter(hr.Loader(same, [T.RandomHorizontalFlip()], batch_size=9)))
    assert batch.image.shape == (9, 3, 4, 5)
    assert batch.image[:, 0, 0, 0].tolist() == batch.label.tolist() == list(range(9))
    other = [*same, {"image": np.zeros((3, 5, 5), np.uint8), "label": 9}]
    with pytest.raises(hr.ConfigError, match="differ in shape"):
        hr.Loader(other, batch_size=2)


def test_columns_are_sources(pictures: Path) -> None:
    files = files_of(pictures)
    boxes = np.arange(23 * 4, dtype=np.float32).reshape(23, 4)
    names, words = [path.parent.name for path in files], ["a", "b"] * 11 + ["c"]
    source = hr.records(image=files, label=names, box=boxes, text=words)
    assert source.classes == ["cat", "dog", "eel"]
    batch = next(
        iter(hr.Loader(source, {"image": [SMALL], "box": [], "text": None}, batch_size=23))
    )
    assert batch._fields == ("image", "label", "box")
    np.testing.assert_array_equal(batch.box, boxes)
    np.testing.assert_array_equal(batch.image[1], resized(files[1], 8, 8))


def test_subsets_and_splits_are_sources() -> None:
    source = hr.open(Numbers(100))
    assert [record["x"][0] for record in hr.subset(source, [5, 5, -1])] == [5, 5, 99]
    assert len(source[10:20]) == 10
    train, val = hr.split(source, 0.8, 0.2, stratify_by="label")
    assert (len(train), len(val)) == (80, 20)
    assert np.bincount(val.column("label")).tolist() == [4] * 5
    xs = {record["x"][0] for part in (train, val) for record in part}
    assert len(xs) == 100


def test_a_long_wait_names_its_stage() -> None:
    release = threading.Event()

    def slow(image: np.ndarray) -> np.ndarray:
        release.wait(300)
        return image

    loader = hr.Loader([np.zeros((3, 4, 4), np.uint8)], [slow], batch_size=1, patience=0.1)
    with ended_by_warning("still waits for a Python transform", release.set):
        list(loader)


def test_an_argument_that_is_not_a_field_is_explained(pictures: Path) -> None:
    with pytest.raises(hr.ConfigError, match=r"argument names must be field names") as caught:
        hr.Loader(pictures, [SMALL, lambda x: x], batch_size=2)
    assert 'T.Python(function, fields="' in str(caught.value)


def test_the_only_field_may_have_any_name(pictures: Path) -> None:
    steps = {"image": [SMALL, lambda x: 255 - x], "label": None}
    batch = next(iter(hr.Loader(pictures, steps, batch_size=2)))
    np.testing.assert_array_equal(batch.image[0], 255 - resized(files_of(pictures)[0], 8, 8))


def test_float_images_get_no_hint_to_convert_to_uint8(pictures: Path) -> None:
    with pytest.raises(hr.Error, match=r"was returned as float32") as caught:
        list(hr.Loader(pictures, [SMALL, lambda image: image / np.float32(255)], batch_size=4))
    assert '"image": ("float32", (3, 8, 8))' in str(caught.value)
    assert "astype" not in str(caught.value)


def test_likely_mistakes_are_refused_with_a_hint(pictures: Path) -> None:
    paths = files_of(pictures)
    with pytest.raises(hr.ConfigError, match=r"write it as a keyword: batch_size="):
        hr.Loader(pictures, [SMALL], 32)
    with pytest.raises(hr.ConfigError, match=r"hr\.concat"):
        hr.open(pictures, pictures)
    for call in (
        lambda: hr.open(path for path in paths),
        lambda: hr.records(image=(path for path in paths)),
        lambda: hr.webdataset(str(path) for path in paths),
    ):
        with pytest.raises(hr.ConfigError, match=r"sorted\(\.\.\.\)"):
            call()
    for fields in (["img"], "imag"):
        with pytest.raises(hr.ConfigError, match=r'"ima?g".*\n.*did you mean "image"'):
            hr.Loader(pictures, [SMALL], fields=fields, batch_size=2)
        with pytest.raises(hr.ConfigError, match=r"no field"):
            hr.Loader(pictures, [T.Resize((8, 8), fields=fields)], batch_size=2)
        with pytest.raises(hr.ConfigError, match=r"argument names must be field names"):
            hr.Loader(pictures, [T.Python(lambda x: x, fields=fields)], batch_size=2)
