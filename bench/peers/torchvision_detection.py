# SPDX-License-Identifier: Apache-2.0
"""torchvision's reference recipe of SSD in PyTorch's DataLoader: v2 on tv_tensors.

Variants: "tensor" (decode_jpeg, uint8 tensors), "pil" (Pillow's pictures up to the last steps).
"""

import torch
from coco_rows import records_for
from PIL import Image
from protocol import serve
from torchvision import tv_tensors
from torchvision.io import ImageReadMode, decode_jpeg, read_file
from torchvision.transforms import v2


class Detection(torch.utils.data.Dataset):
    def __init__(self, job):
        self.records, self.pil = records_for(job) * job.repeat, job.variant == "pil"
        steps = [
            v2.RandomPhotometricDistort(),
            v2.RandomZoomOut(fill=[123.0, 117.0, 104.0]),
            v2.RandomIoUCrop(),
            v2.RandomHorizontalFlip(0.5),
            v2.Resize((300, 300), antialias=True),
        ]
        if self.pil:
            steps[1] = v2.RandomZoomOut(fill=[123, 117, 104])
            steps.append(v2.PILToTensor())
        steps += [
            v2.ToDtype(torch.float, scale=True),
            v2.ConvertBoundingBoxFormat(tv_tensors.BoundingBoxFormat.XYXY),
            v2.SanitizeBoundingBoxes(),
            v2.ToPureTensor(),
        ]
        self.transforms = v2.Compose(steps)

    def __len__(self):
        return len(self.records)

    def __getitem__(self, index):
        path, size, boxes, labels = self.records[index]
        if self.pil:
            with open(path, "rb") as file:
                image = Image.open(file).convert("RGB")
        else:
            image = tv_tensors.Image(decode_jpeg(read_file(path), mode=ImageReadMode.RGB))
        boxes = torch.tensor(boxes, dtype=torch.float32).reshape(-1, 4)
        boxes = tv_tensors.BoundingBoxes(boxes, format="XYWH", canvas_size=size)
        target = {"boxes": boxes, "labels": torch.tensor(labels, dtype=torch.int64)}
        return self.transforms(image, target)


def collate(records):
    images, targets = zip(*records, strict=True)
    return torch.stack(images), list(targets)


def make_batches(job):
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(
        Detection(job),
        batch_size=job.batch_size,
        shuffle=True,
        num_workers=job.threads,
        persistent_workers=True,
        collate_fn=collate,
    )
    return lambda: (len(targets) for _, targets in loader)


serve(make_batches)
