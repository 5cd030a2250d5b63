# SPDX-License-Identifier: Apache-2.0
"""Transforms on one image or record equal a loader's, in the form of their input."""

from __future__ import annotations

import io
import pickle
import random
import threading
from typing import Any

import numpy as np
import pytest
from headrace.compose import _OneRecord
from PIL import Image
from processes import run_code

import headrace as hr
from headrace import transforms as T

PIXELS = np.random.default_rng(1).integers(0, 256, (40, 50, 3), np.uint8)
STEPS = [T.RandomResizedCrop(24), T.RandomHorizontalFlip(), T.ColorJitter(0.4, 0.4, 0.4, 0.1)]


def by_loader(record: Any, steps: list[Any], seed: int, **options: Any) -> Any:
    """Epoch ``seed`` of a loader over the record alone."""
    loader = hr.Loader(hr.open([record]), steps, batch_size=1, threads=1, seed=0, **options)
    return loader.batch(seed, 0)


@pytest.mark.parametrize("seed", [0, 1, 7, 2**63 - 1])
def test_a_call_equals_a_loaders_result(seed: int) -> None:
    expected = by_loader({"image": PIXELS}, STEPS, seed).image[0]
    got = hr.Compose(STEPS)(PIXELS, seed=seed)
    assert np.array_equal(got.transpose(2, 0, 1), expected)


def test_results_only_depend_on_the_seed() -> None:
    compose = hr.Compose(STEPS)
    first = [compose(PIXELS, seed=seed) for seed in range(4)]
    again = [compose(PIXELS, seed=seed) for seed in reversed(range(4))][::-1]
    assert all(map(np.array_equal, first, again))
    assert not np.array_equal(first[0], first[1])


def test_without_a_seed_the_global_generator_decides() -> None:
    torch = pytest.importorskip("torch")
    compose = hr.Compose(STEPS)
    torch.manual_seed(3)
    first = [compose(PIXELS) for _ in range(3)]
    torch.manual_seed(3)
    again = [compose(PIXELS) for _ in range(3)]
    assert all(map(np.array_equal, first, again))
    assert not np.array_equal(first[0], first[1])


def test_images_are_returned_in_the_form_of_the_input() -> None:
    flip = hr.Compose([T.RandomHorizontalFlip(p=1), T.CenterCrop((20, 30))])
    flipped = PIXELS[10:30, 10:40][:, ::-1]
    image = flip(Image.fromarray(PIXELS))
    assert image.mode == "RGB" and np.array_equal(np.asarray(image), flipped)
    assert np.array_equal(flip(PIXELS), flipped)
    planes = np.ascontiguousarray(PIXELS.transpose(2, 0, 1))
    assert np.array_equal(flip(planes), flipped.transpose(2, 0, 1))
    gray = flip(PIXELS[..., 0])
    assert gray.shape == (20, 30) and np.array_equal(gray, flipped[..., 0])
    gray = flip(Image.fromarray(PIXELS[..., 0]))
    assert gray.mode == "L" and np.array_equal(np.asarray(gray), flipped[..., 0])
    floats = hr.Compose([T.ToDtype("float32", scale=True)])(Image.fromarray(PIXELS))
    assert floats.dtype == np.float32 and floats.shape == (3, 40, 50)


def test_a_tensor_is_returned_as_a_tensor() -> None:
    torch = pytest.importorskip("torch")
    planes = torch.from_numpy(PIXELS.transpose(2, 0, 1).copy())
    got = hr.Compose([T.RandomVerticalFlip(p=1)])(planes)
    assert isinstance(got, torch.Tensor) and torch.equal(got, planes.flip(1))


def test_encoded_bytes_are_decoded_by_the_engine() -> None:
    file = io.BytesIO()
    Image.fromarray(PIXELS).save(file, "jpeg")
    expected = by_loader({"image": file.getvalue()}, STEPS, 5).image[0]
    assert np.array_equal(hr.Compose(STEPS)(file.getvalue(), seed=5), expected)
    with pytest.raises(hr.DataError):
        hr.Compose(STEPS)(b"no image at all")


def test_fields_of_a_record_follow_the_image() -> None:
    record = {
        "image": Image.fromarray(PIXELS),
        "mask": Image.fromarray(PIXELS[..., 0] % 5),
        "boxes": np.array([[1, 2, 30, 20], [5, 5, 8, 9]], np.float32),
        "label": 3,
        "name": "one",
    }
    flip = hr.Compose([T.RandomHorizontalFlip(p=1)], kinds={"boxes": "boxes:xyxy"})
    got = flip(record)
    assert list(got) == list(record) and got["label"] == 3 and got["name"] == "one"
    assert np.array_equal(np.asarray(got["mask"]), (PIXELS[..., 0] % 5)[:, ::-1])
    assert got["boxes"].tolist() == [[20, 2, 49, 20], [42, 5, 45, 9]]
    more = flip(record | {"boxes": np.zeros((0, 4), np.float32)})  # other numbers of rows
    assert more["boxes"].shape == (0, 4)


def test_sizes_may_differ_from_call_to_call() -> None:
    compose = hr.Compose([T.Resize((8, 9))])
    for height in (5, 17, 40):
        pixels = PIXELS[:height]
        expected = Image.fromarray(pixels).resize((9, 8), Image.Resampling.BILINEAR)
        assert np.array_equal(compose(pixels), np.asarray(expected))


def test_one_plan_serves_images_of_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    begin = _OneRecord.__init__
    monkeypatch.setattr(_OneRecord, "__init__", lambda *given: made.append(1) or begin(*given))
    flip = hr.Compose([T.RandomHorizontalFlip(p=1)])
    for each in (PIXELS, PIXELS[:30], PIXELS[5:, :20], PIXELS[2:9, 1:9]):
        assert np.array_equal(flip(each), each[:, ::-1])
        assert np.array_equal(flip({"mask": each[..., 0]})["mask"], each[:, ::-1, 0])
    assert len(made) == 2
    for shape in ((5, 6, 3), (5, 7, 3)):  # fields that are not images keep their shape
        values = np.ones(shape)
        assert np.array_equal(flip({"image": PIXELS, "x": values})["x"], values)


def test_an_array_with_ambiguous_channels_is_refused() -> None:
    flip = hr.Compose([T.RandomHorizontalFlip(p=1)])
    with pytest.raises(hr.ConfigError, match=r"HR0615.*\(40, 50, 2\)"):
        flip(PIXELS[..., :2])
    torch = pytest.importorskip("torch")
    planes = torch.arange(5 * 20 * 3, dtype=torch.uint8).reshape(5, 20, 3)
    assert torch.equal(flip(planes), planes.flip(2))


def test_a_single_transform_is_callable_too() -> None:
    flip = T.RandomHorizontalFlip(p=1)
    assert np.array_equal(flip(PIXELS), PIXELS[:, ::-1])
    again = pickle.loads(pickle.dumps(flip))
    assert again == flip == T.RandomHorizontalFlip(p=1) != T.RandomHorizontalFlip()
    compose = pickle.loads(pickle.dumps(hr.Compose([flip])))
    assert compose == hr.Compose([flip]) and np.array_equal(compose(PIXELS), PIXELS[:, ::-1])


def test_a_function_in_the_list_runs() -> None:
    def inverted(image: Any) -> Any:
        return 255 - image

    got = hr.Compose([T.RandomHorizontalFlip(p=1), inverted])(PIXELS)
    assert np.array_equal(got, 255 - PIXELS[:, ::-1])


@pytest.mark.parametrize(
    "step",
    [T.MixUp(num_classes=3), T.RandomChoice([[T.CutMix(num_classes=3)], []]), T.Mosaic(32)],
    ids=["MixUp", "CutMix", "Mosaic"],
)
def test_steps_that_need_other_records_are_refused(step: Any) -> None:
    with pytest.raises(hr.ConfigError, match="HR0170"):
        hr.Compose([step])


def test_an_invalid_seed_is_refused() -> None:
    for seed in (-1, 1 << 63, 1.5, True):
        with pytest.raises(hr.ConfigError, match="seed"):
            hr.Compose(STEPS)(PIXELS, seed=seed)


def test_threads_and_many_input_forms_do_not_interfere() -> None:
    compose = hr.Compose(STEPS)
    inputs = [PIXELS[..., 0], PIXELS, Image.fromarray(PIXELS), Image.fromarray(PIXELS[..., 0])]
    expected = [np.asarray(compose(each, seed=4)) for each in inputs]
    wrong: list[int] = []

    def calls(number: int) -> None:
        order = random.Random(number).choices(range(len(inputs)), k=12)
        wrong.extend(
            i
            for i in order
            if not np.array_equal(np.asarray(compose(inputs[i], seed=4)), expected[i])
        )

    threads = [threading.Thread(target=calls, args=[number]) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_dataloader_workers_have_separate_transforms() -> None:
    pytest.importorskip("torch")
    done = run_code(IN_WORKERS)
    assert (done.stdout, done.returncode) == ("True 6\n", 0), done.stderr


IN_WORKERS = """
import numpy as np, torch
from torch.utils.data import DataLoader
import headrace as hr
from headrace import transforms as T

class Augmented:
    def __init__(self):
        self.transform = hr.Compose([T.RandomResizedCrop(16), T.ToDtype("float32", scale=True)])
        self[0]  # before the workers are forked
    def __len__(self): return 6
    def __getitem__(self, index):
        return self.transform(np.arange(30 * 40 * 3, dtype=np.uint8).reshape(30, 40, 3))

def epoch():
    torch.manual_seed(0)
    workers = DataLoader(Augmented(), batch_size=2, num_workers=2, multiprocessing_context="fork")
    return torch.cat(list(workers))

first = epoch()
print(torch.equal(first, epoch()), len({each.numpy().tobytes() for each in first}))
"""
