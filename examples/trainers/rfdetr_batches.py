# SPDX-License-Identifier: Apache-2.0
"""RF-DETR's data module with Headrace's batches: `python examples/trainers/rfdetr_batches.py`.

`rfdetr.train(RFDETRMedium(), dataset_dir=...)` is all that training needs. Here its data module
trains a small network instead, and again from a checkpoint of the middle of an epoch.
"""

import json
import tempfile
import warnings
from pathlib import Path

import pytorch_lightning
import torch
from headrace.trainers import rfdetr
from PIL import Image
from pytorch_lightning.callbacks import ModelCheckpoint
from rfdetr.config import RFDETRNanoConfig, TrainConfig

warnings.simplefilter("ignore")
files = sorted(Path(__file__).parent.glob("../images/*.jpg"))
SAVED, STEPS = 3, 8


def write_coco(root):
    """The examples' images with a box each, in COCO's layout."""
    (root / "annotations").mkdir()
    for split in ("train2017", "val2017"):
        (root / split).mkdir()
        images, objects = [], []
        for number, file in enumerate(files * 2):
            name = f"{number:03}.jpg"
            (root / split / name).symlink_to(file.resolve())
            width, height = Image.open(file).size
            images.append({"id": number, "file_name": name, "width": width, "height": height})
            box = {
                "bbox": [width / 4, height / 4, width / 2, height / 2],
                "area": width * height / 4,
            }
            about = {"id": number, "image_id": number, "category_id": 1, "iscrowd": 0}
            objects.append({**about, **box})
        content = {"images": images, "annotations": objects, "categories": [{"id": 1, "name": "x"}]}
        (root / "annotations" / f"instances_{split}.json").write_text(json.dumps(content))


class Net(pytorch_lightning.LightningModule):
    """Predicts the boxes from the mean color, which is not a good idea."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = torch.nn.Linear(3, 4)
        self.seen = []

    def training_step(self, batch, _):
        samples, targets = batch  # a NestedTensor, and a dictionary for each image
        images, _ = samples.decompose()
        boxes = torch.cat([target["boxes"] for target in targets])
        self.seen.append([int(target["image_id"]) for target in targets])
        return (self.net(images.mean((2, 3))) - boxes).square().mean()

    def validation_step(self, batch, _):
        pass

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def fit(root, checkpoint=None):
    data = rfdetr.DataModule(
        RFDETRNanoConfig(pretrain_weights=None, resolution=64),
        TrainConfig(dataset_dir=str(root), dataset_file="coco", batch_size=2, multi_scale="off"),
    )
    saves = ModelCheckpoint(
        dirpath=root / "saved", filename="{step}", every_n_train_steps=SAVED, save_top_k=-1
    )
    trainer = pytorch_lightning.Trainer(
        max_steps=STEPS,
        accelerator="cpu",
        logger=False,
        callbacks=[saves],
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    model = Net()
    trainer.fit(model, data, ckpt_path=checkpoint)
    return model


with tempfile.TemporaryDirectory() as folder:
    root = Path(folder)
    write_coco(root)
    whole = fit(root)
    resumed = fit(root, str(root / "saved" / f"step={SAVED}.ckpt"))
    assert resumed.seen == whole.seen[SAVED:]
    assert torch.equal(resumed.net.weight, whole.net.weight)
    print(f"resumed with the next batch, {len(whole.seen)} steps")
