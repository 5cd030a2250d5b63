# SPDX-License-Identifier: Apache-2.0
"""RF-DETR's batches, made by Headrace: equal to its own, except for random draws."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forked import notes_of, output_of
from PIL import Image

import headrace as hr
from headrace import transforms as T

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")
pytest.importorskip("rfdetr")
sys.path.insert(0, str(Path(__file__).parent.parent / "migration"))
import made_data  # noqa: E402
from headrace.trainers import rfdetr  # noqa: E402
from rfdetr.config import RFDETRNanoConfig, RFDETRSegNanoConfig, TrainConfig  # noqa: E402
from rfdetr.datasets._torchvision import Resize  # noqa: E402
from rfdetr.training import RFDETRDataModule  # noqa: E402
from rfdetr.utilities.tensors import PackedTargets, make_collate_fn  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
SIZE, BLOCK = 128, 32


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_data.coco(tmp_path_factory.mktemp("coco"))


@pytest.fixture(scope="module")
def yolo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("yolo")
    for split in ("train", "valid"):
        for number in range(6):
            made_data.save(number, root / split / "images" / f"{number}.jpg")
            labels = root / split / "labels" / f"{number}.txt"
            labels.parent.mkdir(exist_ok=True)
            rows = [f"{k} {0.3 + 0.2 * k} {0.4 + 0.1 * k} 0.9 0.3" for k in range(number % 3)]
            labels.write_text("\n".join(rows))
    (root / "data.yaml").write_text("train: train/images\nval: valid/images\nnames: [cat, dog]\n")
    return root


def modules(root: Path, kind: str = "coco", config: Any = RFDETRNanoConfig, **options: Any) -> Any:
    """Theirs and ours."""
    model = config(pretrain_weights=None, resolution=SIZE)
    given = {"dataset_dir": str(root), "dataset_file": kind, "batch_size": 4, "num_workers": 0}
    both = []
    for module in (RFDETRDataModule, rfdetr.DataModule):
        made = module(model, TrainConfig(**{**given, "multi_scale": "off", **options}))
        made.setup("fit")
        both.append(made)
    return both


def assert_equal(ours: Any, theirs: Any) -> None:
    assert torch.equal(ours[0].mask, theirs[0].mask)
    assert ours[0].no_padding == theirs[0].no_padding
    torch.testing.assert_close(ours[0].tensors, theirs[0].tensors, rtol=0, atol=1e-6)
    assert type(ours[1]) is type(theirs[1]) and len(ours[1]) == len(theirs[1])
    for mine, other in zip(ours[1], theirs[1], strict=True):
        assert mine.keys() == other.keys()
        for name, value in mine.items():
            assert (value.dtype, value.shape) == (other[name].dtype, other[name].shape), name
            torch.testing.assert_close(value, other[name], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("pack", [True, False])
@pytest.mark.parametrize("kind", ["coco", "yolo"])
def test_validation_batches_are_equal(root: Path, yolo: Path, kind: str, pack: bool) -> None:
    theirs, ours = modules({"coco": root, "yolo": yolo}[kind], kind, pack_targets=pack)
    pairs = list(zip(ours.val_dataloader(), theirs.val_dataloader(), strict=True))
    assert len(pairs) == {"coco": 5, "yolo": 2}[kind]
    for pair in pairs:
        assert_equal(*pair)
        assert isinstance(pair[0][1], PackedTargets if pack else tuple)


@pytest.mark.parametrize("rows", [None, 2])
def test_training_batches_of_several_sizes_are_padded_alike(root: Path, rows: int | None) -> None:
    options = {"scale_jitter": False, "aug_config": {}, "pad_targets_to": rows}
    theirs, ours = modules(root, multi_scale="per-sample", **options)
    dataset, seen = theirs._dataset_train, []
    collate = make_collate_fn(BLOCK, pack=True, pad_targets_to=rows)
    for batch in ours.train_dataloader():
        records = []
        for target in batch[1]:
            size, image_id = target["size"].tolist(), int(target["image_id"])
            dataset._transforms.transforms[0] = Resize(size)  # was: one of several
            records.append(dataset[dataset.ids.index(image_id)])
            seen.append((size[0], image_id))
        assert_equal(batch, collate(records))
    sizes, ids = zip(*seen, strict=True)
    assert sorted(ids) == dataset.ids
    assert len(set(sizes)) >= 5 and all(size % BLOCK == 0 for size in sizes)


def test_crops_keep_boxes_on_their_objects(tmp_path: Path) -> None:
    """A white object on black, which is the object that the box has."""
    (tmp_path / "annotations").mkdir()
    images, objects = [], []
    for number in range(24):
        pixels = np.zeros((420, 500 + number, 3), np.uint8)
        pixels[100:300, 150:400] = 255
        for split in ("train2017", "val2017"):
            (tmp_path / split).mkdir(exist_ok=True)
            Image.fromarray(pixels).save(tmp_path / split / f"{number}.png")
        width = 500 + number
        file = {"id": number, "file_name": f"{number}.png", "width": width, "height": 420}
        images.append(file)
        box = {"bbox": [150, 100, 250, 200], "area": 50000, "category_id": 1, "iscrowd": 0}
        objects.append({"id": number, "image_id": number, **box})
    found = {"images": images, "annotations": objects, "categories": [{"id": 1, "name": "x"}]}
    for split in ("train2017", "val2017"):
        (tmp_path / "annotations" / f"instances_{split}.json").write_text(json.dumps(found))
    _, ours = modules(tmp_path)
    widths = []
    for samples, targets in ours.train_dataloader():
        for image, target in zip(samples.tensors, targets, strict=True):
            ((x, y, w, h),) = (target["boxes"] * SIZE).tolist()
            rows, columns = (image.mean(0) > 0).nonzero(as_tuple=True)
            assert abs(float(columns.min()) - (x - w / 2)) < 2
            assert abs(float(columns.max()) + 1 - (x + w / 2)) < 2
            assert abs(float(rows.min()) - (y - h / 2)) < 2
            assert abs(float(rows.max()) + 1 - (y + h / 2)) < 2
            assert float(target["area"]) == pytest.approx(w * h, rel=1e-4)
            widths.append(round(w / SIZE, 2))
    whole = sum(width in (0.48, 0.49, 0.5) for width in widths)
    assert len(widths) == 24 and 4 < whole < 20, "about half are crops"


def test_its_training_recipe_is_translated_to_our_steps(root: Path) -> None:
    _, ours = modules(root)
    steps, size, crops = rfdetr.steps_of(ours._dataset_train._transforms)
    squares = [
        [T.Resize(short), T.RandomChoice([[T.RandomCrop(k)] for k in range(384, short + 1)])]
        for short in (400, 500, 600)
    ]
    jitter = [[T.Resize((SIZE, SIZE))], [T.RandomChoice(squares), T.Resize((SIZE, SIZE))]]
    assert steps == [
        T.RandomChoice(jitter, p=[0.5, 0.5]),
        T.RandomHorizontalFlip(0.5),
        T.ToDtype("float32", scale=True),
        T.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ]
    assert (size, crops) == (SIZE, True)


def test_a_small_dataset_is_repeated_as_rf_detr_does(root: Path) -> None:
    theirs, ours = modules(root, grad_accum_steps=2)
    assert len(ours.train_dataloader()) == len(theirs.train_dataloader()) == 10


def test_options_that_are_not_native_are_refused(root: Path) -> None:
    _, flipped = modules(root, aug_config={"HorizontalFlip": {"p": 0.5}})
    with pytest.raises(hr.ConfigError, match=r"HR0850.*AlbumentationsWrapper"):
        flipped.train_dataloader()
    _, oblong = modules(root, square_resize_div_64=False)
    with pytest.raises(hr.ConfigError, match=r"HR0850.*RandomResize"):
        oblong.val_dataloader()
    _, masks = modules(root, config=RFDETRSegNanoConfig)
    with pytest.raises(hr.ConfigError, match=r"HR0850.*has masks"):
        masks.train_dataloader()


def test_from_dataloader_gives_its_batches_and_suggests_native_training(root: Path) -> None:
    theirs, ours = modules(root, pack_targets=False)
    loader = hr.from_dataloader(theirs.val_dataloader(), verbose=False)
    for mine, other in zip(loader.torch(), ours.val_dataloader(), strict=True):
        assert_equal((mine[0], tuple(mine[1])), other)
    assert "headrace.trainers.rfdetr.train(model, ...) would be native" in str(loader.report)


def test_train_gives_a_model_our_data_module() -> None:
    class Model:
        def train(self, **options: Any) -> Any:
            import rfdetr.training as training  # as RFDETR.train does

            return training.RFDETRDataModule, options

    assert rfdetr.train(Model(), epochs=3) == (rfdetr.DataModule, {"epochs": 3})
    assert Model().train() == (RFDETRDataModule, {})


def test_two_ranks_resume_after_a_kill(root: Path, tmp_path: Path) -> None:
    output_of("trainers/ranks_rfdetr.py", tmp_path, root, cwd=tmp_path)
    for rank in range(2):
        whole, killed, resumed = (
            notes_of(tmp_path, name, rank) for name in ("whole", "killed", "resumed")
        )
        assert [mark for mark, *_ in whole] == 2 * (["training"] * 9 + ["validation"] * 5)
        assert killed == whole[:7] and resumed == whole[4:]
