# SPDX-License-Identifier: Apache-2.0
"""Ultralytics' trainer on our batches: its inputs, its boxes, the end of mosaic, and a kill."""

from __future__ import annotations

import csv
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from forked import notes_of, output_of
from PIL import Image

import headrace as hr

torch = pytest.importorskip("torch")
pytest.importorskip("ultralytics")
from headrace.trainers import ultralytics  # noqa: E402
from ultralytics.cfg import get_cfg  # noqa: E402
from ultralytics.data.build import build_yolo_dataset  # noqa: E402

COUNT = 36
PLAIN = {"degrees": 0.0, "translate": 0.0, "scale": 0.0, "hsv_h": 0.0, "hsv_s": 0.0, "hsv_v": 0.0,
         "fliplr": 0.0}  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("yolo")
    for number in range(COUNT):
        width, height = [(96, 64), (64, 96), (80, 80)][number % 3]
        pixels = np.random.default_rng(number).integers(0, 256, (height, width, 3), np.uint8)
        rows = [f"{k} {0.3 + 0.2 * k} {0.4 + 0.1 * k} 0.25 0.3" for k in range(number % 4)]
        for folder, text in (("images", None), ("labels", "\n".join(rows))):
            path = root / folder / "train" / f"{number:03}.{'jpg' if text is None else 'txt'}"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(path) if text is None else path.write_text(text)
    names = "names: {0: cat, 1: dog, 2: eel}"
    (root / "data.yaml").write_text(
        f"path: {root}\ntrain: images/train\nval: images/train\n{names}\n"
    )
    return root


def dataset_of(root: Path, **options: Any) -> Any:
    args = get_cfg(overrides={"imgsz": 64, "task": "detect", "mode": "train", **options})
    data = {"names": {0: "cat", 1: "dog", 2: "eel"}, "nc": 3, "channels": 3}
    folder = str(root / "images" / "train")
    return build_yolo_dataset(args, folder, 4, data, mode="train", rect=False, stride=32), args


def test_boxes_without_augmentation_equal_those_of_ultralytics(root: Path) -> None:
    dataset, args = dataset_of(root, mosaic=0.0, seed=1, **PLAIN)
    loader = ultralytics.TrainLoader(dataset, args, 4)
    assert len(loader) == 9 and len(loader.sampler) == COUNT and loader.num_workers == 0
    files = []
    for batch in loader:
        assert batch["img"].dtype == torch.uint8 and batch["img"].shape == (4, 3, 64, 64)
        for row, file in enumerate(batch["im_file"]):
            files.append(file)
            theirs = dataset[dataset.im_files.index(file)]
            mine = batch["batch_idx"] == row
            torch.testing.assert_close(
                batch["bboxes"][mine], theirs["bboxes"].float(), atol=0.01, rtol=0
            )
            assert batch["cls"][mine].tolist() == theirs["cls"].tolist()
            assert batch["ori_shape"][row] == tuple(theirs["ori_shape"])
    assert sorted(files) == sorted(dataset.im_files)


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_images_with_an_exif_orientation_equal_those_of_ultralytics(
    tmp_path: Path, form: str
) -> None:
    for folder in ("images", "labels"):
        (tmp_path / folder / "train").mkdir(parents=True)
    ramp = np.add.outer(np.arange(64) * 2, np.arange(96)).astype(np.uint8)
    image = Image.fromarray(np.stack([ramp, ramp // 2, 255 - ramp], 2))
    options: dict[str, Any] = {"quality": 95, "lossless": True} if form == "WEBP" else {}
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x112] = orientation
        name = f"{orientation}.{form.lower()}"
        image.save(tmp_path / "images" / "train" / name, form, exif=exif, **options)
        label = tmp_path / "labels" / "train" / f"{orientation}.txt"
        label.write_text("1 0.25 0.75 0.375 0.25")
    dataset, args = dataset_of(tmp_path, imgsz=96, mosaic=0.0, augmentations=[], **PLAIN)
    assert {tuple(label["shape"]) for label in dataset.labels} == {(64, 96), (96, 64)}
    for batch in ultralytics.TrainLoader(dataset, args, 4):
        for row, file in enumerate(batch["im_file"]):
            theirs = dataset[dataset.im_files.index(file)]
            assert torch.equal(batch["img"][row], theirs["img"]), file
            mine = batch["bboxes"][batch["batch_idx"] == row]
            torch.testing.assert_close(mine, theirs["bboxes"].float(), atol=1e-6, rtol=0)
            assert batch["ori_shape"][row] == tuple(theirs["ori_shape"])


def whole_boxes(root: Path, tmp_path: Path, count: int, **options: Any) -> Any:
    """A loader over images with a box each, whose class is the image's number; and the dataset."""
    images = sorted((root / "images" / "train").glob("*.jpg"))[:count]
    for folder in ("images", "labels"):
        (tmp_path / folder / "train").mkdir(parents=True)
    for number, file in enumerate(images):
        (tmp_path / "images" / "train" / file.name).symlink_to(file)
        text = f"{number} 0.5 0.5 0.98 0.98"
        (tmp_path / "labels" / "train" / f"{file.stem}.txt").write_text(text)
    args = get_cfg(overrides={"imgsz": 64, "task": "detect", "mode": "train", **PLAIN, **options})
    data = {"names": dict(enumerate(map(str, range(count)))), "nc": count, "channels": 3}
    folder = str(tmp_path / "images" / "train")
    dataset = build_yolo_dataset(args, folder, 1, data, mode="train", rect=False, stride=32)
    return ultralytics.TrainLoader(dataset, args, 1), dataset


@pytest.mark.parametrize("probability", [0.3, 0.8])
def test_images_without_a_mosaic_equal_those_of_ultralytics(root: Path, probability: float) -> None:
    options: dict[str, Any] = {"imgsz": 96, "augmentations": [], "seed": 1, **PLAIN}
    dataset, _ = dataset_of(root, mosaic=0.0, **options)
    _, args = dataset_of(root, mosaic=probability, **options)
    loader, mosaics = ultralytics.TrainLoader(dataset, args, 4), 0
    for batch in (batch for _ in range(3) for batch in loader):
        for row, file in enumerate(batch["im_file"]):
            theirs = dataset[dataset.im_files.index(file)]
            if (batch["img"][row].int() - theirs["img"].int()).abs().max() > 2:
                mosaics += 1
                continue
            mine = batch["bboxes"][batch["batch_idx"] == row]
            torch.testing.assert_close(mine, theirs["bboxes"].float(), atol=0.01, rtol=0)
    deviation = (3 * COUNT * probability * (1 - probability)) ** 0.5
    assert abs(mosaics - 3 * COUNT * probability) < 4 * deviation


@pytest.mark.parametrize("cache", [False, "ram"])
def test_a_mosaics_images_come_from_as_many_as_ultralytics_keeps(
    root: Path, tmp_path: Path, cache: Any
) -> None:
    loader, dataset = whole_boxes(root, tmp_path, COUNT, mosaic=1.0, cache=cache)
    within = dataset.max_buffer_length
    assert within == 8, "eight batches"
    outside = 0
    for _ in range(4):
        shown = []
        for batch in loader:
            own = dataset.im_files.index(batch["im_file"][0])
            shown.append((own, {int(number) for number in batch["cls"].flatten()}))
        order = [own for own, _ in shown]
        assert sorted(order) == list(range(COUNT))
        for at, (own, numbers) in enumerate(shown):
            first = max(at + 1 - within, 0)
            outside += len(numbers - {own, *order[first : first + within]})
    assert bool(outside) == (cache == "ram")


def test_channels_are_swapped_with_the_probability_of_bgr(root: Path) -> None:
    def images(bgr: float, epoch: int = 0) -> dict[str, Any]:
        dataset, args = dataset_of(root, mosaic=0.0, seed=1, bgr=bgr, **PLAIN)
        loader = ultralytics.TrainLoader(dataset, args, 4)
        loader.sampler.set_epoch(epoch)
        return {file: one for b in loader for file, one in zip(b["im_file"], b["img"], strict=True)}

    rgb, bgr, some = images(0.0), images(1.0), images(0.5)
    assert all(torch.equal(bgr[file], rgb[file].flip(0)) for file in rgb)
    swapped = {file for file in rgb if torch.equal(some[file], bgr[file])}
    assert 8 < len(swapped) < 28
    assert all(torch.equal(some[file], rgb[file]) for file in rgb if file not in swapped)
    assert all(torch.equal(image, some[file]) for file, image in images(0.5).items())
    other = {file for file, image in images(0.5, 1).items() if torch.equal(image, bgr[file])}
    assert other != swapped, "each epoch has its own draws"


def test_unavailable_augmentations_are_refused(root: Path) -> None:
    refused: list[dict[str, Any]] = [
        {"mixup": 0.1},
        {"perspective": 0.001},
        {"rect": True},
        {"augmentations": [{"transform": {"__class_fullname__": "Blur", "p": 1.0}}]},
    ]
    for option in refused:
        dataset, args = dataset_of(root, **option)
        with pytest.raises(hr.ConfigError, match=rf"HR0850.*{next(iter(option))}"):
            ultralytics.TrainLoader(dataset, args, 4)
    with pytest.raises(hr.ConfigError, match=r"HR0850.*no labels"):
        ultralytics.source_of([1, 2])


def test_a_smaller_batch_after_a_lack_of_memory_continues_with_the_epochs_order(
    root: Path, tmp_path: Path
) -> None:
    images = str(root / "images" / "train")
    settings = {"data": str(root / "data.yaml"), "model": "unused.yaml", "imgsz": 64}
    where = {"project": str(tmp_path), "device": "cpu"}
    trainer = ultralytics.DetectionTrainer(overrides={**settings, **where})
    trainer.model = SimpleNamespace(stride=torch.tensor([32]))
    trainer.start_epoch = 3  # resumed
    loader = trainer.get_dataloader(images, 4)
    loader.sampler.set_epoch(3)
    whole = [file for batch in loader for file in batch["im_file"]]
    retried = trainer.get_dataloader(images, 2)
    assert [file for batch in retried for file in batch["im_file"]] == whole


def test_two_ranks_share_each_epoch_and_read_labels_one_after_the_other(
    root: Path, tmp_path: Path
) -> None:
    output_of("trainers/ranks_ultralytics_two.py", tmp_path, root, cwd=tmp_path)
    events = (tmp_path / "events").read_text().splitlines()
    assert events == ["0 begins", "0 has ended", "1 begins", "1 has ended"]
    first, second = (notes_of(tmp_path, "two", rank) for rank in range(2))
    assert [epoch for epoch, _ in first] == [epoch for epoch, _ in second]
    for epoch in range(3):
        files = [file for at, batch in (*first, *second) if at == epoch for file in batch]
        assert sorted(files) == list(range(COUNT))
    assert first[0][1] != first[5][1], "each epoch has its order"


def test_training_ends_its_mosaic_and_restarts_its_epoch_after_a_kill(
    root: Path, tmp_path: Path
) -> None:
    output_of("trainers/ranks_ultralytics.py", tmp_path, root, cwd=tmp_path)
    whole, killed, resumed = (
        notes_of(tmp_path, name, 0) for name in ("whole", "killed", "resumed")
    )
    assert [epoch for epoch, *_ in whole] == [epoch for epoch in range(4) for _ in range(9)]
    for epoch in range(4):
        of_epoch = whole[9 * epoch : 9 * epoch + 9]
        assert sorted(file for _, _, files, *_ in of_epoch for file in files) == list(range(COUNT))
        assert all(mosaic == (epoch < 3) for _, mosaic, *_ in of_epoch)
    assert whole[0][2] != whole[9][2], "each epoch has its order"
    assert killed == whole[:12]
    assert resumed == whole[9:], "the epoch in which it was killed, from its begin"
    with (tmp_path / "whole" / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4
    assert all(0 <= float(row["data_wait_share"]) <= 1 for row in rows)
